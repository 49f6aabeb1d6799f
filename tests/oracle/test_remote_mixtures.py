"""Mixtures of experts that only their authors publish have the tensors of an independent transcription, and compute its
logits.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from tests.oracle import logits, remote_openmoe
from tests.oracle.differential import count_document
from tests.oracle.test_remote_multimodal import RELEASED, list_parameters

BUILD = {"OpenMoE": remote_openmoe.make_openmoe, "openmoe": remote_openmoe.make_openmoe}
DOCUMENTS: dict[str, dict[str, Any]] = {**remote_openmoe.MODELS}


def build(name: str, document: dict[str, Any]) -> nn.Module:
    model: nn.Module = BUILD[name.split(",")[0].split("-")[0]](SimpleNamespace(**document))
    return model.eval()


@pytest.mark.parametrize("name", [*DOCUMENTS, "openmoe-base", "openmoe-8b"])
def test_every_tensor_has_the_name_and_the_shape_of_the_transcription(name: str) -> None:
    document = DOCUMENTS[name] if name in DOCUMENTS else RELEASED[name]["config"]
    with torch.device("meta"):
        model = build(name, document)
    _, found, buffers = count_document(document)
    assert found == list_parameters(model)
    assert buffers == {}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_flow_computes_the_logits_of_the_transcription(name: str) -> None:
    model = build(name, DOCUMENTS[name])
    logits.fill_weights(model)
    difference = logits.compare_logits(DOCUMENTS[name], "", model=model)
    assert difference.whole < logits.TOLERANCE
    assert difference.decoded < logits.TOLERANCE
