"""GPT-2 with real weights: a text, its tokens, the NumPy pass, and the words that most likely come next.

Nothing is filled in: the tokens are the tokenizer's, the values the file's, and what does not fit is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from paramcount.errors import ParamcountError, describe_value, make_printable, quote
from paramcount.formats.files import read_text
from paramcount.formats.safetensors import Header, map_bits, read_array, read_header, widen_bf16
from paramcount.formats.strict_json import parse_json
from paramcount.formats.tokenizer import tokenize_text
from paramcount.gpt2.forward_pass import Array, forward, list_shapes, softmax

FLOATS = ("F64", "F32", "F16", "BF16")
PREFIX = "transformer."  # before every name but the head's, in what the reference saves
HEAD, TABLE = "lm_head.weight", "wte.weight"
LARGEST_INTERMEDIATE = 2**28  # values of one array of the pass; a GiB in float32
LARGEST_CONFIG = 4 << 20  # bytes
ROWS = 4096  # of two tables compared at a time
MOST_NAMES = 3  # tensors in an error
MOST_TOKENS = 40  # tokens in a line for people

# Keys of a config.json that change the numbers and no shape, and the values with which the pass computes what the reference does:
# the five names of GELU in its tanh form, and what the paper says.
COMPUTED: dict[str, tuple[Any, ...]] = {
    "activation_function": ("gelu_new", "gelu_fast", "gelu_accurate", "gelu_pytorch_tanh", "gelu_python_tanh"),
    "layer_norm_epsilon": (1e-5,),
    "scale_attn_weights": (True,),
    "scale_attn_by_inverse_layer_idx": (False,),
    "add_cross_attention": (False,),
    "tie_word_embeddings": (True,),
}


class NextWord(NamedTuple):
    """A token that may come next."""

    text: str | None  # None: a row of the table that no token has
    id: int
    probability: float


class Run(NamedTuple):
    """What a text became in a pass."""

    tokens: tuple[str, ...]  # as text: " capital"; what is no whole character, byte by byte
    ids: tuple[int, ...]
    shapes: tuple[tuple[str, tuple[int, ...]], ...]  # every intermediate that was made, in order
    next_words: tuple[NextWord, ...]  # likeliest first
    notes: tuple[str, ...]  # how the weights are stored, what of the file was not read


class Weights(Mapping[str, Array]):
    """The arrays of a file in float32 by the pass's names, each read when it is asked for, and only finite ones."""

    def __init__(self, header: Header, names: Mapping[str, str]) -> None:
        self.header, self.names = header, names

    def __getitem__(self, name: str) -> Array:
        found = read_array(self.header, self.names[name])
        values: Array = found.astype(np.float32, copy=False)
        least, most = values.min(), values.max()
        if not np.isfinite(least) or not np.isfinite(most):
            what = "values that are no numbers (NaN)" if np.isnan(least) else "infinite values" if np.isinf(found).any() else "values too large for float32"
            raise ParamcountError(f"holds {what}", where=f"{make_printable(self.header.path)}: tensor {self.names[name]}", expected="finite weights")
        return values

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def predict_next(
    sizes: Any,
    weights: Path,
    text: str,
    tokenizer: Path | None = None,
    *,
    top: int = 5,
    config: Mapping[str, Any] | None = None,
) -> Run:
    """The tokens of a text, every intermediate's shape and the likeliest next words, by the weights of a safetensors file.

    `sizes`: of a model of architecture gpt2. `tokenizer`: a tokenizer.json; without one, that beside the weights. `config`: further keys
    of the model's config.json, which must not ask for another computation than the pass's, as one beside the weights must not.

    Units: probabilities from 0 to 1, of float32 logits
    Raises: ParamcountError for whatever is wrong with the files, the text, or the weights in them.
    """
    if type(top) is not int or not 1 <= top <= sizes.vocab_size:
        raise ParamcountError(f"= {describe_value(top)}", where="top", expected=f"a whole number from 1 to {sizes.vocab_size}")
    if not sizes.tie_word_embeddings:
        raise ParamcountError("= false", where="tie_word_embeddings", expected="true: the head of the pass is the token table")
    _check_computation(config or {}, sizes, "config")
    beside = weights.parent / "config.json"
    header = read_header(weights)
    if beside.is_file():
        found = _read_json(beside)
        if found.get("model_type") == "gpt2":
            _check_computation(found, sizes, make_printable(beside))
    names, notes = match_tensors(header, sizes)
    ids, tokens, vocabulary = tokenize_text(tokenizer or _find_tokenizer(weights), text, most=sizes.n_positions)
    for i, (id, token) in enumerate(zip(ids, tokens)):
        if id >= sizes.vocab_size:
            rows = f"0 to {sizes.vocab_size - 1}, the rows of {TABLE}"
            raise ParamcountError(f"token {i}, {quote(token)}, has the id {id}", where="tokenizer", expected=rows)
    _check_memory(len(ids), sizes)
    made: list[tuple[str, tuple[int, ...]]] = []

    def observe(name: str, x: Array) -> None:
        if not np.isfinite(x).all():
            raise ParamcountError(f"{name} is not finite in float32", where=make_printable(weights), expected="weights of a trained model")
        made.append((name, x.shape))

    with np.errstate(all="ignore"):  # what is not finite is looked for
        logits = forward(Weights(header, names), ids, n_heads=sizes.n_heads, observe=observe)[-1]  # [vocab_size]
        shares = softmax(logits.astype(np.float64))  # [vocab_size]
    likeliest = np.argsort(-shares, kind="stable")[:top].tolist()
    next_words = tuple(NextWord(vocabulary.get(id), id, float(shares[id])) for id in likeliest)
    return Run(tokens, ids, tuple(made), next_words, notes)


