"""ParamcountError, the only exception of the package, and helpers for its one-line messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, SupportsIndex

LONGEST = 200
# The beginnings of problems that continue a sentence whose subject is the place: "hidden_size is missing".
PREDICATES = (
    "= ", "is ", "has ", "cannot ", "contains ", "uses ", "was ", "does ", "names ", "lists ", "declares ",
    "overrides ", "starts ", "enables ", "requires ",
    "selects ", "became ", "responded ", "changed ", "belongs ", "asks ", "needs ", "ends ", "exceeds ", "repeats ",
)  # fmt: skip
MOST_LISTED = 5
SLIP = 0.84  # similarity of two names of which one may be a slip of the hand; git and vit have 0.67


class FieldName(NamedTuple):
    """The path of a size or another field in an error, such as "vision.n_heads".

    It stays data until the error is printed: a config.json and a zoo entry have different names for the same size.
    """

    path: str

    def __str__(self) -> str:
        return self.path

    def __add__(self, text: str | FieldName | Phrase) -> Phrase:  # type: ignore[override]
        return Phrase((self,)) + text

    def __radd__(self, text: str) -> Phrase:
        return Phrase((text, self))


class Argument(NamedTuple):
    """An argument of the Python API in an error, which the command line calls an option.

    >>> str(Argument("download", "True")), Argument("kv_dtype").option
    ('download=True', '--kv-dtype')
    """

    name: str
    value: str = ""  # in Python; an option without one is a flag

    def __str__(self) -> str:
        return f"{self.name}={self.value}" if self.value else self.name

    def __add__(self, text: str | FieldName | Phrase) -> Phrase:  # type: ignore[override]
        return Phrase((self,)) + text

    def __radd__(self, text: str) -> Phrase:
        return Phrase((text, self))

    @property
    def option(self) -> str:
        return f"--{self.name.replace('_', '-')}"


class Phrase(NamedTuple):
    """A text that contains names of fields or arguments. It is made by adding them to strings.

    >>> str("= 3 does not divide " + FieldName("n_heads") + " = 8")
    '= 3 does not divide n_heads = 8'
    """

    parts: tuple[str | FieldName | Argument, ...]

    def __str__(self) -> str:
        return "".join(map(str, self.parts))

    def __add__(self, text: str | FieldName | Argument | Phrase) -> Phrase:  # type: ignore[override]
        return Phrase((*self.parts, *make_phrase(text).parts))

    def __radd__(self, text: str) -> Phrase:
        return Phrase((text, *self.parts))

    def list_paths(self) -> list[str]:
        """The paths of the fields, in order."""
        return [part.path for part in self.parts if isinstance(part, FieldName)]

    def rename(self, find_name: Callable[[str], FieldName | str]) -> Phrase:
        """The same text with other names for its fields."""
        return Phrase(tuple(find_name(part.path) if isinstance(part, FieldName) else part for part in self.parts))

    def name_options(self) -> Phrase:
        """The same text for the command line."""
        return Phrase(tuple(part.option if isinstance(part, Argument) else part for part in self.parts))


Text = str | FieldName | Argument | Phrase


def make_phrase(text: Text) -> Phrase:
    """A text as a Phrase."""
    return text if isinstance(text, Phrase) else Phrase((text,) if text else ())


class ParamcountError(ValueError):
    """Raised for every input that paramcount cannot answer exactly.

    The message is a single printable line whatever the input contained, so it is safe to print on a terminal.

    Args:
        found: What is wrong; it follows `where` without a colon if it begins with "= " or a verb.
        where: The field, key, option or file that is wrong.
        expected: What would be valid, in words.
        choices: All valid values, if they can be listed. The message lists the first five if `expected` is empty.
        sizes: The numbers that do not fit together, for code that looks for a combination that does.
        nearest: Valid names that are close to the invalid one.

    >>> print(ParamcountError("= 0", where="config.n_heads", expected="an integer of at least 1"))
    config.n_heads = 0 (expected an integer of at least 1)
    >>> print(ParamcountError("= 3 does not divide n_heads = 8", where="n_kv_heads", choices=(1, 2, 4, 8)))
    n_kv_heads = 3 does not divide n_heads = 8 (expected 1, 2, 4 or 8)
    """

    def __init__(
        self,
        found: Text,
        *,
        where: Text = "",
        expected: Text = "",
        choices: Iterable[object] = (),
        sizes: Iterable[int] = (),
        nearest: Iterable[str] = (),
    ) -> None:
        self.choices, self.sizes, self.nearest = tuple(choices), tuple(sizes), tuple(nearest)[:MOST_LISTED]
        self._found, self._where = make_phrase(found), make_phrase(where)
        self._expected = make_phrase(expected or list_choices(self.choices))
        paths = self._where.list_paths()
        block = paths[0].rpartition(".")[0] + "." if paths else ""  # the other names are relative to it

        def shorten(path: str) -> str:
            return path.removeprefix(block)

        first = next((i for i, part in enumerate(self._where.parts) if isinstance(part, FieldName)), 0) + 1
        rest = Phrase(self._where.parts[first:]).rename(shorten)
        self.where = str(Phrase(self._where.parts[:first]) + rest)
        self.found, self.expected = str(self._found.rename(shorten)), str(self._expected.rename(shorten))
        message = join_place(self.where, self.found) if self.where else self.found
        if self.expected:
            message += f" (expected {self.expected})"
        if self.nearest:
            message += f"; did you mean {join_words(self.nearest)}?"
        super().__init__(make_printable(message, 4 * LONGEST))

    @property
    def accepted(self) -> str:
        """Deprecated alias of `expected`, until 0.3."""
        return self.expected

    def list_paths(self) -> list[str]:
        """The paths of the fields that the error is about, the wrong one first."""
        return list(dict.fromkeys((*self._where.list_paths(), *self._found.list_paths())))

    def rename(self, find_name: Callable[[str], FieldName | str]) -> ParamcountError:
        """The same error with other names for its fields.

        >>> print(ParamcountError("= 0", where=FieldName("n_heads")).rename({"n_heads": "num_heads"}.__getitem__))
        num_heads = 0
        """
        found, where, expected = (text.rename(find_name) for text in (self._found, self._where, self._expected))
        return self.replace(found=found, where=where, expected=expected)

    def name_options(self) -> ParamcountError:
        """The same error for the command line: it names options in place of arguments.

        >>> error = ParamcountError("is not cached", where="a/b", expected=Argument("download", "True"))
        >>> print(error, "|", error.name_options())
        a/b is not cached (expected download=True) | a/b is not cached (expected --download)
        """
        found, where, expected = (text.name_options() for text in (self._found, self._where, self._expected))
        return self.replace(found=found, where=where, expected=expected)

    def add_location(self, place: str) -> ParamcountError:
        """The same error with a file or line before its field.

        >>> print(ParamcountError("= 0", where="n_heads").add_location("config.json"))
        config.json: n_heads = 0
        """
        return self.replace(where=f"{place}: " + self._where if self.where else place)

    def remove_location(self, place: str) -> ParamcountError:
        """The same error without the file or line before its field.

        >>> error = ParamcountError("= 0", where=FieldName("n_heads")).add_location("config.json")
        >>> print(error.remove_location("config.json"))
        n_heads = 0
        """
        first, *rest = self._where.parts or ("",)
        if first == place:
            return self.replace(where=Phrase(tuple(rest)))
        if isinstance(first, str) and first.startswith(f"{place}: "):
            return self.replace(where=Phrase((first.removeprefix(f"{place}: "), *rest)))
        return self

    def add_block(self, block: str) -> ParamcountError:
        """The same error with its fields inside `block`.

        >>> print(ParamcountError("= 0", where="n_heads").add_block("config"))
        config.n_heads = 0
        """
        error = self.rename(lambda path: FieldName(f"{block}.{path}"))
        if self._where.list_paths():
            return error
        return error.replace(where=f"{block}.{self.where}" if self.where else block)

    def replace(
        self,
        *,
        found: Text | None = None,
        where: Text | None = None,
        expected: Text | None = None,
        nearest: Iterable[str] | None = None,
    ) -> ParamcountError:
        """The same error with some of its parts replaced."""
        return type(self)(
            self._found if found is None else found,
            where=self._where if where is None else where,
            expected=self._expected if expected is None else expected,
            choices=self.choices,
            sizes=self.sizes,
            nearest=self.nearest if nearest is None else nearest,
        )


def join_place(place: object, problem: str) -> str:
    """A place and what is wrong there.

    >>> join_place("hidden_size", "is missing"), join_place("config.json", "invalid JSON")
    ('hidden_size is missing', 'config.json: invalid JSON')
    """
    return f"{place} {problem}" if problem.startswith(PREDICATES) else f"{place}: {problem}"


def make_choice_error(value: object, choices: Iterable[str], *, where: Text) -> ParamcountError:
    """The error for a value that is not one of `choices`, with the nearest of them.

    >>> print(make_choice_error("fulll", ("full", "sliding"), where="layer_types.0"))
    layer_types.0 = 'fulll' (expected full or sliding); did you mean full?
    """
    names = tuple(choices)
    expected, nearest = list_names(names, value), find_nearest(value, names)
    return ParamcountError(f"= {describe_value(value)}", where=where, expected=expected, choices=names, nearest=nearest)


def make_extra_error(feature: str | Argument, extra: str) -> ParamcountError:
    """The error for a feature whose optional dependencies are not installed.

    >>> print(make_extra_error("a plot", "plot"))
    a plot needs the [plot] extra: pip install 'paramcount[plot]'
    """
    return ParamcountError(feature + f" needs the [{extra}] extra: pip install 'paramcount[{extra}]'")


@contextmanager
def locate_errors(place: object) -> Iterator[None]:
    """Errors inside have a file or line before their field."""
    try:
        yield
    except ParamcountError as error:
        raise error.add_location(make_printable(place)) from None


class ConfigWarning(UserWarning):
    """A config.json may not mean what its author intended: a key is misspelt or a size is missing."""


def show_warnings(texts: Sequence[str]) -> None:
    """Emit each text as a ConfigWarning that points at the first caller outside this package."""
    import sys
    import warnings

    frame, level = sys._getframe(), 1
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == __name__.partition(".")[0]:
        frame, level = frame.f_back, level + 1
    for text in texts:
        warnings.warn(text, ConfigWarning, stacklevel=level)


def make_strict_error(warnings: Sequence[str]) -> ParamcountError:
    """The error that --strict or strict=True makes of warnings.

    >>> print(make_strict_error(["hidden_size is missing", "ignored hiden_size"]))
    strict: hidden_size is missing (and 1 more warning)
    """
    more = len(warnings) - 1
    others = f" (and {more} more warning{'s' * (more > 1)})" if more else ""
    return ParamcountError(warnings[0] + others, where="strict")


def make_printable(text: object, longest: int = LONGEST) -> str:
    """`text` on one line, with control characters escaped and the middle of a long text replaced by "…".

    Terminal escapes, line breaks and text direction marks count as control characters.

    >>> make_printable("a\\x1b[31m" + "b" * 300, longest=16)
    'a\\\\x1b[3…bbbbbbbb'
    """
    try:
        line = str(text)
    except ValueError:  # Python refuses to print integers of more than 4,300 digits
        line = f"a value of type {type(text).__name__}"
    if len(line) > 2 * longest:
        line = line[:longest] + line[-longest:]
    escaped = line if line.isprintable() else "".join(map(_escape, line))
    return escaped if len(escaped) <= longest else f"{escaped[: longest // 2 - 1]}…{escaped[-(longest // 2) :]}"


def _escape(c: str) -> str:
    return c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode("ascii")


def find_nearest(word: object, names: Iterable[str], most: int = 3) -> tuple[str, ...]:
    """The names nearest to a misspelt one, best first; slips of the hand alone, if there are any.

    >>> find_nearest("n_hedas", ["n_heads", "n_layers", "d_model"])
    ('n_heads',)
    """
    from difflib import get_close_matches  # slow to import, and only errors need it

    typed, known = make_printable(word), list(dict.fromkeys(names))
    return tuple(get_close_matches(typed, known, most, SLIP) or get_close_matches(typed, known, most))


def find_related(word: str, names: Iterable[str], most: int = 3) -> tuple[str, ...]:
    """The names that a word may mean, best first: the same one otherwise spelled, the same family, then a slip of the
    hand. A name that only looks alike is none: a wrong suggestion is worse than none.

    >>> find_related("qwen3-moe", ["qwen2_moe", "qwen3", "qwen3_moe", "glm4_moe"])
    ('qwen3_moe', 'qwen2_moe', 'qwen3')
    >>> find_related("lama", ["llama", "mamba"]), find_related("claude", ["luke"]), find_related("vit", ["git"])
    (('llama',), (), ())
    """
    from difflib import SequenceMatcher  # slow to import, and only errors need it

    typed = make_printable(word)
    key, stem = _squeeze(typed), _find_stem(typed)
    scores: dict[str, float] = {}
    for name in dict.fromkeys(names):
        other = _squeeze(name)
        ratio = SequenceMatcher(None, key, other).ratio()
        if key and key == other:
            scores[name] = 3
        elif stem and stem == _find_stem(name):
            scores[name] = 1 + ratio
        elif ratio >= SLIP or (len(key) > 3 and _is_slip(key, other)):
            scores[name] = ratio
    return tuple(sorted(scores, key=lambda name: -scores[name])[:most])


def _is_slip(key: str, other: str) -> bool:
    """Whether letters changed places, or one behind the first is another."""
    one_differs = len(key) == len(other) and key[0] == other[0] and sum(a != b for a, b in zip(key, other)) == 1
    return one_differs or sorted(key) == sorted(other)


def _squeeze(name: str) -> str:
    """A name without case and without what separates its words.

    >>> _squeeze("GPT_NeoX")
    'gptneox'
    """
    return "".join(c for c in name.casefold() if c.isalnum())


def _find_stem(name: str) -> str:
    """The word that a name shares with its family: the letters that it begins with, at least three.

    >>> _find_stem("qwen2_5_vl"), _find_stem("deepseek-v3"), _find_stem("t5"), _find_stem("wav2vec2")
    ('qwen', 'deepseek', '', 'wav')
    """
    letters = ""
    for c in name.casefold():
        if not c.isalpha():
            break
        letters += c
    return letters if len(letters) > 2 else ""


def join_words(words: Iterable[object], conjunction: str = "or") -> str:
    """Words joined as in a sentence.

    >>> join_words((1, 2, 4)), join_words(["q", "k"], "and"), join_words(["q"])
    ('1, 2 or 4', 'q and k', 'q')
    """
    *first, last = [str(word) for word in words] or [""]
    return f"{', '.join(first)} {conjunction} {last}" if first else last


def count_noun(n: int, noun: str) -> str:
    """A number with its noun.

    >>> count_noun(1, "layer"), count_noun(2, "entry"), count_noun(1200, "layer")
    ('1 layer', '2 entries', '1,200 layers')
    """
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{n:,} {noun if n == 1 else plural}"


def list_choices(choices: Sequence[object]) -> str:
    """The valid values as text, shortened to the first five and "…".

    >>> list_choices((1, 2, 4, 8)), list_choices(range(9))
    ('1, 2, 4 or 8', '0, 1, 2, 3, 4, …')
    """
    if len(choices) <= MOST_LISTED:
        return join_words(choices)
    return ", ".join([*map(str, choices[:MOST_LISTED]), "…"])


def list_names(names: Iterable[str], word: object = "") -> str:
    """The valid names as text, shortened to the five nearest to `word` and the number of others.

    >>> list_names(("a", "b"))
    'a or b'
    >>> list_names(("n_heads", "n_layers", "d_model", "d_ff", "d_head", "tied", "window"), "n_head")
    'n_heads, d_head, n_layers, tied, window or 2 others'
    """
    from difflib import SequenceMatcher  # slow to import, and only errors need it

    distinct, typed = list(dict.fromkeys(names)), make_printable(word)
    if len(distinct) <= MOST_LISTED:
        return join_words(distinct)
    nearest = sorted(distinct, key=lambda name: -SequenceMatcher(None, typed, name).ratio())[:MOST_LISTED]
    others = len(distinct) - MOST_LISTED
    return join_words([*nearest, f"{others} other{'s' * (others > 1)}"])


def list_numbers(numbers: Sequence[int], near: int) -> str:
    """The valid numbers as text, shortened to the five nearest to `near` and "…".

    >>> list_numbers((1, 2, 3, 4, 6, 8, 12, 16, 24, 48, 96), 7)
    '2, 3, 4, 6, 8, …'
    """
    by_distance = sorted(numbers, key=lambda n: abs(n - near))
    return list_choices([*sorted(by_distance[:MOST_LISTED]), *by_distance[MOST_LISTED:]])


def describe_integer(least: int | None = None) -> str:
    """An integer with its lower bound, as an error expects it.

    >>> describe_integer(), describe_integer(0), describe_integer(1), describe_integer(4)
    ('an integer', 'a non-negative integer', 'a positive integer', 'an integer of at least 4')
    """
    phrases = {None: "an integer", 0: "a non-negative integer", 1: "a positive integer"}
    return phrases.get(least, f"an integer of at least {least}")


def quote(text: str) -> str:
    """A string in quotes, escaped and at most 60 characters long.

    >>> print(quote("a\\x1b[31m"))
    'a\\x1b[31m'
    """
    return make_printable(repr(text), 60)


def format_shape(sizes: Iterable[object], marked: int | None = None) -> str:
    """A shape as text. `marked`: the index of an axis to highlight.

    >>> format_shape((1024, 768)), format_shape(("source", 512)), format_shape((1024, 768), -1)
    ('[1024, 768]', '[source, 512]', '[1024, ‹768›]')
    """
    axes = [make_printable(n, 60) for n in sizes]
    if marked is not None:
        axes[marked] = f"‹{axes[marked]}›"
    return f"[{', '.join(axes)}]"


def describe_value(value: object) -> str:
    """A value from a file as text: strings are quoted, and only the first items of a list are shown.

    >>> describe_value("12"), describe_value(True), describe_value(None), describe_value(7)
    ("'12'", 'true', 'null', '7')
    >>> describe_value([1, "a", [2], 3]), describe_value({"a": 1}), describe_value([])
    ("[1, 'a', […], …]", '{…}', '[]')
    """
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return quote(value)
        case dict():
            return "{…}" if value else "{}"
        case list() | tuple():
            shown = ["[…]" if item and isinstance(item, (list, tuple)) else describe_value(item) for item in value[:3]]
            return f"[{', '.join([*shown, '…'] if len(value) > 3 else shown)}]"
        case int() if abs(value) >= 10**30:
            return "a number of more than 30 digits"
        case int() | float():
            return make_printable(value, 60)
        case SupportsIndex():  # a size that is a symbol
            return str(value)
        case _:
            return f"a value of type {make_printable(type(value).__name__, 60)}"
