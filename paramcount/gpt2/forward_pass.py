"""GPT-2's forward pass in NumPy, written by hand from the paper and the released code.

It does not use the declaration in `architectures/gpt2.py`: it repeats names, shapes and order on purpose, so that
`zoo/forward_pass_checks.py` can compare two independent descriptions. In the comments, tokens is the input length and
d_head = d_model / n_heads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from paramcount.errors import ParamcountError, describe_value

Array: TypeAlias = NDArray[Any]
Observe: TypeAlias = Callable[[str, Array], object]
Read: TypeAlias = Callable[[str], Array]  # an array by its name
Record: TypeAlias = Callable[[str, Array], Array]  # passes an intermediate to the observer and returns it

EPSILON = 1e-5


class GPT2Sizes(Protocol):
    """Any object with the sizes that determine the shapes of GPT-2's weights."""

    @property
    def vocab_size(self) -> int: ...
    @property
    def n_positions(self) -> int: ...
    @property
    def d_model(self) -> int: ...
    @property
    def n_layers(self) -> int: ...
    @property
    def d_ff(self) -> int: ...


def list_shapes(sizes: GPT2Sizes) -> dict[str, tuple[int, ...]]:
    """{name: shape} of the released checkpoint's arrays, in the order of use. The tied LM head is not a separate array.

    >>> from types import SimpleNamespace
    >>> small = SimpleNamespace(vocab_size=50257, n_positions=1024, d_model=768, n_layers=12, n_heads=12, d_ff=3072)
    >>> sum(math.prod(shape) for shape in list_shapes(small).values())
    124439808

    Source: openai/gpt-2, src/model.py; matrices are stored [in, out].
    """
    d_model, d_ff = sizes.d_model, sizes.d_ff
    shapes: dict[str, tuple[int, ...]] = {
        "wte.weight": (sizes.vocab_size, d_model),
        "wpe.weight": (sizes.n_positions, d_model),
    }
    for i in range(sizes.n_layers):
        shapes |= {
            f"h.{i}.ln_1.weight": (d_model,),
            f"h.{i}.ln_1.bias": (d_model,),
            f"h.{i}.attn.c_attn.weight": (d_model, 3 * d_model),
            f"h.{i}.attn.c_attn.bias": (3 * d_model,),
            f"h.{i}.attn.c_proj.weight": (d_model, d_model),
            f"h.{i}.attn.c_proj.bias": (d_model,),
            f"h.{i}.ln_2.weight": (d_model,),
            f"h.{i}.ln_2.bias": (d_model,),
            f"h.{i}.mlp.c_fc.weight": (d_model, d_ff),
            f"h.{i}.mlp.c_fc.bias": (d_ff,),
            f"h.{i}.mlp.c_proj.weight": (d_ff, d_model),
            f"h.{i}.mlp.c_proj.bias": (d_model,),
        }
    return shapes | {"ln_f.weight": (d_model,), "ln_f.bias": (d_model,)}


def make_weights(
    sizes: GPT2Sizes, *, seed: int = 0, dtype: type[np.float32 | np.float64] = np.float32
) -> dict[str, Array]:
    """{name: array} of random weights: normally distributed with standard deviation 0.02, norm gains 1.

    Biases are random too, although GPT-2 initialises them to zero, so that a forgotten bias changes the logits.
    """
    rng = np.random.default_rng(seed)
    arrays: dict[str, Array] = {}
    for name, shape in list_shapes(sizes).items():
        if ".ln_" in f".{name}" and name.endswith(".weight"):
            arrays[name] = np.ones(shape, dtype)
        else:
            arrays[name] = rng.standard_normal(shape, dtype)
            arrays[name] *= 0.02
    return arrays


