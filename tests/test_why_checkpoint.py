"""`why` on checkpoints: the number of values is the total plus named causes, with nothing unexplained."""

from __future__ import annotations

import csv
import json
from functools import cache
from math import prod
from pathlib import Path

import pytest

import paramcount as pc
from paramcount.auditing.why_checkpoint import CheckpointExplanation, explain_checkpoint
from paramcount.checkpoints.checkpoint import Checkpoint, File, FileTensor
from paramcount.checkpoints.opening.locate import open_checkpoint
from tests.damaging import DAMAGES, sample_names
from tests.gguf_layouts import load_entries
from tests.headers import (
    NAMES,
    Tensors,
    assign_shards,
    load_saved,
    make_checkpoint,
    total_bytes,
    write_file,
    write_header,
    write_index,
    write_shards,
)
from tests.released import count_hub_values, make_release
from tests.running import Runner
from tests.test_why import check_account

DATA = Path(__file__).parent / "data"
TRUTH = {
    truth["zoo_id"]: truth
    for path in sorted((DATA / "truth").glob("*.json"))
    if (truth := json.loads(path.read_text(encoding="utf-8")))
}
PACKED = [name for name in NAMES if name.endswith(("GPTQ", "AWQ", "FP4")) or "-FP8" in name]
PLAIN = [name for name in NAMES if name not in PACKED]
LEGACY = {"gpt2-small": "masks", "llama-2-7b": "frequencies"}  # buffers in the release
RELEASED = {
    "gpt2-small": "gpt2",
    "llama-2-7b": "llama-2-7b",
    "gpt-oss-20b": "gpt-oss-20b",
    "deepseek-v3": "deepseek-v3",
}  # {entry: its name in published_totals}

with (DATA / "published_totals.csv").open(encoding="utf-8", newline="") as file:
    ROWS = list(csv.DictReader(file))


def make_index(tensors: Tensors) -> Checkpoint:
    """The same checkpoint if only its index exists."""
    path = Path("model.safetensors.index.json")
    return Checkpoint(
        path,
        "safetensors",
        {name: FileTensor("a.safetensors") for name in tensors},
        (File("a.safetensors", Path("a.safetensors"), None),),
    )


def release_tensors(id: str) -> Tensors:
    return make_release(TRUTH[id]["config"], LEGACY.get(id, ""))


@cache
def explain_release(id: str) -> CheckpointExplanation:
    return explain_checkpoint(pc.load(id), make_checkpoint(release_tensors(id)))


def explain_saved(name: str, tensors: Tensors) -> CheckpointExplanation:
    """The explanation of a checkpoint of a model that the reference saved."""
    return explain_checkpoint(pc.load(load_saved(name).config), make_checkpoint(tensors))


def cause_units(found: CheckpointExplanation) -> dict[str, int]:
    return {cause.name: cause.units for cause in found.account.causes}


def check_sums(found: CheckpointExplanation) -> None:
    assert (found.left_over, found.account.base, found.account.count) == (
        0,
        "total",
        sum(found.verification.expected.values()) - omitted_values(found),
    )
    assert found.values == found.account.value == found.account.count + sum(cause_units(found).values())


def omitted_values(found: CheckpointExplanation) -> int:
    return cause_units(found).get("omitted by the converter", 0)


# ---- released files and their published figures


@pytest.mark.parametrize("id", RELEASED)
def test_a_released_file_has_the_explanation_of_its_published_figure(id: str) -> None:
    (published,) = {row["published"] for row in ROWS if row["model"] == RELEASED[id]}
    (answer,) = pc.why(id, published)
    found = explain_release(id)
    assert (found.verdict, found.ok, found.unknown) == ("exact", True, ())
    assert found.values == int(published) == count_hub_values(release_tensors(id))
    assert found.account == answer.accounts[0]
    check_sums(found)


def test_a_stored_copy_of_a_tied_head_is_one_cause() -> None:
    tensors: Tensors = {**load_saved("llama-tied").tensors}
    table = tensors["model.embed_tokens.weight"]
    found = explain_saved("llama-tied", {**tensors, "lm_head.weight": table})
    assert cause_units(found) == {"tied LM head counted twice": prod(table[1])}
    assert found.account.causes[0].items[0].arithmetic == " × ".join(map(str, table[1]))
    assert found.verdict == "exact"


# ---- files written by common libraries


def test_every_header_that_the_reference_saved_is_explained_to_the_last_value() -> None:
    for name in PLAIN:
        found = explain_saved(name, load_saved(name).tensors)
        assert (found.verdict, found.values) == (
            "exact",
            sum(prod(shape) for _, shape in load_saved(name).tensors.values()),
        ), name
        assert set(cause_units(found)) <= {"buffers"}, name
        check_sums(found)


