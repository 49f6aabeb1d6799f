"""Explanations: every printed formula is evaluated again, for all models and architectures, as text and in LaTeX."""

from __future__ import annotations

import builtins
import csv
import io
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
import paramcount.zoo as zoo
from paramcount.architectures import ARCHITECTURES, architecture
from paramcount.counting.count import count_sizes
from paramcount.explaining.glossary import FLAGS, MEANINGS
from paramcount.explaining.heads import list_attentions, list_matrices
from paramcount.explaining.layers import list_stacks
from paramcount.explaining.lines import find_common_words
from paramcount.explaining.pieces import count_one, walk_model
from paramcount.explaining.render_text import list_expert_sums, render_latex, render_text
from paramcount.sizes import Sizes, get_key, inner_configs
from paramcount.sizes.fields import get_info
from paramcount.symbolic.polynomials import decide_by
from paramcount.zoo import count_model
from tests import test_mutants
from tests.batches import in_batches
from tests.cases import load_cases
from tests.golden import assert_golden
from tests.printed import evaluate_latex, evaluate_text
from tests.refusing import assert_one_line
from tests.running import Runner
from tests.structures import ZOO, keep_every, pick_structures
from tests.test_remote_models import MODELS

CASES = {
    name: [case["config"] for case in cases if not case.get("refused")][:2] for name, cases in load_cases().items()
}
LAST = [f"{name}-{len(configs) - 1}" for name, configs in CASES.items()]
EVERY = [*pick_structures(every=16), *keep_every(3, MODELS), *keep_every(40, LAST)]
MORE = [*EVERY, *keep_every(40, [f"{name}-0" for name, configs in CASES.items() if len(configs) > 1])]

LEFT = 20  # columns of a page before a formula


@cache
def explain_case(id: str) -> pc.Explanation:
    return pc.explain(load_case(id))


@cache
def load_case(id: str) -> zoo.Model:
    if id in ZOO:
        return zoo.load_entry(id)
    if id in MODELS:
        return pc.load(MODELS[id]["config"])
    name, _, i = id.rpartition("-")
    return pc.load(CASES[name][int(i)])


def squeeze_page(page: str) -> tuple[str, str]:
    """A page without spaces, and the same of its right column, where formulas continue on the next line."""
    lines = [line for line in page.splitlines() if not line[LEFT - 1 : LEFT].strip()]  # without long labels
    return "".join(page.split()), "".join("".join(line[LEFT:] for line in lines).split())


# ---- every model, every architecture


@in_batches("id", MORE, size=30, grouped=True)
def test_each_printed_value_equals_its_printed_formula_and_arithmetic(id: str) -> None:
    explanation = explain_case(id)
    page, right = squeeze_page(render_text(explanation, 80))
    sizes = {size.name: size.value for size in explanation.sizes}
    assert all(f"{name}{value:,}" in page for name, value in sizes.items())
    for line in explanation.lines:
        if line.formula:
            assert evaluate_text(line.formula, sizes) == evaluate_text(line.numbers, {}) == line.value
            assert "".join(f"{line.formula} = {line.numbers} {line.value:,}".split()) in right
    for group in explanation.expert_groups:
        for name, sum_, value in list_expert_sums(group):
            assert evaluate_text(sum_, {}) == value, name
            assert "".join(f"{sum_} {value:,}".split()) in right
    assert f"total{explanation.total:,}" in page


@in_batches("id", EVERY, size=30, grouped=True)
def test_each_value_equals_its_latex_formula(id: str) -> None:
    explanation = explain_case(id)
    sizes = {size.name: size.value for size in explanation.sizes}
    for line in explanation.lines + tuple(line for component in explanation.not_included for line in component.lines):
        if line.formula:
            assert evaluate_latex(line.latex, sizes) == evaluate_latex(line.latex_numbers, {}) == line.value