def _read_json(path: Path) -> dict[str, Any]:
    text = read_text(path, "a config.json", LARGEST_CONFIG)
    try:
        return parse_json(text)
    except ParamcountError as error:
        raise error.at(make_printable(path)) from None


def _check_computation(config: Mapping[str, Any], sizes: Any, place: str) -> None:
    """That a config.json asks for nothing that the pass does otherwise.

    Raises: ParamcountError that names the key.
    """
    heads = dict.fromkeys(("n_head", "num_attention_heads"), (sizes.n_heads,))  # which no shape shows
    for key, expected in (COMPUTED | heads).items():
        if key in config and not any(type(config[key]) is type(value) and config[key] == value for value in expected):
            said = " or ".join(describe_value(value) if not isinstance(value, str) else value for value in expected)
            raise ParamcountError(f"= {describe_value(config[key])}", where=f"{place}: {key}", expected=f"{said}: what the pass computes")


def _find_tokenizer(weights: Path) -> Path:
    path = weights.parent / "tokenizer.json"
    if not path.exists():
        raise ParamcountError("there is none beside the weights", where=make_printable(path), expected="a tokenizer.json there, or --tokenizer FILE")
    return path


def _check_memory(n_tokens: int, sizes: Any) -> None:
    """That no array of the pass is beyond bounds. The largest: attention patterns, logits, the MLP's and the queries', keys' and values'."""
    widest = max(sizes.n_heads * n_tokens, sizes.vocab_size, sizes.d_ff, 3 * sizes.d_model)
    if n_tokens * widest > LARGEST_INTERMEDIATE:
        raise ParamcountError(f"{n_tokens:,} tokens make an array of {n_tokens * widest:,} values", where="text", expected=f"at most {LARGEST_INTERMEDIATE:,}")