@pytest.mark.parametrize(
    ("name", "causes"),
    [
        ("deepseek_v3-FP8", {"FP8 scales": "_scale_inv", "buffers": "e_score_correction_bias"}),
        ("qwen3_moe-FP8_together", {"FP8 scales": "_scale_inv"}),
        ("gpt_oss-MXFP4", {"MXFP4 scales": "_scales"}),
        ("llama-GPTQ", {"GPTQ scales": ".scales", "zero points": ".qzeros", "group indices": ".g_idx"}),
        ("gpt2-GPTQ", {"GPTQ scales": ".scales", "zero points": ".qzeros", "group indices": ".g_idx"}),
        ("llama-AWQ", {"AWQ scales": ".scales", "zero points": ".qzeros"}),
        (
            "other/llama-NVFP4",
            {"NVFP4 scales": ("weight_scale", "weight_global_scale"), "activation scales": "input_global_scale"},
        ),
    ],
)
def test_each_kind_of_tensor_next_to_packed_weights_is_a_cause(
    name: str, causes: dict[str, str | tuple[str, ...]]
) -> None:
    tensors = load_saved(name).tensors
    found = explain_saved(name, tensors)
    assert cause_units(found) == {
        cause: sum(prod(shape) for key, (_, shape) in tensors.items() if key.endswith(end))
        for cause, end in causes.items()
    }
    extra = sum(cause_units(found).values())
    packed = {
        key: prod(shape) * (8 if key.endswith("qweight") else 2 if key.endswith(("_blocks", "weight_packed")) else 1)
        for key, (_, shape) in tensors.items()
    }
    assert (
        found.values == sum(packed.values()) == found.account.count + extra
    )  # 4-bit values: eight per 32-bit word, two per byte
    assert found.verdict == "exact"
    check_sums(found)
    check_account(found.account)


def test_tensors_that_a_converter_omits_or_fuses_are_explained() -> None:
    for entry in load_entries():
        tensors: Tensors = {name: ("F32", shape) for name, shape in entry.tensors.items()}
        found = explain_checkpoint(
            pc.load(entry.config),
            make_checkpoint(tensors, Path("model.gguf"), "gguf", metadata={"general.architecture": entry.architecture}),
        )
        check_sums(found)
        assert found.values == sum(map(prod, entry.tensors.values())), entry.id


def test_encoders_in_a_separate_file_are_omitted_by_name() -> None:
    (entry,) = [entry for entry in load_entries() if entry.config["model_type"] == "llava"]
    tensors: Tensors = {name: ("F32", shape) for name, shape in entry.tensors.items()}
    count = pc.count(entry.config)
    found = explain_checkpoint(
        pc.load(entry.config),
        make_checkpoint(tensors, Path("model.gguf"), "gguf", metadata={"general.architecture": entry.architecture}),
    )
    (cause,) = found.account.causes
    assert (cause.name, cause.units, cause.note) == (
        "omitted by the converter",
        count.language_model - count.total,
        "vision, projector",
    )
    assert found.values == count.language_model


# ---- problems are causes, too


@pytest.mark.parametrize("damage", DAMAGES)
def test_every_kind_of_damage_is_in_the_sum_and_reported_as_a_problem(damage: str) -> None:
    for name in ("llama-tied", "qwen2_moe", "gpt2"):
        for tensor in sample_names(list(load_saved(name).tensors), 3):
            for damaged in DAMAGES[damage](load_saved(name).tensors, tensor):
                found = explain_saved(name, damaged.tensors)
                assert found.values == sum(prod(shape) for _, shape in damaged.tensors.values())
                assert (found.ok, found.verdict) == (False, "not accounted for")
                check_sums(found)


