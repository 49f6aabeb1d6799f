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
    import json
    from pathlib import Path

    modules: dict[str, list[str]] = json.loads(Path(file).with_name("names.json").read_text(encoding="utf-8"))
    home = {name: module for module, names in modules.items() for name in names}

    def find(name: str) -> Any:
        if name in home:
            value = getattr(import_module(f"{package}.{home[name]}"), name)
            setattr(sys.modules[package], name, value)
            return value
        if name in modules:
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find
