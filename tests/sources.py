"""What a definition in the source depends on, without comments, docstrings and formatting: for digests."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

ROOT = Path(__file__).parents[1]
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


class Symbol(NamedTuple):
    """A definition at the top level of a module; the whole module if it has no name."""

    module: str
    name: str


class Module(NamedTuple):
    definitions: dict[str, list[ast.stmt]]
    imports: dict[str, Symbol]
    stars: list[str]  # modules of which everything is imported


@cache
def read_tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def find_file(module: str) -> Path | None:
    place = ROOT.joinpath(*module.split("."))
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()), None)


@cache
def parse_module(module: str) -> Module | None:
    """The definitions and imports of a module of this project; None for one of another."""
    path = find_file(module)
    if path is None or module.split(".")[0] not in ("paramcount", "tests"):
        return None
    found = Module({}, {}, [])
    for node in list_statements(ast.parse(path.read_text(encoding="utf-8")).body):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.imports.update(list_imports(node, module))
            if isinstance(node, ast.ImportFrom) and node.names[0].name == "*" and node.module:
                found.stars.append(node.module)
        for name in list_targets(node):
            found.definitions.setdefault(name, []).append(node)
    return found


def list_statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements at the top level, those of conditions and attempts included."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            yield from list_statements(child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt))


def list_targets(node: ast.stmt) -> list[str]:
    """The names that a statement defines."""
    if isinstance(node, Function | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [child.id for target in targets for child in ast.walk(target) if isinstance(child, ast.Name)]


def list_imports(node: ast.Import | ast.ImportFrom, module: str) -> dict[str, Symbol]:
    if isinstance(node, ast.Import):
        return {name.asname: Symbol(name.name, "") for name in node.names if name.asname}
    if node.level:
        around = module.split(".")[: -node.level + (find_file(module) or ROOT).match("__init__.py") or None]
        origin = ".".join([*around, *filter(None, [node.module])])
    else:
        origin = node.module or ""
    return {name.asname or name.name: Symbol(origin, name.name) for name in node.names}


def resolve(symbol: Symbol) -> Symbol | None:
    """Where a name is defined; None for one of another project or of Python's own."""
    module = parse_module(symbol.module)
    if module is None or not symbol.name or symbol.name in module.definitions:
        return symbol if module else None
    if symbol.name in module.imports:
        return resolve(module.imports[symbol.name])
    if find_file(f"{symbol.module}.{symbol.name}"):
        return Symbol(f"{symbol.module}.{symbol.name}", "")
    homes = [*module.stars, *(f"{symbol.module}.{home}" for home in list_homes(symbol.module).get(symbol.name, ()))]
    return next((found for home in homes if (found := resolve(Symbol(home, symbol.name)))), None)


@cache
def list_homes(package: str) -> dict[str, list[str]]:
    """{name: modules that define it} of a package whose names are looked up when they are first used."""
    file = find_file(package)
    names = file.with_name("names.json") if file else None
    found: dict[str, list[str]] = {}
    if file and names and names.exists() and file.name == "__init__.py":
        for module, own in json.loads(names.read_text(encoding="utf-8")).items():
            for name in own:
                found.setdefault(name, []).append(module)
    return found


def list_references(node: ast.AST, module: str) -> Iterator[Symbol]:
    """The definitions that a piece of source names."""
    local: dict[str, Symbol] = {}
    for child in ast.walk(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            local |= list_imports(child, module)

    def find(child: ast.AST) -> Symbol | None:
        if isinstance(child, ast.Name):
            return resolve(local.get(child.id, Symbol(module, child.id)))
        if isinstance(child, ast.Attribute) and (around := find(child.value)) and not around.name:
            return resolve(Symbol(around.module, child.attr))
        return None

    for child in ast.walk(node):
        if isinstance(child, ast.Name | ast.Attribute) and (found := find(child)) and found.name:
            yield found


def dump(node: object) -> str:
    """The syntax tree in one line: alike in all versions of Python, without docstrings and places."""
    if isinstance(node, list):
        return "[" + ",".join(map(dump, node)) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = []
    for name, value in ast.iter_fields(node):
        is_body = name == "body" and isinstance(node, Function | ast.ClassDef)
        kept = value[1:] if is_body and is_docstring(value[0]) else value
        if kept not in (None, []) and name not in ("ctx", "kind", "type_comment"):
            fields.append(f"{name}={dump(kept)}")
    return f"{type(node).__name__}({','.join(fields)})"


def is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Piece(NamedTuple):
    """A definition: the digest of its source, and what it names. `by_owner`: the same of the entries of tables and
    lists that belong to one owner, such as a model type.
    """

    digest: str
    references: frozenset[Symbol]
    by_owner: dict[str, tuple[str, frozenset[Symbol]]]


def read_piece(
    symbol: Symbol, is_left_out: Callable[[ast.AST], bool], find_owner: Callable[[str], str | None] | None = None
) -> Piece:
    """A definition without the functions that are left out and without the entries of owners."""
    module = parse_module(symbol.module)
    assert module is not None
    texts, references = [], set()
    owned: dict[str, tuple[list[str], set[Symbol]]] = {}
    for node in module.definitions[symbol.name]:
        rest, entries = cut(node, is_left_out, find_owner)
        texts.append(dump(rest))
        references |= set(list_references(rest, symbol.module)) if rest else set()
        for owner, entry in entries:
            text, names = owned.setdefault(owner, ([], set()))
            text.append(dump(entry))
            for part in entry:
                names |= set(list_references(part, symbol.module))
    by_owner = {owner: (digest("\n".join(text)), frozenset(names)) for owner, (text, names) in owned.items()}
    return Piece(digest("\n".join(texts)), frozenset(references - {symbol}), by_owner)


def cut(
    node: ast.AST, is_left_out: Callable[[ast.AST], bool], find_owner: Callable[[str], str | None] | None
) -> tuple[ast.AST | None, list[tuple[str, list[ast.AST]]]]:
    """A copy of the tree without what is left out, and [(owner, nodes)] of what is an owner's."""
    if is_left_out(node):
        return None, []
    entries: list[tuple[str, list[ast.AST]]] = []

    def owner_of(child: object) -> str | None:
        is_name = isinstance(child, ast.Constant) and isinstance(child.value, str)
        return find_owner(child.value) if find_owner and is_name else None  # type: ignore[attr-defined]

    def copy(value: object) -> object:
        if isinstance(value, list):
            return [found for child in value if (found := copy(child)) is not None]
        if not isinstance(value, ast.AST):
            return value
        rest, more = cut(value, is_left_out, find_owner)
        entries.extend(more)
        return rest

    fields = dict(ast.iter_fields(node))
    if isinstance(node, ast.Dict):
        pairs = []
        for key, value in zip(node.keys, node.values):
            if owner := owner_of(key):
                entries.append((owner, [*filter(None, [key]), value]))
            else:
                pairs.append((key, value))
        fields = {"keys": [key or ast.Constant("**") for key, _ in pairs], "values": [value for _, value in pairs]}
    elif isinstance(node, ast.List | ast.Tuple | ast.Set):
        entries += [(owner, [child]) for child in node.elts if (owner := owner_of(child))]
        fields["elts"] = [child for child in node.elts if not owner_of(child)]
    return type(node)(**{name: copy(value) for name, value in fields.items()}), entries
