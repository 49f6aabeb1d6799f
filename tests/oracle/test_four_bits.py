"""Values of four bits against the reference's own decoder."""

from __future__ import annotations

import numpy as np
import pytest

from paramcount.formats.float4 import widen_mxfp4

torch = pytest.importorskip("torch")


def test_mxfp4_is_widened_as_the_reference_does_it() -> None:
    """integrations/mxfp4.py of transformers 5.23. It returns [experts, inputs, outputs]."""
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors

    rng = np.random.default_rng(0)
    blocks = rng.integers(0, 256, (3, 5, 4, 16), dtype=np.uint8)
    scales = rng.integers(100, 150, (3, 5, 4), dtype=np.uint8)
    expected = convert_moe_packed_tensors(torch.tensor(blocks), torch.tensor(scales), dtype=torch.float32)
    assert np.array_equal(widen_mxfp4(blocks, scales).swapaxes(1, 2), expected.numpy())
