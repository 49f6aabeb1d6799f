"""An architecture without a model: its declaration walked with a symbol for every size, and with each flag tried every way, so that it
tells which flags its weights depend on."""

from __future__ import annotations

import types
from collections.abc import Hashable, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from paramcount.architectures import architecture
from paramcount.architectures.composites import TOWERS
from paramcount.errors import ParamcountError, near, printable, shown
from paramcount.reading import read
from paramcount.polynomials import Polynomial, symbols
from paramcount.sizes import Sizes, Tower, inner_configs
from paramcount.summing import Sums, walked

TRIAL = 6  # a number in the place of a size that the structure depends on, while it is found out which that is
NO_WALK = (ParamcountError, TypeError, AttributeError, LookupError, ValueError)
Known = Mapping[str, Any]  # {path of a field: its value}


class Asked(Exception):
    """A declaration asks for a field that nobody has given."""

    def __init__(self, path: str, kind: Kind) -> None:
        super().__init__(path)
        self.path, self.kind = path, kind


class Kind(NamedTuple):
    """What a field that is no plain size may be."""

    accepted: str
    tried: tuple[Any, ...]  # values that tell whether weights depend on it


FLAG = Kind("True or False", (False, True))
WORDS = Kind("a word for each layer, or for what it tells apart", (("?",), ()))
INDICES = Kind("numbers of layers, or a number for each", ((0,), (1,), ()))
WORD = Kind("a word", ("?", "!"))
PART = Kind("the name of an architecture", ("?", "!"))


class Open:
    """Stands for the config of an architecture: given fields, symbols for the sizes, a question for everything else."""

    def __init__(self, cls: type[Sizes], known: Known, prefix: str = "") -> None:
        self._cls, self._known, self._prefix = cls, known, prefix

    def __getattr__(self, name: str) -> Any:
        path, cls = self._prefix + name, self._cls
        if name not in cls.model_fields:
            if name.startswith("_") or not hasattr(cls, name):
                raise AttributeError(name)
            found = getattr(cls, name)
            return types.MethodType(found, self) if isinstance(found, types.FunctionType) else found
        if name in inner_configs(cls):
            value = self._known.get(path, True) if inner_configs(cls)[name] not in (Sizes, Tower) else asked_for(self._known, path, PART)
            if optional(cls, name) and path not in self._known:
                raise Asked(path, Kind("True (there is one) or None", (None, True)))
            return None if value is None else Open(class_of(cls, name, value, path), self._known, f"{path}.")
        if path in self._known:
            value = self._known[path]
            return symbols(path)[0] if value is True and kind_of(cls, name, path) not in (FLAG, None) else value
        kind = kind_of(cls, name, path)
        if kind is None:
            return symbols(path)[0]
        usual = defaults(cls).get(name)  # real words of layers lead to where their flags are asked for
        raise Asked(path, kind._replace(tried=(usual, *kind.tried)) if kind in (WORDS, INDICES, WORD) and usual is not None else kind)


@cache
def defaults(cls: type[Sizes]) -> Mapping[str, Any]:
    """What a config.json that says nothing means; nothing where it has to say something."""
    try:
        return read(cls, {}).values
    except ParamcountError:
        return {}


def asked_for(known: Known, path: str, kind: Kind) -> Any:
    if path not in known:
        raise Asked(path, kind)
    return known[path]


def class_of(cls: type[Sizes], name: str, value: Any, path: str) -> type[Sizes]:
    """The class of an inner config; where any may stand there, the one that is named."""
    inner = inner_configs(cls)[name]
    if inner is Sizes:
        try:
            return architecture(value)
        except ParamcountError as error:
            raise error.at(path) from None
    if inner is Tower:
        if value not in TOWERS:
            raise ParamcountError(f"= {shown(value)}", where=path, accepted=", ".join(TOWERS), nearest=near(value, TOWERS))
        module, tower = TOWERS[value]
        found: type[Sizes] = getattr(import_module(f"paramcount.parts.{module}"), tower)
        return found
    return inner


def annotations(cls: type[Sizes], name: str) -> tuple[Any, ...]:
    """The kinds of value of a field, without their limits."""
    annotation = cls.model_fields[name].annotation
    kinds = getattr(annotation, "__args__", ()) if annotation is not None and getattr(annotation, "__origin__", None) is not tuple else ()
    return tuple(getattr(kind, "__origin__", kind) for kind in kinds) or (annotation,)


def optional(cls: type[Sizes], name: str) -> bool:
    return type(None) in annotations(cls, name)


def kind_of(cls: type[Sizes], name: str, path: str) -> Kind | None:
    """How a field may be given; None of a size, which may be left a symbol."""
    kinds = annotations(cls, name)
    if bool in kinds:
        return FLAG
    if int in kinds:
        return Kind("None, True (there is one) or a number", (None, symbols(path)[0])) if type(None) in kinds else None
    if str in kinds:
        return WORD
    item = getattr(cls.model_fields[name].annotation, "__args__", (int,))[0]
    return WORDS if getattr(item, "__origin__", item) is str else INDICES


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
    first = result(cls, known)
    contexts: list[Known] = [known]
    met: set[str] = set()
    while contexts:  # with none of the flags taken the other way, with each of them, with each that only then is asked for
        context = contexts.pop(0)
        base = result(cls, context)
        needed |= dict.fromkeys(base.numbers, NUMBER)
        for path, kind in base.asked.items():
            for value in kind.tried[1:]:
                other = {**context, path: value}
                found = result(cls, other)
                needed |= dict.fromkeys(found.numbers, NUMBER)
                if found.said != base.said:
                    needed[path] = kind
                if path not in met:
                    contexts.append(other)
            met.add(path)
    if needed:
        listed = ", ".join(f"{path} ({kind.accepted})" for path, kind in needed.items())
        raise ParamcountError("weights depend on what is not given", accepted=listed)
    if first.sums is None:
        raise ParamcountError(str(first.said))
    return first.sums


