"""Decoders that only their authors publish have the tensors of an independent transcription, and compute its logits."""

from __future__ import annotations

import pytest

from tests.oracle import logits, remote_mixers
from tests.oracle.differential import count_document


@pytest.mark.parametrize("name", [*remote_mixers.MODELS, *remote_mixers.COUNTED])
def test_every_tensor_is_one_of_the_transcription(name: str) -> None:
    document, model = {**remote_mixers.MODELS, **remote_mixers.COUNTED}[name], remote_mixers.build(name)
    count, found, buffers = count_document(document)
    assert found == {key: tuple(weight.shape) for key, weight in model.named_parameters()}
    assert count.total == sum(weight.numel() for weight in model.parameters())
    assert (buffers, count.not_counted, count.warnings, count.notes) == ({}, (), (), ())


@pytest.mark.parametrize("name", remote_mixers.MODELS)
def test_the_flow_computes_the_logits_of_the_transcription(name: str) -> None:
    model = remote_mixers.build(name)
    logits.fill_weights(model)
    difference = logits.compare_logits(remote_mixers.MODELS[name], "", model=model)
    assert difference.whole < logits.TOLERANCE
    assert difference.decoded < logits.TOLERANCE
