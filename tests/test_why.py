"""`why`: the causes that explain a published figure to the last parameter."""

from __future__ import annotations

import csv
import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
import paramcount.zoo as zoo
from paramcount.counting.quantisation.scales import get_scales
from paramcount.explaining.causes import are_compatible, find_candidates
from paramcount.explaining.why import Account, Why, render_terms
from paramcount.output.numbers import match_figure, parse_figure
from tests.batches import in_batches
from tests.refusing import error_of
from tests.running import Runner
from tests.structures import ZOO, pick_structures

DATA = Path(__file__).parent / "data"
TINY = {
    "model_type": "llama",
    "vocab_size": 1000,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
}


def explain_one(model: pc.ModelLike, number: str | int) -> Why:
    (answer,) = pc.why(model, number)
    return answer


def list_causes(answer: Why) -> list[tuple[str, int]]:
    """The causes in the only explanation."""
    (account,) = answer.accounts
    return [(cause.name, cause.units) for cause in account.causes]


def check_account(account: Account) -> None:
    """Assert that every sum and every printed arithmetic in an account is correct."""
    assert account.value == account.count + sum(cause.units for cause in account.causes)
    for cause in account.causes:
        assert cause.units == sum(item.units for item in cause.items) != 0
        for item in cause.items:
            assert re.fullmatch(r"[\d ,+×()]+", item.arithmetic)
            assert eval(item.arithmetic.replace(",", "").replace("×", "*")) == abs(item.units)  # noqa: S307


# ---- tests/data/published_totals.csv: published figures that differ from the count, with every cause

with (DATA / "published_totals.csv").open(encoding="utf-8", newline="") as file:
    CLAIMS: dict[str, list[dict[str, str]]] = {}
    for row in csv.DictReader(file):
        CLAIMS.setdefault(row["model"], []).append(row)

PIECES = {  # {words in that file: (name of the cause, names of its items)}
    "causal-mask buffers": ("legacy buffers", {""}),
    "inv_freq buffers": ("legacy buffers", {""}),
    "58 x 256 e_score_correction_bias (buffers)": ("buffers", {""}),
    "multi-token-prediction layer, its own tensors": ("MTP layer", {"own tensors", "buffers"}),
    "its stored copies of embedding and head": ("MTP layer", {"duplicate embedding and LM head"}),
    "block scales of the main layers": ("FP8 scales", {"main layers"}),
    "block scales of the multi-token-prediction layer": ("FP8 scales", {"MTP layers"}),
    "MXFP4 scales": ("MXFP4 scales", {""}),
    "stored copy of the tied head": ("tied LM head counted twice", {""}),
    "an untied output head": ("tied LM head counted twice", {""}),
    "position table left out": ("position embedding", {""}),
    "biases and norms left out": ("biases and norms", {"biases", "norms"}),
}


@pytest.mark.parametrize("model", CLAIMS)
def test_each_published_difference_is_explained_by_its_causes_to_the_last_parameter(model: str) -> None:
    rows = CLAIMS[model]
    answer = explain_one(model, rows[0]["published"])
    (account,) = answer.accounts
    check_account(account)
    assert (answer.verdict, answer.left_over, account.value) == ("exact", 0, int(rows[0]["published"]))
    assert (answer.base, answer.true) == ("total", int(rows[0]["model_parameters"]))
    found = {(cause.name, item.name): item.units for cause in account.causes for item in cause.items}
    expected = set()
    for row in rows:
        ((name, items),) = [piece for words, piece in PIECES.items() if words in row["cause"]]
        assert sum(found[name, item] for item in items) == int(row["units"])
        expected |= {(name, item) for item in items}
    assert set(found) == expected


@in_batches(("model", "off"), list(product(CLAIMS, (-1, 1))), ids=str)
def test_an_exact_figure_is_explained_exactly_or_not_at_all(model: str, off: int) -> None:
    answer = explain_one(model, int(CLAIMS[model][0]["published"]) + off)
    assert (answer.verdict, answer.accounts) == ("not reproducible", ())


# ---- figures from other sources or derived by hand


