"""Directories of sentence-transformers: the model without head, and the modules with weights behind it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
from tests.refusing import model_error
from tests.running import Runner
from tests.test_config_files import write_cache, write_config

# github intsig-textin/acge_text_embedding@4ec0bf249932: modules.json and 2_Dense/config.json
MODULES = [
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    {"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.models.Dense"},
]
DENSE = {
    "in_features": 1024, "out_features": 1792, "bias": True,
    "activation_function": "torch.nn.modules.linear.Identity",
}  # fmt: skip
POOLING = {"word_embedding_dimension": 1024, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}
BERT = {
    "model_type": "bert", "architectures": ["BertModel"], "vocab_size": 21128, "hidden_size": 1024,
    "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096, "max_position_embeddings": 1024,
    "type_vocab_size": 2,
}  # fmt: skip
# all-MiniLM-L6-v2: BertModel of transformers 5.23.0 with these sizes has 22,713,216 parameters
MINI = {
    **BERT, "vocab_size": 30522, "hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12,
    "intermediate_size": 1536, "max_position_embeddings": 512,
}  # fmt: skip


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))


def write_model(
    folder: str, config: dict[str, Any] = BERT, dense: dict[str, Any] | None = DENSE, pooling: Any = POOLING
) -> None:
    write_config(f"{folder}/config.json", config)
    write_config(f"{folder}/modules.json", json.dumps(MODULES[: 3 if dense else 2]))
    write_config(f"{folder}/1_Pooling/config.json", pooling)
    if dense:
        write_config(f"{folder}/2_Dense/config.json", dense)


def test_a_dense_module_is_counted_behind_the_model(run: Runner) -> None:
    write_model("acge")
    count, base = pc.count("./acge"), pc.count(BERT)
    assert count.total - base.total == 1024 * 1792 + 1792
    assert count.reference == "SentenceTransformer"
    dense = {tensor.name: tensor.shape for tensor in count.tensors if tensor.name.startswith("2.")}
    assert dense == {"2.linear.weight": (1792, 1024), "2.linear.bias": (1792,)}
    assert pc.load("./acge").reading.notes == ("read as a sentence-transformers model: Transformer, Pooling and Dense",)
    for command in ("show", "memory", "trace", "explain", "flops", "compare"):
        assert run(command, "./acge").code == 0, command
    assert pc.count("acge/config.json").total == base.total


def test_a_folder_without_dense_modules_is_the_model_without_a_head() -> None:
    write_model(
        "mini", {**MINI, "architectures": ["BertForMaskedLM"]}, None, {**POOLING, "word_embedding_dimension": 384}
    )
    count = pc.count("./mini")
    assert (count.total, count.lm_head) == (22_713_216, 0)


def test_several_pooled_vectors_are_joined() -> None:
    both = {**POOLING, "pooling_mode_cls_token": True}
    write_model("both", BERT, {**DENSE, "in_features": 2048}, both)
    assert pc.count("./both").total - pc.count(BERT).total == 2048 * 1792 + 1792
    write_model("one", BERT, {**DENSE, "in_features": 2048})
    assert model_error("./one") == (
        "one/2_Dense/config.json: in_features = 2048, but the vector before it has 1024 elements"
    )


def test_a_repository_in_the_cache_is_read_with_its_modules() -> None:
    folder = write_cache("someone/acge", "aaa", BERT)
    snapshot = folder / "snapshots" / "aaa"
    write_config(f"{snapshot}/modules.json", json.dumps(MODULES))
    write_config(f"{snapshot}/1_Pooling/config.json", POOLING)
    write_config(f"{snapshot}/2_Dense/config.json", DENSE)
    assert pc.count("someone/acge").total == pc.count(str(folder)).total == pc.count(BERT).total + 1_836_800


def test_scan_counts_the_directory_once(run: Runner) -> None:
    write_model("s/acge")
    done = run("scan", "s", "--csv", "--columns", "total")
    assert (done.code, done.out.splitlines()) == (0, ["id,total", f"acge,{pc.count(BERT).total + 1_836_800}"])


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        ([{**MODULES[2]}], "begins with Dense (expected one Transformer, and then other modules)"),
        ([MODULES[0], {"type": "sentence_transformers.models.Asym", "path": "1_Asym"}],
         "modules.1.type = 'Asym' (expected Dense, Transformer, LayerNorm, Dropout, Normalize or 1 other)"),
        ([MODULES[0], {"type": "sentence_transformers.models.Dense", "path": "../x"}],
         "modules.1 = {…} (expected type and path of a module)"),
    ],
)  # fmt: skip
def test_modules_that_are_not_known_are_an_error(modules: Any, message: str) -> None:
    write_model("x")
    write_config("x/modules.json", json.dumps(modules))
    assert model_error("./x").startswith(f"x/modules.json: {message.partition(' (')[0]}")


@pytest.mark.parametrize("key", ["in_features", "out_features"])
def test_a_missing_size_of_a_dense_module_is_an_error(key: str) -> None:
    write_model("x", BERT, {name: value for name, value in DENSE.items() if name != key})
    assert model_error("./x") == f"x/2_Dense/config.json: {key} is missing (expected a positive integer)"
