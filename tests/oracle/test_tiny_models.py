"""The tiny models in the reference: the frozen logits are its own, and those of NumPy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers.models.mamba.modeling_mamba import mamba_selective_scan

import paramcount as pc
from paramcount.tiny import NAMES, encode, find_folder
from tests import train_tiny_models as training

FROZEN = json.loads((Path(__file__).parents[1] / "data/tiny_models.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_the_reference_has_the_frozen_logits_and_those_of_numpy(name: str) -> None:
    model = training.open_model(name)
    for text, frozen in FROZEN["logits"][name].items():
        expected = training.compute_logits(model, text)
        assert np.allclose(frozen, expected, rtol=1e-5, atol=1e-5)
        found = pc.run(name, find_folder(name) or "", encode(text)).logits
        assert np.allclose(found, expected, rtol=1e-5, atol=1e-4)


def test_the_quick_scan_of_the_training_is_that_of_the_reference() -> None:
    """Outputs and gradients."""
    generator = torch.Generator().manual_seed(0)
    shapes = {"u": (2, 6, 9), "step": (2, 6, 9), "b": (2, 4, 9), "c": (2, 4, 9), "z": (2, 6, 9)}
    given = {name: torch.randn(shape, generator=generator).requires_grad_() for name, shape in shapes.items()}
    a, d, bias = (-torch.rand(6, 4, generator=generator), torch.ones(6), torch.zeros(6))
    weights = torch.randn(2, 6, 9, generator=generator)
    results = []
    for scan in (mamba_selective_scan, training.scan_quickly):
        options: dict[str, Any] = {"delta_softplus": True} if scan is mamba_selective_scan else {}
        u, step, b, c, z = given.values()
        y = scan(u, step, a, b, c, D=d, z=z, delta_bias=bias, **options)
        results.append([y, *torch.autograd.grad((y * weights).sum(), list(given.values()))])
    for expected, found in zip(*results):
        assert torch.allclose(found, expected, rtol=1e-4, atol=1e-5)