def summarize(answer: Why) -> str:
    """Every explanation with its fit, the preferred one first: "truncated: active"."""
    (account,) = answer.accounts
    check_account(account)
    accounts = [account, *filter(None, (answer.plainer, answer.rounded))]
    return "; ".join(f"{one.fit}: {render_terms(one)}" for one in accounts)


def forget_source(id: str) -> dict[str, Any]:
    """A model without the sources of its zoo entry."""
    model = pc.load(id)
    return {"architecture": model.architecture, "config": model.sizes.to_dict()}


ONE = "active minus one embedding matrix (input or LM head)"
BOTH = "minus both embedding matrices (input and LM head)"
ACTIVE = [  # as published: see the entries' sources, which follow different conventions
    ("mixtral-8x7b", "12.9B", "rounded: active"),
    ("qwen3-30b-a3b", "3.3B", "truncated: active"),
    ("qwen1.5-moe-a2.7b", "2.7B", "rounded: active"),
    ("gpt-oss-20b", "3.6B", f"rounded: {ONE} 579,133,440"),
    ("gpt-oss-120b", "5.1B", f"rounded: {ONE} 579,133,440"),
    ("deepseek-v2-lite", "2.4B", f"truncated: {ONE} 209,715,200"),
    ("deepseek-v3", "36.6B", f"rounded: {ONE} 926,679,040"),
    ("glm-4.5", "32B", f"rounded: active {BOTH} 1,551,892,480"),
    ("glm-4.5-air", "12B", f"rounded: active {BOTH} 1,241,513,984"),
]


@pytest.mark.parametrize(("id", "figure", "expected"), ACTIVE)
def test_an_active_figure_names_the_embeddings_it_omits(id: str, figure: str, expected: str) -> None:
    assert summarize(explain_one(id, figure)) == summarize(explain_one(forget_source(id), figure)) == expected


V3 = 671_026_404_352
UNBIASED_GPT_OSS = 4_187_440_704 - 24 * (4096 + 2 * 512 + 2880 + 32 + 4 * (5760 + 2880))  # with 4 active experts
CAUSES: list[tuple[str, str | int, str]] = [
    ("gpt2-small", "123.65M", "rounded: total minus position embedding 786,432"),  # printed by nanoGPT
    # nanoGPT with its padded vocabulary
    ("gpt2-small", 124_475_904, "exact: total plus vocabulary padded to 50,304 36,096 (next multiple of 64 or 128)"),
    # GPT-2 with an untied LM head
    ("gpt2-small", 163_037_184, "exact: total plus tied LM head counted twice 38,597,376"),
    (
        "gpt2-small",
        12 * (12 * 768**2 + 13 * 768) + 2 * 768,
        "exact: total minus token embedding 38,597,376 (also the LM head) minus position embedding 786,432",
    ),
    ("gpt2-small", 124_439_808 - (12 * 4 * 768 + 2 * 768), "exact: total minus norms 38,400"),
    ("gpt2-small", 124_439_808 - 12 * (3 * 768 + 768 + 3072 + 768), "exact: total minus biases 82,944"),
    ("llama-2-7b", 6_738_415_616 - 2 * 32000 * 4096, f"exact: total {BOTH} 262,144,000"),
    (
        "llama-3.1-8b",
        8_030_261_248 + 2 * 256 * 4096,
        "exact: total plus vocabulary padded to 128,512 2,097,152 (next multiple of 512)",
    ),
    (
        "llama-3.2-1b",
        1_235_814_400 - 128_256 * 2048,
        "exact: total minus token embedding 262,668,288 (also the LM head)",
    ),
    ("deepseek-v3", V3 + 58 * 256, "exact: total plus buffers 14,848"),
    ("deepseek-v3", V3 + 11_610_067_968, "exact: total plus MTP layer 11,610,067,968 (own tensors)"),
    (
        "deepseek-v3",
        V3 + 11_610_067_968 - 7168 * 14336,
        "exact: total plus MTP layer 11,507,307,520 (own tensors without eh_proj)",
    ),
    ("deepseek-v3", V3 + 40_838_232, "exact: total plus FP8 scales 40,838,232"),  # those of the MTP layer are missing
    (  # as stated in its zoo entry
        "kimi-k2",
        1_026_470_731_056,
        "exact: total plus buffers 23,040 plus legacy buffers 3,416 plus FP8 scales 62,495,192",
    ),
    ("moonlight-16b-a3b", 15_960_111_936, "exact: total plus buffers 1,664 plus legacy buffers 1,728"),
    ("gpt-oss-20b", UNBIASED_GPT_OSS, "exact: active minus biases 1,022,208"),
]


