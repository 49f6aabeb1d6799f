"""Multimodal models whose code their authors publish: every parameter of released configs."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.oracle import differential
from tests.oracle.remote import make_multimodal

RELEASED = json.loads((Path(__file__).parents[1] / "data" / "remote_models.json").read_text(encoding="utf-8"))


def list_parameters(model: Any) -> dict[str, tuple[int, ...]]:
    return {name: tuple(weight.shape) for name, weight in model.named_parameters()}


@pytest.mark.parametrize(
    ("name", "cls"), [("DeepSeek-OCR", "make_ocr"), ("DeepSeek-OCR-2", "make_ocr2"), ("Molmo-7B-D-0924", "Molmo")]
)
def test_every_parameter_is_one_of_the_authors_code(name: str, cls: str) -> None:
    import torch

    document = RELEASED[name]["config"]
    with torch.device("meta"):
        expected = list_parameters(make_multimodal(cls)(SimpleNamespace(**document)))
    _, found, buffers = differential.count_document(document)
    assert found | differential.find_unreachable_tensors(document) == expected
    assert not buffers
