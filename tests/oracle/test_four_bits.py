"""Values of four bits against the reference's own decoder, and against PyTorch's types."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from paramcount.formats.packing import Packing
from paramcount.formats.small_floats import widen_float8
from paramcount.formats.weights import get_format

RNG = np.random.default_rng(0)


def test_mxfp4_is_widened_as_the_reference_does_it() -> None:
    """integrations/mxfp4.py of transformers 5.23. It returns [experts, inputs, outputs]."""
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors

    blocks = RNG.integers(0, 256, (3, 5, 4, 16), dtype=np.uint8)
    scales = RNG.integers(100, 150, (3, 5, 4), dtype=np.uint8)
    expected = convert_moe_packed_tensors(torch.tensor(blocks), torch.tensor(scales), dtype=torch.float32)
    parts = {"scale": widen_float8(scales, "F8_E8M0")}
    found = get_format("mxfp4").widen(Packing("mxfp4", "U8", 4, (1, 32), "U8"), blocks, parts)
    assert np.array_equal(found.swapaxes(1, 2), expected.numpy())


@pytest.mark.parametrize(("layout", "inverted"), [("nvfp4", False), ("nvfp4 packed", True)])
def test_nvfp4_is_the_product_of_its_values_and_two_scales(layout: str, inverted: bool) -> None:
    """compressed-tensors 0.20, quantization/lifecycle/forward.py: a scale is divided by the global scale; its converter
    of ModelOpt's files, entrypoints/convert/converters/modelopt_nvfp4.py, inverts weight_scale_2. A value of E2M1 by
    its bits: sign, two of an exponent of bias 1, one of a fraction.
    """
    bits = RNG.integers(0, 256, (6, 24), dtype=np.uint8)
    scales = torch.rand(6, 3).mul(400).to(torch.float8_e4m3fn)
    whole = np.array([0.037], np.float32)
    expected = np.zeros((6, 48))
    for row, byte in np.ndindex(6, 24):
        for half in (0, 1):
            nibble = int(bits[row, byte]) >> 4 * half & 15
            exponent, fraction = nibble >> 1 & 3, nibble & 1
            value = (1 + fraction / 2) * 2.0 ** (exponent - 1) if exponent else fraction / 2
            expected[row, 2 * byte + half] = value * (-1) ** (nibble >> 3)
    expected *= scales.float().numpy().repeat(16, 1) * (1 / whole if inverted else whole)
    parts = {"scale": widen_float8(scales.view(torch.uint8).numpy(), "F8_E4M3"), "tensor scale": whole}
    found = get_format("nvfp4").widen(Packing(layout, "U8", 4, (1, 16), "F8_E4M3"), bits, parts)
    assert found.dtype == np.float32
    assert np.allclose(found, expected, rtol=1e-6, atol=0)