@in_batches("id", EVERY, size=30, grouped=True)
def test_components_sum_to_the_total_and_inactive_experts_explain_the_active_count(id: str) -> None:
    loaded = load_case(id)
    explanation, count = explain_case(id), count_model(loaded)
    assert {part.name: part.value for part in explanation.components if part.value} == {
        name: n for name, n in count.components.items() if n
    }
    assert {part.name: part.active for part in explanation.components if part.value} == {
        name: count.active_components[name] for name, n in count.components.items() if n
    }
    assert all(part.value == sum(line.value for line in part.lines) for part in explanation.components)
    assert (explanation.total, explanation.active) == (count.total, count.active)
    assert count.active == count.total - sum(visit.rest for visit in explanation.expert_groups)
    assert count.active_min == count.active - sum(
        visit.layers * (visit.visited - visit.least) * visit.one for visit in explanation.expert_groups
    )
    for visit in explanation.expert_groups:
        experts = visit.layers * visit.experts * visit.one, visit.layers * visit.visited * visit.one
        assert (visit.all, visit.used, visit.rest) == (*experts, experts[0] - experts[1])
    assert {part.name: part.value for part in explanation.not_included} == {
        name: n for name, n in (("MTP", count.mtp), ("buffers", count.buffers)) if n
    }


@in_batches("id", EVERY, size=30, grouped=True)
def test_a_page_fits_80_columns_except_for_tensor_names(id: str) -> None:
    explanation = explain_case(id)
    names = tuple(line.detail for line in explanation.lines if "." in line.detail)
    for row in render_text(explanation, 80).splitlines():
        assert len(row) <= 80 or row.strip().startswith(names)


@in_batches("id", EVERY, size=30, grouped=True)
def test_layers_and_weights_outside_layers_sum_to_the_total(id: str) -> None:
    loaded = load_case(id)
    found = walk_model(loaded.sizes, loaded.reading.head)
    total = sum(found.evaluate(count_one(row)) for row in found.rows if row.is_counted and row.layer is None)
    for stack in list_stacks(found):
        for runs in stack.runs:
            one = pc.explain(loaded, layer=f"{stack.title}.{runs[0][0]}")
            total += one.total * sum(n for _, n in runs) * ("not included" not in one.subject)
    assert total == count_model(loaded).total


@in_batches("id", [*pick_structures(every=3), *MODELS, *keep_every(30, LAST)], size=80)
def test_the_name_of_a_stack_is_the_prefix_of_its_tensors(id: str) -> None:
    if not id.startswith(("inkling2", "diffusion_gemma", "diffusiongemma")):  # layers with tensors under other prefixes
        loaded = load_case(id)
        assert [
            row.name
            for row in walk_model(loaded.sizes, loaded.reading.head).rows
            if row.layer and not row.name.startswith(row.stack)
        ] == []


@in_batches("id", EVERY, size=30, grouped=True)
@decide_by(None)
def test_heads_and_shared_weights_sum_to_the_attention_of_a_layer(id: str) -> None:
    loaded = load_case(id)
    found = walk_model(loaded.sizes, loaded.reading.head)
    every = list(list_attentions(loaded, found))
    for attention in every:
        weights = [
            row
            for row in found.rows
            if row.layer == attention.layer and row.role == "parameter"
            if row.component.partition(".")[0] in ("qkv", "output_projection")
        ]
        if any(row.expert for row in weights):
            with pytest.raises(pc.ParamcountError, match="experts"):
                pc.explain(loaded, head=True)
            continue
        attentions = [other for other in every if other.layer == attention.layer]
        matrices = {
            (builtins.id(matrix.weight), matrix.component): matrix
            for other in attentions
            for matrix in list_matrices(other)
        }
        each = sum(
            found.evaluate(matrix.per_head) * (1 if matrix.heads is None else found.evaluate(matrix.heads))
            for matrix in matrices.values()
        )
        assert each == sum(found.evaluate(count_one(row)) for row in weights)


