"""The one exception of the package: one line that says where, what was found, what is expected and what is nearest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

LONGEST = 200
MOST_SUGGESTED = 5


class ParamcountError(ValueError):
    """Raised for every input that cannot be answered exactly.

    The message is always a single printable line, whatever the input held, so that it is safe on a terminal.

    >>> print(ParamcountError("= 0", where="config.n_heads", expected="a whole number from 1"))
    config.n_heads = 0 (expected a whole number from 1)
    """

    def __init__(self, found: str, *, where: str = "", expected: str = "", nearest: Iterable[str] = ()) -> None:
        self.found, self.where, self.expected, self.nearest = found, where, expected, tuple(nearest)[:MOST_SUGGESTED]
        message = f"{where}{' ' if found.startswith('= ') else ': '}{found}" if where else found
        if expected:
            message += f" (expected {expected})"
        if self.nearest:
            message += f"; did you mean {' or '.join(self.nearest)}?"
        super().__init__(make_printable(message, 4 * LONGEST))

    @property
    def accepted(self) -> str:
        """Deprecated alias of `expected`, until 0.3."""
        return self.expected

    def at(self, place: str) -> ParamcountError:
        """The same error, found in `place`: a file, a line."""
        where = f"{place}: {self.where}" if self.where else place
        return ParamcountError(self.found, where=where, expected=self.expected, nearest=self.nearest)

    def inside(self, block: str) -> ParamcountError:
        """The same error, in a field of `block`.

        >>> print(ParamcountError("= 0", where="n_heads").inside("config"))
        config.n_heads = 0
        """
        where = f"{block}.{self.where}" if self.where else block
        return ParamcountError(self.found, where=where, expected=self.expected, nearest=self.nearest)


class ConfigWarning(UserWarning):
    """A config.json may not say what its author meant: a key is misspelt, or a size is missing. Python's `warnings` shows it."""


def show_warnings(texts: Sequence[str]) -> None:
    """Show each text as a ConfigWarning of the caller's line, the first outside of this package."""
    import sys
    import warnings

    frame, level = sys._getframe(), 1
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == __name__.partition(".")[0]:
        frame, level = frame.f_back, level + 1
    for text in texts:
        warnings.warn(text, ConfigWarning, stacklevel=level)


def make_strict_error(warnings: Sequence[str]) -> ParamcountError:
    """The error that warnings are with --strict or strict=True.

    >>> print(make_strict_error(["hidden_size is missing", "ignored hiden_size"]))
    strict: hidden_size is missing (and 1 more warning)
    """
    more = len(warnings) - 1
    others = f" (and {more} more warning{'s' * (more > 1)})" if more else ""
    return ParamcountError(warnings[0] + others, where="strict")


def make_printable(text: object, longest: int = LONGEST) -> str:
    """`text` on one line: control characters (terminal escapes, line breaks, text direction) escaped, the middle of a long one cut.

    >>> make_printable("a\\x1b[31m" + "b" * 300, longest=16)
    'a\\\\x1b[3…bbbbbbbb'
    """
    try:
        line = str(text)
    except ValueError:  # a number of more digits than Python prints
        line = f"a value of type {type(text).__name__}"
    if len(line) > 2 * longest:
        line = line[:longest] + line[-longest:]
    escaped = line
    if not line.isprintable():
        escaped = "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode("ascii") for c in line)
    return escaped if len(escaped) <= longest else f"{escaped[: longest // 2 - 1]}…{escaped[-(longest // 2) :]}"


def find_nearest(word: object, known: Iterable[str], most: int = 3) -> tuple[str, ...]:
    """The known words nearest to a misspelt one, best first.

    >>> find_nearest("n_hedas", ["n_heads", "n_layers", "d_model"])
    ('n_heads',)
    """
    from difflib import get_close_matches  # only when something is already wrong

    return tuple(get_close_matches(make_printable(word), list(known), n=most, cutoff=0.6))


def list_names(known: Iterable[str], word: object = "") -> str:
    """Names in a list, of a long one the five nearest to a word and how many there are.

    >>> list_names(["a", "b"]), list_names(["n_heads", "n_layers", "d_model", "d_ff", "d_head", "tied", "window"], "n_head")
    ('a, b', 'n_heads, d_head, n_layers, tied, window, … 7 in all')
    """
    from difflib import SequenceMatcher  # only when something is already wrong

    names, typed = list(dict.fromkeys(known)), make_printable(word)
    if len(names) <= MOST_SUGGESTED:
        return ", ".join(names)
    nearest = sorted(names, key=lambda name: -SequenceMatcher(None, typed, name).ratio())[:MOST_SUGGESTED]
    return f"{', '.join(nearest)}, … {len(names)} in all"


def quote(text: str) -> str:
    """A text in quotes as an error message prints it.

    >>> print(quote("a\\x1b[31m"))
    'a\\x1b[31m'
    """
    return make_printable(repr(text), 60)


def format_shape(values: Iterable[object]) -> str:
    """Sizes as people write a shape.

    >>> format_shape((1024, 768))
    '[1024, 768]'
    """
    return f"[{', '.join(map(str, values))}]"


def describe_value(value: object) -> str:
    """A value from a file as an error message prints it: its type named where the text alone would mislead.

    >>> describe_value("12"), describe_value(True), describe_value(None), describe_value(7)
    ("the text '12'", 'true', 'null', '7')
    """
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return f"the text {quote(value)}"
        case dict():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case int() if abs(value) >= 10**30:
            return "a number of more than 30 digits"
        case int() | float():
            return make_printable(value, 60)
        case _:
            return f"a value of type {make_printable(type(value).__name__, 60)}"
