"""What the fuzzers share: how many examples, the loop around one, spoilt texts.

`EXAMPLES=100000 pytest -m fuzz` looks longer.

Every input follows from its number, so that a failure can be repeated.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from typing import TypeVar

from hypothesis import HealthCheck, settings

import paramcount as pc
from paramcount.counting import COMPONENTS
from tests.refusing import assert_one_line

Input = TypeVar("Input")
EXAMPLES = int(os.environ.get("EXAMPLES", "50"))
often = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
seldom = settings(often, max_examples=max(1, EXAMPLES // 4))


def fuzz(
    spoil: Callable[[random.Random], Input],
    verdict_of: Callable[[Input], str],
    examples: int = EXAMPLES,
    *,
    valid: Sequence[Input] = (),
) -> set[str]:
    """The verdicts on so many spoilt inputs, after the valid ones, which must all be read.

    What goes wrong with one says which it was.
    """
    assert {verdict_of(given) for given in valid} <= {"read"}
    verdicts = set()
    for i in range(examples):
        given = spoil(random.Random(i))  # noqa: S311 not for secrets
        try:
            verdicts.add(verdict_of(given))
        except BaseException as error:
            error.add_note(f"example {i}: {repr(given)[:5000]}")
            raise
    return verdicts


def spoil_text(rng: random.Random, valid: Sequence[str], scraps: Sequence[str]) -> str:
    """A valid text with pieces of it exchanged, cut, doubled or moved."""
    text = rng.choice(valid)
    for _ in range(rng.choice((1, 1, 2, 3))):
        start = rng.randint(0, len(text))
        stop = min(len(text), start + rng.choice((0, 0, 1, 2, 5, 20)))
        match rng.randint(0, 5):
            case 0:
                text = text[:start] + 2 * text[start:stop] + text[stop:]
            case 1:
                digits = [i for i, character in enumerate(text) if character.isdigit()] or [0]
                at = rng.choice(digits)
                text = text[:at] + rng.choice(scraps) + text[at + 1 :]
            case 2:
                text = text[:start] + text[stop:]
            case _:
                text = text[:start] + rng.choice(scraps) + text[stop if rng.random() < 0.8 else start :]
    return text if rng.random() < 0.95 else text[: rng.randint(0, len(text))]


def call_or_refuse(ask: Callable[[], object]) -> object:
    """The answer, or None where the question was refused as it should be. Any other exception goes through."""
    try:
        return ask()
    except pc.ParamcountError as error:
        assert_one_line(str(error))
        return None


def check_count(count: object) -> None:
    """What is counted at all is counted in whole numbers that sum up."""
    if isinstance(count, pc.Count):
        assert tuple(count.components) == COMPONENTS
        assert type(count.total) is int
        assert count.total == sum(count.components.values()) == sum(count.parts.values())
        assert 0 < count.active <= count.total
