"""What a size takes in a sweep: a range, a list of values, or an expression of other sizes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from paramcount.errors import LONGEST, ParamcountError, describe_value, make_printable, quote
from paramcount.formats.strict_yaml import parse_yaml
from paramcount.symbolic.arrays import is_array
from paramcount.symbolic.parsing import Grammar, parse
from paramcount.symbolic.quantities import parse_quantity
from paramcount.symbolic.trees import Tree, list_names

SETTING = "a size and its values, such as n_layers=16:64:4, d_model=2048,4096 or d_ff=4*d_model"
NUMBER = r"\s*(\d{1,18}|\d{1,12}(?:\.\d{1,9})?[A-Za-z]{1,2})\s*"
RANGE = re.compile(f"{NUMBER}:{NUMBER}(?::{NUMBER})?")
INTEGER = re.compile(r"\s*-?\d{1,18}\s*")
WORDS: Mapping[str, object] = {"true": True, "false": False, "null": None}
MOST_VALUES = 10_000_000  # of one size
LARGEST_STOP = 2**40  # of a range, far beyond every valid size

EXPECTED = "names of sizes, integers, + - * // and parentheses, such as 4*d_model"
EXPRESSION = Grammar(EXPECTED, EXPECTED, LONGEST, has_conditions=False)


class Expression(NamedTuple):
    """An expression of sizes as typed, and its tree."""

    text: str
    tree: Tree

    @property
    def names(self) -> tuple[str, ...]:
        """The names in it, each once."""
        return tuple(dict.fromkeys(list_names(self.tree)))


Values = tuple[object, ...] | range  # what one size takes
Axis = Values | Expression


def parse_axes(settings: Iterable[str]) -> dict[str, Axis]:
    """{size: its values or expression} of `size=values` settings.

    >>> parse_axes(["n_layers=2:6:2", "tie_word_embeddings=true,false"])
    {'n_layers': range(2, 7, 2), 'tie_word_embeddings': (True, False)}

    Raises: ParamcountError for an invalid setting, and for a size that is given twice.
    """
    axes: dict[str, Axis] = {}
    for setting in settings:
        name, sign, text = (piece.strip() for piece in setting.partition("="))
        if not name or not sign:
            raise ParamcountError(f"{quote(setting)} does not name a size and its values", expected=SETTING)
        if name in axes:
            raise ParamcountError("is given twice", where=make_printable(name, 60), expected="each size once")
        axes[name] = parse_axis(text, make_printable(name, 60))
    return axes


def parse_axis(text: str, where: str) -> Axis:
    """The values or the expression that a string states.

    >>> parse_axis("16:64:16", "n_layers"), parse_axis("1, 2, null", "window")
    (range(16, 65, 16), (1, 2, None))

    Raises: ParamcountError for an invalid range, list or expression.
    """
    if not text.strip():
        raise ParamcountError("has no value", where=where, expected=SETTING)
    if not text.isprintable():
        raise ParamcountError(f"= {quote(text)}", where=where, expected="printable characters")
    if match := RANGE.fullmatch(text):
        start, stop, step = (parse_quantity(number or "1", where) for number in match.groups())
        if start is not None and stop is not None and step is not None:
            return make_range(start, stop, step, where)
    if ":" in text:
        is_long = re.search(r"\d{19}", text)
        expected = "integers of at most 18 digits" if is_long else "START:STOP or START:STOP:STEP, such as 16:64:4"
        raise ParamcountError(f"= {quote(text)}", where=where, expected=expected)
    if text.lstrip().startswith(("[", '"', "'")):
        return (parse_value(text, where),)
    pieces = text.split(",")
    if len(pieces) == 1 and not is_value(text, where):
        return parse_expression(text, where)
    for piece in pieces:
        if not is_value(piece, where):
            raise ParamcountError(f"= {quote(piece.strip())}", where=where, expected="integers, true, false or null")
    return tuple(read_word(piece, where) for piece in pieces)


def parse_expression(text: str, where: str) -> Expression:
    """The expression that a string states.

    >>> parse_expression("n_layers*(d_model + 1)", "d_ff").names
    ('n_layers', 'd_model')

    Raises: ParamcountError for anything else, and for an expression that is too long or too deep.
    """
    try:
        return Expression(text.strip(), parse(text, EXPRESSION))
    except ParamcountError as error:
        found = error.found if len(text) > LONGEST else f"= {quote(text)}: {error.found}"
        raise error.replace(found=found, where=where) from None


def is_value(text: str, name: str) -> bool:
    """Whether a string is a value of this size: an integer, perhaps with a suffix, true, false or null."""
    return bool(INTEGER.fullmatch(text)) or text.strip() in WORDS or parse_quantity(text, name) is not None


def read_word(text: str, name: str) -> object:
    word = text.strip()
    return WORDS[word] if word in WORDS else parse_quantity(word, name)


def parse_value(text: str, where: str) -> object:
    """A string in quotes, or a list in brackets, which is one value."""
    expected = 'a string in quotes, or a list such as ["full_attention", "sliding_attention"]'
    if len(text) > 100 * LONGEST:
        raise ParamcountError(f"has {len(text):,} characters", where=where, expected=expected)
    try:
        value = parse_yaml(f"value: {text}")["value"]
    except ParamcountError as error:
        raise ParamcountError(f"= {quote(text)}: {error.found}", where=where, expected=expected) from None
    return tuple(value) if isinstance(value, list) else value


def make_range(start: int, stop: int, step: int, where: str) -> range:
    """The values from `start` to `stop`, both included.

    Raises: ParamcountError if there are none, or too many.
    """
    if step < 1:
        raise ParamcountError(f"has a step of {step}", where=where, expected="a step of at least 1")
    if stop < start:
        raise ParamcountError(f"= {start}:{stop} has no values", where=where, expected=f"a stop of at least {start}")
    values = range(start, min(stop, LARGEST_STOP) + 1, step)
    if len(values) > MOST_VALUES:
        raise ParamcountError(f"has {len(values):,} values", where=where, expected=f"at most {MOST_VALUES:,}")
    return values


def make_axes(sizes: object) -> dict[str, Axis]:
    """{size: its values or expression} of a mapping from Python.

    A value may be a range, an array or a list of values; a string as in `parse_axis`; otherwise it is the only value.

    Raises: ParamcountError for anything else.
    """
    if not isinstance(sizes, Mapping):
        expected = "a mapping of sizes to ranges, lists, arrays or expressions"
        raise ParamcountError(f"is of type {type(sizes).__name__}", where="sizes", expected=expected)
    return {str(name): make_axis(value, make_printable(str(name), 60)) for name, value in sizes.items()}


def make_axis(value: Any, where: str) -> Axis:
    """What a value from Python states."""
    if isinstance(value, str):
        return parse_axis(value, where)
    if is_array(value):
        if value.ndim > 1 or value.dtype.kind not in "iub":
            found = f"is an array of {value.dtype} with {value.ndim} axes"
            raise ParamcountError(found, where=where, expected="a one-dimensional array of integers")
        value = value.reshape(-1).tolist()
    if not isinstance(value, (list, tuple, range)):
        value = [value]
    if len(value) > MOST_VALUES:
        raise ParamcountError(f"has {len(value):,} values", where=where, expected=f"at most {MOST_VALUES:,}")
    if not len(value):
        raise ParamcountError("has no values", where=where, expected="at least one")
    return value if isinstance(value, range) else tuple(make_value(item, where) for item in value)


def make_value(item: object, where: str) -> object:
    """One value of a list: what a config may have, with lists as tuples."""
    if hasattr(item, "item") and not isinstance(item, (str, bytes)):  # a number of NumPy
        item = item.item()
    if isinstance(item, (list, tuple)):
        return tuple(item)
    if item is None or isinstance(item, (bool, int, str)):
        return item
    expected = "integers, true, false, None, strings or lists of them"
    raise ParamcountError(f"= {describe_value(item)}", where=where, expected=expected)


def order_expressions(expressions: Mapping[str, Expression]) -> Iterator[str]:
    """The sizes that expressions compute, each after those that it depends on.

    Raises: ParamcountError if expressions refer to each other in a circle.
    """
    done: set[str] = set()
    pending = list(expressions)
    while pending:
        ready = [size for size in pending if done.issuperset(expressions.keys() & expressions[size].names)]
        if not ready:
            first, *others = pending
            through = ", ".join(f"{size} = {expressions[size].text}" for size in others)
            found = f"= {expressions[first].text} depends on itself" + (f" through {through}" if through else "")
            expected = "expressions that do not refer to each other"
            raise ParamcountError(found, where=first, expected=expected)
        yield from ready
        done.update(ready)
        pending = [size for size in pending if size not in done]
