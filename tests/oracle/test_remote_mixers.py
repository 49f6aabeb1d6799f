"""Decoders that only their authors publish have the tensors of an independent transcription, and compute its logits."""

from __future__ import annotations

import pytest

from tests.oracle import logits, remote_mixers
from tests.oracle.differential import count_document


@pytest.mark.parametrize("name", remote_mixers.MODELS)
def test_every_tensor_and_the_logits_are_those_of_the_transcription(name: str) -> None:
    document, model = remote_mixers.MODELS[name], remote_mixers.build(name)
    logits.fill_weights(model)
    count, found, buffers = count_document(document)
    assert found == {key: tuple(weight.shape) for key, weight in model.named_parameters()}
    assert count.total == sum(weight.numel() for weight in model.parameters())
    assert (buffers, count.not_counted, count.warnings, count.notes) == ({}, (), (), ())
    difference = logits.compare_logits(document, "", model=model)
    assert difference.whole < logits.TOLERANCE
    assert difference.decoded < logits.TOLERANCE
