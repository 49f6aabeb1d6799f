"""paramcount list: search words, filters, sorting and columns, each against a loop over the counts."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import pytest

import paramcount as pc
import paramcount.zoo as zoo
from paramcount.database.filters import parse_filter
from paramcount.database.listing import select_rows
from tests.running import Runner
from tests.structures import ZOO


@cache
def load_models() -> list[zoo.Model]:
    return [zoo.load_entry(id) for id in ZOO]


def list_listed(run: Runner, *args: str) -> list[str]:
    return [row["id"] for row in csv.DictReader(io.StringIO(run("list", *args, "--csv").out))]


def list_parts(model: pc.Model) -> list[object]:
    """The sizes of the model, and of the language model or decoder in it, or in the multimodal model in it."""
    parts: list[object] = [model.sizes]
    for part in parts:
        inner = (getattr(part, name, None) for name in ("language", "text", "decoder", "vlm"))
        parts += [sizes for sizes in inner if sizes is not None]
    return parts


def has_fewer_kv_heads(model: pc.Model) -> bool:
    n_heads, n_kv_heads = (getattr(list_parts(model)[-1], name, None) for name in ("n_heads", "n_kv_heads"))
    return type(n_heads) is int and type(n_kv_heads) is int and n_kv_heads < n_heads


def get_vocab_size(model: pc.Model) -> int:
    """0 of an encoder of images."""
    return next((size for part in list_parts(model) if type(size := getattr(part, "vocab_size", None)) is int), 0)


@pytest.mark.parametrize(
    ("where", "holds"),
    [
        ("total < 9e9", lambda model, count: count.total < 9 * 10**9),
        ("9B>total>=1.5b", lambda model, count: 1_500_000_000 <= count.total < 9_000_000_000),
        ("n_kv_heads < n_heads", lambda model, count: has_fewer_kv_heads(model)),
        ("num_key_value_heads < `heads`", lambda model, count: has_fewer_kv_heads(model)),
        ("released >= 2025-01-01", lambda model, count: str(model.released or "") >= "2025-01-01"),
        ("released >= '2025-01-01' and tied", lambda model, count: str(model.released or "") > "2025" and count.tied),
        ("not tied", lambda model, count: not count.tied),
        ("tied = no", lambda model, count: not count.tied),
        ("family = \"QWEN\" or publisher = 'meta'", lambda model, count: (
            model.family == "qwen" or str(model.publisher).lower() == "meta"
        )),
        ("active / total <= 0.1", lambda model, count: Fraction(count.active, count.total) <= Fraction(1, 10)),
        ("total - active > 2 * active", lambda model, count: count.total > 3 * count.active),
        ("vocab_size // 1000 = 128", lambda model, count: get_vocab_size(model) // 1000 == 128),
        ("context_length >= 128Ki", lambda model, count: (model.context_length or 0) >= 131072),
        ("kv_lora_rank = 512", lambda model, count: "d_kv_lora=512," in repr(model.config)),  # also of a language model
        ("bytes_bf16 < 24GB", lambda model, count: 2 * count.total < 24 * 10**9),
    ],
)  # fmt: skip
def test_a_filter_keeps_what_a_loop_keeps(where: str, holds: Callable[[pc.Model, pc.Count], bool], run: Runner) -> None:
    expected = {model.id for model in load_models() if holds(model, pc.count(model))}
    assert expected
    assert len(expected) < len(load_models())
    assert set(list_listed(run, "--where", where)) == expected


def test_an_unknown_value_matches_neither_a_condition_nor_its_opposite() -> None:
    for where in ("total < 9", "not total < 9", "total < 9 or not total < 9", "total / 0 > 1"):
        assert not parse_filter(where, []).matches({"total": None})
    assert parse_filter("total < 9 or tied", []).matches({"total": None, "tied": True})
    assert not parse_filter("total < 9 and tied", []).matches({"total": None, "tied": True})
    assert not parse_filter("not (total < 9 or tied)", []).matches({"total": None, "tied": False})
    assert parse_filter("not (total < 9 and tied)", []).matches({"total": None, "tied": False})


def test_and_binds_closer_than_or_and_not_closer_than_both() -> None:
    row = {"tied": True, "verified": False, "estimate": False}
    assert parse_filter("tied or verified and estimate", []).matches(row)
    assert not parse_filter("(tied or verified) and estimate", []).matches(row)
    assert not parse_filter("not tied or verified", []).matches(row)
    assert parse_filter("1 + 2 * 3 = 7 and (1 + 2) * 3 = 9 and 2 - 3 - 4 = -5", []).matches(row)


def test_numbers_of_a_filter_are_exact() -> None:
    total = 2**53 + 1
    assert parse_filter(f"total = {total}", []).matches({"total": total})
    assert not parse_filter(f"total = {total}", []).matches({"total": total - 1})
    assert parse_filter("total = 0.1 + 0.2 + 0.7", []).matches({"total": 1})


@pytest.mark.parametrize("where", ["total <", "released > 2025", "tied)", "hf"])
def test_models_are_loaded_for_an_unknown_column_alone(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zoo, "load_all", lambda: pytest.fail("all models are loaded"))
    with pytest.raises(pc.ParamcountError):
        select_rows([], where, None, None)


@pytest.mark.parametrize("condition", ["released is null", "released = null", "not released is not null"])
def test_null_is_an_unknown_value(condition: str) -> None:
    matches = parse_filter(condition, []).matches
    assert matches({"released": None})
    assert not matches({"released": "2025-01-31"})
    assert parse_filter("released != null and total is not null", []).matches({"released": "2025-01-31", "total": 0})


def test_every_word_must_match_a_name_the_family_the_publisher_or_an_alias(run: Runner) -> None:
    assert list_listed(run, "gpt2-") == ["gpt2-small", "gpt2-medium", "gpt2-large", "gpt2-xl"]
    assert set(list_listed(run, "META", "8b")) == {
        model.id for model in load_models() if "meta" in f"{model.publisher} {model.hf} {model.aliases}".lower()
        and "8b" in f"{model.id} {model.name} {model.hf} {model.aliases}".lower()
    }  # fmt: skip
    assert list_listed(run, "deepseek-ai/DeepSeek-V3.1-Base") == ["deepseek-v3"]
    assert list_listed(run, "gpt2-*", "xl") == ["gpt2-xl"]


def test_a_narrow_terminal_drops_columns_and_says_which(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "45")
    lines = run("list", "gpt-oss").out.splitlines()
    assert lines == [
        "model                   total  released",
        "────────────  ───────────────  ──────────",
        "gpt-oss-20b    20,914,757,184  2025-08-05",
        "gpt-oss-120b  116,829,156,672  2025-08-05",
        "note: not enough space for publisher; choose",
        "  columns with --columns, or a file format",
        "  such as --csv",
    ]


def test_a_size_that_only_some_models_have_is_a_column_by_its_field_its_key_and_that_of_an_encoder(run: Runner) -> None:
    for name, id in (("d_kv_lora", "deepseek-v3"), ("kv_lora_rank", "deepseek-v3"), ("vision.d_model", "qwen2-vl-7b")):
        lines = run("list", id, "--columns", f"id,{name}", "--csv").out.splitlines()
        assert int(lines[1].split(",")[1]) > 0


def test_a_search_that_tiny_models_match_says_that_they_are_outside_the_zoo(run: Runner) -> None:
    found, others = run("list", "tiny"), run("list", "gpt2")
    assert "whisper-tiny" in found.out
    names = "tiny-gpt2, tiny-mixtral and tiny-mamba"
    assert found.err == f"note: {names} are trained examples outside the zoo; run `paramcount tiny-gpt2`\n"
    assert (others.code, others.err) == (0, "")