def result(cls: type[Sizes], known: Known) -> Result:
    """A walk in which every field that is not given is taken the first way it may be."""
    asked: dict[str, Kind] = {}
    numbers: dict[str, int] = {}
    while True:
        c = Open(cls, {**known, **{path: kind.tried[0] for path, kind in asked.items()}, **numbers})
        try:
            found = walked(c, True)  # type: ignore[arg-type]
        except Asked as question:
            asked[question.path] = question.kind
        except NO_WALK as error:
            size = stuck_on(cls, c._known)
            if not size:
                return Result(None, f"{error}", asked, tuple(numbers))
            numbers[size] = usual_number(cls, size)
        else:
            said = frozenset(found.found.items()), tuple(found.beside.items()), found.tied, found.spare
            return Result(found, said, asked, tuple(numbers))


NUMBER = Kind("a number: the structure depends on it", ())


def stuck_on(cls: type[Sizes], known: Known) -> str:
    """The size that has to be a number for a declaration to go on; "" where it is no single one."""
    for path in sorted(sizes_of(cls, known), key=lambda path: not path.rpartition(".")[2].startswith("n_")):
        try:
            walked(Open(cls, {**known, path: usual_number(cls, path)}), True)  # type: ignore[arg-type]
        except Asked:
            return path
        except NO_WALK:
            continue
        return path
    return ""


def usual_number(cls: type[Sizes], path: str) -> int:
    n: int = defaults(cls).get(path, TRIAL)
    return n


def sizes_of(cls: type[Sizes], known: Known, prefix: str = "") -> Iterator[str]:
    """The paths of the sizes that are symbols."""
    for name in cls.model_fields:
        path = prefix + name
        if name in inner_configs(cls):
            if known.get(path, True) is not None and (inner_configs(cls)[name] not in (Sizes, Tower) or path in known):
                yield from sizes_of(class_of(cls, name, known.get(path), path), known, f"{path}.")
        elif path not in known and kind_of(cls, name, path) is None:
            yield path


# ---- what is given


def given(cls: type[Sizes], structure: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are given, each of a kind that it may be.

    Raises: ParamcountError for a name that is no field, with the nearest, and for a value that is none.
    """
    known: dict[str, Any] = {}
    for path, value in sorted(structure.items(), key=lambda item: item[0].count(".")):
        known[path] = checked(cls, path, value, known)
    words_fit(cls, known)
    return known


def checked(cls: type[Sizes], path: str, value: Any, known: Known, prefix: str = "") -> Any:
    name, _, rest = path.partition(".")
    if name not in cls.model_fields or (rest and name not in inner_configs(cls)):
        names = [prefix + field for field in cls.model_fields]
        raise ParamcountError(f"unknown name {printable(prefix + path, 60)}", accepted=", ".join(names), nearest=near(prefix + path, names))
    if name in inner_configs(cls):
        inner = class_of(cls, name, value if not rest else known.get(prefix + name, "none"), prefix + name) if value is not None else cls
        return checked(inner, rest, value, known, f"{prefix}{name}.") if rest else value
    kind, full = kind_of(cls, name, prefix + path), prefix + path
    if isinstance(value, list):
        value = tuple(value)
    right = {
        True: isinstance(value, bool),
        False: False,
    }[kind is FLAG]
    if kind is None or (kind is not None and kind.tried[:1] == (None,)):
        right = isinstance(value, Polynomial) or (type(value) is int and value >= 0) or (kind is not None and (value is None or value is True))
        right = right or (kind is None and isinstance(value, tuple) and tuple in annotations(cls, name))
    elif kind in (WORDS, INDICES):
        right = isinstance(value, tuple) and all(type(item) is (str if kind is WORDS else int) for item in value)
    elif kind is WORD:
        right = isinstance(value, str) or (value is None and optional(cls, name))
    if not right:
        raise ParamcountError(f"= {shown(value)}", where=full, accepted=kind.accepted if kind else "a whole number or a symbol")
    return value


def words_fit(cls: type[Sizes], known: Known) -> None:
    """Raises where a word is none that the architecture knows. What it checks of sizes that are symbols says nothing."""
    lengths = [len(value) for path, value in known.items() if "." not in path and isinstance(value, tuple) and value and isinstance(value[0], str)]
    try:
        cls.check(Open(cls, {"n_layers": lengths[0] if lengths else 1, **known}))  # type: ignore[arg-type]
    except Asked:
        return
    except NO_WALK as error:
        if isinstance(error, ParamcountError) and any(error.where.startswith(f"{path}.") for path, value in known.items() if isinstance(value, tuple)):
            raise


