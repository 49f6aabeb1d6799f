"""Odd values of every setting: each command answers, or refuses in one line."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import count, product
from typing import Any

import pytest

import paramcount as pc
from paramcount.formats.strict_yaml import parse_yaml
from paramcount.zoo.adding import make_entry
from paramcount.zoo.writing import format_entry
from tests.cases import load_cases
from tests.fuzz.frame import EXAMPLES, call_or_refuse
from tests.settings import ODD_VALUES, Reader, find_document, list_readers
from tests.small_models import make_arrays

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


LARGEST_RUN = 10**6  # parameters of a model that is run
TOKENS = [3, 1, 4]


def try_odd_values(readers: Iterable[Reader], most: int, ask: Callable[[Reader, Any], object]) -> None:
    """Ask about readers and values in a fixed random order. EXAMPLES=20000 tries them all."""
    examples = list(product(readers, ODD_VALUES))
    random.Random(0).shuffle(examples)  # noqa: S311 not for secrets
    verdicts = {"read": 0, "refused": 0}
    for reader, value in examples[:most]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                verdicts["read" if ask(reader, value) else "refused"] += 1
        except Exception as error:
            error.add_note(f"{reader}: {str(value)[:100]}")
            raise
    assert verdicts["refused"] > verdicts["read"] > 0


def test_every_command_answers_or_refuses_an_odd_setting() -> None:
    accepted = count(1)

    def ask(reader: Reader, value: Any) -> object:
        model: Any = call_or_refuse(lambda: pc.load(reader.make_document(value)))
        is_drawn = model and next(accepted) % EVERY_SLOW == 0
        for command in (*(COMMANDS if model else ()), *(SLOW if is_drawn else ())):
            call_or_refuse(lambda: command(model))  # noqa: B023 called here
        return model

    try_odd_values(list_readers(), EXAMPLES // 2, ask)


@cache
def find_small() -> Mapping[str, Mapping[str, Any]]:
    """{model type: its smallest config.json that the reference builds}, if it is run in a moment."""
    found = {}
    for name, cases in load_cases().items():
        built = [case for case in cases if case.get("total", LARGEST_RUN) < LARGEST_RUN]
        if built:
            found[name] = min(built, key=lambda case: case["total"])["config"]
    return found


@cache
def make_weights(name: str) -> Mapping[str, Any]:
    return make_arrays(find_small()[name])


@cache
def list_inputs(name: str) -> Mapping[str, Any]:
    """What the model reads besides its tokens, as far as these are tokens too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            pc.run(find_small()[name], make_weights(name), TOKENS)
        except pc.ParamcountError as error:
            return {"source_tokens": TOKENS} if "source_tokens" in str(error) else {}
    return {}


def run_model(name: str, document: Mapping[str, Any]) -> object:
    return pc.run(document, make_weights(name), TOKENS, **list_inputs(name))


@cache
def make_yaml(name: str) -> Mapping[str, Any]:
    """A zoo entry of a model type as YAML holds it; empty if it cannot be one."""
    try:
        entry = make_entry(pc.load(find_document(name)), f"own-{name.replace('_', '-')}", source="fuzz")
    except pc.ParamcountError:
        return {}
    return parse_yaml(format_entry(entry))


def test_run_computes_or_refuses_an_odd_setting() -> None:
    def ask(reader: Reader, value: Any) -> object:
        document = reader.make_document(value, find_small()[reader.name])
        return call_or_refuse(lambda: run_model(reader.name, document))

    try_odd_values([reader for reader in list_readers() if reader.name in find_small()], EXAMPLES, ask)


def test_an_entry_with_an_odd_setting_is_read_or_refused() -> None:
    def ask(reader: Reader, value: Any) -> object:
        entry = make_yaml(reader.name)
        settings = reader.make_document(value, entry.get("settings") or {})
        model: Any = call_or_refuse(lambda: pc.load({**entry, "settings": settings})) if entry else None
        for command in COMMANDS if model else ():
            call_or_refuse(lambda: command(model))  # noqa: B023 called here
        return model

    try_odd_values(list_readers(), EXAMPLES // 2, ask)
