"""Configs, commands and calls in Python that are refused, with the line that says why: tests/data/refusals."""

from __future__ import annotations

import json
import shlex

import pytest

import paramcount as pc
from tests.batches import in_batches
from tests.refusals import read_refusals
from tests.refusing import Refuse, error_of, model_error


@in_batches(("config", "message"), read_refusals("configs"))
def test_a_config_is_refused(config: str, message: str) -> None:
    assert model_error(json.loads(config)) == message


@pytest.mark.parametrize(("command", "message"), read_refusals("commands"))
def test_a_command_is_refused_and_writes_nothing(command: str, message: str, refuse: Refuse) -> None:
    assert refuse(*shlex.split(command)) == message


@in_batches(("call", "message"), read_refusals("calls"))
def test_a_call_is_refused(call: str, message: str) -> None:
    assert error_of(eval, call, {"pc": pc}) == message
