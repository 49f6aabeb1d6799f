"""Models with very many layers: the work of a command depends on the kinds of layers, not on their number."""

from __future__ import annotations

from typing import Any

import pytest

import paramcount as pc
from paramcount.costs.gguf_mixes import MOST_LAYERS, list_mix
from paramcount.flow.graph import Repeat
from tests.running import Runner

MANY = 2**31  # the largest valid number of layers is above it

COMMANDS = [
    "", "memory", "memory --gpu h100", "memory --gpu 4xh100 --pp 2", "training", "training --gpu 8xh100 --pp 4",
    "flops", "trace", "explain", "map -o x.svg", "draw -o x.svg", "plan --gpu h100",
]  # fmt: skip


@pytest.mark.parametrize("line", COMMANDS)
def test_no_command_lists_the_layers_one_by_one(
    line: str, run: Runner, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.chdir(str(tmp_path))
    listed: list[int] = []
    indices = Repeat.indices.fget  # type: ignore[attr-defined]

    def list_indices(repeat: Repeat) -> tuple[int, ...]:
        listed.append(sum(length for _, length in repeat.runs))
        assert listed[-1] < 10**6
        found: tuple[int, ...] = indices(repeat)
        return found

    monkeypatch.setattr(Repeat, "indices", property(list_indices))
    command, *options = line.split() or [""]
    done = run(*filter(None, [command]), "gpt2-small", *options, "--set", f"n_layers={MANY - 1}")
    assert done.code in (0, 1), done.err
    assert [n for n in listed if n > MOST_LAYERS] == []


def test_modules_of_too_many_layers_have_no_names_to_choose_adapters_by(run: Runner) -> None:
    done = run("lora", "gpt2-small", "--set", f"n_layers={MANY - 1}")
    assert (done.code, done.out) == (2, "")
    assert done.err == "error: gpt2-small has 25,769,803,769 tensors (expected at most 1,000,000)\n"


def test_a_mix_lists_the_layers_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    indices = Repeat.indices.fget  # type: ignore[attr-defined]

    def list_indices(repeat: Repeat) -> Any:
        calls.append(1)
        return indices(repeat)

    monkeypatch.setattr(Repeat, "indices", property(list_indices))
    numbers = []
    for n in (12, 500):
        calls.clear()
        list(list_mix(pc.count("gpt2-small", set={"n_layers": n}), "Q4_K_M"))
        numbers.append(len(calls))
    assert numbers[0] == numbers[1]


def test_a_mix_of_more_layers_than_llama_cpp_loads_is_an_error() -> None:
    # LLAMA_MAX_LAYERS in llama.cpp's src/llama-hparams.h
    message = r"has 513 layers \(expected at most 512, the most that llama.cpp loads"
    with pytest.raises(pc.ParamcountError, match=message):
        list(list_mix(pc.count("gpt2-small", set={"n_layers": 513}), "Q4_K_M"))


@pytest.mark.parametrize("runs", [((0, 5),), ((0, 1), (4, 3)), ((2, 9),)])
def test_the_layers_inside_a_range_are_counted_from_the_ends_of_runs(runs: tuple[tuple[int, int], ...]) -> None:
    n = sum(length for _, length in runs)
    repeat = Repeat("layer", n, n, runs=runs)
    for start in range(12):
        for stop in range(start, 13):
            layers = range(start, stop)
            assert repeat.count_inside(layers) == sum(index in layers for index in repeat.indices)
