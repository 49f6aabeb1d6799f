"""Packages whose names are looked up when they are first used: a declaration imports only the modules that it reads."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

# {name: function of the API} of a package that can be called like the function: the top of the package states them
PUBLIC_FUNCTIONS: dict[str, Callable[..., Any]] = {}


def find_lazily(package: str, file: str) -> Callable[[str], Any]:
    """`__getattr__` of a package: its modules, and the names that exactly one of them defines.

    names.json beside `file` says which module defines what; `python -m tests.refresh_index` writes it, and the stub
    that type checkers read.
    """
    from pathlib import Path

    text = Path(file).with_name("names.json").read_text(encoding="utf-8")  # decoded, it takes four times as much memory

    def find(name: str) -> Any:
        if (at := max(text.find(f'["{name}"'), text.find(f' "{name}"'))) > 0:
            module = text[:at].rpartition("\n")[2].split('"')[1]
            value = getattr(import_module(f"{package}.{module}"), name)
            setattr(sys.modules[package], name, value)
            return value
        if f'\n"{name}": [' in text:
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find
