"""What the proof of a model type depends on, as one digest per model type and file of oracle tests.

It covers the flows that the architecture declares for its frozen configs (operations with parameters, weights,
wiring), the source of these operations, the source of what reads its config.json, its defaults, the versions of the
reference, and the source of the tests with the entries of their tables that belong to the type. Comments, docstrings
and formatting do not change it, and neither does what all types share: reading, walking and computing a flow. The
oracle tests of a sample that has most operations show that.
"""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from functools import cache, partial
from importlib.metadata import version
from typing import Any

from paramcount.api import load
from paramcount.architectures import ARCHITECTURES, architecture, split_name
from paramcount.counting.sum_weights import list_flows
from paramcount.flow import list_steps
from paramcount.flow.operation import Operation
from paramcount.sizes import Sizes
from paramcount.sizes.fields import DEFAULTS, find_config_class
from tests.cases import load_cases, load_task_heads
from tests.comparison import load_configs
from tests.model_types import MODEL_TYPES, default_document
from tests.oracle import checkpoints, passes, remote
from tests.oracle.renamed import STAND_INS
from tests.sources import ROOT, Function, Piece, Symbol, digest, parse_module, read_piece
from tests.type_files import load_all, load_facts

FOLLOWED = ("paramcount.architectures", "paramcount.parts", "paramcount.flow", "paramcount.sizes")
GUIDE = ROOT / "paramcount/docs/add-an-architecture.md"
PACKAGES = ("torch", "transformers", "peft")


@cache
def list_types() -> tuple[str, ...]:
    """All names that a proof may have: model types, and architectures of other classes of one."""
    return tuple(sorted({*ARCHITECTURES, *MODEL_TYPES}))


@cache
def list_zoo_types() -> dict[str, str]:
    """{zoo id: its model type} of the entries with a reference."""
    return {id: name for name, facts in load_all("reference").items() for id in facts}


@cache
def find_type(word: str) -> str | None:
    """The model type that a parameter of a test belongs to, such as "bart, scaled" or a zoo id; None if it is another
    word.
    """
    name = list_zoo_types().get(word, word.partition(",")[0])
    known = set(list_types())
    return name if name in known else base if (base := split_name(name)[0]) in known and base != name else None


# The declared flow.


def list_documents(name: str) -> Iterator[dict[str, Any]]:
    """The config.json files of a model type that oracle tests read."""
    if name in MODEL_TYPES:
        yield default_document(name)
    yield from (case["config"] for case in load_cases().get(name, ()) if "refused" not in case)
    heads = load_task_heads().items()
    yield from (case["config"] for head, cases in heads if find_type(head) == name for case in cases)
    for key in passes.CONFIGS:
        if find_type(key) == name:
            yield passes.make_document(key)
    for key in checkpoints.CONFIGS:
        if find_type(key) == name:
            yield checkpoints.make_document(key)
    yield from (one.document for key, one in STAND_INS.items() if find_type(key) == name)
    yield from (one.document for key, one in remote.MODELS.items() if find_type(key) == name)


class Uses:
    """What the operations of flows are made of: the classes and functions, and the names of the operations."""

    def __init__(self) -> None:
        self.found: set[Symbol] = set()
        self.operations: set[str] = set()

    def describe(self, value: Any) -> Any:
        """A parameter of an operation as JSON can hold it."""
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, Enum):
            return str(value)
        if type(value) in (tuple, list):
            return [self.describe(one) for one in value]
        if isinstance(value, Mapping):
            return [[self.describe(key), self.describe(one)] for key, one in value.items()]
        if isinstance(value, set | frozenset):
            return sorted(map(repr, value))
        if isinstance(value, partial):
            return [self.describe(value.func), self.describe(value.args), self.describe(value.keywords)]
        if hasattr(value, "__qualname__"):  # a class or a function
            self.note(value)
            return value.__qualname__
        if hasattr(value, "tolist"):
            return value.tolist()
        self.note(type(value))
        slots = [name for cls in type(value).__mro__ for name in getattr(cls, "__slots__", ())]
        fields = {name: getattr(value, name) for name in slots if hasattr(value, name)} | getattr(value, "__dict__", {})
        return [type(value).__name__, self.describe(list(value) if isinstance(value, tuple) else fields)]

    def note(self, value: Any) -> None:
        for cls in value.__mro__ if isinstance(value, type) else (value,):
            if cls is not Operation and cls.__module__.startswith("paramcount."):
                self.found.add(Symbol(cls.__module__, cls.__qualname__.split(".")[0]))
        if isinstance(value, type) and issubclass(value, Operation):
            self.operations.add(value.__name__)

    def describe_flow(self, out: Any, part: str) -> Any:
        """Every step of a flow: its operation, shape and weights, where it stands, and which steps it reads."""
        places: dict[int, int] = {}
        operations: dict[int, Any] = {}
        lines = []
        for data, *place in list_steps(out, part):
            read = (data, *data.inputs, *(one for body in data.bodies for one in body.inputs))
            numbers = [places.setdefault(id(one), len(places)) for one in read]
            key = id(data.operation)
            if key not in operations:
                operations[key] = self.describe(data.operation)
            lines.append([numbers, operations[key], data.shape, data.weights, *place])
        return lines


