"""Differences between two models: sizes, and components that sum to the difference of the totals."""

from __future__ import annotations

import csv
import io
import json
import re
from itertools import islice, pairwise
from pathlib import Path

import pytest

import paramcount as pc
import paramcount.zoo as zoo
from paramcount.api import what_if
from paramcount.architectures import split_name
from paramcount.cli.diff import render_arithmetic
from paramcount.counting.components import locate_component
from paramcount.views.diff import diff_models
from paramcount.views.forward_settings import list_forward_settings
from tests.batches import in_batches
from tests.model_types import MODEL_TYPES
from tests.running import Runner
from tests.structures import ZOO

NEIGHBOURS = list(pairwise(ZOO))
FAR = [(a, ZOO[-1 - i]) for i, a in enumerate(ZOO[: len(ZOO) // 2 : 5])]  # mostly of different architectures
PAIRS = [
    pytest.param(*pair, marks=() if i % 12 == 0 else (pytest.mark.exhaustive,))
    for i, pair in enumerate(NEIGHBOURS + FAR)
]


def sum_components(id: str) -> dict[str, tuple[int, int]]:
    """{component: (parameters, active)} summed tensor by tensor."""
    found: dict[str, tuple[int, int]] = {}
    for tensor in pc.count(id).tensors:
        if tensor.parameters and tensor.part != "mtp":
            pieces = tensor.splits or ((tensor.component, 1),)
            whole = sum(width for _, width in pieces)
            for name, width in pieces:
                overview = locate_component(tensor.part, name)[0]
                n, active = found.get(overview, (0, 0))
                found[overview] = n + tensor.parameters * width // whole, active + tensor.active * width // whole
    return found


SETTINGS = ("rope_theta", "rms_norm_eps", "hidden_act")  # keys of config.json, as the entries cite them


# ---- from Python


def test_settings_of_the_forward_pass_are_those_of_the_configs() -> None:
    found = {setting.name: setting for setting in pc.diff("qwen2.5-7b", "llama-3.1-8b").settings}
    stated = [pc.load(id).stated or {} for id in ("qwen2.5-7b", "llama-3.1-8b")]
    base, eps, activation = ([settings[key] for settings in stated] for key in SETTINGS)
    assert [found["rope_base"].a, found["rope_base"].b] == [(n,) for n in base]
    assert [found["norm_eps"].a, found["norm_eps"].b] == [(n,) for n in eps]
    assert activation[0] == activation[1]
    assert "activation" not in found
    scaling = stated[1]["rope_scaling"]
    assert found["rope_scaling"].b == (f"{scaling['rope_type']} × {scaling['factor']:g}",)
    assert found["rope_scaling"].a == ("none",)


def test_a_setting_that_an_entry_does_not_state_is_no_difference() -> None:
    found = {setting.name: setting for setting in pc.diff("llama-2-7b", "gpt2-small").settings}
    assert "norm_eps" not in found  # the entry of Llama 2 leaves its settings out
    assert "activation" not in found
    assert (found["norm"].a, found["norm"].b) == (("RMS norm",), ("layer norm",))
    assert (found["rope_pairing"].a, found["rope_pairing"].b, found["rope_pairing"].only) == (("halves",), None, "a")


def test_encoders_of_images_have_no_part_in_the_settings() -> None:
    """SigLIP has layer norms; the text layers of Gemma 3 have RMS norms."""
    assert list_forward_settings(pc.load("gemma-3-27b"))["norm"] == ("RMS norm",)
    assert list_forward_settings(pc.load("gemma-3-27b"))["rope_base"] == (10000, 1000000)


@in_batches(("a", "b"), PAIRS, size=50)
def test_components_are_sorted_by_difference_and_sum_to_the_total(a: str, b: str) -> None:
    found, one, other = pc.diff(a, b), pc.count(a), pc.count(b)
    differences = [c.difference for c in found.components]
    assert sum(differences) == found.difference == other.total - one.total
    assert sum(c.active_difference for c in found.components) == found.active_difference == other.active - one.active
    assert differences == sorted(differences, key=abs, reverse=True)
    sums = sum_components(a), sum_components(b)
    expected = {name: tuple(side.get(name, (0, 0)) for side in sums) for name in sums[0] | sums[1]}
    assert {c.component: ((c.a, c.active_a), (c.b, c.active_b)) for c in found.components} == {
        name: pair for name, pair in expected.items() if pair[0] != pair[1]
    }


@in_batches(("a", "b"), PAIRS, size=50)
def test_the_printed_arithmetic_evaluates_to_the_difference(a: str, b: str) -> None:
    for c in pc.diff(a, b).components:
        printed = re.sub(r"\(tied to \w+\)|,", "", render_arithmetic(c)).replace("×", "*").replace("−", "-")
        assert re.fullmatch(r"[\d *+()-]+", printed)
        assert eval(printed) == c.difference  # noqa: S307


@in_batches(("a", "b"), PAIRS, size=50)
def test_swapping_the_models_flips_every_sign(a: str, b: str) -> None:
    there, back = pc.diff(a, b), pc.diff(b, a)
    assert {c.component: c.difference for c in there.components} == {
        c.component: -c.difference for c in back.components
    }
    assert {size.name: (size.a, size.b) for size in there.sizes} == {size.name: (size.b, size.a) for size in back.sizes}
    assert {size.only for size in there.sizes} | {size.only for size in back.sizes} <= {"", "a", "b"}


@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_component_differences_sum_to_the_total_for_all_architectures(every: int) -> None:
    documents = (
        {"model_type": split_name(name)[0], "architectures": [facts.cls], **facts.vary.get("=", {})}
        for name, facts in islice(MODEL_TYPES.items(), 0, None, every)
    )
    for a, b in pairwise(map(pc.load, documents)):
        found = diff_models(a, b)
        assert sum(c.difference for c in found.components) == pc.count(b).total - pc.count(a).total
        assert sum(c.active_difference for c in found.components) == pc.count(b).active - pc.count(a).active
        json.dumps(found.to_dict())


def test_active_parameters_may_differ_while_the_totals_are_equal() -> None:
    found = pc.diff("mixtral-8x7b", what_if("mixtral-8x7b", n_active_experts=4))
    assert [(c.component, c.difference, c.active_difference) for c in found.components] == [
        ("experts", 0, 32 * 2 * 3 * 14336 * 4096)
    ]


def test_a_size_that_only_one_model_has_differs_from_null() -> None:
    found = pc.diff("gpt2-small", "mistral-7b-v0.3")
    sizes = {size.name: (size.a, size.b, size.only) for size in found.sizes}
    assert sizes["n_positions"] == (1024, None, "a")
    assert sizes["window"] == (None, None, "b")  # null, and of one of them alone
    assert sizes["architecture"] == ("gpt2", "mistral", "")
    listed = {size["name"]: size for size in found.to_dict()["sizes"]}
    assert listed["n_positions"] == {"name": "n_positions", "a": 1024}
    assert listed["window"] == {"name": "window", "b": None}


def test_the_sizes_of_a_vision_encoder_are_listed() -> None:
    sizes = {size.name: size.b for size in pc.diff("llama-3.1-8b", "llama-3.2-11b-vision").sizes}
    assert (sizes["vision"], sizes["vision.n_layers"]) == ("MllamaVision", 32)
    assert sizes["cross_attention_layers"] == (3, 8, 13, 18, 23, 28, 33, 38)


def test_configs_with_and_without_the_lm_head_differ_in_their_class() -> None:
    document = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "vocab_size": 100}
    found = pc.diff({**document, "architectures": ["LlamaForCausalLM"]}, {**document, "architectures": ["LlamaModel"]})
    assert [(size.name, size.a, size.b) for size in found.sizes] == [("reference", "LlamaForCausalLM", "LlamaModel")]
    assert [(c.component, c.difference) for c in found.components] == [("lm_head", -6400)]


# ---- the command line


@in_batches(("a", "b"), PAIRS, size=50)
def test_a_difference_fits_80_columns(run: Runner, a: str, b: str) -> None:
    done = run("diff", a, b)
    assert (done.code, done.err) == (0, "")
    assert max(map(len, done.out.splitlines())) <= 80


def test_one_model_is_compared_with_its_changed_version(run: Runner) -> None:
    lines = run("diff", "llama-3.1-8b", "--set", "n_layers=40").out.splitlines()
    assert lines[0] == "Llama 3.1 8B"
    assert lines[1] == "  changed n_layers 32 → 40: total 8,030,261,248 + 1,744,896,000 = 9,775,157,248"
    assert lines[2].split() == ["n_layers", "32", "→", "40"]
    assert lines[3].split()[:2] == ["mlp", f"+{8 * 3 * 14336 * 4096:,}"]
    assert lines[-1].split() == ["total", "+1,744,896,000", "9,775,157,248", "−", "8,030,261,248"]
    data = json.loads(run("diff", "llama-3.1-8b", "--set", "n_layers=40", "--json").out)
    assert (data["schema_version"], data["set"], data["original_total"], data["difference"]) == (
        2,
        {"n_layers": [32, 40]},
        8030261248,
        1744896000,
    )


def test_set_changes_both_models(run: Runner) -> None:
    done = run("diff", "gpt2-small", "gpt2-medium", "--set", "n_layers=1")
    assert (
        "GPT-2 small: changed n_layers 12 → 1: total " in done.out
        and "GPT-2 medium: changed n_layers 24 → 1: total " in done.out
    )
    assert "\nn_layers" not in done.out
    data = json.loads(run("diff", "gpt2-small", "gpt2-medium", "--set", "n_layers=1", "--json").out)
    assert (data["set_a"], data["set_b"]) == ({"n_layers": [12, 1]}, {"n_layers": [24, 1]})
    assert (data["original_total_a"], data["original_total_b"]) == (124439808, 354823168)


def test_equal_models_have_no_differences(run: Runner) -> None:
    for args in (("gpt2", "gpt2-small"), ("gpt2-small", "--set", "n_layers=12")):
        assert run("diff", *args).out.endswith("total  +0  124,439,808 − 124,439,808\nno differences\n")
    assert (
        run("diff", "mistral-7b-v0.3", "--set", "window=8").out.splitlines()[-1] == "the parameter counts are the same"
    )


def test_active_and_mtp_parameters_are_shown_if_they_differ(run: Runner) -> None:
    out = " ".join(run("diff", "deepseek-v3", "kimi-k2").out.split())
    experts = 8 * 3 * 2048 * 7168 * (60 - 58)
    assert (
        f"active 37,552,282,624 − 4,690,804,736 = 32,861,477,888: experts +{experts:,}, all other components as above"
        in out
    )
    assert "not included in the total: MTP 11,610,067,968 − 11,610,067,968 = 0" in out
    assert "active" not in run("diff", "llama-2-7b", "llama-3.1-8b").out


def test_every_format_contains_the_same_differences(run: Runner) -> None:
    for format in ("table", "markdown", "html", "latex"):
        out = run("diff", "llama-2-7b", "llama-3.1-8b", "--format", format).out
        assert "1,308,622,848" in out and "805,306,368" in out and "128,256" in out
        assert out.isascii() == (format == "latex")
    header, *rows = csv.reader(io.StringIO(run("diff", "llama-2-7b", "gpt-oss-20b", "--csv").out))
    assert header == ["kind", "name", "a", "b", "difference", "active_difference"]
    assert rows[0] == ["size", "architecture", "llama", "gpt_oss", "", ""]
    parts = [row for row in rows if row[0] == "component"]
    total, active = 20_914_757_184 - 6_738_415_616, 4_187_440_704 - 6_738_415_616
    assert (sum(int(row[4]) for row in parts), sum(int(row[5]) for row in parts)) == (total, active)
    assert rows[-1][4:] == [str(total), str(active)]
    sizes = {name: (a, b) for kind, name, a, b, *_ in rows if kind == "size"}
    assert (sizes["d_ff"], sizes["d_expert"]) == (("11008", ""), ("", "2880"))
    assert sizes["attention_bias"] == ("false", "true")


def test_paths_and_names_are_compared_and_warnings_are_printed(run: Runner, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "gpt2", "n_layer": 13, "num_towers": 3}', encoding="utf-8")
    done = run("diff", "gpt2-small", str(path))
    assert [line.split() for line in done.out.splitlines() if "→" in line][1:] == [["n_layers", "12", "→", "13"]]
    assert done.err.startswith("warning: ") and "num_towers" in done.err


def test_hostile_names_are_escaped_in_markup(run: Runner, tmp_path: Path) -> None:
    source = (zoo.CONFIGS / "gpt/gpt2-small.yaml").read_text(encoding="utf-8")
    path = tmp_path / "evil.yaml"
    path.write_text(source.replace("name: GPT-2 small", 'name: "<script>alert(1)</script>"'), encoding="utf-8")
    for format in ("markdown", "html"):
        assert "<script" not in run("diff", "gpt2-xl", str(path), "--format", format).out


def test_a_flag_without_a_config_key_is_explained(run: Runner) -> None:
    out = " ".join(run("diff", "gemma-3-1b", "t5-small").out.split())
    assert "gated – → false (gated MLP)" in out
    assert "scaled – → true (decoder output scaled before the LM head)" in out


def test_a_size_that_nobody_knows_is_not_0(run: Runner) -> None:
    assert (pc.count("glm-5.2").mtp, pc.count("glm-5").mtp) == (None, 9_952_920_320)
    assert "not included in the total: MTP 9,952,920,320 → unknown" in run("diff", "glm-5", "glm-5.2").out
    assert "MTP (size unknown)" in run("show", "glm-5.2").out
