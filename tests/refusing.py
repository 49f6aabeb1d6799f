"""What all refusals have in common."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

import paramcount as pc
from paramcount.cli import main

Read = TypeVar("Read")
Refuse = Callable[..., str]  # the fixture `refuse`
READERS: tuple[Callable[[Any], object], ...] = (pc.load, pc.count, lambda spec: pc.compare([spec]))


def model_error(spec: object) -> str:
    """The message with which load, count and compare alike refuse a model. Any other exception fails the test."""
    messages = set()
    for read in READERS:
        with pytest.raises(pc.ParamcountError) as caught:
            read(spec)
        assert isinstance(caught.value, ValueError)
        messages.add(str(caught.value))
    (message,) = messages
    assert_one_line(message)
    return message


def error_of(read: Callable[..., object], *given: Any) -> str:
    """The one line with which `read` refuses what it is given."""
    with pytest.raises(pc.ParamcountError) as caught:
        read(*given)
    assert_one_line(str(caught.value))
    return str(caught.value)


def read_or_none(read: Callable[..., Read], *given: Any) -> Read | None:
    """What `read` makes of what it is given; None where it refuses it in one line. Any other exception goes through."""
    try:
        return read(*given)
    except pc.ParamcountError as error:
        assert_one_line(str(error))
        return None


def command_error(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    """The message with which the command line refuses: exit code 2, one line on stderr, nothing on stdout, nothing
    written.
    """
    before = list_directory()
    with pytest.raises(SystemExit) as leaving:
        main(list(args))
    out, err = capsys.readouterr()
    assert (leaving.value.code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.endswith("\n")
    message = err.removeprefix("error: ")[:-1]
    assert_one_line(message)
    assert list_directory() == before
    return message


def assert_one_line(message: str) -> None:
    """Printable: no line break, no escape, nothing that turns the direction of the text; and short enough to be
    read.
    """
    assert message
    assert message.isprintable()
    assert len(message) <= 800


def list_directory() -> dict[str, tuple[int, int]]:
    """What lies in the current directory, with sizes and times; without caches, which other tests write."""
    found = {}
    for folder, inner, files in os.walk("."):
        inner[:] = [name for name in inner if not name.startswith((".", "__pycache__"))]
        for name in (*inner, *files):
            status = os.lstat(os.path.join(folder, name))
            found[os.path.join(folder, name)] = (status.st_size, status.st_mtime_ns)
    return found
