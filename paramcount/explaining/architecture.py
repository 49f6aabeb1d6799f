"""An architecture without a model: its declaration walked with a symbol for every size, and with each flag tried every way, so that it
tells which flags its weights depend on."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from functools import cache
from importlib import import_module
from types import FunctionType, MethodType, SimpleNamespace
from typing import Any, NamedTuple

from paramcount.architectures import architecture
from paramcount.counting.sum_weights import Sums, sum_weights
from paramcount.errors import ParamcountError, describe_value, find_nearest, list_names, make_printable
from paramcount.huggingface.fields import read_values
from paramcount.huggingface.multimodal import ENCODERS
from paramcount.sizes import Sizes, Tower, inner_configs
from paramcount.symbolic.polynomials import Polynomial, make_symbols

NAMED_PARTS = ("language", "tower")
TRIAL = 6  # a number in the place of a size that the structure depends on, while it is found out which that is
NO_WALK = (ParamcountError, TypeError, AttributeError, LookupError, ValueError)
Known = Mapping[str, Any]  # {path of a field: its value}


class Kind(NamedTuple):
    """How a field that is no plain size may be given."""

    of: str  # flag | words | indices | word | size | language | tower | part | number
    expected: str
    tried: tuple[Any, ...]  # values that tell whether weights depend on it


FLAG = Kind("flag", "True or False", (False, True))
WORDS = Kind("words", "a word for each layer", (("?",), ()))
INDICES = Kind("indices", "a list of numbers", ((0,), (1,), ()))
WORD = Kind("word", "a word", ("?", "!"))
LANGUAGE = Kind("language", "the name of an architecture", ("llama",))  # any will do to find what else is asked for
TOWER = Kind("tower", f"one of {', '.join(ENCODERS)}", (next(iter(ENCODERS)),))
PART = Kind("part", "None, or True: there is one", (None, True))
SIZE = Kind("size", "None, True: there is one, or a number", (None, True))
NUMBER = Kind("number", "a number: the structure depends on it", ())


class Open:
    """Stands for the config of an architecture: given fields, symbols for the sizes, and the first way that every other field may be
    taken, which it notes in `asked`."""

    def __init__(self, cls: type[Sizes], known: Known, asked: dict[str, Kind] | None = None, prefix: str = "") -> None:
        self._cls, self._known, self._prefix = cls, known, prefix
        self.asked: dict[str, Kind] = {} if asked is None else asked

    def __getattr__(self, name: str) -> Any:
        path, cls, known = self._prefix + name, self._cls, self._known
        if name not in cls.model_fields:
            if name.startswith("_") or not hasattr(cls, name):
                raise AttributeError(name)
            found = getattr(cls, name)
            return MethodType(found, self) if isinstance(found, FunctionType) else found
        kind = kind_of(cls, name)
        value = known.get(path, True)
        if path not in known and kind is not None:
            self.asked[path] = kind
            value = kind.tried[0]
        if name in inner_configs(cls):
            return None if value is None else Open(class_of(cls, name, path, value), known, self.asked, f"{path}.")
        return make_symbols(path)[0] if value is True and kind != FLAG else value


def class_of(cls: type[Sizes], name: str, path: str, value: Any) -> type[Sizes]:
    """The class of an inner config; where any may stand there, the one that is named."""
    inner = inner_configs(cls)[name]
    if inner is Sizes:
        try:
            return architecture(value)
        except ParamcountError as error:
            raise error.add_location(path) from None
    if inner is Tower:
        if not isinstance(value, str) or value not in ENCODERS:
            raise ParamcountError(f"= {describe_value(value)}", where=path, expected=list_names(ENCODERS, value), nearest=find_nearest(value, ENCODERS))
        module, tower = ENCODERS[value]
        found: type[Sizes] = getattr(import_module(f"paramcount.parts.{module}"), tower)
        return found
    return inner


# ---- what fields there are


@cache
def kind_of(cls: type[Sizes], name: str) -> Kind | None:
    """How a field may be given; None of a size or an inner config, which need not be."""
    annotation = cls.model_fields[name].annotation
    listed = getattr(annotation, "__origin__", None) is tuple
    inside = getattr(annotation, "__args__", None) or (annotation,)
    kinds = [getattr(kind, "__origin__", kind) for kind in inside]  # without their limits
    if name in inner_configs(cls):
        return {Sizes: LANGUAGE, Tower: TOWER}.get(inner_configs(cls)[name], PART if type(None) in kinds else None)
    if listed:
        return told_apart(cls, name, WORDS if kinds[0] is str else INDICES)
    if bool in kinds:
        return FLAG
    if str in kinds:
        return told_apart(cls, name, WORD)
    return SIZE if type(None) in kinds else None


def told_apart(cls: type[Sizes], name: str, kind: Kind) -> Kind:
    """A field with the values that it usually has and those that the architecture knows among what is tried of it."""
    usual, known = defaults(cls).get(name), words(cls, name)
    tried = [usual] if usual is not None else []
    tried += known if kind is WORD else [known] if known else []
    tried += kind.tried if kind is not WORD or not known else ()
    return Kind(kind.of, f"{kind.expected}: {', '.join(known)}" if known else kind.expected, tuple(dict.fromkeys(tried)))


@cache
def defaults(cls: type[Sizes]) -> Mapping[str, Any]:
    """What a config.json that says nothing means; nothing where it has to say something."""
    try:
        return read_values(cls, {}).values
    except NO_WALK:
        return {}


@cache
def words(cls: type[Sizes], name: str) -> tuple[str, ...]:
    """The words that a field may hold: as the architecture says them of one that it does not know, else those of its usual layers.
    None where neither tells."""
    for value in ("?", ("?",)):
        try:
            cls.check(SimpleNamespace(**{**defaults(cls), name: value}))  # type: ignore[arg-type]
        except NO_WALK as error:
            if isinstance(error, ParamcountError) and error.where in (name, f"{name}.0") and error.choices:
                return tuple(map(str, error.choices))
    usual = defaults(cls).get(name)
    found = tuple(dict.fromkeys(usual)) if isinstance(usual, tuple) else ()
    return found if len(found) > 1 and all(isinstance(word, str) for word in found) else ()


# ---- trying


class Result(NamedTuple):
    """One walk: what the weights sum to, or why there is no walk; which fields it asked for, the first way that each may be taken."""

    sums: Sums | None
    said: Hashable  # equal where the walks are
    asked: Mapping[str, Kind]
    numbers: tuple[str, ...]  # sizes that had to be numbers


def sums(cls: type[Sizes], known: Known) -> Sums:
    """What the weights of an architecture sum to, in symbols.

    Raises: ParamcountError that names every flag which weights depend on and nobody has given.
    """
    needed: dict[str, Kind] = {}
    seen: dict[frozenset[tuple[str, Any]], Result] = {}

    def walk(known: Known) -> Result:
        key = frozenset(known.items())
        if key not in seen:
            seen[key] = result(cls, known)
        return seen[key]

    contexts: list[Known] = [known]
    met: set[str] = set()
    while contexts:  # with each field as it is taken first, with each of them another way, with those that only then are asked for
        context = contexts.pop(0)
        base = walk(context)
        needed |= dict.fromkeys(base.numbers, NUMBER)
        for path, kind in base.asked.items():
            for value in kind.tried[1:]:
                other = {**context, path: value}
                if walk(other).said != base.said:
                    needed[path] = kind
                if path not in met:
                    contexts.append(other)
            met.add(path)
            if kind.of in NAMED_PARTS:
                needed[path] = kind
    parts = tuple(f"{path}." for path, kind in needed.items() if kind.of in NAMED_PARTS)
    needed = {path: kind for path, kind in needed.items() if not path.startswith(parts)}  # what is in a part depends on which it is
    if needed:
        expected = "; ".join(f"{path}: {kind.expected}" for path, kind in needed.items())
        raise ParamcountError(f"its weights depend on {', '.join(needed)}: give {'them' if len(needed) > 1 else 'it'}", expected=expected)
    found = walk(known)
    if found.sums is None:
        raise ParamcountError(str(found.said))
    return found.sums


def result(cls: type[Sizes], known: Known) -> Result:
    """A walk in which every field that is not given is taken the first way it may be."""
    numbers: dict[str, int] = {}
    while True:
        c = Open(cls, {**known, **numbers})
        try:
            found = sum_weights(c, True)  # type: ignore[arg-type]
        except NO_WALK as error:
            size = stuck_on(cls, {**known, **numbers})
            if not size:
                return Result(None, str(error), c.asked, tuple(numbers))
            numbers[size] = usual_number(cls, size)
        else:
            said = frozenset(found.components.items()), tuple(found.excluded.items()), found.tied, found.active_slack
            return Result(found, said, c.asked, tuple(numbers))


def stuck_on(cls: type[Sizes], known: Known) -> str:
    """The size that has to be a number for a declaration to go on; "" where it is no single one."""
    for path in sorted(open_sizes(cls, known), key=lambda path: not path.rpartition(".")[2].startswith("n_")):
        try:
            sum_weights(Open(cls, {**known, path: usual_number(cls, path)}), True)  # type: ignore[arg-type]
        except NO_WALK:
            continue
        return path
    return ""


def usual_number(cls: type[Sizes], path: str) -> int:
    n: int = defaults(cls).get(path, TRIAL)
    return n


def open_sizes(cls: type[Sizes], known: Known, prefix: str = "") -> Iterator[str]:
    """The paths of the sizes that are symbols."""
    for name in cls.model_fields:
        path = prefix + name
        kind = kind_of(cls, name)
        if name in inner_configs(cls):
            value = known.get(path, kind.tried[0] if kind else True)
            if value is not None:
                yield from open_sizes(class_of(cls, name, path, value), known, f"{path}.")
        elif path not in known and kind is None:
            yield path


# ---- what is given


def given(cls: type[Sizes], structure: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are given, each of a kind that it may be.

    Raises: ParamcountError for a name that is no field, with the nearest, and for a value that is none.
    """
    known: dict[str, Any] = {}
    for path in sorted(structure, key=lambda path: path.count(".")):  # a part before what is in it
        owner, name = cls, path
        while "." in name:
            part, _, name = name.partition(".")
            if part not in inner_configs(owner):
                raise unknown(owner, path, part)
            within = path.removesuffix(f".{name}")
            owner = class_of(owner, part, within, known.get(within))
        if name not in owner.model_fields:
            raise unknown(owner, path, name)
        value = structure[path]
        known[path] = tuple(value) if isinstance(value, list) else value
        fits(owner, name, path, known)
    return known