def match_tensors(header: Header, sizes: Any) -> tuple[dict[str, str], tuple[str, ...]]:
    """{name in the pass: name in the file} of the weights, and notes on what else the file holds.

    Beside the weights there may be causal masks and a copy of the tied head.

    Raises: ParamcountError that names what is missing, unexpected, of another shape or type, or a head that is no copy.
    """
    place = make_printable(header.path)
    found: dict[str, str] = {}
    for name in header.tensors:
        if (short := name.removeprefix(PREFIX)) in found:
            raise ParamcountError(f"holds both {_format_names([found[short], name])}", where=place, expected="one of them")
        found[short] = name
    stored = {short: header.tensors[name] for short, name in found.items()}
    n_layers = sum(name.endswith(".ln_1.weight") for name in found)
    if TABLE in found and n_layers != sizes.n_layers:  # before names are made for all layers that there should be
        raise ParamcountError(f"holds {n_layers:,} layers", where=place, expected=f"{sizes.n_layers:,}, as the model has")
    if 6 * n_layers > len(found):
        raise ParamcountError(f"lacks most tensors of its {n_layers:,} layers", where=place, expected="twelve of each")
    expected = list_shapes(sizes) if TABLE in found else {TABLE: (sizes.vocab_size, sizes.d_model)}
    if missing := [name for name in expected if name not in found]:
        raise ParamcountError(f"lacks {_format_names(missing)}", where=place, expected="the tensors of GPT-2")
    for name, shape in expected.items():
        _check_shape(place, found[name], stored[name].shape, shape)
        if stored[name].dtype not in FLOATS:
            raise ParamcountError(f"is of type {stored[name].dtype}", where=f"{place}: tensor {found[name]}", expected=", ".join(FLOATS))
    masks = {f"h.{i}.attn.bias": (1, 1, sizes.n_positions, sizes.n_positions) for i in range(sizes.n_layers)}
    beside: dict[str, tuple[int, ...]] = masks | {f"h.{i}.attn.masked_bias": () for i in range(sizes.n_layers)} | {HEAD: expected[TABLE]}
    others = [name for name in found if name not in expected]
    if unknown := [found[name] for name in others if name not in beside]:
        raise ParamcountError(f"holds {_format_names(unknown)}", where=place, expected="the tensors of GPT-2, its causal masks and a copy of its head")
    for name in others:
        _check_shape(place, found[name], stored[name].shape, beside[name])
    if HEAD in found and not _has_same_values(header, found[HEAD], found[TABLE]):
        raise ParamcountError(f"{HEAD} differs from {found[TABLE]}", where=place, expected="a copy, as the head is tied to the token table")
    types = " and ".join(dict.fromkeys(stored[name].dtype for name in expected))
    notes = [f"weights stored as {types}, computed in float32"]
    if others:
        notes.append(f"in the file and not read: {_format_names([found[name] for name in others])}")
    return {name: found[name] for name in expected}, tuple(notes)


def _format_names(names: list[str]) -> str:
    """The first names, and how many more there are."""
    first = ", ".join(make_printable(name, 80) for name in names[:MOST_NAMES])
    return first if len(names) <= MOST_NAMES else f"{first} and {len(names) - MOST_NAMES:,} more"


def _check_shape(place: str, name: str, shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    if shape != expected:
        order = ", [in, out]" if shape == expected[::-1] else ""
        raise ParamcountError(f"has the shape {list(shape)}", where=f"{place}: tensor {name}", expected=f"{list(expected)}{order}")


def _has_same_values(header: Header, one: str, other: str) -> bool:
    """Whether two tables hold the same numbers, some rows at a time."""
    tables = [(map_bits(header, name), header.tensors[name].dtype) for name in (one, other)]
    for start in range(0, len(tables[0][0]), ROWS):
        a, b = (widen_bf16(stored[start : start + ROWS], dtype) for stored, dtype in tables)
        if not np.array_equal(a, b, equal_nan=True):
            return False
    return True


def format_token(text: str | None) -> str:
    """A token as people can see all of it: blanks as ␣, what is not printable escaped.

    >>> format_token(" capital"), format_token("\\n")
    ('␣capital', '\\\\n')
    """
    return "–" if text is None else make_printable(text.replace(" ", "␣"), 60) or "''"


def format_tokens(run: Run) -> str:
    """The tokens and their ids on one line; of many, the first and the last."""
    pieces = [f"{format_token(token)} {id}" for token, id in zip(run.tokens, run.ids)]
    if len(pieces) > MOST_TOKENS:
        pieces[MOST_TOKENS // 2 : -MOST_TOKENS // 2] = ["…"]
    return f"{len(run.ids):,} token{'s'[: len(run.ids) != 1]}: {' · '.join(pieces)}"


def format_probability(share: float) -> str:
    """A probability as people read it.

    >>> format_probability(0.12345), format_probability(0.00001)
    ('12.35%', '< 0.01%')
    """
    return f"{100 * share:.2f}%" if share >= 0.00005 else "< 0.01%"


def format_next_word(word: NextWord) -> str:
    """A next word as people read it: how likely, the word, its id."""
    return f"{format_probability(word.probability)}  {format_token(word.text)}  {word.id}"


def run_to_dict(run: Run) -> dict[str, Any]:
    """A run as plain data."""
    return {
        "tokens": [{"text": token, "id": id} for token, id in zip(run.tokens, run.ids)],
        "intermediates": [{"name": name, "shape": list(shape)} for name, shape in run.shapes],
        "next_words": [word._asdict() for word in run.next_words],
        "notes": list(run.notes),
    }