@pytest.mark.parametrize(("model", "figure", "expected"), CAUSES)
def test_each_cause_is_found_and_named(model: str, figure: str | int, expected: str) -> None:
    assert summarize(explain_one(model, figure)) == expected


def test_per_layer_embeddings_are_a_separate_cause() -> None:
    document = {"model_type": "gemma3n_text", "num_hidden_layers": 5, "layer_types": ["full_attention"] * 5}
    document |= {"num_kv_shared_layers": 0}
    n = 262_144 * 5 * 256
    answer = explain_one(document, pc.count(document).total - n)
    assert summarize(answer) == f"exact: total minus other embeddings {n:,}"


@pytest.mark.parametrize(
    ("cause", "names"),
    [
        ("vision encoder", ["vision"]),
        ("vision encoder and projector", ["vision", "projector"]),
        ("token embedding", ["embedding"]),  # has eight rows more than the LM head
        ("LM head", ["lm_head"]),
    ],
)
def test_encoders_and_embeddings_of_different_sizes_are_omitted_separately_or_together(
    cause: str, names: list[str]
) -> None:
    count = pc.count("llama-3.2-11b-vision")
    n = sum(count.components[name] for name in names)
    assert summarize(explain_one("llama-3.2-11b-vision", count.total - n)) == f"exact: total minus {cause} {n:,}"


def test_the_scales_of_a_config_json_are_explained_exactly() -> None:
    document = json.loads((DATA / "config_truth" / "DeepSeek-V3.2.json").read_text(encoding="utf-8"))["config"]
    answer = explain_one(document, 685_396_921_376)  # safetensors total on the Hub: github sammcj/llmfit hf_models.json
    assert list_causes(answer) == [("buffers", 14_848), ("MTP layer", 13_477_385_728), ("FP8 scales", 41_591_584)]
    glm = json.loads((DATA / "config_truth" / "GLM-4.5.json").read_text(encoding="utf-8"))["config"]
    assert list_causes(explain_one(glm, 358_337_791_296)) == [("buffers", 14_240), ("MTP layer", 5_539_962_272)]
    assert summarize(explain_one(glm, "32B")) == f"rounded: active {BOTH} 1,551,892,480"


# ---- which explanation takes precedence


PREFERRED = [
    # README.md: "37B activated for each token"; the zoo entry lists it as `active`, which includes embeddings
    ("deepseek-v3", "37B", f"truncated: active; rounded: {ONE} 926,679,040"),
    ("qwen3-next-80b-a3b", "3B", f"truncated: active; rounded: active {BOTH} 622,329,856"),
    # Table 1 of the paper excludes embeddings; the total itself matches 106B only when truncated
    ("glm-4.5-air", "106B", f"rounded: total {BOTH} 1,241,513,984"),
    ("gpt2-xl", "1.5B", "truncated: total"),  # without the token embedding it would be 1.48
    (  # two causes would be enough without the source
        "deepseek-v3",
        "685B",
        "rounded: total plus buffers 14,848 plus MTP layer 13,463,426,304 (own tensors, buffers, duplicate embedding"
        " and LM head) plus FP8 scales 41,540,496",
    ),
]


@pytest.mark.parametrize(("id", "figure", "expected"), PREFERRED)
def test_the_count_that_the_source_names_takes_precedence(id: str, figure: str, expected: str) -> None:
    assert summarize(explain_one(id, figure)) == expected


