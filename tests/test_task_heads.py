"""Classes with a model's body and the head of another task: sequence classification, question answering, …"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import paramcount as pc
from paramcount.architectures import split_name
from paramcount.architectures.task_heads import list_headed_types, list_task_heads
from tests.batches import in_batches
from tests.cases import hash_shapes, load_task_heads
from tests.oracle.differential import count_document
from tests.refusing import model_error
from tests.structures import keep_every

CASES = load_task_heads()
NAMES = sorted(f"{model_type}.{cls}" for model_type in list_headed_types() for cls in list_task_heads(model_type))
LLAMA = {
    "model_type": "llama", "vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 40,
}  # fmt: skip
LLAMA_BODY = 96 * 32 + 2 * (4 * 32 * 32 + 3 * 32 * 40 + 2 * 32) + 32

# As transformers 5.23.0 reads them: tests/oracle/test_task_heads.py
LABELS: list[tuple[dict[str, Any], int]] = [
    ({}, 2),
    ({"num_labels": 7}, 7),
    ({"num_labels": 0}, 0),
    ({"id2label": None}, 2),
    ({"id2label": {"0": "a", "1": "b", "2": "c"}}, 3),
    ({"id2label": {"0": "a", "00": "b"}}, 1),
    ({"id2label": {}}, 0),
    ({"id2label": {"0": "a"}, "num_labels": 4}, 4),
    ({"label2id": {"a": 0, "b": 1, "c": 2}}, 2),
    ({"id2label": {"0": "a"}, "num_labels": 1, "problem_type": "multi_label_classification"}, 1),
]
REFUSED_LABELS: list[tuple[dict[str, Any], str]] = [
    ({"num_labels": None}, "num_labels = null (expected a non-negative integer)"),
    ({"num_labels": "3"}, "num_labels = '3' (expected a non-negative integer)"),
    ({"num_labels": 3.0}, "num_labels = 3.0 (expected a non-negative integer)"),
    ({"id2label": ["a", "b"]}, "id2label = ['a', 'b'] (expected a JSON object of numbers and names)"),
    ({"id2label": {"a": "0"}}, "id2label contains 'a': '0' (expected a JSON object of numbers and names)"),
    (
        {"num_labels": 1, "problem_type": "single_label_classification"},
        "num_labels = 1 with problem_type = single_label_classification (expected 2 or more)",
    ),
]


def test_frozen_cases_cover_every_class() -> None:
    assert sorted(CASES) == NAMES
    assert [name for name, cases in CASES.items() if not cases] == []


@in_batches("name", NAMES, size=60)
def test_a_class_with_another_head_is_counted_as_the_reference_built_it(name: str) -> None:
    for case in CASES[name]:
        count, parameters, buffers = count_document(case["config"])
        assert {what: getattr(count, what) for what in ("total", "embedding", "buffers")} == {
            what: case[what] for what in ("total", "embedding", "buffers")
        }
        assert count.lm_head == case.get("lm_head", 0)
        assert (hash_shapes(parameters, case["prefix"]), hash_shapes(buffers, case["prefix"])) == (
            case["tensors"],
            case["buffer_tensors"],
        )


ONE_OF_EACH_HEAD = {
    (head.build, head.moved): f"{kind}.{cls}"
    for kind in list_headed_types()
    for cls, head in list_task_heads(kind).items()
}


@pytest.mark.parametrize("name", keep_every(6, ONE_OF_EACH_HEAD.values()))
def test_every_view_supports_a_class_with_another_head(name: str) -> None:
    config = CASES[name][0]["config"]
    count = pc.count(config)
    assert (count.reference, count.not_counted) == (split_name(name)[1], ())
    assert (
        sum(count.components.values())
        == sum(count.parts.values())
        == sum(tensor.parameters for tensor in count.tensors)
        == count.total
    )
    assert pc.explain(config).total == count.total
    assert pc.trace(config).steps
    assert "<svg" in pc.draw(config).svg()


@pytest.mark.parametrize(("keys", "labels"), LABELS)
def test_the_number_of_labels_is_read_from_the_config(keys: dict[str, Any], labels: int) -> None:
    assert (
        pc.count({**LLAMA, **keys, "architectures": ["LlamaForSequenceClassification"]}).components["other"]
        == 32 * labels
    )


@pytest.mark.parametrize(("keys", "message"), REFUSED_LABELS)
def test_an_invalid_number_of_labels_is_an_error(keys: dict[str, Any], message: str) -> None:
    assert model_error({**LLAMA, **keys, "architectures": ["LlamaForSequenceClassification"]}) == message


def test_labels_of_a_multimodal_model_are_at_the_top_level() -> None:
    config = {
        "model_type": "gemma3",
        "architectures": ["Gemma3ForSequenceClassification"],
        "text_config": {"hidden_size": 64, "num_labels": 9},
    }
    assert pc.count(config | {"num_labels": 5}).components["other"] == 64 * 5


@pytest.mark.parametrize("cls", ["Gemma3Model", "MllamaModel", "Gemma4Model", "Qwen3_5Model"])
def test_a_multimodal_model_without_a_head_is_its_own_class(cls: str) -> None:
    model_type = cls.removesuffix("Model").lower()
    whole = pc.count({"model_type": model_type})
    bare = pc.count({"model_type": model_type, "architectures": [cls]})
    assert (bare.reference, bare.not_counted, bare.total) == (cls, ("lm_head",), whole.total - whole.lm_head)


def test_the_number_of_labels_can_be_set() -> None:
    config = {**LLAMA, "architectures": ["LlamaForSequenceClassification"]}
    assert pc.count(pc.what_if(config, n_labels=7)).total == LLAMA_BODY + 7 * 32


def test_a_zoo_entry_may_name_a_class_with_another_head() -> None:
    sizes = pc.load({**LLAMA, "architectures": ["LlamaForSequenceClassification"]}).sizes
    entry = {"architecture": "llama.LlamaForSequenceClassification", "config": sizes.to_dict()}
    assert pc.count(entry).total == LLAMA_BODY + 2 * 32


def test_the_heads_of_other_tasks_are_loaded_only_for_their_classes() -> None:
    code = "import sys, paramcount as pc; pc.count({'model_type': 'llama', 'architectures': ['LlamaForCausalLM']}); "
    code += "sys.exit('paramcount.architectures.task_heads' in sys.modules)"
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=False).returncode == 0
