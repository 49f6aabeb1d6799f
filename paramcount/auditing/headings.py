"""Parses column headings, ignoring case, spaces, underscores and filler words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from paramcount.errors import MOST_LISTED, join_words

LONGEST = 200

TABLE = Path(__file__).with_name("headings.txt").read_text(encoding="utf-8").splitlines()[1:]
# {quantity: (display name, usual headings, each as one word)}
COLUMNS = {kind: (label, words.split()) for kind, label, words in (line.split(" | ") for line in TABLE)}
LABELS = {kind: label for kind, (label, _) in COLUMNS.items()}
KINDS = {word: kind for kind, (_, words) in COLUMNS.items() if kind != "bytes" for word in words}
SIZES = frozenset(COLUMNS["bytes"][1])
COUNTS = ("total", "active", "non_embedding")

BYTES = {  # per value
    "fp32": 4, "float32": 4, "f32": 4, "32bit": 4, "fp16": 2, "float16": 2, "f16": 2, "bf16": 2, "bfloat16": 2,
    "half": 2, "16bit": 2, "fp8": 1, "float8": 1, "f8": 1, "int8": 1, "8bit": 1,
}  # fmt: skip
# Number formats whose files also contain scales
PACKED = ("int4", "4bit", "nf4", "fp4", "mxfp4", "nvfp4", "q4", "q8", "gptq", "awq", "gguf")
DECIMAL = {"kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
BINARY = {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
UNITS = {
    "k": 10**3, "thousand": 10**3, "thousands": 10**3, "m": 10**6, "mn": 10**6, "million": 10**6, "millions": 10**6,
    "b": 10**9, "bn": 10**9, "g": 10**9, "billion": 10**9, "billions": 10**9,
    "t": 10**12, "tn": 10**12, "trillion": 10**12, "trillions": 10**12,
}  # fmt: skip
NUMBERING = frozenset({"n", "num", "number", "no", "nr", "of", "the", "count"})
FILLERS = NUMBERING | {
    "in", "per", "each", "token", "tok", "tokens", "approx", "approximate", "est", "estimated", "total",
}  # fmt: skip
BRACKET_FILLERS = FILLERS | {"q", "kv", "gqa", "mha", "mqa"}  # do not change the meaning inside brackets
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_]+")


class Heading(NamedTuple):
    """The meaning of a column of a table."""

    text: str  # as written in the table
    kind: str | None  # one of COLUMNS; None if unrecognised
    unit: int = 1  # from "(M)" or "(GB)", for cells without a unit
    width: int | None = None  # bytes per value, for file sizes with a data type
    dtype: str = ""  # as written, for file sizes
    decimal_comma: bool = False  # whether the table uses decimal commas: 7,61 and 4.096

    @property
    def label(self) -> str:
        """The display name of the column, with its unit."""
        if self.kind is None:
            return self.text
        units = (DECIMAL | BINARY) if self.kind == "bytes" else UNITS
        unit = next((name for name, size in units.items() if size == self.unit > 1), "")
        in_units = f"({unit.upper().replace('I', 'i')})" if unit else ""
        return " ".join(filter(None, (LABELS[self.kind], self.dtype.upper(), in_units)))


def parse_heading(text: str) -> Heading:
    """The meaning of a heading.

    >>> [parse_heading(text).kind for text in ("num_key_value_heads", "Hidden Size", "batch size")]
    ['n_kv_heads', 'd_model', None]
    >>> parse_heading("# Params (M)")[1:3]
    ('total', 1000000)
    >>> parse_heading("size_fp16")[1:4], parse_heading("FP32 (GB)")[1:4]
    (('bytes', 1, 2), ('bytes', 1000000000, 4))
    """
    name = text[:LONGEST].strip().strip("*`_ ")
    outside, inside = split_brackets(name)
    words = outside + inside
    dtype = next((word for word in words if word in BYTES or word in PACKED), "")
    measure = next((word for word in words if word in DECIMAL or word in BINARY), "")
    if dtype or measure:
        rest = "".join(word for word in words if word not in (dtype, measure) and word not in FILLERS)
        is_size = not rest or rest in SIZES
        return Heading(name, "bytes" if is_size else None, (DECIMAL | BINARY).get(measure, 1), BYTES.get(dtype), dtype)
    unit = next((UNITS[word] for word in inside if word in UNITS), 1)
    inside = [word for word in inside if word not in UNITS]
    kind = find_kind(outside + inside) or find_kind(outside + [word for word in inside if word not in BRACKET_FILLERS])
    if kind is None and outside[-1:] and outside[-1] in UNITS:  # params_b: parameters in billions
        kind, unit = find_kind(outside[:-1] + inside), UNITS[outside[-1]]
        return Heading(name, kind, unit) if kind in COUNTS else Heading(name, None)
    if kind is None and "".join(words) in SIZES:
        kind = "bytes"
    return Heading(name, kind, unit)


def find_kind(words: Sequence[str]) -> str | None:
    """The quantity that the words name, with or without filler words."""
    candidates = ("".join(word for word in words if word not in ignored) for ignored in ((), NUMBERING, FILLERS))
    return next((KINDS[word] for word in candidates if word in KINDS), None)


def split_brackets(text: str) -> tuple[list[str], list[str]]:
    outside: list[str] = []
    inside: list[str] = []
    depth = 0
    for piece in re.split(r"([()\[\]])", re.sub(r"[{}$\\]", "", text)):
        if piece in ("(", "["):
            depth += 1
        elif piece in (")", "]"):
            depth = max(0, depth - 1)
        else:
            (inside if depth else outside).extend(split_words(piece))
    return outside, inside


def split_words(text: str) -> list[str]:
    """Lower-case words; "nLayers" is two words, a data type is one.

    >>> split_words("num_hidden_layers"), split_words("size_fp16"), split_words("KVHeads")
    (['num', 'hidden', 'layers'], ['size', 'fp16'], ['kv', 'heads'])
    """
    words: list[str] = []
    for run in re.split(r"[\s_\-/#.,:|+]+", text):
        is_one_word = run.casefold() in (*BYTES, *PACKED, *BINARY)
        words += [run.casefold()] if is_one_word else [word.casefold() for word in WORD.findall(run)]
    return words


def describe_expected() -> str:
    """The recognised columns, for an error message."""
    labels = [label for kind, label in LABELS.items() if kind not in ("model", "tied")][:MOST_LISTED]
    return f"a column named model and others such as {join_words(labels)}"
