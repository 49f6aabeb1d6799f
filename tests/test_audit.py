"""Audits of tables of claims: parsing, verdicts and contradictions."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
import paramcount.zoo as zoo
from paramcount.auditing.audit import Cell, audit_tables
from paramcount.auditing.cells import UnreadableClaim, parse_claims
from paramcount.auditing.claim_tables import from_bytes, from_text
from paramcount.auditing.headings import parse_heading
from paramcount.auditing.render import build_text_table
from paramcount.views.compare import make_rows
from tests.refusing import assert_one_line, command_error, error_of
from tests.running import Runner
from tests.structures import ZOO

DATA = Path(__file__).parent / "data"
CLAIMS = DATA / "claims"
SEEDS = CLAIMS / "seed_tables.csv"


def audit_cell(model: str, column: str, claim: str) -> Cell:
    """The verdict on the first claim in a cell."""
    return pc.audit([{"model": model, column: claim}]).rows[0].cells[0]


def audit_verdict(model: str, column: str, claim: str) -> tuple[str, str]:
    found = audit_cell(model, column, claim)
    return found.verdict_text, found.note


# ---- the seed tables: every wrong cell according to the configs in tests/data/truth or, without a config, the paper

TRUTH = {
    "GPT-2 Small": "gpt2", "GPT-2 Medium": "gpt2-medium", "GPT-2 Large": "gpt2-large", "GPT-2 XL": "gpt2-xl",
    "GPT-1": "openai-gpt", "GPT-2": "gpt2-xl", "Llama 2 7B": "Llama-2-7b-hf", "Llama 2 13B": "Llama-2-13b-hf",
    "Llama 2 70B": "Llama-2-70b-hf", "Llama 3 8B": "Meta-Llama-3-8B", "Llama 3 70B": "Meta-Llama-3-70B",
    "Llama 3.1 8B": "Meta-Llama-3.1-8B", "Llama 3.1 70B": "Meta-Llama-3.1-70B",
    "Llama 3.1 405B": "Meta-Llama-3.1-405B", "Llama 3.2 1B": "Llama-3.2-1B-Instruct",
    "Llama 3.2 3B": "Llama-3.2-3B-Instruct", "Llama 3.2 11B": "Llama-3.2-11B-Vision-Instruct",
    "Llama 3.2 90B": "Llama-3.2-90B-Vision-Instruct", "Llama 3.3 70B": "Llama-3.3-70B-Instruct", "Qwen-7B": "Qwen-7B",
    "Qwen-14B": "Qwen-14B-Chat", "Qwen-72B": "Qwen-72B-Chat", "Qwen1.5-MoE-A2.7B": "Qwen1.5-MoE-A2.7B",
    "Qwen2-0.5B": "Qwen2-0.5B", "Qwen2-7B": "Qwen2-7B", "Qwen2-72B": "Qwen2-72B-Instruct",
    "Qwen2.5-0.5B": "Qwen2.5-0.5B", "Qwen2.5-7B": "Qwen2.5-7B-Instruct", "Qwen2.5-72B": "Qwen2.5-72B",
    "DeepSeek-LLM 7B": "deepseek-llm-7b-base", "DeepSeek-LLM 67B": "deepseek-llm-67b-base",
    "DeepSeek-MoE": "deepseek-moe-16b-base", "DeepSeek-V2": "DeepSeek-V2", "DeepSeek-V3": "DeepSeek-V3",
    "DeepSeek-R1": "DeepSeek-R1",
}  # fmt: skip
KEYS = {
    "layers": ("num_hidden_layers", "n_layer"),
    "d_model": ("hidden_size", "n_embd"),
    "attention_heads": ("num_attention_heads", "n_head"),
    "kv_heads": ("num_key_value_heads",),
    "experts": ("n_routed_experts", "num_experts"),
}


def load_seeds() -> list[dict[str, str]]:
    with SEEDS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def list_true_sizes(model: str) -> dict[str, int]:
    """Sizes and totals in the frozen configs of the reference."""
    found = json.loads((DATA / "truth" / f"{TRUTH[model]}.json").read_text(encoding="utf-8"))
    config = found["config"].get("text_config", found["config"])
    sizes = {column: config[key] for column, keys in KEYS.items() for key in keys if key in config}
    return sizes | {"parameters": found["total"], "size_fp32": 4 * found["total"], "size_fp16": 2 * found["total"]}


@pytest.mark.parametrize("row", [row for row in load_seeds() if row["model"] in TRUTH], ids=lambda row: row["model"])
def test_each_verdict_on_the_seed_tables_follows_from_the_frozen_config(row: dict[str, str]) -> None:
    audit = pc.audit([row])
    truth = list_true_sizes(row["model"])
    for one in audit.cells:
        if one.column == "active" or one.heading not in truth or one.empty or one.verdict == "not checkable":
            continue
        true = truth[one.heading]
        assert one.true == true
        if one.heading in KEYS:
            assert one.verdict == ("right" if int(one.claim) == true else "wrong")
        else:
            amount, _, unit = re.sub(r"(?<=\d)(?=[A-Z])", " ", one.claim.partition(" (")[0]).partition(" ")
            size = {"M": 10**6, "B": 10**9, "MB": 10**6, "GB": 10**9}[unit]
            tenths = 10 ** len(amount.partition(".")[2])  # of the last digit
            matches = {(true * tenths * 2 + size) // (2 * size), true * tenths // size}
            assert (one.verdict == "rounded") == (int(amount.replace(".", "")) in matches)


def test_the_stored_verdicts_on_the_seed_tables_are_up_to_date(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CLAIMS)
    done = run("audit", "seed_tables.csv", "--markdown")
    path = CLAIMS / "seed_tables.md"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(done.out, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == done.out
    assert done.code == 1


def test_the_known_errors_in_the_gpt_3_paper_are_found() -> None:
    """arXiv:2005.14165: Table 2.1 has 24 heads of 128 for d_model = 2,048, and d_model = 5,140; Table D.1 has the
    parameters 356 M, 1,320 M, 12,850 M and 174,600 M."""
    audit = pc.audit(CLAIMS / "gpt3_table_2_1.md")
    found = {(row.model, one.column): one.true for row in audit.rows for one in row.cells if one.verdict == "wrong"}
    assert found == {
        ("GPT-3 Medium", "total"): 355871744,
        ("GPT-3 XL", "n_heads"): 16,
        ("GPT-3 13B", "total"): 12853386240,
        ("GPT-3 13B", "d_model"): 5120,
        ("GPT-3 175B or “GPT-3”", "total"): 174604259328,
    }
    wrong = [i for i, row in enumerate(audit.rows) if row.verdict != "rounded"]
    assert (len(audit.rows), wrong, {audit.rows[i].verdict for i in wrong}) == (8, [1, 3, 6, 7], {"wrong"})
    assert audit.left_out == ("Batch Size", "Learning Rate")
    doubts = {row.model: [doubt.text.partition(";")[0] for doubt in row.doubts] for row in audit.rows if row.doubts}
    assert doubts == {
        "GPT-3 XL": ["24 heads × 128 = 3,072 differs from d_model = 2,048"],
        "GPT-3 13B": ["40 heads × 128 = 5,120 differs from d_model = 5,140"],
    }


# ---- headings and cells

HEADINGS = {
    "model": "Model|model name|**Model**|Name|HF ID",
    "total": "params|Parameters|# Params|#Total Params|n_params|$n_{params}$|Number of Parameters|Params (B)|params_m"
    "|Model params",
    "active": "Active params|#Activated Params|Active Parameters (B)",
    "non_embedding": "Number of Parameters (Non-Embedding)|non-embedding params",
    "n_layers": "Layers|n_layers|num_hidden_layers|# layers|Number of Layers|depth|nLayers",
    "d_model": "d_model|Hidden Size|hidden_dim|Embedding dim|n_embd|width|$d_{model}$|dModel",
    "n_heads": "Heads|Attention heads|n_heads|num_attention_heads|Heads (Q / KV)|Number of Attention Heads (GQA)",
    "n_kv_heads": "KV heads|n_kv_heads|num_key_value_heads|KV-Heads|KVHeads|Heads (KV)",
    "d_head": "d_head|head_dim|Head size",
    "d_ff": "d_ff|Intermediate size|FFN dim|ffn hidden size|MLP dim",
    "n_routed_experts": "Experts|# Experts (Total / Activated)|n_routed_experts|Number of experts",
    "n_active_experts": "Active experts|Top-k|num_experts_per_tok|experts per token active",
    "n_shared_experts": "Shared experts",
    "d_expert": "moe_intermediate_size|Expert dim",
    "vocab_size": "Vocab|vocab_size|Vocabulary size",
    "context_length": "Context|Context Length|max seq len|n_ctx|Window|max_position_embeddings",
    "tied": "Tie Embedding|tie_word_embeddings",
    "bytes": "Size|size_fp16|FP32 (GB)|Memory (BF16)|BF16 size (GiB)|Q4 size",
    None: "batch size|Layers (encoder)|training tokens|# tokens|Total|VRAM (GB)|Speed (GB/s)|License||n|Score"
    "|embedding model",
}


@pytest.mark.parametrize("kind", HEADINGS)
def test_a_heading_is_parsed(kind: str | None) -> None:
    assert {text: parse_heading(text).kind for text in HEADINGS[kind].split("|")} == dict.fromkeys(
        HEADINGS[kind].split("|"), kind
    )


CELLS: dict[str, dict[int, str]] = {  # {heading: {number: cells}}
    "params": {
        7 * 10**9: "7B|**7B**|[7B](https://a.b/c)|7B[1]|7B†|\\~7B\\*|7_000_000_000",
        7_610_000_000: "7.61B",
        1_800 * 10**9: "~1.8T (estimated)",
        124439808: "124,439,808|124 439 808",
        1_500_000_000: "1,5B|1.5e9",
        1557611200: "1.557.611.200",
        175 * 10**9: "175 billion",
        13 * 10**9: "≈13B",
    },
    "Params (M)": {124 * 10**6: "124", 1558 * 10**6: "1,558", 7_500_000_000: "7.5B"},
    "layers": {32: "32|32.0|32 layers", 60: "60 (estimated)"},
    "context": {128_000: "128k|128K tokens|>128k (guessed)", 131072: "131,072", 10**6: "1M"},
    "size_fp16": {249 * 10**6: "0,249 GB", 498 * 10**6: "498 MB", 1_610_612_736: "1.5 GiB", 13_500_000_000: "13.5G"},
    "size": {7 * 10**9: "7B", 13 * 10**9: "13 GB"},
}


@pytest.mark.parametrize("heading", CELLS)
def test_the_number_in_a_cell_is_parsed(heading: str) -> None:
    for value, texts in CELLS[heading].items():
        for text in texts.split("|"):
            (claim,) = parse_claims(text, parse_heading(heading))
            assert claim.amount is not None and claim.amount.value == value, text


SEVERAL = [
    ("params", "14.3B (2.7B active)", {"total": 14_300_000_000, "active": 2_700_000_000}),
    ("params", "46.7B total, 12.9B active", {"total": 46_700_000_000, "active": 12_900_000_000}),
    ("params", "total: 671B, activated: 37B", {"total": 671 * 10**9, "active": 37 * 10**9}),
    ("params", "37B active / 671B total", {"active": 37 * 10**9, "total": 671 * 10**9}),
    ("params", "30B-A3B", {"total": 30 * 10**9, "active": 3 * 10**9}),
    ("params", "6.53B (non-embedding)", {"non_embedding": 6_530_000_000}),
    ("heads", "28 (queries), 4 (keys/values)", {"n_heads": 28, "n_kv_heads": 4}),
    ("heads", "28 for Q and 4 for KV", {"n_heads": 28, "n_kv_heads": 4}),
    ("heads", "28/4", {"n_heads": 28, "n_kv_heads": 4}),
    ("heads", "32 (8 KV)", {"n_heads": 32, "n_kv_heads": 8}),
    ("heads", "32Q/8KV", {"n_heads": 32, "n_kv_heads": 8}),
    ("experts", "128 / 8", {"n_routed_experts": 128, "n_active_experts": 8}),
    ("experts", "2 of 8", {"n_routed_experts": 8, "n_active_experts": 2}),
    ("experts", "8 (2 active)", {"n_routed_experts": 8, "n_active_experts": 2}),
    ("experts", "64 routed + 2 shared, top-6", {"n_routed_experts": 64, "n_shared_experts": 2, "n_active_experts": 6}),
]


@pytest.mark.parametrize(("heading", "text", "claims"), SEVERAL)
def test_each_number_in_a_cell_is_a_claim(heading: str, text: str, claims: dict[str, int]) -> None:
    assert {
        claim.kind: claim.amount and claim.amount.value for claim in parse_claims(text, parse_heading(heading))
    } == claims


@pytest.mark.parametrize(
    ("heading", "text", "reason"),
    [
        ("params", "", "no claim"),
        ("params", "—", "no claim"),
        ("params", "N/A", "no claim"),
        ("params", "Not specified", "not a number"),
        ("params", "8x7B", "a number of experts times a size, not a parameter count"),
        ("params", "7B (best)", "unrecognised 'best'"),
        ("params", "7B 13B", "2 unlabelled numbers"),
        ("params", "13B-7B", "the range ends below its start"),
        ("params", "1.5", "not a whole number"),
        ("params", "9" * 40, "too large or too precise for a count"),
        ("params", "1e99", "too large or too precise for a count"),
        ("params", "12,34,5B", "'12,34,5' is not a number"),
        ("params", "7B" * 101, "more than 200 characters"),
        ("heads", "4/28", "2 unlabelled numbers"),
        ("heads", "32K", "'32K' is not a number of heads"),
        ("layers", "٣٢", "'٣٢' is not a number"),
        ("layers", "10^2", "unrecognised '^'"),
        ("layers", "10²", "unrecognised '²'"),
        ("context", "32K (128K with YaRN)", "unrecognised 'yarn'"),
        ("size_fp16", "498", "no unit (MB, GB, …)"),
        ("size_fp16", "7B", "'b' is not a unit of bytes"),
        ("tied", "perhaps", "'perhaps' is not yes or no"),
    ],
)
def test_an_unreadable_cell_is_not_checkable_and_has_a_reason(heading: str, text: str, reason: str) -> None:
    with pytest.raises(UnreadableClaim) as caught:
        parse_claims(text, parse_heading(heading))
    assert str(caught.value) == reason
    found = pc.audit([{"model": "gpt2-small", heading: text, "n_layers": 12}]).cells[0]
    assert (found.verdict, found.note, found.empty) == ("not checkable", reason, reason == "no claim")


# ---- verdicts


ROUND, OPEN_, TRUE_SMALL = "matches when rounded", "not checkable", "wrong (correct: 124,439,808)"
BOUND, RANGE = "a bound that the correct value satisfies", "a range that includes the correct value"
RELEASED = "all 137,022,720 values in the released files"
PUBLISHED_ERROR = (
    "also published in github openai/gpt-2@0503b1b24969:README.md (2019-05-03): "
    '"small (117M parameter) and medium (345M parameter) versions of GPT-2"'
)
UNTIED = "= total 596,049,920 plus tied LM head counted twice 155,582,464, rounded"
TENS = (
    "rounded to the nearest 10 B; "
    "also published in github meta-llama/llama-models@d13eea5ec039:models/llama2/MODEL_CARD.md"
)
LEGACY = "= total 6,738,415,616 plus legacy buffers 2,048"
VERDICTS: list[tuple[str, str, str, str, str]] = [  # model, column, claims, verdict, note
    ("llama-3.1-8b", "params", "8,030,261,248", "right", ""),
    ("llama-3.1-8b", "params", "8B", ROUND, ""),
    ("qwen2-7b", "params", "7.61B", f"{ROUND} (truncated)", "truncated"),  # 7,615,616,512
    ("qwen2-7b", "params", "7.6156G", ROUND, ""),
    ("llama-2-7b", "params", "7000000000", ROUND, ""),
    ("llama-2-7b", "params", "6738415617|8–13B", "wrong (correct: 6,738,415,616)", ""),
    ("gpt2-small", "params", ">124439808", TRUE_SMALL, ""),
    ("gpt2-small", "params", "117M", TRUE_SMALL, PUBLISHED_ERROR),
    ("gpt2-small", "params", "-124M|-124439808", TRUE_SMALL, "a negative number"),
    ("gpt2-small", "params", ">124439807|<125M", OPEN_, BOUND),
    ("gpt2-small", "layers", "-12|−12|–12|—12|(-12)|~-12", "wrong (correct: 12)", "a negative number"),
    ("gpt2-small", "layers", ">12|<12|less than 12|over 12|under 12|13+|≥ 13|13 — 24", "wrong (correct: 12)", ""),
    ("gpt2-small", "layers", "≥12|<= 12|12+|at least 12|up to 12|>11|>=12", OPEN_, BOUND),
    ("gpt2-small", "layers", "12 — 24|12-24|1 to 12|12–12", OPEN_, RANGE),
    ("gpt2-small", "layers", "- 12|--12|— 12", OPEN_, "a dash before the number"),
    ("qwen-7b", "d_ff", ">22000", OPEN_, BOUND),
    ("deepseek-v3", "params", ">600B", OPEN_, BOUND),
    ("deepseek-v3", "params", ">700B|up to 500B", "wrong (correct: 671,026,404,352)", ""),
    ("deepseek-v3", "params", "600B-700B", OPEN_, RANGE),
    ("llama-3.1-8b", "context", "131072", "right", ""),
    ("llama-3.1-8b", "context", "128k", f"{ROUND} (K = 1,024)", "K = 1,024"),
    ("llama-3.1-8b", "context", "128000", "wrong (correct: 131,072)", "= 128 × 1,024"),
    ("llama-3.1-8b", "context", "64k", "wrong (correct: 131,072)", ""),
    ("llama-3.1-8b", "context", "100k+", OPEN_, BOUND),
    ("llama-3.1-8b", "vocab", "128K", ROUND, ""),
    ("llama-3.1-8b", "vocab", "128,000", OPEN_, "128,256 rows with padding; the tokenizer may have fewer tokens"),
    ("llama-3.1-8b", "vocab", "32000", "wrong (correct: 128,256)", ""),
    ("llama-3.1-8b", "layers", "30", "wrong (correct: 32)", ""),
    ("llama-3.1-8b", "d_model", "4K", f"{ROUND} (K = 1,024)", "K = 1,024"),
    ("llama-3.1-8b", "experts", "N/A", "right", ""),
    ("llama-3.1-8b", "experts", "Mixture of Experts", "wrong (correct: none)", "a dense model"),
    ("mixtral-8x7b", "experts", "Mixture of Experts", "right", "a mixture of experts"),
    ("mixtral-8x7b", "experts", "N/A", OPEN_, "may mean none or unknown"),
    ("mixtral-8x7b", "d_ff", "14336", "right", ""),
    ("deepseek-moe-16b", "experts", "66", "right", "64 routed and 2 shared"),
    ("deepseek-v3", "d_ff", "2048", "right", "size of one expert"),
    ("deepseek-v3", "head dim", "128", "right", "non-rotary part"),
    ("deepseek-v3", "head dim", "56", "wrong (correct: 192)", ""),
    ("qwen-7b", "intermediate_size", "22016", "right", "gate and up combined, as in its config.json"),
    ("t5-small", "layers", "12", "right", "6 encoder and 6 decoder layers"),
    ("blenderbot-3b", "layers", "26", "right", "2 encoder and 24 decoder layers"),
    ("codestral-mamba-7b", "heads", "64", OPEN_, "the model has no such size"),
    ("qwen1.5-moe-a2.7b", "shared experts", "4", OPEN_, "the shared experts are one block of size 5,632"),
    ("gpt2-small", "tied", "yes", "right", ""),
    ("llama-3.1-8b", "tied", "yes", "wrong (correct: no)", ""),
    ("gpt2-small", "fp32", "498 MB|474.7 MiB", ROUND, ""),
    ("gpt2-small", "fp32", "548 MB", f"{ROUND} ({RELEASED})", RELEASED),
    ("gpt2-small", "fp32", "474.7 MB", f"{ROUND} (M = 2²⁰)", "M = 2²⁰"),
    ("gpt2-small", "fp32", "498 MiB", "wrong (correct: 498 MB)", ""),
    ("gpt2-small", "int8", "124 MB", ROUND, ""),
    ("gpt2-small", "fp8 size", "124 MB", ROUND, ""),
    ("gpt2-small", "int4 size", "62 MB", OPEN_, "INT4 files also contain scales"),
    ("gpt2-small", "size", "498 MB", OPEN_, "the heading does not name a number format"),
    ("gpt-4", "params", "1.8T", OPEN_, "a third-party estimate; its sizes are unpublished"),
    ("DeepSeek-V3.1", "context", "128K", OPEN_, "the zoo entry is deepseek-v3, another release with the same sizes"),
    ("DeepSeek-V3.1", "context", "163840", "right", ""),
    ("qwen3-8b", "layers", "35-40", OPEN_, RANGE),
    ("llama-2-7b", "params", "6–13B", OPEN_, RANGE),
    ("gpt2-small", "params", ".124B|,124B|+124M|124.M|~.12B|1.24e8", ROUND, ""),
    ("gpt2-small", "params", "0B|0|0.0B|0.00T|1e9", TRUE_SMALL, ""),
    ("qwen3-0.6b", "params", "0.75B", "wrong (correct: 596,049,920)", UNTIED),
    ("mixtral-8x7b", "params", "12.9B", "wrong (correct: 46,702,792,704)", "= active 12,879,925,248, rounded"),
    ("llama-2-70b", "params", "70B", "wrong (correct: 68,976,648,192)", TENS),
    ("llama-2-7b", "params", "6,738,417,664", "wrong (correct: 6,738,415,616)", LEGACY),
]


@pytest.mark.parametrize(("model", "column", "claims", "text", "note"), VERDICTS)
def test_a_claim_has_the_expected_verdict(model: str, column: str, claims: str, text: str, note: str) -> None:
    for claim in claims.split("|"):
        assert audit_verdict(model, column, claim) == (text, note), claim


@pytest.mark.parametrize(
    ("names", "id", "note"),
    [
        ({"model": "GPT-2", "params": "1.5B"}, "gpt2-xl", "interpreted as GPT-2 1.5B"),
        ({"model": "GPT-2", "params": "124M"}, "gpt2-small", ""),
        ({"model": "Llama 2", "params": "70B"}, "llama-2-70b", "interpreted as Llama 2 70B"),
        ({"model": "GPT-3 175B or “GPT-3”", "params": "175B"}, "gpt-3", ""),
        ({"model": "[**Qwen2.5-7B**](https://a.b)", "params": "7B"}, "qwen2.5-7b", ""),
        ({"model": "meta-llama/Llama-3.1-8B", "params": "8B"}, "llama-3.1-8b", ""),
        (
            {"model": "DeepSeek-V3.1", "params": "671B"},
            "deepseek-v3",
            "uses the zoo entry of deepseek-v3, which has the same sizes",
        ),
        ({"model": "Lama-3.1-8B", "params": "8B"}, None, "not in the zoo; did you mean llama-3.1-8b or llama-3-8b?"),
        (
            {"model": "GPT-3 or GPT-2", "params": "3B"},
            None,
            "not in the zoo; did you mean gpt-3-large, gpt-3-2.7b or gpt2-small?",
        ),
        ({"model": "phi-3-mini-4k-instruct", "params": "3.8B"}, "phi-3-mini", ""),
        ({"model": "xyz-9-nano-4k-instruct", "params": "3.8B"}, None, "not in the zoo"),
        ({"model": "25M", "layers": "8"}, None, "not in the zoo"),
        ({"model": "", "params": "8B"}, None, "no model name"),
    ],
)
def test_a_name_matches_a_spelling_of_a_model_or_no_model(names: dict[str, str], id: str | None, note: str) -> None:
    (row,) = pc.audit([names]).rows
    assert (row.id, row.note) == (id, note)


def test_a_path_in_a_table_is_never_opened(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}', encoding="utf-8")
    (row,) = pc.audit([{"model": str(tmp_path / "config.json"), "layers": 12}]).rows
    assert (row.id, row.verdict) == (None, "not checkable")


# ---- contradictions and unusual claims


def find_doubts(**claims: str) -> list[tuple[str, str]]:
    (row,) = pc.audit([{"model": "Q", **claims}]).rows
    assert row.verdict == ("wrong" if any(doubt.grade == "impossible" for doubt in row.doubts) else "not checkable")
    return [(doubt.grade, doubt.text) for doubt in row.doubts]


@pytest.mark.parametrize(
    ("claims", "text"),
    [
        ({"params": "7B", "active": "9B"}, "more active than total parameters"),
        ({"params": "7B (9B active)"}, "more active than total parameters"),
        ({"params": "7B", "non-embedding": "8.1B"}, "more non-embedding than total parameters"),
        ({"experts": "8", "top-k": "16"}, "16 active experts, but only 8 experts"),
        ({"heads": "8", "kv heads": "16"}, "16 KV heads, but only 8 attention heads"),
        ({"heads": "8", "kv heads": "3"}, "3 KV heads do not divide 8 heads"),
    ],
)
def test_a_contradiction_makes_the_row_wrong(claims: dict[str, str], text: str) -> None:
    assert ("impossible", text) in find_doubts(**claims)


def test_a_difference_that_rounding_explains_is_not_a_contradiction() -> None:
    assert (
        find_doubts(params="7B", active="7.4B") == find_doubts(params="7B", active="7.99B") == []
    )  # 7B may be 7.99 cut off
    assert find_doubts(params="7B", **{"non-embedding": "7B"}) == []


def test_totals_that_do_not_fit_the_layers_and_d_model_are_unlikely() -> None:
    """60 layers with d_model = 6,144: four matrices have 9.06 B, the eight of the leanest transformers 18 B."""
    ((grade, text),) = find_doubts(params="11B", layers="60", d_model="6144", heads="48")
    assert grade == "unlikely"
    assert text.startswith(
        "fewer than 5.3 parameters per layer × d_model² (60 × 6,144² = 2.26B); none of the "
    )  # 12e9 / (60 · 6144²) = 5.298
    ((_, text),) = find_doubts(params="7B", layers="96", d_model="12288")
    assert text.startswith(
        "96 layers with d_model = 12,288 have at least 4 × 96 × 12,288² = 58.0B parameters in the query, "
        "output and two MLP matrices"
    )
    ((_, text),) = find_doubts(params="671B", layers="61", d_model="7168")
    assert text.startswith("at least 213.9 parameters per layer × d_model² (61 × 7,168² = 3.13B)") and text.endswith(
        "; a mixture of experts may have more"
    )
    assert find_doubts(params="671B", layers="61", d_model="7168", experts="256") == []
    ((_, text),) = find_doubts(params="100M", d_model="768", layers="12", vocab="500,000")
    assert text == "the token embedding of 500,000 × 768 = 384M alone exceeds the total, unless it is factorised"
    ((_, text),) = find_doubts(params="7B", size_fp16="28 GB")
    assert text == "size FP16 corresponds to 14.0B values of 2 bytes"
    assert find_doubts(params="7B", size_fp16="14 GB") == find_doubts(params="124M", size_fp32="548 MB") == []


def test_a_total_is_compared_with_models_of_a_similar_d_model_whose_layers_have_their_own_weights() -> None:
    """ALBERT-xxlarge (d_model = 4,096; 1.0) shares its layers; BERT-tiny (d_model = 128; 135) is mostly embeddings.

    Falcon Mamba 7B has 7,272,665,088 / (64 × 4,096²) = 6.77, Codestral Mamba 7B 7,285,403,648 / (64 × 4,096²) = 6.79.
    """
    ((_, text),) = find_doubts(params="11B", layers="60", d_model="6144")
    assert "zoo models with d_model from 3,072 to 12,288 has fewer than 6.8 (falcon-mamba-7b" in text
    ((_, text),) = find_doubts(params="70B", layers="32", d_model="4096")
    assert "dense models in the zoo with d_model from 2,048 to 8,192 has more than " in text
    assert find_doubts(params="4.4M", layers="2", d_model="128") == []


def test_a_zoo_model_whose_layers_share_weights_is_not_doubted() -> None:
    claims = {"params": "11.7M", "layers": "12", "d_model": "768"}
    assert [row.doubts for row in pc.audit([{"model": "albert-base-v2", **claims}]).rows] == [()]
    ((grade, text),) = find_doubts(**claims)
    assert grade == "unlikely" and text.endswith("possible only if layers share weights")


def test_a_zoo_model_with_experts_is_not_compared_with_dense_models() -> None:
    claims = {"params": "46.7B", "layers": "32", "d_model": "4096"}
    assert [row.doubts for row in pc.audit([{"model": "Mixtral 8x7B", **claims}]).rows] == [()]
    ((grade, text),) = find_doubts(**claims)
    assert grade == "unlikely" and text.endswith("; a mixture of experts may have more")
    assert find_doubts(**claims, active="46.7B") == [(grade, text)]
    assert find_doubts(**claims, active="12.9B") == []


def test_sizes_that_do_not_divide_are_unusual_if_zoo_models_have_them() -> None:
    uneven = [str(row["id"]) for row in make_rows(load_models()) if row["n_heads"] and row["d_model"] % row["n_heads"]]
    assert {"glm-4.5", "glm-4.5-air"} <= set(uneven)
    assert find_doubts(d_model="4608", heads="28") == [
        (
            "unusual",
            "d_model = 4,608 is not divisible by heads = 28; "
            f"also true of {len(uneven)} of the {len(load_models())} zoo models ({', '.join(uneven[:3])}, …)",
        )
    ]
    ((grade, text),) = find_doubts(d_model="2048", heads="24", d_head="128")
    assert grade == "unusual" and text.startswith("24 heads × 128 = 3,072 differs from d_model = 2,048; also true of ")


@cache
def load_models() -> list[zoo.Model]:
    return [zoo.load_entry(id) for id in ZOO]


COLUMNS_OF = {
    "params": "total", "active": "active", "non-embedding": "non_embedding", "layers": "n_layers",
    "d_model": "d_model", "heads": "n_heads", "kv heads": "n_kv_heads", "d_head": "d_head", "d_ff": "d_ff",
    "experts": "n_routed_experts", "top-k": "n_active_experts", "vocab": "vocab_size", "context": "context_length",
}  # fmt: skip


def test_every_zoo_model_is_right_in_every_column_and_consistent() -> None:
    rows = [
        {"model": row["id"], **{heading: row[name] or "" for heading, name in COLUMNS_OF.items()}}
        for row in make_rows(load_models())
    ]
    audit = pc.audit(rows)
    assert {one.verdict for one in audit.cells if not one.empty} == {"right"}
    assert [row.id for row in audit.rows] == [model.id for model in load_models()]
    assert {doubt.grade for row in audit.rows for doubt in row.doubts} <= {"unusual"}


# ---- files


def test_a_markdown_file_has_its_tables_of_claims_checked_and_other_tables_listed(run: Runner, tmp_path: Path) -> None:
    path = tmp_path / "card.md"
    path.write_text(
        "# Card\n\nText | with a pipe\n\n| a | b |\n|---|:-:|\n| 1 | 2 |\n\n"
        "| Model | #Total Params | Context |\n| :-- | --: | --- |\n"
        "| gpt2\\|small | 124M | 1,024 |\n| Llama 2 7B | 7B |\nend\n\n"
        "```\n| Model | Params |\n|---|---|\n| gpt2-small | 9B |\n```\n\n"
        "| Model | Colour |\n|---|---|\n| gpt2-small | red |\n",
        encoding="utf-8",
    )
    done = run("audit", str(path), "--json")
    found = json.loads(done.out)
    assert [(row["model"], row["line"], row["verdict"]) for row in found["rows"]] == [
        ("gpt2|small", 11, "not checkable"),
        ("Llama 2 7B", 12, "rounded"),
    ]
    assert found["skipped"] == [
        f"{path}, line 5: skipped a table without a model column: a, b",
        f"{path}, line 21: skipped a table without recognised columns: Model, Colour",
    ]
    assert (done.code, found["ok"]) == (0, True)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_csv_file_may_have_any_usual_separator(separator: str) -> None:
    text = '\ufeffModel,Params,d_model\r\n"GPT-2, small",124M,768\r\n\r\ngpt2-xl,1.5B,1600\r\n'.replace(",", separator)
    (table,) = from_text(text, "f.csv").claims
    assert [heading.text for heading in table.headings] == ["Model", "Params", "d_model"]
    assert [(line.number, line.cells) for line in table.lines] == [
        (2, (f"GPT-2{separator} small", "124M", "768")),
        (4, ("gpt2-xl", "1.5B", "1600")),
    ]


QWEN2 = """\
|  Models  | Qwen2-0.5B | Qwen2-1.5B | Qwen2-7B | Qwen2-57B-A14B | Qwen2-72B |
| :--------| :--------: | :--------: | :------: | :------------: | :-------: |
| # Params |  0.49B |  1.54B | 7.07B | 57.41B | 72.71B |
| # Non-Emb Params | 0.35B | 1.31B | 5.98B | 56.32B | 70.21B |
| GQA |  True | True | True | True | True |
| Tie Embedding |  True | True | False | False | False |
| Context Length | 32K | 32K | 128K | 64K | 128K |
"""  # github QwenLM/qwenlm.github.io@85fdb14c8be8:content/blog/qwen2/index.md


def test_a_table_with_one_column_per_model_is_transposed() -> None:
    (table,) = from_text(QWEN2, "qwen2.md").claims
    kinds = ["model", "total", "non_embedding", None, "tied", "context_length"]
    assert [heading.kind for heading in table.headings] == kinds
    models = ["Qwen2-0.5B", "Qwen2-1.5B", "Qwen2-7B", "Qwen2-57B-A14B", "Qwen2-72B"]
    assert [line.cells[table.model] for line in table.lines] == models
    assert (table.lines[2].cells, table.lines[2].number) == (("Qwen2-7B", "7.07B", "5.98B", "True", "False", "128K"), 1)
    assert table.left_out == ("GQA",)
    empty = re.sub("0.49B|0.35B", "-", QWEN2.replace("Qwen2-0.5B", "Shots"))
    empty = empty.replace("|  True |", "| - |", 2).replace("| 32K |", "| – |", 1)
    assert [line.cells[0] for line in from_text(empty, "f").claims[0].lines] == models[1:]


@pytest.mark.parametrize(
    ("text", "headings"),
    [
        (
            "Model,Size,,Architecture,\n,Params (B),FP16 (GB),Layers,Hidden\n",
            ["model", "total", "bytes", "n_layers", "d_model"],
        ),
        (
            "|Model|Params||Heads||\n|-|-|-|-|-|\n||Total|Active|Q|KV|\n",
            ["model", "total", "active", "n_heads", "n_kv_heads"],
        ),
        ("Model,Experts,,Layers\n,Total,Active,\n", ["model", "n_routed_experts", "n_active_experts", "n_layers"]),
    ],
)
def test_headings_on_two_lines_are_combined(text: str, headings: list[str]) -> None:
    row = "gpt2-xl" + ("|" if "|" in text else ",") * (len(headings) - 1) + "\n"
    (table,) = from_text(text + (f"|{row}" if "|" in text else row), "f").claims
    assert [heading.kind for heading in table.headings] == headings
    assert [line.cells[0] for line in table.lines] == ["gpt2-xl"]


def test_a_line_of_claims_below_a_blank_heading_is_not_a_line_of_headings() -> None:
    (table,) = from_text("model,,layers\ngpt2-xl,x,48\n", "f").claims
    assert [line.cells for line in table.lines] == [("gpt2-xl", "x", "48")]
    (table,) = from_text("model,params\n,total\ngpt2-xl,1.5B\n", "f").claims  # also if every column has a heading
    assert [line.cells for line in table.lines] == [("", "total"), ("gpt2-xl", "1.5B")]
    for line in (
        ("gpt2-xl", "no", "no", "x"),
        ("gpt2-xl", "-", "-", "no"),
        ("", "-", "-", "x"),
        ("", "12", "-", "no heads"),
    ):
        (table,) = from_text(f"model,layers,heads,\n{','.join(line)}\n", "f").claims
        assert [line.cells for line in table.lines] == [line]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        # the model card of EleutherAI/pythia-12b-deduped
        ("| Pythia model | Layers | Model Dim |\n|-|-|-|\n| 70M | 6 | 512 |\n", ["70M"]),
        # the model card of allenai/OLMo-2-0425-1B
        (
            "| Size | Layers | Hidden Size |\n|-|-|-|\n"
            "| [OLMo 2-1B](https://a.b) | 16 | 2048 |\n| [OLMo 2-7B](https://a.b) | 32 | 4096 |\n",
            ["OLMo 2-1B", "OLMo 2-7B"],
        ),
        # "Small-to-Large Generalization: Data Influences Models Consistently Across Scale", table 10
        ("| | | |\n|-|-|-|\n| | Model Dim | Heads |\n| MPT-80M (small) | 640 | 10 |\n", ["MPT-80M (small)"]),
        ("preset,params,layers\ntiny,13.0M,6\n", ["tiny"]),
    ],
)
def test_the_first_column_may_name_the_models_under_another_heading(text: str, names: list[str]) -> None:
    assert [row.model for row in audit_tables([from_text(text, "f")]).rows] == names


@pytest.mark.parametrize(
    "text",
    ["Component,Params\nembedding,38M\n", "Case,Layers,Model dim\n1,4,128\n", "Params,Layers,d_model\n7B,30,4096\n"],
)
def test_a_first_column_without_models_is_an_error(text: str) -> None:
    with pytest.raises(pc.ParamcountError, match="contains no table of claims"):
        from_text(text, "f")


def test_a_first_column_without_a_heading_names_the_models() -> None:
    """The model card of Llama 3.1 has such a column, and pandas writes an index as one. Numbers are not names."""
    (table,) = from_text("| | **Params** |\n|-|-|\n| gpt2-xl | 1.5B |\n| | 7B |\n", "f").claims
    assert table.model == 0 and [line.cells for line in table.lines] == [("gpt2-xl", "1.5B"), ("", "7B")]
    (table,) = from_text(",name,params\n0,gpt2-xl,1.5B\n", "f").claims
    assert table.model == 1
    with pytest.raises(pc.ParamcountError, match="contains no table of claims"):
        from_text(",params\n0,1.5B\n", "f")


GERMAN = (
    "Model;Parameters;Layers;d_model;Size FP16\nGPT-2 XL;1,558B;48;1.600;3,115 GB\nGPT-2 small;124,4M;12;768;0,249 GB\n"
)


def test_decimal_commas_are_recognised() -> None:
    found = audit_tables([from_text(GERMAN, "f")])
    assert [(one.column, one.verdict) for one in found.cells if one.verdict != "right"] == [
        ("total", "rounded"),
        ("bytes", "rounded"),
    ] * 2
    mixed = audit_tables(
        [from_text(GERMAN.replace("0,249", "0.249"), "f")]
    )  # without decimal commas, 1,558B is 1,558 billion
    assert [one.claim for one in mixed.cells if one.verdict == "wrong"] == ["1,558B", "3,115 GB"]


COLUMNS = "a column named model and others such as parameters, active, non-embedding, layers or d_model"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", f"f is empty (expected {COLUMNS})"),
        (b"\n \n", f"f is empty (expected {COLUMNS})"),
        (b"model,params\n", "f contains no rows (expected at least one row below the header)"),
        (b"name,colour\n1,red\n", f"f contains no table of claims: its columns are name, colour (expected {COLUMNS})"),
        (b"|a|b|\n|-|-|\n|1|2|\n\n|c|\n|-|\n|1|\n", f"f contains no table of claims (expected {COLUMNS})"),
        (
            b"model,params\ngp\0t2,1\n",
            "f, line 2 contains the control character '\\x00' (expected a CSV or Markdown file)",
        ),
        (
            b"model,params\ngpt2,\x1b[31m7B\n",
            "f, line 2 contains the control character '\\x1b' (expected a CSV or Markdown file)",
        ),
        (b"model,params\n\ngpt2,1,2\n", "f, line 3 has 3 cells (expected 2, as in the first line)"),
        (b"model,params\ngpt2\n", "f, line 2 has 1 cell (expected 2, as in the first line)"),
        (b"|model|params|\n|-|-|\n|a|b|c|\n", "f, line 3 has 3 cells (expected at most 2, as in the header)"),
        (b'model,params\n"gpt2,1\n', "f, line 3: invalid CSV: unexpected end of data"),
        (b"model," + b"a," * 10**6, "f has 1,000,001 columns (expected at most 500)"),
        (b"model,params\n" + b"gpt2,1\n" * 60000, "f has more than 100,000 cells (expected at most 100,000)"),
        (b"a" * (5 << 20), "f is too large (expected a CSV or Markdown file of at most 4,194,304 bytes)"),
        (b"\xff\xfem\0o\0", "f is not valid UTF-8 (expected a CSV or Markdown file)"),
        (
            b"version https://git-lfs.github.com/spec/v1\n",
            "f is a Git LFS pointer; run `git lfs pull` to fetch the file (expected a CSV or Markdown file)",
        ),
        (b"GGUF\3\0\0\0", "f is a GGUF file (expected a CSV or Markdown file)"),
    ],
    ids=range(17),
)
def test_invalid_files_are_one_line_errors_with_their_place(data: bytes, message: str) -> None:
    assert error_of(from_bytes, data, "f") == message
    assert_one_line(message)


# ---- output


def test_the_exit_code_is_1_if_something_is_wrong(
    run: Runner, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (
        ("right", "gpt2-small,12,124M,768"),
        ("wrong", "gpt2-small,13,124M,768"),
        ("unlikely", "nobody,96,7B,12288"),
    ):
        Path(f"{name}.csv").write_text(f"model,layers,params,d_model\n{text}\n", encoding="utf-8")
    assert [run("audit", f"{name}.csv").code for name in ("right", "wrong", "unlikely")] == [0, 1, 0]
    assert [run("audit", "--strict", f"{name}.csv").code for name in ("right", "wrong", "unlikely")] == [0, 1, 1]
    both = run("audit", "right.csv", "wrong.csv", "--csv")
    assert [row["source"] for row in csv.DictReader(io.StringIO(both.out))] == ["right.csv"] * 3 + ["wrong.csv"] * 3
    assert both.code == 1
    assert command_error(capsys, "audit", "nosuch.csv") == "nosuch.csv cannot be read: No such file or directory"
    assert command_error(capsys, "audit", ".") == ". is not a file (expected a CSV or Markdown file)"


def test_standard_input_is_audited_like_a_file(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"model,layers\ngpt2-small,12\n")))
    done = run("audit", "-", "--csv")
    assert (done.code, done.out) == (
        0,
        "source,line,model,id,row_verdict,column,heading,claim,verdict,true,note\n"
        "standard input,2,gpt2-small,gpt2-small,right,n_layers,layers,12,right,12,\n",
    )


EXCERPT = ("GPT-2 Small", "GPT-2 Large", "GPT-4", "Llama 3.2 11B")  # rows of the seed tables with every verdict


@pytest.fixture
def excerpt(tmp_path: Path) -> str:
    """The path of a table of some rows."""
    heading, *lines = SEEDS.read_text(encoding="utf-8").splitlines()
    path = tmp_path / "claims.csv"
    path.write_text("\n".join([heading, *(line for line in lines if line.split(",")[1] in EXCERPT)]), encoding="utf-8")
    return str(path)


def test_every_format_contains_every_verdict(run: Runner, excerpt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    path = excerpt
    text = run("audit", path).out
    assert max(map(len, text.splitlines())) <= 80
    assert "4 rows: " in text and "unrecognised columns: table" in text
    assert all(model in text for model in EXCERPT)
    rows = list(csv.DictReader(io.StringIO(run("audit", path, "--csv").out)))
    found = json.loads(run("audit", path, "--json").out)
    assert found["schema_version"] == 2
    in_json = [(row["model"], one["column"], one["verdict"]) for row in found["rows"] for one in row["cells"]]
    assert [(row["model"], row["column"], row["verdict"]) for row in rows if row["column"] != "consistency"] == in_json
    assert {row["verdict"] for row in rows if row["column"] == "consistency"} == {"unlikely", "unusual"}
    assert sum(found["summary"]["cells"].values()) == len(in_json)
    for format in ("markdown", "latex", "html"):
        assert "1536 wrong (correct: 1,280)" in run("audit", path, "--format", format).out


def test_a_claim_is_printed_without_markup_and_with_the_unit_of_its_column() -> None:
    found = build_text_table(
        pc.audit([{"model": "gpt2-xl", "Params (B)": "**7**[^1]", "FP16 (GiB)": "`7`", "layers": "49*"}])
    )
    assert (
        "parameters (B) 7 (correct: 1,557,611,200); size FP16 (GiB) 7 (correct: 3.12 GB); layers 49 (correct: 48)"
        in str(found.rows[0][2])
    )


def test_verdicts_are_coloured_only_on_a_terminal_and_the_layout_stays(
    run: Runner, excerpt: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NO_COLOR", raising=False)
    plain = run("audit", excerpt).out
    assert "\x1b" not in plain
    monkeypatch.setattr("paramcount.cli.options.is_terminal", lambda: True)
    coloured = run("audit", excerpt).out
    assert (
        "\x1b[31mwrong" in coloured
        and "\x1b[32mmatches when rounded" in coloured
        and "\x1b[33mnot checkable" in coloured
    )
    assert re.sub(r"\x1b\[\d+m", "", coloured) == plain
    run("audit", excerpt, "-o", str(tmp_path / "audit.txt"))
    assert "\x1b" not in (tmp_path / "audit.txt").read_text(encoding="utf-8")
    assert "\x1b" not in run("audit", excerpt, "--csv").out


# ---- from Python


def test_rows_and_data_frames_are_audited_like_files() -> None:
    import pandas

    rows = [
        {"model": "gpt2-small", "layers": 12, "params": 124439808, "experts": None},
        {"model": "gpt2-xl", "layers": 40.0, "params": "1.5B", "experts": float("nan")},
    ]
    found = pc.audit(rows)
    assert [(one.column, one.verdict, one.true) for one in found.cells if not one.empty] == [
        ("n_layers", "right", 12),
        ("total", "right", 124439808),
        ("n_layers", "wrong", 48),
        ("total", "rounded", 1557611200),
    ]
    assert pc.audit(pandas.DataFrame(rows)) == found == pc.audit(iter(rows))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (7, "int is not a table of claims"),
        (b"model", "bytes is not a table of claims"),
        ({"model": "gpt2"}, "dict is not a table of claims"),
        ([{"model": "gpt2", "layers": 12}, 7], "row 2 is of type int"),
        ([], "the list of rows is empty"),
        ([{}], "the list of rows contains no table of claims"),
        ([{"layers": 12}], "the list of rows contains no table of claims"),
        ([{str(i): i for i in range(501)}], "the list of rows has 501 columns"),
    ],
)
def test_a_source_without_claims_is_an_error(source: Any, message: str) -> None:
    assert error_of(pc.audit, source).startswith(message)


def test_endless_rows_are_an_error() -> None:
    def endless() -> Iterator[dict[str, object]]:
        while True:
            yield {"model": "gpt2-small", "layers": 12}

    with pytest.raises(pc.ParamcountError, match=r"^the list of rows has more than 100,000 cells"):
        pc.audit(endless())
