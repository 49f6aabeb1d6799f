"""The vocabulary of declarations: which module of a package defines which name.

`python -m tests.refresh_names` writes names.json, which `paramcount.lazy` reads, and __init__.pyi, which type checkers
read. It imports nothing of the package, so that it runs when those files are missing.
"""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1] / "paramcount"
VOCABULARY = ("flow", "parts", "sizes")


def list_definitions(body: Iterable[ast.stmt]) -> Iterator[str]:
    """The public names that a module defines itself."""
    for node in body:
        targets: list[ast.expr] = []
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            yield from (name.id for name in names if isinstance(name, ast.Name))


def list_modules(package: str) -> dict[str, list[str]]:
    """{module: the public names that it alone defines in its package}, subpackages included."""
    folder = ROOT / package
    defined: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("*.py")):
        module = ".".join(path.relative_to(folder).with_suffix("").parts)
        if path.stem != "__init__":
            found = dict.fromkeys(list_definitions(ast.parse(path.read_text(encoding="utf-8")).body))
            defined[module] = [name for name in found if not name.startswith("_")]
    times = Counter(name for names in defined.values() for name in names)
    return {module: [name for name in names if times[name] == 1] for module, names in defined.items()}


def format_names(package: str) -> str:
    """names.json: one line for each module."""
    lines = [f"{json.dumps(module)}: {json.dumps(names)}" for module, names in list_modules(package).items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def format_stub(package: str) -> str:
    """__init__.pyi: the same for type checkers."""
    lines = ["# Made by `python -m tests.refresh_index`: the names that paramcount.lazy finds."]
    for module, names in list_modules(package).items():
        if "." not in module:
            lines.append(f"from paramcount.{package} import {module} as {module}")
        lines += [f"from paramcount.{package}.{module} import {name} as {name}" for name in names]
    return "\n".join(lines) + "\n"


def list_files() -> dict[Path, str]:
    """{path: content} of the generated files."""
    names = {ROOT / package / "names.json": format_names(package) for package in VOCABULARY}
    return names | {ROOT / package / "__init__.pyi": format_stub(package) for package in VOCABULARY}


def main() -> None:
    for path, content in list_files().items():
        path.write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