def unknown(owner: type[Sizes], path: str, name: str) -> ParamcountError:
    within = path.removesuffix(name)
    names = [within + field for field in owner.model_fields]
    return ParamcountError(f"unknown name {make_printable(path, 60)}", expected=list_names(names, path), nearest=find_nearest(path, names))


def fits(owner: type[Sizes], name: str, path: str, known: Known) -> None:
    """Raises where a value is none that the field may have."""
    kind, value, usual = kind_of(owner, name), known[path], words(owner, name)
    if kind and kind.of in NAMED_PARTS:
        class_of(owner, name, path, value)
        return
    whole = (type(value) is int and value >= 0) or isinstance(value, Polynomial)
    match kind.of if kind else "part" if name in inner_configs(owner) else "":
        case "flag":
            right = isinstance(value, bool)
        case "words":
            right = isinstance(value, tuple) and all(isinstance(word, str) and (not usual or word in usual) for word in value)
        case "indices":
            right = isinstance(value, tuple) and all(type(n) is int and n >= 0 for n in value)
        case "word":
            right = value is None or (isinstance(value, str) and (not usual or value in usual))
        case "size":
            right = whole or value is None or value is True
        case "part":
            right = value is True or (value is None and kind is not None)
        case _:
            right = whole or isinstance(value, tuple)  # of a few architectures, one for each layer
    if not right:
        raise ParamcountError(f"= {describe_value(value)}", where=path, expected=kind.expected if kind else "an integer or a symbol")