@decide_by(None)
def test_a_group_of_channels_has_a_share_of_the_output_projection() -> None:
    """arXiv:2204.03645, section 3.3: the 128 channels of DaViT's first stage attend to one another in 4 groups."""
    loaded = pc.load({"model_type": "florence2"})
    found = walk_model(loaded.sizes, loaded.reading.head)
    shares = [
        (found.evaluate(matrix.per_head), matrix.heads and found.evaluate(matrix.heads))
        for attention in list_attentions(loaded, found)
        for matrix in list_matrices(attention)
        if matrix.weight.name.endswith("channel_attn.proj.weight")
    ]
    assert shares[0] == (128 * 128 // 4, 4)


# ---- expected lines


def test_the_name_of_a_layer_kind_has_only_letters() -> None:
    assert find_common_words([("x·2 = (y)\x1b[3m", 7)], [("x·2 = (y)\x1b[3m", 7), ("z", 7)]) == "x y x b m"


def test_inside_a_sum_the_number_of_layers_has_no_name() -> None:
    assert [line.formula for line in pc.explain("gemma-3-1b").lines if line.component == "norm"] == [
        "2·26·(2·d_model + d_head) + d_model"
    ]


def test_an_encoder_decoder_model_has_a_line_for_each_part() -> None:
    lines = {line.part: line.formula for line in pc.explain("t5-small").lines if line.component == "qkv"}
    assert lines == {
        "decoder": "n_decoder_layers · 3 · d_model · n_heads · d_head",
        "encoder": "n_layers · 3 · d_model · n_heads · d_head",
        "cross_attention": "n_decoder_layers · 3 · d_model · n_heads · d_head",
    }


def test_each_size_has_a_meaning_and_a_config_json_key() -> None:
    sizes = {size.name: size for size in pc.explain("llama-3.1-8b").sizes}
    assert sizes["n_kv_heads"] == ("n_kv_heads", 8, "number of KV heads", "num_key_value_heads")
    read = pc.explain({"model_type": "gpt2", "n_embd": 96, "n_head": 3})
    assert {size.name: size.key for size in read.sizes}["d_model"] == "n_embd"  # the key that this config.json has


def test_sizes_that_the_structure_depends_on_stay_numbers_and_are_listed() -> None:
    explanation = pc.explain("llama-3.2-11b-vision")
    assert [(size.name, size.value) for size in explanation.fixed_sizes] == [("n_layers", 40)]
    assert "fixed because the structure depends on it: n_layers = 40" in render_text(explanation, 80)


def test_the_sizes_of_an_encoder_have_keys_in_its_section() -> None:
    assert {size.name: size.key for size in pc.explain("llama-3.2-11b-vision").sizes}[
        "vision.d_ff"
    ] == "vision_config.intermediate_size"


# ---- one head, one layer


def test_a_head_of_gpt_3_is_four_matrices_of_12288_by_128() -> None:
    """Brown et al., arXiv:2005.14165, table 2.1: d_model 12,288 and 96 heads of 128."""
    head = pc.explain("gpt-3", head=True)
    assert [(part.name, part.value) for part in head.components] == [
        (name, 12_288 * 128) for name in ("Wq", "Wk", "Wv", "Wo")
    ]
    assert head.total == 4 * 1_572_864 == 6_291_456
    assert {line.numbers for line in head.lines} == {"12,288 · 128"}
    assert [part.name for part in head.not_included] == ["biases of the head", "shared by all heads"]


def test_grouped_query_heads_share_keys_and_values() -> None:
    assert pc.explain("llama-3.1-8b", head=True).notes == ("4 query heads share Wk and Wv",)
    assert pc.explain("gpt-3", head=True).notes == ()


def test_in_latent_attention_heads_have_own_and_shared_matrices() -> None:
    head = pc.explain("deepseek-v3", head=True)
    assert [part.name for part in head.components] == ["Wq_up", "Wkv_up", "Wo"]
    assert head.total == 1536 * (128 + 64) + 512 * (128 + 128) + 128 * 7168
    assert [line.component for part in head.not_included for line in part.lines] == ["Wq_down", "Wkv_down"]


def test_all_query_heads_may_share_one_key_head() -> None:
    falcon = {"model_type": "falcon", "multi_query": True, "new_decoder_architecture": False}
    assert pc.explain(falcon, head=True).notes == ("all 71 query heads share Wk and Wv",)


def test_a_gate_with_one_value_per_head_has_one_column_per_head() -> None:
    """Laguna projects the input of the layer to one value per head; the gate of Beam has one bias per head."""
    laguna = pc.explain({"model_type": "laguna", "gating": "per-head"}, head=True)
    gate = next(part for part in laguna.components if part.name == "Wgate")
    assert [line.formula for line in gate.lines] == ["d_model"]
    biases = pc.explain({"model_type": "beam"}, head=True).not_included[0]
    assert {line.component: line.value for line in biases.lines}["Wgate"] == 1


def test_the_default_head_is_in_the_first_layer_with_attention() -> None:
    expected = "one of 32 heads in layer 4 of model.layers (attention dense; identical layers: 4, 12, 20, 28)"
    assert pc.explain("jamba-v0.1", head=True).subject == expected


def test_a_layer_names_its_kind_and_the_other_stacks() -> None:
    assert pc.explain("deepseek-v3", layer=2).subject == "layer 2 of model.layers (dense; identical layers: 0–2)"
    assert pc.explain("deepseek-v3", layer=3).subject == "layer 3 of model.layers (MoE; identical layers: 3–60)"
    assert pc.explain("t5-small", layer=0).notes == ("other stacks: encoder.block.0–5",)
    assert pc.explain("t5-small", layer="encoder.block.3").subject == "layer 3 of encoder.block (identical layers: 1–5)"


def test_an_mtp_layer_is_marked_as_outside_the_total() -> None:
    mtp = pc.explain("deepseek-v3", layer=61)
    assert (mtp.subject, mtp.total) == (
        "layer 61 of model.layers (MTP; no identical layers; not included in the total)",
        11_610_067_968,
    )


@pytest.mark.parametrize("layer", [True, 1.5, "0.0.0", "²", "", [1], "9" * 5000], ids=range(7))
def test_an_invalid_layer_is_a_one_line_error(layer: Any) -> None:
    with pytest.raises(pc.ParamcountError) as error:
        pc.explain("gpt2-small", layer=layer)
    assert_one_line(str(error.value))


# ---- changed architectures


def test_an_explanation_names_the_sizes_that_the_forward_pass_compares(monkeypatch: pytest.MonkeyPatch) -> None:
    from paramcount import flow
    from paramcount.parts import attentions

    original = attentions.project_heads

    def project_heads(c: Any, x: flow.Data, prefix: str, **options: Any) -> tuple[flow.Data, ...]:
        if c.n_heads * c.d_head == c.d_model:
            return original(c, x, prefix, **options)
        return (flow.linear(x, "odd", "other", 7),) * 3

    test_mutants.replace_everywhere(monkeypatch, original, project_heads)
    explanation = pc.explain("llama-3.1-8b")
    assert explanation.total == count_sizes(zoo.load_entry("llama-3.1-8b").sizes).total
    assert explanation.notes == ("the formulas hold if n_heads · d_head = d_model",)
    assert all(
        evaluate_text(line.formula, {size.name: size.value for size in explanation.sizes}) == line.value
        for line in explanation.lines
    )


# ---- in every format


@pytest.mark.parametrize("id", ["gpt2-small", "llama-3.1-8b", "mixtral-8x7b", "deepseek-v3", "jamba-v0.1"])
def test_a_page_equals_its_golden_file(id: str, run: Runner) -> None:
    for ending, options in ((".txt", []), (".tex", ["--format", "latex"])):
        assert_golden(f"explain/{id}{ending}", run("explain", id, *options).out)


@pytest.mark.parametrize("id", pick_structures(every=16))
def test_latex_is_well_formed_and_its_equations_are_true(id: str) -> None:
    walker = pytest.importorskip("pylatexenc.latexwalker")
    explanation = explain_case(id)
    latex = render_latex(explanation)
    nodes, _, _ = walker.LatexWalker(latex, tolerant_parsing=False).get_latex_nodes()
    blocks = [node for node in nodes if node.isNodeType(walker.LatexEnvironmentNode)]
    assert {node.environmentname for node in blocks} == {"align*"}
    assert len(blocks) == latex.count(r"\begin{align*}")
    sizes = {size.name: size.value for size in explanation.sizes}
    totals = []
    for node in blocks[1:]:
        equations: list[list[str]] = []
        for row in node.latex_verbatim().removeprefix(r"\begin{align*}").removesuffix(r"\end{align*}").split(" \\\\\n"):
            left, _, right = row.strip().partition("&= ")
            if left:
                equations.append([])
            equations[-1] += right.partition(" && ")[0].split(" = ")
        for sides in equations:
            assert len({evaluate_latex(side, sizes) for side in sides}) == 1
            totals.append(evaluate_latex(sides[-1], sizes))
    assert totals[len(explanation.lines)] == explanation.total == sum(totals[: len(explanation.lines)])


def test_csv_and_json_contain_exact_integers(run: Runner) -> None:
    rows = list(csv.DictReader(io.StringIO(run("explain", "llama-3.1-8b", "--csv").out)))
    assert [row["component"] for row in rows] == ["embedding", "qkv", "output_projection", "mlp", "norm", "lm_head"]
    assert sum(int(row["parameters"]) for row in rows) == 8_030_261_248
    data = json.loads(run("explain", "llama-3.1-8b", "--json").out)
    assert data == json.loads(json.dumps(pc.explain("llama-3.1-8b").to_dict())) | {"warnings": [], "notes": []}
    assert (data["schema_version"], data["total"], data["components"][1]["lines"][0]["value"]) == (
        2,
        8_030_261_248,
        805_306_368,
    )


def test_markdown_is_a_section_of_a_model_card(run: Runner) -> None:
    lines = run("explain", "mixtral-8x7b", "--markdown").out.splitlines()
    assert lines[0] == "### Mixtral 8x7B: 46,702,792,704 parameters (46.7B)"
    assert "| `n_routed_experts` | 8 | `num_experts or num_local_experts` | number of routed experts |" in lines
    assert "| router | `n_layers · n_routed_experts · d_model` | `32 · 8 · 4,096` | 1,048,576 |" in lines
    assert "| **total** |  |  | **46,702,792,704** |" in lines
    assert "Active: 46,702,792,704 − 33,822,867,456 = **12,879,925,248**" in lines
    assert {line.count("|") for line in lines if line.startswith("|")} <= {4, 5}


def test_a_what_if_is_described_in_every_format(run: Runner) -> None:
    change = "changed n_layers 32 → 40: total 8,030,261,248 + 1,744,896,000 = 9,775,157,248"
    for format in ("table", "markdown", "html", "latex"):
        out = run("explain", "llama-3.1-8b", "--set", "n_layers=40", "--format", format).out
        assert out.replace("\\", "").count(change) == 1, format
    data = json.loads(run("explain", "llama-3.1-8b", "--set", "n_layers=40", "--json").out)
    assert (data["total"], data["changes"]) == (9_775_157_248, [change])


def test_a_hostile_name_does_not_become_markup(tmp_path: Path, run: Runner) -> None:
    folder = tmp_path / "<img src=x onerror=alert(1)>|`_\x1b[31m$%{}"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "llama", "num_hidden_layers": 1}', encoding="utf-8")
    for format in ("table", "markdown", "html", "latex", "csv"):
        for options in ([], ["--head"], ["--layer", "0"], ["--tensors"]):
            done = run("explain", str(folder), "--format", format, *options)
            assert done.code == 0, done.err
            assert "\x1b" not in done.out
            assert format not in ("markdown", "html") or "<img" not in done.out
            if format == "latex" and options != ["--tensors"]:
                pytest.importorskip("pylatexenc.latexwalker").LatexWalker(
                    done.out, tolerant_parsing=False
                ).get_latex_nodes()