def forward(
    weights: Mapping[str, Array], token_ids: Iterable[int], *, n_heads: int, observe: Observe | None = None
) -> Array:
    """The next-token logits at every position.

    `weights`: arrays by the names of `list_shapes`, all of one float dtype, which the logits have too; other names are
    ignored. `observe(name, array)` is called with a read-only view of every intermediate: "token embedding", "position
    embedding" and "embedding"; in each layer "h.0.norm 1", "h.0.qkv", "q", "k", "v", "attention scores", "attention
    weights", "weighted values", "attention output", "after attention", "norm 2", "mlp up", "gelu", "mlp down" and
    "after mlp"; then "final norm" and "logits".

    Shapes: [tokens] → [tokens, vocab_size]
    Raises: ParamcountError if there are no token ids or too many, if they are not integers in the vocabulary, if
    n_heads does not divide d_model, or if an array is missing.
    Source: Radford et al. 2019, section 2.3; openai/gpt-2, src/model.py.

    >>> from types import SimpleNamespace
    >>> tiny = SimpleNamespace(vocab_size=23, n_positions=11, d_model=8, n_layers=2, n_heads=2, d_ff=20)
    >>> forward(make_weights(tiny), [3, 1, 4], n_heads=2).shape
    (3, 23)
    """

    def read(name: str) -> Array:
        if name not in weights:
            raise ParamcountError(
                f"array {name} is missing",
                where="weights",
                expected="the names of the released checkpoint: wte.weight, h.0.ln_1.weight, …",
            )
        return weights[name]

    def record(name: str, x: Array) -> Array:
        if observe:
            view = x.view()
            view.flags.writeable = False
            observe(name, view)
        return x

    wte, wpe = read("wte.weight"), read("wpe.weight")  # [vocab_size, d_model], [n_positions, d_model]
    ids = check_token_ids(token_ids, len(wte), len(wpe))  # [tokens]
    if n_heads < 1 or wte.shape[1] % n_heads:
        raise ParamcountError(f"n_heads = {n_heads} does not divide d_model = {wte.shape[1]}", expected="a divisor")
    # At least one layer, so that weights with other names are reported as missing.
    n_layers = max(1, sum(name.endswith(".ln_1.weight") for name in weights))

    x = record("token embedding", wte[ids])  # [tokens] → [tokens, d_model]
    x = record("embedding", x + record("position embedding", wpe[: len(ids)]))  # [tokens, d_model]
    for i in range(n_layers):
        x = layer(x, f"h.{i}.", read, n_heads, record)  # [tokens, d_model]
    x = record("final norm", layer_norm(x, read, "ln_f"))  # [tokens, d_model]
    return record("logits", x @ wte.T)  # [tokens, d_model] @ [d_model, vocab_size] → [tokens, vocab_size]


def layer(x: Array, prefix: str, read: Read, n_heads: int, record: Record) -> Array:
    """Attention and MLP, each with a pre-norm and a residual connection.

    Shapes: [tokens, d_model] → [tokens, d_model]
    """
    y = record(prefix + "norm 1", layer_norm(x, read, prefix + "ln_1"))  # [tokens, d_model]
    y = record(prefix + "qkv", linear(y, read, prefix + "attn.c_attn"))  # [tokens, d_model] → [tokens, 3·d_model]
    q, k, v = (
        record(prefix + name, split_heads(part, n_heads))
        for name, part in zip("qkv", np.split(y, 3, axis=-1), strict=True)
    )  # each [tokens, n_heads, d_head]
    y = record(prefix + "weighted values", attention(q, k, v, prefix, record))  # [tokens, n_heads, d_head]
    y = linear(y.reshape(x.shape), read, prefix + "attn.c_proj")  # [tokens, d_model] → [tokens, d_model]
    x = record(prefix + "after attention", x + record(prefix + "attention output", y))  # [tokens, d_model]
    y = record(prefix + "norm 2", layer_norm(x, read, prefix + "ln_2"))  # [tokens, d_model]
    y = record(prefix + "mlp up", linear(y, read, prefix + "mlp.c_fc"))  # [tokens, d_model] → [tokens, d_ff]
    y = record(prefix + "gelu", gelu(y))  # [tokens, d_ff]
    y = record(prefix + "mlp down", linear(y, read, prefix + "mlp.c_proj"))  # [tokens, d_ff] → [tokens, d_model]
    return record(prefix + "after mlp", x + y)  # [tokens, d_model]