def test_why_shows_the_stated_convention_first(run: Runner) -> None:
    lines = run("why", "deepseek-v3", "37B").out.splitlines()
    assert lines[:3] == ["37B = active 37,552,282,624", "active  37,552,282,624", "truncated"]
    second = " ".join(lines[3:5]).replace("   ", " ")
    assert second.startswith(
        "also matches when rounded: active 37,552,282,624 minus one embedding matrix (input or LM head)"
    )


@pytest.mark.parametrize(
    ("id", "figure", "expected"),
    [
        ("deepseek-v3", "37B", f"rounded: {ONE} 926,679,040; truncated: active"),
        ("deepseek-v3", "671B", "rounded: total"),
        ("gpt2-xl", "1.5B", "rounded: total minus token embedding 80,411,200 (also the LM head); truncated: total"),
    ],
)
def test_rounding_takes_precedence_over_truncation_without_a_source(id: str, figure: str, expected: str) -> None:
    assert summarize(explain_one(forget_source(id), figure)) == expected


def test_explanations_with_the_same_value_are_merged() -> None:
    document = {"model_type": "gpt2", "vocab_size": 1000, "n_positions": 1000, "n_embd": 64, "n_layer": 2, "n_head": 4}
    (account,) = explain_one(document, pc.count(document).total - 64_000).accounts
    assert ([cause.name for cause in account.causes], [[cause.name for cause in also] for also in account.also]) == (
        ["token embedding"],
        [["position embedding"]],
    )
    assert account.terms == "minus token embedding 64,000 (also the LM head), or minus position embedding 64,000"


def test_buffers_do_not_explain_a_count_of_parameters() -> None:
    """The total plus 96 causal masks of 2,048 × 2,048 would be 175.0B, but Table 2.1 of GPT-3 counts parameters."""
    assert explain_one("gpt-3", "175.0B").verdict == "not reproducible"
    assert explain_one("gpt-3", 174_604_259_328 + 96 * 2048 * 2048).verdict == "exact"


@pytest.mark.parametrize("id", ["gpt2-small", "deepseek-v3", "gpt-oss-20b", "llama-3.2-11b-vision", "qwen3-0.6b"])
def test_mutually_exclusive_causes_are_incompatible(id: str) -> None:
    found = find_candidates(pc.count(id).tensors, get_scales("fp8", {}))
    groups = (
        {
            "LM head",
            "one embedding matrix (input or LM head)",
            "both embedding matrices (input and LM head)",
            "token embedding",
            "tied LM head counted twice",
        },
        {"biases", "norms", "biases and norms"},
        {"vision encoder", "projector", "vision encoder and projector"},
        {"MTP layer"},
        {"FP8 scales"},
    )
    for a in found:
        for b in found:
            alike = a is b or any(a.name in group and b.name in group for group in groups)
            padded = {a.name, b.name} & groups[0] and any(c.name.startswith("vocabulary") for c in (a, b))
            if alike or padded or (a.name.startswith("vocabulary") and b.name.startswith("vocabulary")):
                assert not are_compatible((a, b))


def test_an_mtp_layer_and_its_scales_occur_only_together() -> None:
    assert explain_one("deepseek-v3", 671_026_404_352 + 41_540_496).verdict == "not reproducible"
    assert explain_one("deepseek-v3", 671_026_404_352 + 11_610_067_968 + 40_838_232).verdict == "not reproducible"
    assert list_causes(explain_one("deepseek-v3", 671_026_404_352 + 11_610_067_968 + 41_540_496)) == [
        ("MTP layer", 11_610_067_968),
        ("FP8 scales", 41_540_496),
    ]


def test_a_vocabulary_that_is_already_a_multiple_is_not_padded() -> None:
    def padded_candidates(rows: int) -> list[str]:
        return [
            found.name
            for found in find_candidates(pc.count(TINY | {"vocab_size": rows}).tensors)
            if found.name.startswith("vocabulary")
        ]

    assert padded_candidates(2048) == []
    assert padded_candidates(2049) == [
        f"vocabulary padded to {rows}"
        for rows in ("2,056", "2,064", "2,080", "2,112", "2,176", "2,304", "2,560", "3,072")
    ]