def describe_document(document: dict[str, Any], uses: Uses, readers: set[type]) -> str:
    """A config and the flow that is declared for it, or the error; collects the classes that read it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            sizes = load(document).sizes
            readers |= {type(one) for one in list_sizes(sizes)}
            flows = [uses.describe_flow(*flow) for flow in list_flows(sizes)]
        except Exception as error:  # whatever it is, it belongs to the type
            flows = [f"{type(error).__name__}: {error}"]
    return json.dumps([document, flows], default=repr)


def list_sizes(sizes: Any) -> Iterator[Any]:
    yield sizes
    for name in type(sizes).fields:
        if isinstance(part := getattr(sizes, name), Sizes):
            yield from list_sizes(part)


# The source.


def builds_flow(node: ast.AST) -> bool:
    """Whether a function builds a part of a flow, rather than to read a config or to compute."""
    if not isinstance(node, Function):
        return False
    arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg)
    annotations = (node.returns, *(argument.annotation for argument in arguments if argument))
    return any("Data" in ast.unparse(annotation).split() for annotation in annotations if annotation) or any(
        isinstance(child, ast.Name) and child.id == "Data" for one in annotations if one for child in ast.walk(one)
    )


@cache
def read_shortened(symbol: Symbol) -> Piece:
    return read_piece(symbol, builds_flow)


@cache
def read_whole(symbol: Symbol) -> Piece:
    return read_piece(symbol, lambda node: False)


@cache
def read_test(symbol: Symbol) -> Piece:
    return read_piece(symbol, lambda node: False, find_type)


def close(roots: Iterable[Symbol], follows: Callable[[str], bool], name: str = "") -> dict[Symbol, str]:
    """{definition: digest of its source} of the roots and of what they name, as far as their modules are followed."""
    read = read_test if name else read_shortened
    found: dict[Symbol, str] = {}
    pending = list(roots)
    while pending:
        symbol = pending.pop()
        module = parse_module(symbol.module)
        if symbol in found or module is None or symbol.name not in module.definitions:
            continue
        piece = read(symbol)
        own, names = piece.by_owner.get(name, ("", frozenset()))
        found[symbol] = piece.digest + own
        pending += [other for other in (*piece.references, *names) if follows(other.module)]
    return found


@cache
def list_shared() -> frozenset[Symbol]:
    """What every reader is made of."""
    roots = [Symbol(Sizes.__module__, "Sizes")]
    return frozenset(close(roots, lambda module: module.startswith("paramcount.sizes")))


def follows_declaration(module: str) -> bool:
    return module.startswith(FOLLOWED)


@cache
def digest_source(symbols: frozenset[Symbol]) -> str:
    found = close(symbols, follows_declaration)
    return digest(json.dumps(sorted((*symbol, text) for symbol, text in found.items() if symbol not in list_shared())))


def list_own(cls: type) -> Iterator[str]:
    """The digests of what stands in the module of an architecture."""
    module = parse_module(cls.__module__)
    for name in sorted(module.definitions) if module else ():
        yield f"{name} {read_whole(Symbol(cls.__module__, name)).digest}"


def list_frozen(name: str) -> str:
    """What is frozen about a model type, and the published configs of its zoo entries."""
    facts = {kind: fact for kind, fact in load_facts(name).items() if kind not in ("proofs", "zoo_configs")}
    return json.dumps([facts, [load_configs().get(id) for id in facts.get("reference", ())]])


def list_defaults(readers: Iterable[type]) -> Iterator[Any]:
    table = json.loads(DEFAULTS.read_text(encoding="utf-8"))
    for cls in sorted(readers, key=lambda cls: cls.__name__):
        name = find_config_class(cls)
        yield name, table.get(name)


# Digests.


@cache
def describe_type(name: str) -> tuple[str, frozenset[str]]:
    """(digest of what is declared of a model type, names of its operations)"""
    uses, readers = Uses(), set[type]()
    if name in ARCHITECTURES:
        readers.add(architecture(name))
    flows = [describe_document(document, uses, readers) for document in list_documents(name)]
    bases = {base for cls in readers for base in cls.__mro__ if base.__module__.startswith("paramcount.")}
    symbols = {Symbol(base.__module__, base.__qualname__) for base in bases} - list_shared()
    own = list_own(architecture(name)) if name in ARCHITECTURES else ()
    versions = [version(package).partition("+")[0] for package in PACKAGES]
    parts = [
        list_frozen(name), *flows, digest_source(frozenset(uses.found)), digest_source(frozenset(symbols)),
        *own, json.dumps(list(list_defaults(readers))), *versions,
    ]  # fmt: skip
    return digest("\n".join(parts)), frozenset(uses.operations)


@cache
def digest_test(file: str, name: str) -> str:
    """The source of a file of oracle tests with what it takes from others, and its tables' entries of a model type."""
    module = f"tests.oracle.{file}"
    parsed = parse_module(module)
    roots = [Symbol(module, one) for one in parsed.definitions] if parsed else []
    found = close(roots, lambda module: module.startswith("tests."), name)
    guide = GUIDE.read_text(encoding="utf-8") if file == "test_guide" else ""
    return digest(json.dumps(sorted((*symbol, text) for symbol, text in found.items())) + guide)


def digest_proof(name: str, file: str) -> str:
    return digest(describe_type(name)[0] + digest_test(file, name))


def pick_sample(most: int = 10) -> list[str]:
    """A few model types that together have most operations, each with several that those before it lack."""
    operations = {name: describe_type(name)[1] for name in list_types()}
    missing = set[str]().union(*operations.values())
    found: list[str] = []
    while missing and len(found) < most:
        best = max(operations, key=lambda name: (len(operations[name] & missing), name))
        found.append(best)
        missing -= operations[best]
    return found