def test_a_page_of_any_width_has_the_same_numbers() -> None:
    explanation = pc.explain("deepseek-v3")
    for width in (1, 60, 97, 300):
        page, right = squeeze_page(render_text(explanation, width))
        assert "total671,026,404,352" in page
        assert all("".join(f"{line.numbers} {line.value:,}".split()) in right for line in explanation.lines)


def test_every_tensor_is_listed_with_name_shape_repeats_and_count(run: Runner) -> None:
    rows = list(csv.DictReader(io.StringIO(run("explain", "deepseek-v3", "--tensors", "--csv").out)))
    assert sum(int(row["parameters"]) for row in rows if row["part"] != "mtp") == 671_026_404_352
    repeats = {row["tensor"]: row["repeats"] for row in rows if row["part"] == "decoder"}
    assert repeats["model.layers.{layer}.self_attn.q_a_proj.weight"] == "61 layers"  # dense and MoE
    assert re.search(
        r"\.gate_proj\.weight\n  \[2048, 7168\] +58 layers × 256 experts +217,969,590,272\n",
        run("explain", "deepseek-v3", "--tensors").out,
    )


# ---- names of sizes and of modules


def test_every_size_and_every_flag_without_a_config_key_has_a_meaning() -> None:
    sections = [section for name in ARCHITECTURES for section in list_sections(architecture(name))]
    names = {field for section in sections for field in section.fields if field.startswith(("n_", "d_"))}
    assert sorted(names - set(MEANINGS)) == []
    without_key = {
        field
        for section in sections
        for field in section.fields
        if get_info(section, field).annotation in (bool, int) and not get_key(section, field).spellings(field)
    }
    assert sorted(without_key - set(MEANINGS) - set(FLAGS)) == ["conv_bias", "router_bias", "tie_word_embeddings"]


