"""Heads on models that read a sound, and what they hide of it, compute what the reference computes."""

from __future__ import annotations

from typing import Any

import pytest

from paramcount import flow as ops
from paramcount.api import load
from paramcount.architectures import architecture
from paramcount.architectures.classes import get_base_class
from paramcount.architectures.task_heads import list_task_heads
from paramcount.counting.sum_weights import list_flows
from tests.model_types import MODEL_TYPES
from tests.oracle import logits, passes, sounds
from tests.oracle.differential import silence
from tests.oracle.test_speech import compute

HEADS = {
    "num_labels": 5, "classifier_proj_size": 9, "tdnn_dim": [7, 11], "tdnn_kernel": [3, 2], "tdnn_dilation": [2, 1],
    "xvector_output_dim": 13, "num_codevector_groups": 2, "num_codevectors_per_group": 5, "codevector_dim": 12,
    "proj_codevector_dim": 10, "num_ctc_classes": 8, "num_clusters": 4, "add_adapter": False, "mask_time_prob": 0.1,
}  # fmt: skip
TYPES = sorted(name for name in sounds.READS.keys() & MODEL_TYPES.keys() if get_base_class(architecture(name)))
NAMES = [(name, cls) for name in TYPES for cls in sorted(list_task_heads(name))]
# What comes out besides logits: the other value of a head that gives two.
SECOND = {"projected_states": "projected_quantized_states"}

UNREAD = ("UniSpeechForPreTraining",)  # the reference computes scores of states and codes at random, and drops them


def is_close(found: Any, expected: Any) -> bool:
    return bool(abs(found - expected).max() < logits.TOLERANCE * abs(expected).max())


@pytest.mark.parametrize(("name", "cls"), NAMES)
def test_a_head_on_a_sound_gives_the_references_scores(name: str, cls: str) -> None:
    import torch

    silence()
    document = {**passes.make_document(name), **HEADS, "architectures": [cls]}
    model = logits.build_reference(document, cls)
    sizes = load(document).sizes
    flow, _ = next(iter(list_flows(sizes)))
    with torch.no_grad():
        given = sounds.make_sound(model)
        output = model(**given)
    inputs, _ = sounds.hear(model.base_model, given)
    first = next(key for key in ("logits", *SECOND) if key in output)
    if cls not in UNREAD:
        assert is_close(compute(flow, sizes, model, inputs), output[first][0].numpy())
    if first in SECOND:
        second = ops.second_value(flow, 0, "frames")
        assert is_close(compute(second, sizes, model, inputs), output[SECOND[first]][0].numpy())


@pytest.mark.parametrize("name", TYPES)
def test_a_learned_vector_takes_the_place_of_frames_that_are_hidden(name: str) -> None:
    import torch

    silence()
    cls = get_base_class(architecture(name))
    document = {**passes.make_document(name), "add_adapter": False, "mask_time_prob": 0.1, "architectures": [cls]}
    model = logits.build_reference(document, cls)
    sizes = load(document).sizes
    masked = torch.arange(sounds.FRAMES)[None] % 3 == 0
    inputs, expected = sounds.hear(model, sounds.make_sound(model), mask_time_indices=masked)
    flow = sizes.body(ops.given("tokens", "tokens"))
    found = compute(flow, sizes, model, inputs)
    assert is_close(found, expected)
    assert not is_close(compute(flow, sizes, model, {**inputs, "masked_frames": 0 * inputs["masked_frames"]}), expected)
