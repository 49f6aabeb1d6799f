"""`paramcount trace`: text, --full, and every format."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest

import paramcount.zoo as zoo
from paramcount.api import trace
from paramcount.errors import ParamcountError
from paramcount.tracing.fused import split_fused
from paramcount.tracing.render import build_table, with_every_layer
from paramcount.zoo import count_model
from tests.batches import in_batches
from tests.golden import assert_golden
from tests.refusing import Refuse
from tests.running import Runner
from tests.structures import ZOO, pick_structures

GOLDEN = ["gpt2-small", "llama-3.1-8b", "mixtral-8x7b", "deepseek-v3", "jamba-v0.1"]


@pytest.mark.parametrize("id", GOLDEN)
def test_the_output_matches_the_golden_file(id: str, run: Runner) -> None:
    assert_golden(f"trace/{id}.txt", run("trace", id).out)


@in_batches("id", pick_structures(ZOO, every=8), size=80)
def test_marked_dimensions_are_equal(id: str) -> None:
    told = "\n".join(row[1] for row in build_table(trace(id)).rows)
    marked = re.findall(r"‹(\w+)›\] · \[‹(\w+)›", told)
    assert len(marked) > 2
    assert [pair for pair in marked if pair[0] != pair[1]] == []


@in_batches("id", pick_structures(ZOO, every=8), size=40)
def test_with_full_each_tensor_outside_the_experts_appears_under_its_own_name(id: str) -> None:
    met = [
        (held.name, held.stored)
        for step in with_every_layer(trace(id)).steps
        for held in step.weights
        if not held.tied_to and 0 not in held.stored  # Ling Plus has 0 shared experts, which no file contains
    ]
    expected = []
    for tensor in count_model(zoo.load_entry(id)).tensors:
        if tensor.part == "mtp" or tensor.role == "legacy_buffer" or tensor.tied_to:
            continue
        layer = next((repeat for repeat in tensor.repeats if repeat.axis == "layer"), None)
        indices = layer.indices if layer else (0,)
        expected += [(tensor.name.replace("{layer}", str(i)), tensor.shape) for i in indices]
    assert sorted(met) == sorted(expected)


def test_with_full_layers_of_several_kinds_are_in_order() -> None:
    """Jamba, arXiv:2403.19887, section 3.1: one layer in eight attends, every second has experts."""
    steps = with_every_layer(trace("jamba-v0.1")).steps
    attending = list(dict.fromkeys(step.layers[0].name for step in steps if step.op == "QKᵀ"))
    assert attending == [f"model.layers.{i}" for i in (4, 12, 20, 28)]
    names = list(dict.fromkeys(step.layers[0].name for step in steps if step.layers))
    assert names == [f"model.layers.{i}" for i in range(32)]


def test_full_with_too_many_layers_is_an_error(tmp_path: Path, refuse: Refuse) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "llama", "num_hidden_layers": 2**31}), encoding="utf-8")
    assert "at most 100,000; omit --full to show identical layers once" in refuse("trace", str(path), "--full")


def test_csv_has_a_row_for_each_step_and_heading(run: Runner) -> None:
    rows = list(csv.DictReader(io.StringIO(run("trace", "mixtral-8x7b", "--csv").out)))
    (up,) = [row for row in rows if row["name"].endswith("w3")]
    assert (up["step"].strip(), up["left"], up["right"], up["product"], up["copies"]) == (
        "up",
        "[routed, 4096]",
        "[4096, 14336]",
        "[routed, 14336]",
        "256",
    )
    assert [row["step"].strip() for row in rows if not row["op"]] == ["32 × layer", "2 of 8 experts"]


def test_json_has_every_field(run: Runner) -> None:
    data = json.loads(run("trace", "llama-3.1-8b", "--json", "--decode", "--past", "99").out)
    assert (data["schema_version"], data["id"], data["tokens"], data["past"]) == (2, "llama-3.1-8b", 1, 99)
    (keys,) = [step for step in data["steps"] if step["name"].endswith("k_proj")]
    assert keys["weights"][0]["stored"] == [1024, 4096]
    assert keys["product"] == {"left": [1, 4096], "right": [4096, 128], "out": [1, 128]}
    assert data["cache"] == [
        {
            "what": "keys and values",
            "shapes": [[100, 8, 128], [100, 8, 128]],
            "layers": 32,
            "grows": True,
            "elements": 2 * 32 * 100 * 8 * 128,
        }
    ]
    assert data["pattern"] == 32 * 32 * 100


def test_the_text_states_the_flops_of_a_layer_and_of_the_pass(run: Runner) -> None:
    """GPT-2, arXiv:2001.08361, section 2.1: 2 FLOPs per parameter of a matrix and token, and 4 · n² · d for the scores
    and the weighted values of n tokens. The LM head runs for the last token.
    """
    n, d = 5, 768
    layer = 2 * n * 12 * d * d + 4 * n * n * d
    text = run("trace", "gpt2-small", "--tokens", "5").out
    assert f"h.{{layer}}   0–11; {layer:,} FLOPs each" in text
    total = 12 * layer + 2 * d * 50_257
    assert f"FLOPs: {total:,} (matmuls, 2 per multiply-add)" in text
    rows = csv.DictReader(io.StringIO(run("trace", "gpt2-small", "--tokens", "5", "--csv").out))
    assert sum(int(row["flops"] or 0) for row in rows) == total


@pytest.mark.filterwarnings("ignore::paramcount.ConfigWarning")
def test_flops_of_inputs_of_any_length_are_unknown() -> None:
    assert "FLOPs: unknown, because sizes depend on the input" in build_table(trace({"model_type": "t5"})).below


@pytest.mark.parametrize(
    ("config", "line"),
    [
        ({"model_type": "bert"}, "token type embedding [5] in [2, 768] → [5, 768]; row lookup"),
        (
            {"model_type": "t5"},
            "relative positions [5, 5]; distance between each pair of tokens, in 32 buckets up to 128",
        ),
        ({"model_type": "t5"}, "add bias [8, 5, 5]; added to the attention scores"),
        ({"model_type": "gpt_oss"}, "quick_gelu [routed, 2880]; quick GELU"),
        ({"model_type": "llava"}, "patch embedding [patches, 3, 14, 14] → [patches, 1024]"),
        ({"model_type": "llava"}, "class token [patches, 1024]; prepended to the sequence"),
        ({"model_type": "llava"}, "hidden states [patches, 1024]; output of an intermediate layer"),
        ({"model_type": "deepseek_v3"}, "limit to groups [5, 256]; 4 of 8 groups, by the sum of their two best scores"),
        ({"model_type": "deepseek_v3"}, "top k [5, 256]; 8 experts per token"),
    ],
    ids=lambda value: value["model_type"] if isinstance(value, dict) else "",
)
@pytest.mark.filterwarnings("ignore::paramcount.ConfigWarning")
def test_a_step_says_what_it_does(config: dict[str, str], line: str) -> None:
    """The configs of the reference: BertConfig, T5Config, GptOssConfig, LlavaConfig and DeepseekV3Config, with their
    defaults.
    """
    rows = [f"{name.strip()} {how}" for name, how, *_ in build_table(trace(config)).rows]
    assert line in rows


@pytest.mark.filterwarnings("ignore::paramcount.ConfigWarning")
def test_sizes_of_an_encoder_depend_on_what_it_sees_or_hears() -> None:
    assert "height, width, patches: size depends on the image" in build_table(trace({"model_type": "llava"})).below
    whisper = build_table(trace({"model_type": "qwen2_audio"})).below
    assert [line for line in whisper if line.endswith("size depends on the audio")] != []


@pytest.mark.filterwarnings("ignore::paramcount.ConfigWarning")
def test_only_a_kv_cache_holds_tokens() -> None:
    """Mamba keeps a state of fixed size, arXiv:2312.00752, section 3."""
    assert build_table(trace({"model_type": "mamba"}, past=7)).above[0].endswith("1 token after 7 earlier tokens")
    assert build_table(trace({"model_type": "llama"}, past=7)).above[0].endswith("1 token after 7 cached tokens")


@pytest.mark.parametrize(
    ("document", "most"),
    [
        ({"model_type": "gpt_neox"}, None),  # rotary: only the masks of older files are as long
        ({"model_type": "m2m_100"}, None),  # sinusoids, which the reference extends
        ({"model_type": "tapas"}, None),  # later tokens have the last position
        ({"model_type": "roberta"}, 62),  # the first token has the third row
        ({"model_type": "opt"}, 64),  # which has two more rows
    ],
)
def test_a_text_is_as_long_as_the_position_embedding_has_rows_for_it(
    document: dict[str, str], most: int | None
) -> None:
    config = {**document, "max_position_embeddings": 64}
    assert len(trace(config, tokens=most or 65).steps) > 0
    if most:
        with pytest.raises(ParamcountError, match=f"65 tokens exceed the {most} positions of the position embedding"):
            trace(config, tokens=65)


def test_more_tokens_than_the_published_context_length_cause_a_warning(run: Runner) -> None:
    done = run("trace", "llama-3.1-8b", "--tokens", "131073")
    assert done.code == 0
    assert done.err == "warning: 131,073 tokens exceed the published context length of 131,072\n"


def test_a_hostile_name_stays_on_one_line(tmp_path: Path, run: Runner) -> None:
    folder = tmp_path / "a\x1b[31m"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "gpt2"}', encoding="utf-8")
    assert "\x1b" not in run("trace", str(folder)).out


# ---- a fused matrix is listed once: as the parts that people know, each with its share of the work


def list_names(id: str) -> list[str]:
    return [row[0].strip() for row in build_table(trace(id)).rows]


@pytest.mark.parametrize(
    ("id", "fused", "parts"),
    [
        ("gpt2-small", "q, k and v", ["queries", "keys", "values"]),
        ("phi-3-mini", "gate, up", ["gate", "up"]),
        ("mamba-130m", "input, gate", ["input", "gate"]),
    ],
)
def test_a_fused_matrix_is_not_listed_beside_its_parts(id: str, fused: str, parts: list[str]) -> None:
    names = list_names(id)
    assert fused in [step.text for step in trace(id).steps]
    assert fused not in names
    assert [names.count(part) for part in parts] == [1] * len(parts)


@pytest.mark.parametrize("id", ["gpt2-small", "phi-3-mini", "mamba-130m", "falcon-7b", "gpt-oss-20b"])
@pytest.mark.parametrize("full", [[], ["--full"]])
def test_the_flops_of_the_rows_sum_to_those_of_the_pass(id: str, full: list[str], run: Runner) -> None:
    done = run("trace", id, "--csv", *full)
    rows = csv.DictReader(io.StringIO(done.out))
    assert sum(int(row["flops"] or 0) for row in rows) == trace(id).flops


def test_a_matrix_that_another_step_reads_as_well_stays() -> None:
    steps = list(trace("gpt2-small").steps)
    fused = next(i for i, step in enumerate(steps) if step.text == "q, k and v")
    assert steps[fused] not in split_fused(steps)
    steps[-1] = steps[-1]._replace(reads=(*steps[-1].reads, fused))
    assert split_fused(steps) == steps
