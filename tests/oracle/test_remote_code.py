"""Classes that only their authors publish have the tensors of an independent transcription, and compute its outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from paramcount.api import load
from paramcount.execution import run_model
from tests.oracle import logits, passes, remote_decoders, remote_encoders, remote_fusion, remote_heads
from tests.oracle.differential import count_document

TABLES: tuple[Any, ...] = (remote_encoders, remote_heads, remote_fusion, remote_decoders)
DOCUMENTS: dict[str, dict[str, Any]] = {}
BUILD: dict[str, Any] = {}
for module in TABLES:
    documents = {**module.MODELS, **module.HEADED, **getattr(module, "COUNTED", {})}
    DOCUMENTS |= documents
    BUILD |= dict.fromkeys(documents, module.build)


def build(name: str) -> nn.Module:
    model: nn.Module = BUILD[name](DOCUMENTS[name])
    logits.fill_weights(model)
    return model


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_tensor_has_the_name_and_the_shape_of_the_transcription(name: str) -> None:
    count, found, buffers = count_document(DOCUMENTS[name])
    expected = {key: tuple(weight.shape) for key, weight in build(name).named_parameters()}
    assert {key: shape for key, shape in found.items() if 0 not in shape} == expected
    assert count.total == sum(int(np.prod(shape)) for shape in expected.values())
    assert buffers == {}
    assert (count.not_counted, count.warnings, count.notes) == ((), (), ())


@pytest.mark.parametrize("name", [name for module in TABLES for name in module.MODELS])
def test_the_flow_computes_the_logits_of_the_transcription(name: str) -> None:
    difference = logits.compare_logits(DOCUMENTS[name], "", model=build(name))
    assert difference.whole < logits.TOLERANCE
    assert difference.decoded < logits.TOLERANCE


@pytest.mark.parametrize("name", [name for module in TABLES for name in module.HEADED])
def test_a_head_computes_the_outputs_of_the_transcription(name: str) -> None:
    model, sizes = build(name), load(DOCUMENTS[name]).sizes
    ids = passes.make_token_ids(logits.count_tokens(DOCUMENTS[name], sizes), 1)
    with torch.no_grad():
        expected = model(input_ids=ids)["logits"][0].numpy()
    found = run_model(sizes, logits.find_weights(model, sizes), ids[0].tolist()).logits
    assert np.abs(found - expected).max() < logits.TOLERANCE * np.abs(expected).max()
