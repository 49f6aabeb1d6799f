"""Classes with the head of another task: every one that the reference has for a supported model type is counted as it
builds it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

import paramcount as pc
from paramcount.architectures import ARCHITECTURES, architecture, split_name
from paramcount.architectures.classes import get_base_class, get_reference_class
from paramcount.architectures.task_heads import list_headed_types, list_task_heads
from paramcount.huggingface.config import list_supported_classes
from tests.model_types import MODEL_TYPES
from tests.oracle.differential import EXAMPLES, add_labels, build_model, find_differences, make_config, make_document
from tests.test_task_heads import LABELS, REFUSED_LABELS

TASKS = (
    "FOR_SEQUENCE_CLASSIFICATION", "FOR_TOKEN_CLASSIFICATION", "FOR_QUESTION_ANSWERING", "FOR_MULTIPLE_CHOICE",
    "FOR_NEXT_SENTENCE_PREDICTION",
    "FOR_PRETRAINING", "FOR_AUDIO_CLASSIFICATION",
)  # fmt: skip
NAMES = [f"{model_type}.{cls}" for model_type in list_headed_types() for cls in list_task_heads(model_type)]
TYPES = sorted(name for name in ARCHITECTURES if not split_name(name)[1] and name in MODEL_TYPES)


def list_pairs() -> Iterator[tuple[str, str]]:
    """(model type, class) of the reference's auto mappings, of the types that are supported."""
    from transformers.models.auto import modeling_auto

    for task in TASKS:
        for model_type, classes in getattr(modeling_auto, f"MODEL_{task}_MAPPING_NAMES").items():
            if model_type in TYPES:
                yield from ((model_type, cls) for cls in ([classes] if isinstance(classes, str) else classes))


# Heads that are refused: their base is another model than that of the class for language modelling.
NOT_DECLARED = {
    "Qwen3ASRForTokenClassification",
    "ReformerForQuestionAnswering",
    "ReformerForSequenceClassification",
    "T5Gemma2ForSequenceClassification",
    "T5Gemma2ForTokenClassification",
}


def test_every_class_that_the_reference_has_for_a_task_is_supported_or_listed() -> None:
    found = sorted(set(list_pairs()))
    assert len(found) > 250
    missing = {cls for model_type, cls in found if cls not in list_supported_classes(model_type)}
    assert missing == NOT_DECLARED


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_class_with_another_head_is_counted_as_the_reference_builds_it_or_rejected_by_both(name: str) -> None:
    model_type, cls = split_name(name)
    rng = random.Random(2)  # noqa: S311
    for _ in range(max(1, EXAMPLES // 4)):
        document = add_labels(make_document(model_type, rng.choice, MODEL_TYPES[model_type].vary), cls, rng.choice)
        assert find_differences(document, cls) == []


@pytest.mark.parametrize("name", TYPES)
def test_the_class_without_a_head_is_the_one_that_the_reference_has(name: str) -> None:
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

    declared = architecture(name)
    known = MODEL_MAPPING_NAMES.get(name, "")
    expected = known if isinstance(known, str) else known[0]
    if not get_base_class(declared):
        assert expected not in list_supported_classes(name) or expected == get_reference_class(
            declared
        )  # a larger model's, or the class itself
        return
    if not expected:
        pytest.skip("the reference has none of its own")
    assert get_base_class(declared) == expected
    rng = random.Random(4)  # noqa: S311
    for _ in range(40):
        document = make_document(name, rng.choice, MODEL_TYPES[name].vary) | {"architectures": [expected]}
        try:
            count = pc.count(document)
        except pc.ParamcountError:
            continue
        assert sum(p.numel() for p in build_model(document, expected).parameters()) == count.total + sum(
            count.unreachable.values()
        )
        return
    pytest.fail("no config is counted")


@pytest.mark.parametrize(("keys", "labels"), LABELS)
def test_labels_are_counted_as_the_reference_counts_them(keys: dict[str, Any], labels: int) -> None:
    assert make_config({"model_type": "llama", **keys}, "LlamaForSequenceClassification").num_labels == labels


@pytest.mark.parametrize("keys", [keys for keys, _ in REFUSED_LABELS])
def test_labels_that_the_reference_refuses(keys: dict[str, Any]) -> None:
    with pytest.raises(Exception):  # noqa: B017, PT011
        build_model({"model_type": "llama", "num_hidden_layers": 1, **keys}, "LlamaForSequenceClassification")
