"""Parameters that the reference allocates but no forward pass reads: with the total, they are its sum of numel.

The files of model types hold a config for every architecture with such tensors, what transformers 5.23.0 allocates for
it, and which tensors are unreachable. `python -m tests.oracle.refresh_types` writes them,
tests/oracle/test_unreachable.py checks them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
from paramcount.architectures import ARCHITECTURES, architecture
from paramcount.checkpoints.matching import expand_names
from paramcount.counting.tensors import list_unreachable
from paramcount.sizes import Sizes
from tests.running import Runner
from tests.test_checkpoint_layouts import verify_shapes
from tests.type_files import load_all

CASES: list[dict[str, Any]] = [case for cases in load_all("unreachable").values() for case in cases]
LONGCAT = {"model_type": "longcat_flash"}
BERT = {
    "model_type": "bert", "architectures": ["BertForMaskedLM"], "tie_word_embeddings": False, "vocab_size": 96,
    "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 40,
}  # fmt: skip


def class_name(case: dict[str, Any]) -> str:
    return str(case["config"]["architectures"][0])


@pytest.mark.parametrize("case", CASES, ids=class_name)
def test_total_plus_unreachable_is_everything_that_the_reference_allocates(case: dict[str, Any]) -> None:
    count = pc.count(case["config"])
    assert count.total + sum(count.unreachable.values()) == case["numel"]
    tensors = expand_names(tensor for tensor, _ in list_unreachable(count.sizes, count.head))
    found = {name.removeprefix(case["prefix"]): tensor.elements // tensor.copies for name, tensor in tensors.items()}
    assert found == case["unreachable"]
    assert set(count.unreachable_reasons) == set(count.unreachable)


def test_every_declaration_of_unreachable_tensors_has_a_case() -> None:
    tested = {type(pc.load(case["config"]).sizes).unreachable for case in CASES if case["unreachable"]}
    library = [name for name in ARCHITECTURES if " of " not in architecture(name).reference]
    declared = {architecture(name).unreachable for name in library} - {Sizes.unreachable}
    assert declared - tested == set()


def test_longcat_s_identity_experts() -> None:
    """LongcatFlashExperts.__init__: 28 layers, 256 identity experts with gate and up matrices of 2,048 × 6,144."""
    count = pc.count(LONGCAT)
    assert sum(count.unreachable.values()) == 28 * 256 * 2 * 2048 * 6144 == 180_388_626_432
    assert set(count.unreachable_reasons.values()) == {"identity experts compute nothing"}


def test_unreachable_parameters_are_shown_with_their_reason_and_in_json(tmp_path: Path, run: Runner) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(BERT), encoding="utf-8")
    line = "not included in the total: unreachable 96 (an untied LM head reads a bias of its own)"
    assert line in " ".join(run(str(path)).out.split())
    data = json.loads(run(str(path), "--json").out)
    assert data["unreachable"] == {"cls.predictions.bias": 96}
    assert data["unreachable_reasons"] == {"cls.predictions.bias": "an untied LM head reads a bias of its own"}
    assert line in pc.explain(BERT).notes


def test_a_checkpoint_may_contain_an_unreachable_tensor_in_its_shape() -> None:
    shapes = {name: tensor.shape for name, tensor in expand_names(pc.count(BERT).tensors).items()}
    assert verify_shapes(BERT, shapes | {"cls.predictions.bias": (96,)}).ok
    assert [
        line.finding.kind
        for line in verify_shapes(BERT, shapes | {"cls.predictions.bias": (97,)}).lines
        if not line.finding.ok
    ] == ["unexpected"]
