"""Odd values of every setting: each command answers, or refuses in one line."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

import paramcount as pc
from tests.fuzz.frame import EXAMPLES, call_or_refuse
from tests.settings import ODD_VALUES, Reader, list_readers

pytestmark = pytest.mark.fuzz

COMMANDS: tuple[Callable[[pc.Model], object], ...] = (
    pc.count,
    pc.explain,
    lambda model: str(pc.trace(model)),
    pc.flops,
    pc.memory,
    pc.training,
    pc.lora,
)
SLOW: tuple[Callable[[pc.Model], object], ...] = (
    pc.draw,
    lambda model: pc.report([model]),
    lambda model: pc.explore_page([model]),
)
EVERY_SLOW = 20  # of so many accepted values one is drawn, too


def list_examples() -> list[tuple[Reader, Any]]:
    """Readers and values in a fixed random order. EXAMPLES=20000 tries them all."""
    examples = list(product(list_readers(), ODD_VALUES))
    random.Random(0).shuffle(examples)  # noqa: S311 not for secrets
    return examples[: 10 * EXAMPLES]


def test_every_command_answers_or_refuses_an_odd_setting() -> None:
    verdicts = {"read": 0, "refused": 0}
    for reader, value in list_examples():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model: Any = call_or_refuse(lambda: pc.load(reader.make_document(value)))  # noqa: B023 called here
                verdicts["read" if model else "refused"] += 1
                is_drawn = model and verdicts["read"] % EVERY_SLOW == 0
                for ask in (*(COMMANDS if model else ()), *(SLOW if is_drawn else ())):
                    call_or_refuse(lambda: ask(model))  # noqa: B023
        except Exception as error:
            error.add_note(f"{reader}: {str(value)[:100]}")
            raise
    assert verdicts["refused"] > verdicts["read"] > 0