def test_at_most_three_causes_explain_a_figure() -> None:
    count = pc.count("deepseek-v3")
    three = count.total + count.buffers + (count.mtp or 0) + 40_838_232 + 702_264
    assert len(list_causes(explain_one("deepseek-v3", three))) == 3
    without_norms = three - 61 * (2 * 7168 + 2048) - 7168
    assert explain_one("deepseek-v3", without_norms).verdict == "not reproducible"
    # starting from `active` is one of the three causes; 8 of the 256 experts in the MTP layer are active
    two = count.active - count.embedding - count.lm_head + (count.mtp or 0) - 248 * 3 * 2048 * 7168
    assert len(list_causes(explain_one("deepseek-v3", two))) == 2
    assert explain_one("deepseek-v3", two - count.components["norm"]).verdict == "not reproducible"


# ---- every model


@in_batches("id", ZOO, size=50)
def test_every_published_figure_has_an_answer_that_adds_up(id: str) -> None:
    model = zoo.load_entry(id)
    answers = pc.why(id)
    assert [answer.published for answer in answers] == [
        f"{figure.value:,}" if isinstance(figure.value, int) else figure.value for figure in model.published
    ]
    refs = {source.id: source.ref for source in model.sources}
    for answer, published in zip(answers, model.published, strict=True):
        figure = parse_figure(published.value)
        assert (answer.value, answer.step, answer.what, answer.source) == (
            *figure,
            published.what,
            refs[published.source],
        )
        for account in answer.accounts:
            check_account(account)
            assert match_figure(account.value, figure) == account.fit
            assert account.count == getattr(pc.count(id), account.base)
        assert bool(answer.accounts) == (answer.left_over == 0)
        assert answer.correction == (refs[published.corrected] if published.corrected else None)
        assert answer.ok == bool(answer.accounts or answer.correction)
        json.dumps(answer.to_dict())


# ---- valid and invalid figures


INVALID: list[Any] = [
    *("", "x", "7X", "0", "-7B", "7.4.5B", ".", "+", "e6", ".B", "1.2.3B", "++1B", ",5B", "1e", "124e-6"),
    *(0, -1, True, 1.5, 10**31, "9" * 5000, "1" + ",000" * 2000),
]


@in_batches("number", INVALID)
def test_an_invalid_figure_is_an_error(number: Any) -> None:
    with pytest.raises(pc.ParamcountError, match="is not a parameter count"):
        pc.why("gpt2-small", number)


# ---- the command line


def test_an_unexplained_figure_shows_the_unexplained_difference(run: Runner) -> None:
    done = run("why", "gpt2-small", "118M")
    assert (done.code, done.out) == (
        1,
        "118M: unexplained, 6.4M less than total\npublished  118,000,000\ntotal      124,439,808\n",
    )
    assert run("why", "gpt2-small", "124449808").out.startswith("124,449,808: unexplained, 10,000 more than total\n")
    lines = run("why", "qwen2-7b", "5.98B").out.splitlines()  # compared with the count that its source names
    assert lines[:3] == [
        "5.98B: unexplained, 546M less than parameters without embeddings and LM head",
        "published                                  5,980,000,000",
        "parameters without embeddings and LM head  6,525,621,760",
    ]


def test_several_explanations_are_listed_with_exit_code_0(run: Runner) -> None:
    done = run("why", "glm-4.5", "355B")
    assert done.code == 0
    assert done.out.startswith(
        "355B: 2 explanations fit equally well\n"
        "355,181,563,136  total 352,797,814,784 minus both embedding matrices (input and\n"
        "                 LM head) 1,551,892,480 plus MTP layer"
    )
    assert "\n355,233,991,936  total" in done.out


