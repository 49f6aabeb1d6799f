"""Values of sizes as text: as they are typed, and as people read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from typing import Any

from paramcount.errors import ParamcountError, printable, quoted, shown
from paramcount.formats.strict_yaml import loads
from paramcount.output.ranges import joined, spelled
from paramcount.sizes import Sizes

MOST_PIECES = 6  # of a list that is told piece by piece
SETTING = "a size and its value, such as n_layers=40"
VALUE = "a whole number, true, false, null, a word or a list [a, b]"


def parsed(settings: Iterable[str]) -> dict[str, object]:
    """{size: value} of settings as they are typed. A value is YAML, so that lists, null, true and false are.

    >>> parsed(["n_layers=2", "layer_types=[full_attention, sliding_attention]", "window=null"])
    {'n_layers': 2, 'layer_types': ['full_attention', 'sliding_attention'], 'window': None}

    Raises: ParamcountError for what is no setting, and for a size that is set twice.
    """
    found: dict[str, object] = {}
    for setting in settings:
        name, _, text = (piece.strip() for piece in setting.partition("="))
        where = f"--set {printable(name, 60)}".strip()
        if not name:
            raise ParamcountError("names no size", where=where, expected=SETTING)
        if not text:
            raise ParamcountError("has no value", where=where, expected=SETTING)
        if name in found:
            raise ParamcountError("is given twice", where=where, expected="every size once")
        if not text.isprintable():
            raise ParamcountError(f"= {quoted(text)}", where=where, expected="printable text")
        try:
            found[name] = loads(f"value: {text}")["value"]
        except ParamcountError as error:
            raise ParamcountError(f"= {quoted(text)}: {error.found}", where=where, expected=VALUE) from None
    return found


def typed(value: object) -> str:
    """A value as it is typed, a long list only begun.

    >>> typed(True), typed((0, 1, 2))
    ('true', '[0, 1, …]')
    """
    if isinstance(value, (list, tuple)):
        return f"[{', '.join([*map(typed, value[:2]), *(['…'] if len(value) > 2 else [])])}]"
    return printable(value, 40) if isinstance(value, str) else shown(value)


def written(value: object) -> str:
    """A value as people read it; of a long list what recurs in it.

    >>> written(128256), written(None), written((0, 1, 2, 7))
    ('128,256', 'null', '0–2, 7')
    >>> written(("sliding", "full") * 12), written(("linear", "linear", "full") * 4 + ("linear",))
    ('12 × (sliding, full)', '4 × (2 × linear, full), linear')
    """
    if isinstance(value, (list, tuple)):
        rising = all(type(i) is int for i in value) and all(a < b for a, b in pairwise(value))
        return (", ".join(cut(spelled(joined((i, 1) for i in value)))) if rising else recurring([written(item) for item in value])) or "none"
    if isinstance(value, Sizes):
        return "given"
    return printable(value, 40) if isinstance(value, str) else f"{value:,}" if type(value) is int else shown(value)


def recurring(words: Sequence[str]) -> str:
    """A list as a pattern so many times over; where none recurs and it is long, how often each word stands in it."""
    n = len(words)
    for period in range(2, n // 2 + 1):
        if words[period:] == words[:-period] and len(runs(words[:period])) in range(2, MOST_PIECES + 1):
            return ", ".join([f"{n // period} × ({', '.join(runs(words[:period]))})", *runs(words[n - n % period :])])
    if len(runs(words)) <= MOST_PIECES:
        return ", ".join(runs(words))
    return f"{', '.join(cut([f'{words.count(word)} × {word}' for word in dict.fromkeys(words)]))} in turns"


def runs(words: Iterable[str]) -> list[str]:
    """Equal words behind one another together: 2 × linear, full."""
    lengths = [(word, len(list(alike))) for word, alike in groupby(words)]
    return [f"{n} × {word}" if n > 1 else word for word, n in lengths]


def cut(pieces: list[str]) -> list[str]:
    return [*pieces[: MOST_PIECES - 1], "…", pieces[-1]] if len(pieces) > MOST_PIECES else pieces


def in_json(value: Any) -> Any:
    """A value as JSON has it."""
    return value.model_dump(mode="json") if isinstance(value, Sizes) else list(value) if isinstance(value, tuple) else value