def attention(q: Array, k: Array, v: Array, prefix: str, record: Record) -> Array:
    """Causal attention, all heads at once. Shapes: three of [tokens, n_heads, d_head] → [tokens, n_heads, d_head]"""
    n_tokens, _, d_head = q.shape
    # [n_heads, tokens, d_head] @ [n_heads, d_head, tokens] → [n_heads, tokens, tokens]
    scores = q.transpose(1, 0, 2) @ k.transpose(1, 2, 0)
    scores = record(prefix + "attention scores", scores / math.sqrt(d_head))  # [n_heads, tokens, tokens]
    is_causal = np.tri(n_tokens, dtype=bool)  # [tokens, tokens], true if the column's token is not after the row's
    weights = softmax(np.where(is_causal, scores, -math.inf))  # [n_heads, tokens, tokens]
    weights = record(prefix + "attention weights", weights)
    y = weights @ v.transpose(
        1, 0, 2
    )  # [n_heads, tokens, tokens] @ [n_heads, tokens, d_head] → [n_heads, tokens, d_head]
    return y.transpose(1, 0, 2)  # [tokens, n_heads, d_head]


def split_heads(x: Array, n_heads: int) -> Array:
    """x reshaped to heads. Shapes: [tokens, d_model] → [tokens, n_heads, d_head]"""
    return x.reshape(len(x), n_heads, -1)


def linear(x: Array, read: Read, name: str) -> Array:
    """x times a matrix stored [in, out], plus its bias. Shapes: [tokens, in] → [tokens, out]"""
    return x @ read(name + ".weight") + read(name + ".bias")


def layer_norm(x: Array, read: Read, name: str) -> Array:
    """Each row with mean 0 and variance 1, then scaled and shifted. Shapes: [tokens, d_model] → [tokens, d_model]

    Source: Ba et al., arXiv:1607.06450.
    """
    x = x - x.mean(axis=-1, keepdims=True)  # [tokens, d_model] - [tokens, 1]
    variance = (x * x).mean(axis=-1, keepdims=True)  # [tokens, 1]
    y: Array = x / np.sqrt(variance + EPSILON) * read(name + ".weight") + read(name + ".bias")  # [tokens, d_model]
    return y


def gelu(x: Array) -> Array:
    """GELU in its tanh form, the one GPT-2 was trained with. Shapes: any, unchanged

    Source: Hendrycks and Gimpel, arXiv:1606.08415, section 2.
    """
    y: Array = 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
    return y


def softmax(x: Array) -> Array:
    """The softmax of each row. Shapes: any, unchanged"""
    e = np.exp(x - x.max(axis=-1, keepdims=True))  # minus the maximum, so that nothing overflows
    y: Array = e / e.sum(axis=-1, keepdims=True)
    return y


def check_token_ids(token_ids: Iterable[int], vocab_size: int, n_positions: int) -> NDArray[np.int64]:
    """The token ids as an array. Shapes: [tokens]"""
    if not isinstance(token_ids, Iterable):
        raise ParamcountError(
            f"{describe_value(token_ids)} is not a list", where="token_ids", expected=f"1 to {n_positions} token ids"
        )
    ids = list(token_ids)
    if not 1 <= len(ids) <= n_positions:
        raise ParamcountError(
            f"{len(ids)} tokens" if ids else "is empty", where="token_ids", expected=f"1 to {n_positions} token ids"
        )
    for i, id in enumerate(ids):
        if isinstance(id, bool) or not isinstance(id, int | np.integer) or not 0 <= id < vocab_size:
            raise ParamcountError(
                f"token {i} is {describe_value(id)}", where="token_ids", expected=f"integers from 0 to {vocab_size - 1}"
            )
    return np.array(ids, dtype=np.int64)
