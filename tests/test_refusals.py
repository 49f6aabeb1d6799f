"""Configs, commands and calls in Python that are refused, with the line that says why: tests/data/refusals."""

from __future__ import annotations

import json
import shlex
import sys

import pytest

import paramcount as pc
from tests.batches import in_batches
from tests.refusals import read_refusals
from tests.refusing import Refuse, error_of


@in_batches(("config", "message"), read_refusals("configs"))
def test_a_config_is_refused(config: str, message: str) -> None:
    assert error_of(pc.load, json.loads(config)) == message


@pytest.mark.parametrize(("command", "message"), read_refusals("commands"))
def test_a_command_is_refused_and_writes_nothing(command: str, message: str, refuse: Refuse) -> None:
    assert refuse(*shlex.split(command)) == message


@in_batches(("call", "message"), read_refusals("calls"))
def test_a_call_is_refused(call: str, message: str) -> None:
    assert error_of(eval, call, {"pc": pc}) == message


@pytest.mark.parametrize(
    ("command", "library", "thing", "extra"),
    [
        ("compare gpt2-small --plot out.svg", "matplotlib", "a plot", "plot"),
        ("draw gpt2-small -o x.png", "resvg_py", "a PNG", "plot"),
        ("draw gpt2-small -o x.pdf", "svglib.svglib", "a PDF", "pdf"),
        ("report gpt2-small", "jinja2", "a report", "plot"),
        ("export zoo.parquet", "pyarrow", "a Parquet file", "export"),
        ("export zoo.xlsx", "openpyxl", "an Excel file", "export"),
        ("draw gpt2-small --animate x.gif", "resvg_py", "an animation", "animate"),
        ("draw gpt2-small --animate x.webp", "PIL.Image", "an animation", "animate"),
        ("draw gpt2-small --animate x.mp4", "imageio_ffmpeg", "an animation", "animate"),
    ],
)
def test_a_missing_extra_is_named(
    command: str, library: str, thing: str, extra: str, refuse: Refuse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    expected = f"{thing} needs the [{extra}] extra: pip install 'paramcount[{extra}]'"
    assert refuse(*shlex.split(command)) == expected
