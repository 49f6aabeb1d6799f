"""Values of sizes as text: parsed and formatted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

from paramcount.errors import ParamcountError, describe_value, make_printable, quote
from paramcount.formats.strict_yaml import parse_yaml
from paramcount.output.ranges import format_ranges, join_ranges
from paramcount.sizes import Sizes
from paramcount.symbolic.quantities import parse_quantity

MOST_PIECES = 6  # of a list before it is shortened
SETTING = "a size and its value, such as n_layers=40"
VALUE = "an integer, true, false, null, a string or a list [a, b]"


def parse_settings(settings: Iterable[str]) -> dict[str, object]:
    """{size: value} of `size=value` settings. Values are YAML: integers, lists, null, true and false; integers may have
    a suffix.

    >>> parse_settings(["n_layers=2", "layer_types=[full_attention, sliding_attention]", "window=null"])
    {'n_layers': 2, 'layer_types': ['full_attention', 'sliding_attention'], 'window': None}
    >>> parse_settings(["vocab_size=50k", "n_positions=8k"])
    {'vocab_size': 50000, 'n_positions': 8192}

    Raises: ParamcountError for an invalid setting, and for a size that is set twice.
    """
    values: dict[str, object] = {}
    for setting in settings:
        name, _, text = (piece.strip() for piece in setting.partition("="))
        where = f"--set {make_printable(name, 60)}".strip()
        if not name:
            raise ParamcountError("does not name a size", where=where, expected=SETTING)
        if not text:
            raise ParamcountError("has no value", where=where, expected=SETTING)
        if name in values:
            raise ParamcountError("is given twice", where=where, expected="each size once")
        if not text.isprintable():
            raise ParamcountError(f"= {quote(text)}", where=where, expected="a string of printable characters")
        try:
            quantity = None if text.isdecimal() else parse_quantity(text, name)
            values[name] = parse_yaml(f"value: {text}")["value"] if quantity is None else quantity
        except ParamcountError as error:
            raise ParamcountError(f"= {quote(text)}: {error.found}", where=where, expected=VALUE) from None
    return values


def format_input(value: object) -> str:
    """A value as input syntax; long lists are shortened.

    >>> format_input(True), format_input((0, 1, 2))
    ('true', '[0, 1, …]')
    """
    if isinstance(value, (list, tuple)):
        items = [format_input(item) for item in value[:2]]
        return f"[{', '.join([*items, '…'] if len(value) > 2 else items)}]"
    return make_printable(value, 40) if isinstance(value, str) else describe_value(value)


def format_size(value: object) -> str:
    """A value as text; long lists show their repeating pattern.

    >>> format_size(128256), format_size(None), format_size((0, 1, 2, 7))
    ('128,256', 'null', '0–2, 7')
    >>> format_size(("sliding", "full") * 12), format_size(("linear", "linear", "full") * 4 + ("linear",))
    ('12 × (sliding, full)', '4 × (2 × linear, full), linear')
    """
    if isinstance(value, (list, tuple)):
        is_ascending = all(type(i) is int for i in value) and all(a < b for a, b in pairwise(value))
        if is_ascending:
            return ", ".join(shorten_list(format_ranges(join_ranges((i, 1) for i in value)))) or "none"
        return summarize_list([format_size(item) for item in value])
    if isinstance(value, Sizes):
        return "given"
    if isinstance(value, str):
        return make_printable(value, 40)
    return f"{value:,}" if type(value) is int else describe_value(value)


def summarize_list(words: Sequence[str]) -> str:
    """A list as a repeated pattern; a long list without a pattern as the number of each item."""
    n = len(words)
    for period in range(2, n // 2 + 1):
        is_periodic = words[period:] == words[:-period]
        pattern = group_runs(words[:period]) if is_periodic else []
        if 2 <= len(pattern) <= MOST_PIECES:
            return ", ".join([f"{n // period} × ({', '.join(pattern)})", *group_runs(words[n - n % period :])])
    runs = group_runs(words)
    if len(runs) <= MOST_PIECES:
        return ", ".join(runs)
    numbers = [f"{words.count(word)} × {word}" for word in dict.fromkeys(words)]
    return f"{', '.join(shorten_list(numbers))} in mixed order"


def group_runs(words: Iterable[str]) -> list[str]:
    """Consecutive equal items as one: 2 × linear, full."""
    lengths = [(word, len(list(run))) for word, run in groupby(words)]
    return [f"{n} × {word}" if n > 1 else word for word, n in lengths]


def shorten_list(pieces: list[str]) -> list[str]:
    """A list, shortened to its first items and its last one."""
    return [*pieces[: MOST_PIECES - 1], "…", pieces[-1]] if len(pieces) > MOST_PIECES else pieces


def to_json(value: Any) -> Any:
    if isinstance(value, Sizes):
        return {name: to_json(inner) for name, inner in value.__dict__.items()}
    return list(value) if isinstance(value, tuple) else value


def flatten(values: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """(path, value) of every value in nested mappings; an empty mapping is a value.

    >>> dict(flatten({"n_layers": 2, "vision": {"d_model": 8}}))
    {'n_layers': 2, 'vision.d_model': 8}
    """
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