def list_sections(sizes: type[Sizes]) -> list[type[Sizes]]:
    """The class and the classes of its inner configs."""
    return [sizes, *(section for inner in inner_configs(sizes).values() for section in list_sections(inner))]


def list_labels(config: dict[str, Any], component: str) -> dict[str, int]:
    """{module and kind of a line: value} of a component."""
    (found,) = [c for c in pc.explain(config).components if c.name == component]
    return {" ".join((line.detail, line.of)).strip(): line.value for line in found.lines}


@pytest.mark.filterwarnings("ignore::paramcount.ConfigWarning")
def test_modules_without_a_common_meaning_have_a_line_each() -> None:
    qwen = list_labels({"model_type": "qwen2_moe"}, "router")  # 60 experts, d_model 2,048, 24 layers
    prefix = "model.layers.{layer}.mlp."
    assert qwen == {f"{prefix}gate weights": 24 * 60 * 2048, f"{prefix}shared_expert_gate weights": 24 * 2048}
    whisper = list_labels({"model_type": "whisper"}, "mixer")  # two convolutions of kernel 3, 80 mel bands
    assert whisper == {
        "model.encoder.conv1 weights": 3 * 80 * 384,
        "model.encoder.conv1 biases": 384,
        "model.encoder.conv2 weights": 3 * 384 * 384,
        "model.encoder.conv2 biases": 384,
    }
    assert list_labels({"model_type": "gpt_oss"}, "other") == {"model.layers.{layer}.self_attn.sinks weights": 36 * 64}