def test_missing_misshapen_and_unexpected_tensors_are_named() -> None:
    """A checkpoint of a GPT-2 with an extra layer, half the positions and an unexpected tensor."""
    tensors: Tensors = {**load_saved("gpt2").tensors}
    c = load_saved("gpt2").config
    prefix = next(name for name in tensors if name.endswith("wpe.weight")).removesuffix("wpe.weight")
    d, layers, positions = c["n_embd"], c["n_layer"], c["n_positions"]
    tensors[f"{prefix}wpe.weight"] = ("F32", (positions // 2, d))
    tensors["strange.thing"] = ("F32", (3, 5))
    found = explain_checkpoint(pc.load(c | {"n_layer": layers + 1}), make_checkpoint(tensors))
    layer = sum(prod(shape) for name, (_, shape) in tensors.items() if name.startswith(f"{prefix}h.0."))
    assert cause_units(found) == {
        "missing tensors": -layer,
        "tensors with a wrong shape": -positions // 2 * d,
        "unexpected tensors": 15,
    }
    items = {
        (cause.name, item.name): (item.units, item.arithmetic) for cause in found.account.causes for item in cause.items
    }
    assert items["tensors with a wrong shape", "as stored"] == (positions // 2 * d, f"{positions // 2} × {d}")
    assert items["tensors with a wrong shape", "as expected"] == (-positions * d, f"{positions} × {d}")
    assert items["missing tensors", "norm"] == (-4 * d, f"4 × {d}")
    assert items["unexpected tensors", ""] == (15, "3 × 5")
    checked_sums = [cause.units == sum(item.units for item in cause.items) for cause in found.account.causes]
    assert all(checked_sums)
    check_sums(found)


def test_a_missing_buffer_is_not_a_missing_parameter() -> None:
    tensors = {
        name: tensor
        for name, tensor in load_saved("deepseek_v3").tensors.items()
        if not name.endswith("e_score_correction_bias")
    }
    found = explain_saved("deepseek_v3", tensors)
    assert (cause_units(found), found.values, found.verdict) == ({}, found.account.count, "not accounted for")


def test_undeclared_packed_weights_are_in_the_sum_with_their_scales() -> None:
    tensors: Tensors = {**load_saved("llama-GPTQ").tensors}
    layer = "model.layers.0.mlp.up_proj."
    strange = {name.replace(layer, "strange."): tensor for name, tensor in tensors.items() if name.startswith(layer)}
    before = explain_saved("llama-GPTQ", tensors)
    found = explain_saved("llama-GPTQ", {**tensors, **strange})
    check_sums(found)
    assert cause_units(found)["unexpected tensors"] == 8 * prod(strange["strange.qweight"][1])
    assert cause_units(found)["GPTQ scales"] - cause_units(before)["GPTQ scales"] == prod(strange["strange.scales"][1])


def test_a_sum_of_too_many_shapes_is_shortened_to_its_number_of_tensors() -> None:
    strange: Tensors = {f"strange.{i}x": ("F32", (i + 1,)) for i in range(60)}
    found = explain_saved("gpt2", {**load_saved("gpt2").tensors, **strange})
    assert [item.arithmetic for cause in found.account.causes for item in cause.items] == ["60 tensors"]


# ---- names only


def test_names_alone_give_no_number_of_values() -> None:
    tensors = release_tensors("gpt-oss-20b")
    found = explain_checkpoint(pc.load("gpt-oss-20b"), make_index(tensors))
    assert (found.values, found.left_over, found.verdict, found.ok) == (None, None, "names only", True)
    assert (found.account.value, found.unknown) == (20_914_757_184, ("MXFP4 scales",))
    assert found.byte_sums == []


def test_an_index_is_explained_by_its_names_and_its_size(run: Runner, tmp_path: Path) -> None:
    tensors: Tensors = {name: ("F32", shape) for name, (_, shape) in release_tensors("gpt2-small").items()}
    write_index(tmp_path / "model.safetensors.index.json", assign_shards(tensors, 2), total_bytes(tensors))
    done = run("why", "gpt2-small", f"{tmp_path}/model.safetensors.index.json", "--csv")
    assert done.code == 0
    (row,) = csv.DictReader(done.out.splitlines())
    assert (row["published"], row["value"], row["left_over"], row["verdict"], row["true"]) == (
        "–",
        "",
        "",
        "names only",
        "124439808",
    )
    output = " ".join(run("why", "gpt2-small", f"{tmp_path}/model.safetensors.index.json").out.split())
    equation = "137,022,720 values according to the tensor names = total 124,439,808 plus legacy buffers 12,582,912"
    assert equation in output
    assert f"total_size {total_bytes(tensors):,} = " in output


def test_a_missing_shard_leaves_the_number_of_values_unknown(tmp_path: Path) -> None:
    tensors = load_saved("qwen2_moe").tensors
    index = write_shards(tmp_path, tensors)
    (tmp_path / "model-00002-of-00003.safetensors").unlink()
    found = explain_checkpoint(pc.load(load_saved("qwen2_moe").config), open_checkpoint(index))
    assert (found.values, found.verdict, found.ok) == (None, "not accounted for", False)


# ---- bytes


def test_the_bytes_are_values_times_their_width_plus_headers(tmp_path: Path) -> None:
    tensors: Tensors = {name: ("BF16", shape) for name, (_, shape) in load_saved("gpt2").tensors.items()}
    prefix = next(name for name in tensors if name.endswith("wpe.weight")).removesuffix("wpe.weight")
    c = load_saved("gpt2").config
    tensors[f"{prefix}h.0.attn.bias"] = ("F32", (1, 1, c["n_positions"], c["n_positions"]))
    path = write_file(tmp_path / "model.safetensors", tensors)
    model = pc.load(c)
    found = explain_checkpoint(model, open_checkpoint(path))
    masks = c["n_positions"] ** 2
    n, size = found.account.count, path.stat().st_size
    all = 2 * n + 4 * masks
    assert 4 * masks < 2 * n
    assert found.byte_sums[0] == f"bytes: {n:,} × 2 (BF16) + {masks:,} × 4 (F32) = {all:,}"
    assert found.byte_sums[1:] == [f"files: {size:,} bytes = values {all:,} + headers {size - all:,}"]
    assert (
        explain_checkpoint(model, open_checkpoint(write_header(tmp_path / "saved.json", tensors))).byte_sums
        == found.byte_sums[:1]
    )  # there is no file for a saved header


# ---- the command


@pytest.fixture
def gpt2(tmp_path: Path) -> str:
    """The header of the released GPT-2 file."""
    return str(write_header(tmp_path / "gpt2.json", release_tensors("gpt2-small")))


def test_each_model_may_be_followed_by_figures_and_files(run: Runner, gpt2: str, tmp_path: Path) -> None:
    llama = str(write_header(tmp_path / "llama.json", release_tensors("llama-2-7b")))
    done = run("why", "gpt2-small", gpt2, "137022720", "llama-2-7b", "7B", llama, "--json")
    found = json.loads(done.out)
    assert [(figure["id"], figure["published"]) for figure in found["figures"]] == [
        ("gpt2-small", "137022720"),
        ("llama-2-7b", "7B"),
    ]
    assert [(file["id"], file["values"], file["verdict"], file["account"]["value"]) for file in found["files"]] == [
        ("gpt2-small", 137_022_720, "exact", 137_022_720),
        ("llama-2-7b", 6_738_417_664, "exact", 6_738_417_664),
    ]
    assert done.code == 0


@pytest.mark.parametrize("format", ["table", "markdown", "csv", "json", "latex", "html"])
@pytest.mark.parametrize("several", [False, True])
def test_every_format_has_the_number_and_the_cause(run: Runner, gpt2: str, format: str, several: bool) -> None:
    done = run("why", "gpt2-small", gpt2, *(["124M"] if several else []), "--format", format)
    assert (done.code, done.err) == (0, "")
    assert all(n in done.out.replace(",", "") for n in ("137022720", "124439808", "12582912"))


def test_a_file_that_does_not_match_exits_with_1_and_names_the_problems(run: Runner, gpt2: str) -> None:
    done = run("why", "gpt2-medium", gpt2)
    assert done.code == 1
    output = " ".join(done.out.split())
    assert " problems" in output
    assert "missing: h.{12-23}.ln_1.weight 12 × [1024] (norm)" in output
    assert "more; run `paramcount verify` to list all" in output
    assert run("why", "gpt2-medium", gpt2, "gpt2-small", gpt2).code == 1


def test_a_folder_with_a_config_json_is_a_model_if_first_and_a_checkpoint_after_a_model(
    run: Runner, tmp_path: Path
) -> None:
    name = "qwen2_moe"
    (tmp_path / "config.json").write_text(json.dumps(load_saved(name).config), encoding="utf-8")
    write_shards(tmp_path, load_saved(name).tensors)
    done = run("why", f"{tmp_path}/", f"{tmp_path}/", "--json")
    (file,) = json.loads(done.out)["files"]
    assert (done.code, file["verdict"], file["files"]) == (0, "exact", 3)
    assert file["values"] == sum(prod(shape) for _, shape in load_saved(name).tensors.values())
    assert json.loads(run("why", f"{tmp_path}/", "--json").out)["files"] == [file]


def test_a_config_json_after_a_model_is_another_model(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(load_saved("gpt2").config), encoding="utf-8")
    done = run("why", "gpt2-small", "124M", f"{tmp_path}/config.json", "--json")
    assert "files" not in json.loads(done.out)


def test_a_what_if_is_compared_with_a_file(run: Runner, gpt2: str) -> None:
    done = run("why", "gpt2-small", gpt2, "--set", "n_layers=11", "--json")
    (file,) = json.loads(done.out)["files"]
    assert (done.code, file["verdict"], file["values"]) == (1, "not accounted for", 137_022_720)
