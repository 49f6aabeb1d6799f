"""GPT-2 with real weights: tokenize a text, run the NumPy forward pass, rank the next tokens.

Tokens come from the tokenizer and values from the weights; any mismatch between them is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from paramcount.errors import ParamcountError, describe_value, format_shape, join_words, make_printable, quote
from paramcount.formats.files import read_text
from paramcount.formats.safetensors import Header, map_bits, read_array, read_header, widen_bf16
from paramcount.formats.strict_json import parse_json
from paramcount.formats.tokenizer import tokenize_text
from paramcount.gpt2.forward_pass import Array, GPT2Sizes, forward, list_shapes, softmax

FLOATS = ("F64", "F32", "F16", "BF16")
PREFIX = "transformer."  # prefix of every saved name but the LM head's
HEAD, TABLE = "lm_head.weight", "wte.weight"
LARGEST_INTERMEDIATE = 2**28  # elements of the largest array of the pass; 1 GiB in float32
LARGEST_CONFIG = 4 << 20  # bytes
ROWS = 4096  # compared at once
MOST_NAMES = 3  # tensors listed in an error
MOST_TOKENS = 40  # printed on one line

# config.json keys that affect values but no shapes, and the settings that the NumPy pass implements. Its activation,
# the tanh form of GELU, has five names.
IMPLEMENTED: dict[str, tuple[Any, ...]] = {
    "activation_function": ("gelu_new", "gelu_fast", "gelu_accurate", "gelu_pytorch_tanh", "gelu_python_tanh"),
    "layer_norm_epsilon": (1e-5,),
    "scale_attn_weights": (True,),
    "scale_attn_by_inverse_layer_idx": (False,),
    "add_cross_attention": (False,),
    "tie_word_embeddings": (True,),
}


class TextModelSizes(GPT2Sizes, Protocol):
    """The sizes of GPT-2 that a forward pass needs."""

    @property
    def n_heads(self) -> int: ...
    @property
    def tie_word_embeddings(self) -> bool: ...


class NextWord(NamedTuple):
    """A candidate for the next token."""

    text: str | None  # None for an unused row of the embedding
    id: int
    probability: float


class Run(NamedTuple):
    """The result of a forward pass over a text."""

    tokens: tuple[str, ...]  # as text: " capital"; incomplete characters byte by byte
    ids: tuple[int, ...]
    shapes: tuple[tuple[str, tuple[int, ...]], ...]  # names and shapes of all intermediates, in order
    next_words: tuple[NextWord, ...]  # most likely first
    notes: tuple[str, ...]  # on storage and unused tensors


class Weights(Mapping[str, Array]):
    """The arrays of a file in float32 by their names in the NumPy pass.

    Each array is read on access. Non-finite values are an error.
    """

    def __init__(self, header: Header, names: Mapping[str, str]) -> None:
        self.header, self.names = header, names

    def __getitem__(self, name: str) -> Array:
        array = read_array(self.header, self.names[name])
        values: Array = array.astype(np.float32, copy=False)
        least, most = values.min(), values.max()
        if np.isfinite(least) and np.isfinite(most):
            return values
        if np.isnan(least):
            problem = "has NaN values"
        elif np.isinf(array).any():
            problem = "has infinite values"
        else:
            problem = "has values too large for float32"
        where = f"{make_printable(self.header.path)}: tensor {self.names[name]}"
        raise ParamcountError(problem, where=where, expected="finite weights")

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def predict_next(
    sizes: TextModelSizes,
    weights: Path,
    text: str,
    tokenizer: Path | None = None,
    *,
    top: int = 5,
    config: Mapping[str, Any] | None = None,
) -> Run:
    """The tokens of a text, the shape of every intermediate, and the most likely next tokens.

    `sizes`: of a model with architecture gpt2. `weights`: a safetensors file. `tokenizer`: a tokenizer.json, by default
    the one next to the weights. `config`: other keys of the model's config.json. They, and a config.json next to the
    weights, must describe the computation that the NumPy pass implements.

    Units: probabilities from 0 to 1, from float32 logits.
    Raises: ParamcountError if the files, the text or the weights are invalid.
    """
    if type(top) is not int or not 1 <= top <= sizes.vocab_size:
        raise ParamcountError(
            f"= {describe_value(top)}", where="top", expected=f"an integer from 1 to {sizes.vocab_size}"
        )
    if not sizes.tie_word_embeddings:
        raise ParamcountError(
            "= false",
            where="tie_word_embeddings",
            expected="true: the NumPy pass ties the LM head to the token embedding",
        )
    _check_computation(config or {}, sizes, "config")
    config_path = weights.parent / "config.json"
    header = read_header(weights)
    if config_path.is_file():
        keys = _read_json(config_path)
        if keys.get("model_type") == "gpt2":
            _check_computation(keys, sizes, make_printable(config_path))
    names, notes = match_tensors(header, sizes)
    ids, tokens, vocabulary = tokenize_text(tokenizer or _find_tokenizer(weights), text, most=sizes.n_positions)
    for i, (id, token) in enumerate(zip(ids, tokens)):
        if id >= sizes.vocab_size:
            valid = f"an id from 0 to {sizes.vocab_size - 1}, the rows of {TABLE}"
            raise ParamcountError(f"token {i}, {quote(token)}, has id {id}", where="tokenizer", expected=valid)
    _check_memory(len(ids), sizes)
    shapes: list[tuple[str, tuple[int, ...]]] = []

    def observe(name: str, x: Array) -> None:
        if not np.isfinite(x).all():
            raise ParamcountError(
                f"{name} is not finite in float32", where=make_printable(weights), expected="weights of a trained model"
            )
        shapes.append((name, x.shape))

    with np.errstate(all="ignore"):  # `observe` checks for non-finite values
        logits = forward(Weights(header, names), ids, n_heads=sizes.n_heads, observe=observe)[-1]  # [vocab_size]
        probabilities = softmax(logits.astype(np.float64))  # [vocab_size]
    likeliest = np.argsort(-probabilities, kind="stable")[:top].tolist()
    next_words = tuple(NextWord(vocabulary.get(id), id, float(probabilities[id])) for id in likeliest)
    return Run(tokens, ids, tuple(shapes), next_words, notes)


def _read_json(path: Path) -> dict[str, Any]:
    text = read_text(path, "a config.json", LARGEST_CONFIG)
    try:
        return parse_json(text)
    except ParamcountError as error:
        raise error.add_location(make_printable(path)) from None


def _check_computation(config: Mapping[str, Any], sizes: TextModelSizes, place: str) -> None:
    """Check that a config.json describes the computation of the NumPy pass.

    Raises: ParamcountError that names the key.
    """
    heads = dict.fromkeys(("n_head", "num_attention_heads"), (sizes.n_heads,))  # no shape depends on it
    for key, settings in (IMPLEMENTED | heads).items():
        if key not in config or any(type(config[key]) is type(value) and config[key] == value for value in settings):
            continue
        valid = join_words(value if isinstance(value, str) else describe_value(value) for value in settings)
        raise ParamcountError(
            f"= {describe_value(config[key])}",
            where=f"{place}: {key}",
            expected=f"{valid}, which the NumPy pass implements",
        )


def _find_tokenizer(weights: Path) -> Path:
    path = weights.parent / "tokenizer.json"
    if not path.exists():
        raise ParamcountError(
            "does not exist",
            where=make_printable(path),
            expected="a tokenizer.json next to the weights, or its path as --tokenizer FILE",
        )
    return path


def _check_memory(n_tokens: int, sizes: TextModelSizes) -> None:
    """Check that no array is too large: attention scores, logits, MLP activations, queries, keys and values."""
    widest = max(sizes.n_heads * n_tokens, sizes.vocab_size, sizes.d_ff, 3 * sizes.d_model)
    if n_tokens * widest > LARGEST_INTERMEDIATE:
        raise ParamcountError(
            f"{n_tokens:,} tokens need an array of {n_tokens * widest:,} values",
            where="text",
            expected=f"at most {LARGEST_INTERMEDIATE:,}",
        )


def match_tensors(header: Header, sizes: GPT2Sizes) -> tuple[dict[str, str], tuple[str, ...]]:
    """{name in the pass: name in the file} of the weights, and notes on other tensors in the file.

    The file may also contain causal masks and a copy of the tied LM head.

    Raises: ParamcountError for missing or unexpected tensors, a wrong shape or dtype, or an LM head that is not a copy.
    """
    place = make_printable(header.path)
    file_names = _strip_prefix(header, place)
    entries = {name: header.tensors[file_name] for name, file_name in file_names.items()}
    n_layers = sum(name.endswith(".ln_1.weight") for name in entries)
    if TABLE in entries and n_layers != sizes.n_layers:  # before building the names of all expected layers
        raise ParamcountError(f"has {n_layers:,} layers", where=place, expected=f"{sizes.n_layers:,}")
    if 6 * n_layers > len(entries):
        raise ParamcountError(
            f"most tensors of its {n_layers:,} layers are missing", where=place, expected="twelve per layer"
        )
    expected = list_shapes(sizes) if TABLE in entries else {TABLE: (sizes.vocab_size, sizes.d_model)}
    if missing := [name for name in expected if name not in entries]:
        raise ParamcountError(f"is missing {_format_names(missing)}", where=place, expected="the tensors of GPT-2")
    for name, shape in expected.items():
        _check_shape(place, file_names[name], entries[name].shape, shape)
        if entries[name].dtype not in FLOATS:
            raise ParamcountError(
                f"has dtype {entries[name].dtype}", where=f"{place}: tensor {file_names[name]}", choices=FLOATS
            )
    others = [name for name in entries if name not in expected]
    optional = _list_optional_shapes(sizes)
    if unexpected := [file_names[name] for name in others if name not in optional]:
        raise ParamcountError(
            f"has unexpected tensors: {_format_names(unexpected)}",
            where=place,
            expected="the tensors of GPT-2, its causal masks and a copy of its LM head",
        )
    for name in others:
        _check_shape(place, file_names[name], entries[name].shape, optional[name])
    if HEAD in entries and not _has_same_values(header, file_names[HEAD], file_names[TABLE]):
        raise ParamcountError(
            f"{HEAD} differs from {file_names[TABLE]}",
            where=place,
            expected="a copy, because the LM head is tied to the token embedding",
        )
    types = join_words(dict.fromkeys(entries[name].dtype for name in expected), "and")
    notes = [f"weights stored as {types}, computed in float32"]
    if others:
        notes.append(f"unused tensors in the file: {_format_names([file_names[name] for name in others])}")
    return {name: file_names[name] for name in expected}, tuple(notes)


def _strip_prefix(header: Header, place: str) -> dict[str, str]:
    """{name in the pass: name in the file} of all tensors in a file."""
    names: dict[str, str] = {}
    for file_name in header.tensors:
        name = file_name.removeprefix(PREFIX)
        if name in names:
            duplicates = join_words([make_printable(names[name], 80), make_printable(file_name, 80)], "and")
            raise ParamcountError(f"has both {duplicates}", where=place, expected="one of them")
        names[name] = file_name
    return names


def _list_optional_shapes(sizes: GPT2Sizes) -> dict[str, tuple[int, ...]]:
    """{name: shape} of tensors that a file may contain in addition to the weights."""
    shapes: dict[str, tuple[int, ...]] = {HEAD: (sizes.vocab_size, sizes.d_model)}
    for i in range(sizes.n_layers):
        shapes[f"h.{i}.attn.bias"] = (1, 1, sizes.n_positions, sizes.n_positions)
        shapes[f"h.{i}.attn.masked_bias"] = ()
    return shapes


def _format_names(names: list[str]) -> str:
    """The first names, and the number of others."""
    first = ", ".join(make_printable(name, 80) for name in names[:MOST_NAMES])
    return first if len(names) <= MOST_NAMES else f"{first} and {len(names) - MOST_NAMES:,} more"


def _check_shape(place: str, name: str, shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    if shape != expected:
        order = ", [in, out]" if shape == expected[::-1] else ""
        raise ParamcountError(
            f"has shape {format_shape(shape)}",
            where=f"{place}: tensor {name}",
            expected=f"{format_shape(expected)}{order}",
        )


def _has_same_values(header: Header, one: str, other: str) -> bool:
    """Whether two matrices have equal values."""
    tables = [(map_bits(header, name), header.tensors[name].dtype) for name in (one, other)]
    for start in range(0, len(tables[0][0]), ROWS):
        a, b = (widen_bf16(table[start : start + ROWS], dtype) for table, dtype in tables)
        if not np.array_equal(a, b, equal_nan=True):
            return False
    return True


def format_token(text: str | None) -> str:
    """A token in printable form: spaces as ␣, control characters escaped.

    >>> format_token(" capital"), format_token("\\n")
    ('␣capital', '\\\\n')
    """
    return "–" if text is None else make_printable(text.replace(" ", "␣"), 60) or "''"


def format_tokens(run: Run) -> str:
    """The tokens and their ids on one line; a long list is shortened in the middle."""
    pieces = [f"{format_token(token)} {id}" for token, id in zip(run.tokens, run.ids)]
    if len(pieces) > MOST_TOKENS:
        pieces[MOST_TOKENS // 2 : -MOST_TOKENS // 2] = ["…"]
    return f"{len(run.ids):,} token{'s'[: len(run.ids) != 1]}: {' · '.join(pieces)}"


def format_probability(probability: float) -> str:
    """A probability in percent.

    >>> format_probability(0.12345), format_probability(0.00001)
    ('12.35%', '< 0.01%')
    """
    return f"{100 * probability:.2f}%" if probability >= 0.00005 else "< 0.01%"


def format_next_word(word: NextWord) -> str:
    """A candidate on one line: probability, token, id."""
    return f"{format_probability(word.probability)}  {format_token(word.text)}  {word.id}"


def run_to_dict(run: Run) -> dict[str, Any]:
    """A run as plain data for JSON."""
    return {
        "tokens": [{"text": token, "id": id} for token, id in zip(run.tokens, run.ids)],
        "intermediates": [{"name": name, "shape": list(shape)} for name, shape in run.shapes],
        "next_words": [word._asdict() for word in run.next_words],
        "notes": list(run.notes),
    }
