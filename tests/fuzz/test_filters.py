"""Filters of `paramcount list --where`: a filter or one line, and a filter answers for every row."""

from __future__ import annotations

import pytest

import paramcount.zoo as zoo
from paramcount.database.filters import parse_filter
from paramcount.errors import ParamcountError
from paramcount.views.compare import add_fields, make_rows
from tests.fuzz.frame import fuzz, spoil_text
from tests.refusing import assert_one_line

pytestmark = pytest.mark.fuzz

MODELS = [zoo.load_entry(id) for id in ("gpt2-small", "deepseek-v3", "mixtral-8x7b", "gpt-4")]
ROWS = make_rows(MODELS)
VALID = [
    "total < 9e9 and n_kv_heads < n_heads and released >= 2025-01-01",
    "1e9 <= total < 9B or not (tied = yes and family = 'gpt')",
    "active / total <= 0.1 and kv_lora_rank > 0",
    "d_ff // d_model * 2 - 1 != -3 + n_layers or `KV heads` = heads",
    'publisher = "OpenAI" and verified or released < "2024-12-31"',
    "context_length >= 128Ki and bytes_bf16 < 24GB",
]
SCRAPS = [
    "", " ", "(", ")", "((", "))", "not ", "and", "or ", "total", "tied", "'", '"', "`", "<", "<=", "=", "!=", "≤", "-",
    "--", "*", "//", "/0", "**9", "9e99", "1e", "0x10", "0", "1_000", "99999999999999999999", "2025-02-30", "1B", "3XB",
    "None", "__import__('os')", "lambda: 0", "x.y", "a[0]", "\0", "\n", "\ud800", "\u202e", "é", ";", ",", "not " * 50,
    "(" * 50, "-" * 50, "1+" * 500,
]  # fmt: skip


def ask(text: str) -> str:
    try:
        filter = parse_filter(text, MODELS)
        further = {field.name: field for field in filter.fields if field.name not in ROWS[0]}
    except ParamcountError as error:
        assert_one_line(str(error))
        return "refused"
    for row in add_fields(ROWS, MODELS, further):
        assert filter.matches(row) in (True, False)
    return "read"


def test_any_filter_is_read_or_refused() -> None:
    assert fuzz(lambda rng: spoil_text(rng, VALID, SCRAPS), ask, valid=VALID) == {"read", "refused"}