def test_without_a_number_every_published_figure_is_explained_with_its_source(run: Runner) -> None:
    done = run("why", "deepseek-v3")
    assert done.code == 1  # 36.7B
    lines = done.out.splitlines()
    assert lines[0] == "DeepSeek-V3   671,026,404,352 parameters"
    assert lines[1].split() == ["published", "computed", "ref", "why"]
    assert lines[3].split() == ["671B", "671,026,404,352", "[1]", "total,", "matches", "when", "rounded"]
    assert any(line.split()[:4] == ["36.7B", "37,552,282,624", "[2]", "unexplained,"] for line in lines)
    assert "[2] github deepseek-ai/DeepSeek-V3@0b39205aed0d:README_WEIGHTS.md" in done.out


def test_a_model_without_published_figures_shows_its_total_and_how_to_explain_a_figure(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run("why", "falcon3-1b")
    note = "falcon3-1b: no published figure is known; to explain one, run `paramcount why falcon3-1b NUMBER`"
    assert (done.code, done.err) == (0, f"note: {note}\n")
    assert [line.split() for line in done.out.splitlines()[::2]] == [
        ["model", "total"],
        ["Falcon3", "1B", "1,669,408,768"],
    ]
    assert json.loads(run("why", "falcon3-1b", "--json").out)["notes"] == [note]
    (tmp_path / "tiny.json").write_text(json.dumps(TINY), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    done = run("why", "tiny.json")
    assert done.err.splitlines()[-1] == (
        "note: tiny.json: no published figure is known; to explain one, run `paramcount why tiny.json NUMBER`"
    )
    assert f"{pc.count(TINY).total:,}" in done.out
    assert run("why", "tiny.json", str(pc.count(TINY).total)).err == ""


def test_other_models_show_their_figures_if_one_model_has_none(run: Runner) -> None:
    done = run("why", "falcon3-1b", "gpt2")
    assert done.err.startswith("note: falcon3-1b: no published figure is known")
    assert [line.split()[0] for line in done.out.splitlines()[2:] if line[0] != " "] == ["gpt2-small"] * 4


def test_figures_belong_to_the_model_before_them(run: Runner) -> None:
    done = run("why", "mixtral-8x7b", "12.9B", "qwen3-30b-a3b", "3.3B", "30B", "gpt2", "118M", "--csv")
    rows = list(csv.DictReader(done.out.splitlines()))
    assert done.code == 1
    assert [(row["model"], row["published"], row["true"], row["verdict"]) for row in rows] == [
        ("mixtral-8x7b", "12.9B", "12879925248", "rounded"),
        ("qwen3-30b-a3b", "3.3B", "3353032704", "truncated"),
        ("qwen3-30b-a3b", "30B", "30532122624", "truncated"),
        ("gpt2-small", "118M", "124439808", "not reproducible"),
    ]
    assert rows[3]["left_over"] == "-6439808"
    assert run("why", "mixtral-8x7b", "12.9B", "qwen3-30b-a3b", "3.3B").code == 0


def test_a_figure_may_start_with_a_character_that_paths_start_with(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("why", "kimi-k2", "~1.03T").out.startswith("1.03T = total 1,026,408,209,408\n")
    (tmp_path / "7b.json").write_text(json.dumps(TINY), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert run("why", "7b.json", str(pc.count(TINY).total)).code == 0


def test_json_equals_the_python_result(run: Runner) -> None:
    data = json.loads(run("why", "deepseek-v3", "684531386000", "--json").out)
    assert data["schema_version"] == 2
    (figure,) = data["figures"]
    assert figure == json.loads(json.dumps(explain_one("deepseek-v3", "684531386000").to_dict()))
    assert [(cause["name"], cause["units"]) for cause in figure["accounts"][0]["causes"]] == [
        ("buffers", 14_848), ("MTP layer", 13_463_426_304), ("FP8 scales", 41_540_496)
    ]  # fmt: skip


ANSWERS = ["gpt2 118M", "glm-4.5 355B", "deepseek-v3 684531386000", "deepseek-v3", "gpt2 llama-2-7b"]
FORMATS = ["table", "markdown", "latex", "html", "csv", "json"]


@in_batches(("args", "format"), list(product(ANSWERS, FORMATS)), size=10)
def test_every_answer_has_every_format(run: Runner, args: str, format: str) -> None:
    done = run("why", *args.split(), "--format", format)
    assert (done.code in (0, 1), done.err, bool(done.out)) == (True, "", True)


@in_batches("id", pick_structures(ZOO, every=6), size=50)
def test_every_answer_is_readable_in_80_columns(run: Runner, id: str) -> None:
    lines = run("why", id).out.splitlines() + run("why", id, "1.7B").out.splitlines()
    assert max(map(len, lines)) <= 80


def test_a_what_if_is_explained_with_its_changed_sizes(run: Runner) -> None:
    done = run("why", "gpt2", "--set", "n_layers=13", "131527680")
    assert done.code == 0
    assert done.out.splitlines()[:2] == [
        "131,527,680 = total 131,527,680",
        "changed n_layers 12 → 13: total 124,439,808 + 7,087,872 = 131,527,680",
    ]
    data = json.loads(run("why", "gpt2", "--set", "n_layers=13", "131527680", "--json").out)
    assert data["figures"][0]["set"] == {"n_layers": [12, 13]}


def test_no_zoo_name_looks_like_a_figure() -> None:
    assert [name for id in zoo.list_ids() for name in zoo.list_names(id) if name[0].isdigit() and "/" not in name] == []


# ---- the class without an LM head


@pytest.mark.parametrize(
    ("id", "figure", "cause", "items"),
    [  # the sums are those of the classes of transformers 5.23.0, built with the published sizes
        (
            "bert-base-uncased",
            109_482_240,
            ("BertModel instead of BertForMaskedLM", -32_058),
            {"LM head": -30_522, "layers in front of the LM head": -592_128, "pooler": 590_592},
        ),
        (
            "xlm-roberta-base",
            278_043_648,
            ("XLMRobertaModel instead of XLMRobertaForMaskedLM", -251_538),
            {"LM head": -250_002, "layers in front of the LM head": -592_128, "pooler": 590_592},
        ),
        (
            "mobilebert-uncased",
            24_844_544,
            ("MobileBertModel instead of MobileBertForMaskedLM", -11_751_994),
            {"LM head": -11_750_970, "layers in front of the LM head": -263_680, "pooler": 262_656},
        ),
        (
            "modernbert-base",
            149_014_272,
            ("ModernBertModel instead of ModernBertForMaskedLM", -640_960),
            {"LM head": -50_368, "layers in front of the LM head": -590_592},
        ),
        ("llama-3.1-8b", 7_504_924_672, ("one embedding matrix (input or LM head)", -525_336_576), {"": -525_336_576}),
    ],
)
def test_a_figure_of_the_class_without_a_head_names_that_class(
    id: str, figure: int, cause: tuple[str, int], items: dict[str, int]
) -> None:
    answer = explain_one(id, figure)
    (account,) = answer.accounts
    check_account(account)
    assert (answer.verdict, list_causes(answer), account.also) == ("exact", [cause], ())
    assert {item.name: item.units for item in account.causes[0].items} == items


@in_batches("text", [".124B", "0.124B", "+124M", "124.M", "124e6", "1.24e8", "~.124b"])
def test_a_figure_may_be_written_as_people_type_it(text: str) -> None:
    assert parse_figure(text).value == 124_000_000
    assert match_figure(124_439_808, parse_figure(text)) == "rounded"


@in_batches("text", ["0B", "0.0B", "0T"])
def test_no_model_rounds_to_nothing(text: str) -> None:
    assert match_figure(124_439_808, parse_figure(text)) is None
    assert match_figure(0, parse_figure(text)) == "exact"


def test_an_error_about_quantised_modules_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    quantisation = {
        "quant_method": "fp8",
        "weight_block_size": [128, 128],
        "modules_to_not_convert": ["model.layers.3"],
    }
    path.write_text(json.dumps({**TINY, "num_hidden_layers": 100_000, "quantization_config": quantisation}))
    error = error_of(pc.why, path, "5B")
    assert error == (
        f"{path}: quantization_config: may select modules by name in 100,000 layers (expected at most 10,000 layers)"
    )
