"""A context that is too long is the same in all commands: an error if the position embedding has fewer rows, otherwise
a warning beside the figures."""

from __future__ import annotations

import pytest

from tests.refusing import Refuse
from tests.running import Runner

# GPT-2: 1,024 learned positions. Llama 2: rotary positions, published for 4,096 tokens.
LINES = [
    ["memory", "MODEL", "--context", "16k"],
    ["memory", "MODEL", "--context", "16k", "--gpu", "h100"],
    ["memory", "MODEL", "--context", "16k", "--engine", "vllm", "--gpu", "h100"],
    ["plan", "MODEL", "--context", "16k", "--gpu", "h200"],
    ["flops", "MODEL", "--context", "16k"],
    ["flops", "MODEL", "--context", "16k", "--gpu", "h100"],
    ["training", "MODEL", "--context", "16k"],
    ["trace", "MODEL", "--tokens", "16k"],
    ["trace", "MODEL", "--decode", "--past", "16383"],
    ["draw", "MODEL", "--tokens", "16k", "-o", "-"],
]


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_other_positions_are_a_warning_beside_the_figures(run: Runner, line: list[str]) -> None:
    found = run(*("llama-2-7b" if word == "MODEL" else word for word in line))
    assert found.code in (0, 1, 3)
    assert found.out
    warnings = [text for text in found.err.splitlines() if text.startswith("warning:")]
    assert warnings == ["warning: 16,384 tokens exceed the published context length of 4,096"]


def test_the_cache_of_size_follows_the_same_rule(run: Runner, refuse: Refuse) -> None:
    budget = ("--memory", "24GB", "--context", "16k", "--limit", "1", "--multiple-of", "1024")
    assert "16,384 tokens exceed the 1,024 positions" in refuse("size", "--like", "gpt2-small", *budget)
    found = run("size", "--like", "llama-2-7b", *budget)
    assert found.err == "warning: 16,384 tokens exceed the published context length of 4,096\n"


@pytest.mark.parametrize("command", ["memory", "flops", "training"])
def test_as_many_tokens_as_there_are_positions_are_fine(run: Runner, command: str) -> None:
    assert run(command, "gpt2-small", "--context", "1k").err == ""
