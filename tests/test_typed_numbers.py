"""Numbers and names as people type them: suffixes wherever a number is read, and what people call sizes and columns."""

from __future__ import annotations

import pytest

from paramcount.symbolic.quantities import parse_quantity
from paramcount.zoo.aliases import find_nearest_fields
from tests.running import Runner


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("50k", "vocab_size", 50_000), ("50k", "", 50_000), ("7.5B", "total", 7_500_000_000), ("4Ki", "d_model", 4096),
        ("32k", "n_positions", 32_768), ("1M", "context", 1_048_576), ("4.5k", "sliding_window", 4608),
        ("8k", "max_num_batched_tokens", 8192), ("1,024", "", 1024), ("50_257", "", 50_257), ("1e3", "", 1000),
        ("1.5", "", None), ("1.0005k", "", None), ("gelu", "", None), ("", "", None), ("k", "", None),
        ("1kk", "", None), ("1,1,1", "", None), ("1,02", "", None), ("-1", "", -1), ("12,345,678", "", 12_345_678),
    ],
)  # fmt: skip
def test_k_is_1024_where_tokens_are_counted(text: str, name: str, value: int | None) -> None:
    assert parse_quantity(text, name) == value


def test_set_takes_suffixes(run: Runner) -> None:
    for typed, plain in (("vocab_size=50k", 50_000), ("n_positions=8k", 8192), ("d_ff=4Ki", 4096)):
        name = typed.partition("=")[0]
        assert run("show", "gpt2-small", "--set", typed) == run("show", "gpt2-small", "--set", f"{name}={plain}")


def test_sweeps_take_suffixes_in_ranges_and_lists() -> None:
    assert parse_axis_values("1k:3k:1k", "n_positions") == [1024, 2048, 3072]
    assert parse_axis_values("10k, 20k", "vocab_size") == [10_000, 20_000]


def parse_axis_values(text: str, name: str) -> list[object]:
    from paramcount.sweeping.axes import parse_axis

    values = parse_axis(text, name)
    assert isinstance(values, (tuple, range))
    return list(values)


def test_conditions_count_tokens_of_a_context_in_1024(run: Runner) -> None:
    exact = run("list", "--where", "context = 32k", "--columns", "id,context", "--csv").out
    assert exact == run("list", "--where", "context = 32768", "--columns", "id,context", "--csv").out
    assert exact.count("32768") > 10
    some = ("--limit", "3", "--csv")
    assert run("list", "--where", "total < 7.5B", *some) == run("list", "--where", "total < 7500000000", *some)


@pytest.mark.parametrize(
    ("typed", "plain"),
    [
        (["memory", "gpt2-small", "--batch", "1k"], ["memory", "gpt2-small", "--batch", "1000"]),
        (["memory", "gpt2-small", "--context", "0.5k"], ["memory", "gpt2-small", "--context", "512"]),
        (["memory", "gpt2-small", "--memory", "17.25GiB"], ["memory", "gpt2-small", "--memory", "18522046464B"]),
        (["trace", "gpt2-small", "--tokens", "1k"], ["trace", "gpt2-small", "--tokens", "1024"]),
        (["lora", "gpt2-small", "-r", "0.1k"], ["lora", "gpt2-small", "-r", "100"]),
        (["memory", "llama-3.1-8b", "--context", "32Ki"], ["memory", "llama-3.1-8b", "--context", "32k"]),
        (["list", "gpt2", "--limit", "0.002k"], ["list", "gpt2", "--limit", "2"]),
    ],
)
def test_options_take_suffixes(run: Runner, typed: list[str], plain: list[str]) -> None:
    found = run(*typed)
    assert found.code in (0, 1)
    if plain[-1].endswith("B"):
        assert f"{int(plain[-1][:-1]) / 10**9:.1f} GB device" in found.out
    else:
        assert found == run(*plain)


# ---- names


def test_what_people_call_a_size_is_that_size(run: Runner) -> None:
    where = ("list", "--limit", "2", "--csv", "--where")
    assert run(*where, "kv_heads > 30") == run(*where, "n_kv_heads > 30")
    assert run("show", "gpt2-small", "--set", "depth=3") == run("show", "gpt2-small", "--set", "n_layers=3")
    assert run("sweep", "gpt2-small", "n_layers=1:2", "--columns", "params,ffn", "--csv") == run(
        "sweep", "gpt2-small", "n_layers=1:2", "--columns", "total,d_ff", "--csv"
    )


def test_no_spoken_name_hides_a_column() -> None:
    from paramcount.views.compare import COLUMNS
    from paramcount.zoo.aliases import find_column

    assert all(find_column(name, list(COLUMNS)) == name for name in COLUMNS)
    assert find_nearest_fields("n_hedas", ["n_heads", "n_layers"]) == ("n_heads",)
