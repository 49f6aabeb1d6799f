"""Parameters of the parts of one layer, for ints, int64 arrays (a sweep) and symbols (the formula itself).

They use the same parts as the architectures. Sizes are positive integers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, TypeAlias

from paramcount import flow
from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, Size, given
from paramcount.parts import attentions, feed_forward, mixtures
from paramcount.parts import mla as latent
from paramcount.symbolic import arrays
from paramcount.symbolic.polynomials import Polynomial

Flags: TypeAlias = dict[str, Any]
RULES: tuple[tuple[Callable[[Any, Any], Any], str, str, str, str], ...] = (
    (lambda a, b: b % a, "does not divide", "divisors of", "n_kv_heads", "n_heads"),
    (lambda a, b: a > b, "is more than", "at most", "n_active_experts", "n_routed_experts"),
)
OPTIONAL = ("d_q_lora", "n_shared_experts")  # None means that the part is absent: structure, not a size


def embedding(*, vocab_size: Size, d_model: Size) -> Size:
    """Parameters of a token embedding.

    Shapes: [vocab_size, d_model].
    Units: parameters. Raises: ParamcountError for invalid sizes.
    Source: arXiv:1706.03762, section 3.4.

    >>> embedding(vocab_size=50257, d_model=768)
    38597376
    """
    return _count(
        lambda c, x: flow.lookup(given("tokens", "tokens"), "table", "embedding", c.vocab_size, c.d_model),
        vocab_size=vocab_size,
        d_model=d_model,
    )


def position(*, n_positions: Size, d_model: Size) -> Size:
    """Parameters of a learned position embedding.

    Shapes: [n_positions, d_model].
    Units: parameters. Raises: ParamcountError for invalid sizes.
    Source: arXiv:1705.03122, section 3.1.

    >>> position(n_positions=1024, d_model=768)
    786432
    """
    return _count(
        lambda c, x: flow.lookup(given("tokens", "tokens"), "table", "position", c.n_positions, c.d_model),
        n_positions=n_positions,
        d_model=d_model,
    )


def qkv(*, d_model: Size, n_heads: Size, d_head: Size, n_kv_heads: Size | None = None, bias: bool = False) -> Size:
    """Parameters of one layer's query, key and value projections. `n_kv_heads` defaults to `n_heads`.

    Shapes: q [n_heads · d_head, d_model], k and v [n_kv_heads · d_head, d_model], one bias per row.
    Units: parameters of one layer. Raises: ParamcountError for invalid sizes, or sizes that do not fit each other.
    Source: arXiv:1706.03762, section 3.2.2; grouped queries arXiv:2305.13245.

    >>> qkv(d_model=768, n_heads=12, d_head=64, bias=True)
    1771776
    """
    return _attention(
        "qkv", d_model=d_model, n_heads=n_heads, d_head=d_head, n_kv_heads=n_kv_heads, flags={"bias": bias}
    )


def output_projection(*, d_model: Size, n_heads: Size, d_head: Size, bias: bool = False) -> Size:
    """Parameters of one layer's attention output projection.

    Shapes: [d_model, n_heads · d_head], one bias per row.
    Units: parameters of one layer. Raises: ParamcountError for invalid sizes, or sizes that do not fit each other.
    Source: arXiv:1706.03762, section 3.2.2 (W^O).

    >>> output_projection(d_model=768, n_heads=12, d_head=64)
    589824
    """
    return _attention(
        "output_projection", d_model=d_model, n_heads=n_heads, d_head=d_head, n_kv_heads=None, flags={"bias": bias}
    )


def attention(
    *,
    d_model: Size,
    n_heads: Size,
    d_head: Size,
    n_kv_heads: Size | None = None,
    bias: bool = False,
    o_bias: bool | None = None,
    qk_norm: bool = False,
) -> Size:
    """Parameters of one layer's attention: `qkv`, `output_projection` and, with `qk_norm`, norms of queries and keys.

    `bias`: whether q, k and v have biases, and the output projection too, unless `o_bias` is set.

    Shapes: q [n_heads · d_head, d_model], k and v [n_kv_heads · d_head, d_model], o [d_model, n_heads · d_head];
    norms [d_head].
    Units: parameters of one layer. Raises: ParamcountError for invalid sizes, or sizes that do not fit each other.
    Source: arXiv:1706.03762, section 3.2.2; QK-norm arXiv:2010.04245.

    >>> attention(d_model=12288, n_heads=96, d_head=128)
    603979776
    """
    flags = {"bias": bias, "o_bias": o_bias, "qk_norm": qk_norm}
    return _attention(d_model=d_model, n_heads=n_heads, d_head=d_head, n_kv_heads=n_kv_heads, flags=flags)


def latent_attention(
    *, d_model: Size, n_heads: Size, d_q_lora: Size | None, d_kv_lora: Size, d_nope: Size, d_rope: Size, d_v: Size
) -> Size:
    """Parameters of one layer's multi-head latent attention, norms included.

    `d_q_lora`: None if queries are not compressed.

    Shapes: q_a [d_q_lora, d_model], q_b [n_heads · (d_nope + d_rope), d_q_lora], kv_a [d_kv_lora + d_rope, d_model],
    kv_b [n_heads · (d_nope + d_v), d_kv_lora], o [d_model, n_heads · d_v]; norms [d_q_lora], [d_kv_lora].
    Units: parameters of one layer. Raises: ParamcountError for invalid sizes, or sizes that do not fit each other.
    Source: arXiv:2405.04434, section 2.1.

    >>> latent_attention(d_model=7168, n_heads=128, d_q_lora=1536, d_kv_lora=512, d_nope=128, d_rope=64, d_v=128)
    187107328
    """
    return _count(
        lambda c, x: latent.latent_attention(c, x, ""),
        d_model=d_model,
        n_heads=n_heads,
        d_kv_lora=d_kv_lora,
        d_nope=d_nope,
        d_rope=d_rope,
        d_v=d_v,
        d_q_lora=d_q_lora,
    )


def mlp(*, d_model: Size, d_ff: Size, gated: bool = False, bias: bool = False) -> Size:
    """Parameters of one layer's MLP: up and down projections, and a gate projection if `gated`.

    Shapes: gate and up [d_ff, d_model], down [d_model, d_ff], one bias per row.
    Units: parameters of one layer. Raises: ParamcountError for invalid sizes, or sizes that do not fit each other.
    Source: arXiv:1706.03762, section 3.3; gated arXiv:2002.05202.

    >>> mlp(d_model=768, d_ff=3072, bias=True), mlp(d_model=4096, d_ff=14336, gated=True)
    (4722432, 176160768)
    """
    return _count(
        lambda c, x: _feed_forward(c, x, gated, bias), flags={"gated": gated, "bias": bias}, d_model=d_model, d_ff=d_ff
    )


def router(*, d_model: Size, n_routed_experts: Size, bias: bool = False) -> Size:
    """Parameters of one layer's router.

    Shapes: [n_routed_experts, d_model], one bias per row.
    Units: parameters of one layer. Raises: ParamcountError for invalid sizes, or sizes that do not fit each other.
    Source: arXiv:2401.06066, section 2.

    >>> router(d_model=7168, n_routed_experts=256)
    1835008
    """
    _check_flags({"bias": bias})  # here, so that an error has the caller's name of the argument
    return _mixture("router", d_model=d_model, n_routed_experts=n_routed_experts, flags={"router_bias": bias})


def experts(*, d_model: Size, d_expert: Size, n_experts: Size, bias: bool = False) -> Size:
    """Parameters of `n_experts` gated experts of one layer.

    Shapes: per expert gate and up [d_expert, d_model], down [d_model, d_expert].
    Units: parameters of one layer. Raises: ParamcountError for invalid sizes, or sizes that do not fit each other.
    Source: arXiv:2401.06066, section 3; gated arXiv:2002.05202.

    >>> experts(d_model=7168, d_expert=2048, n_experts=256)
    11274289152
    """
    # Checked here, so that an error has the caller's name of the argument.
    n = arrays.check_sizes({"n_experts": n_experts}, Polynomial)["n_experts"]
    return _mixture("experts", d_model=d_model, d_expert=d_expert, n_routed_experts=n, flags={"bias": bias})


def moe(
    *,
    d_model: Size,
    d_expert: Size,
    n_routed_experts: Size,
    n_active_experts: Size | None = None,
    n_shared_experts: Size | None = None,
    bias: bool = False,
) -> Size:
    """Parameters of one mixture-of-experts layer with gated experts: router, routed and shared experts.

    With `n_active_experts`: the active parameters, which include only that many routed experts.
    Shapes: router [n_routed_experts, d_model]; per expert gate and up [d_expert, d_model], down [d_model, d_expert].
    Units: parameters of one layer. Raises: ParamcountError for invalid sizes, or sizes that do not fit each other.
    Source: arXiv:2401.06066, section 3.

    >>> moe(d_model=4096, d_expert=14336, n_routed_experts=8)
    1409318912
    >>> moe(d_model=4096, d_expert=14336, n_routed_experts=8, n_active_experts=2)
    352354304
    """
    sizes = {"d_expert": d_expert, "n_active_experts": n_active_experts, "n_shared_experts": n_shared_experts}
    return _mixture(d_model=d_model, n_routed_experts=n_routed_experts, flags={"bias": bias}, **sizes)


def norm(*, d_model: Size, bias: bool = False) -> Size:
    """Parameters of a norm: a weight, and a bias if `bias`.

    Shapes: [d_model] each.
    Units: parameters of one layer. Raises: ParamcountError for invalid sizes, or sizes that do not fit each other.
    Source: arXiv:1607.06450; without bias (RMS) arXiv:1910.07467.

    >>> norm(d_model=768, bias=True)
    1536
    """
    return _count(lambda c, x: flow.norm(x, "norm", bias=bias), flags={"bias": bias}, d_model=d_model)


def lm_head(*, vocab_size: Size, d_model: Size, tied: bool, bias: bool = False) -> Size:
    """The LM head's own parameters: a tied matrix adds none, a bias does.

    Shapes: [vocab_size, d_model], one bias per row.
    Units: parameters. Raises: ParamcountError for invalid sizes.
    Source: tied: arXiv:1608.05859.

    >>> lm_head(vocab_size=50257, d_model=768, tied=True)
    0
    """
    return _count(
        lambda c, x: flow.linear(x, "head", "lm_head", c.vocab_size, bias=bias, tied_to="table" if tied else None),
        flags={"tied": tied, "bias": bias},
        vocab_size=vocab_size,
        d_model=d_model,
    )


def _attention(
    *components: str, flags: Flags, d_model: Size, n_heads: Size, d_head: Size, n_kv_heads: Size | None
) -> Size:
    sizes = {"d_model": d_model, "n_heads": n_heads, "d_head": d_head}
    if n_kv_heads is not None:
        sizes["n_kv_heads"] = n_kv_heads

    def attend(c: Any, x: Data) -> Data:
        def prepare(q: Data, k: Data) -> tuple[Data, Data]:
            return attentions.normalise_heads(c, q, k, "") if flags.get("qk_norm") else (q, k)

        return attentions.attention(c, x, "", bias=bool(flags.get("bias")), o_bias=flags.get("o_bias"), prepare=prepare)

    return _count(attend, *components, flags=flags, **sizes)


def _feed_forward(c: Any, x: Data, gated: bool, bias: bool) -> Data:
    if gated:
        return feed_forward.gated_mlp(x, "", "mlp", c.d_ff, bias=bias)
    return feed_forward.plain_mlp(x, ("up", "down"), "mlp", c.d_ff, bias=bias)


def _mixture(
    *components: str,
    flags: Flags,
    d_model: Size,
    n_routed_experts: Size,
    d_expert: Size = 1,
    n_active_experts: Size | None = None,
    n_shared_experts: Size | None = None,
) -> Size:
    def mixture(c: Any, x: Data) -> Data:
        routed = mixtures.mixture(c, x, "", **flags)
        if c.n_shared_experts is None:
            return routed
        return routed + mixtures.shared_experts(c, x, "", bias=flags.get("bias", False))

    sizes = {
        "d_model": d_model,
        "n_routed_experts": n_routed_experts,
        "d_expert": d_expert,
        "n_shared_experts": n_shared_experts,
    }
    has_active = n_active_experts is not None
    sizes["n_active_experts"] = n_active_experts if has_active else n_routed_experts
    return _count(mixture, *components, flags=flags, active=has_active, **sizes)


def _count(
    part: Callable[[Any, Data], Data],
    *components: str,
    flags: Flags | None = None,
    active: bool = False,
    **sizes: Size | None,
) -> Size:
    """Parameters of a part, or of its `components`. `active`: only the active ones."""

    def count(sizes: Mapping[str, Any]) -> Size:
        c = SimpleNamespace(**absent, **sizes)
        return flow.sum_parameters(part(c, given("x", "tokens", sizes["d_model"])), *components, active=active)

    _check_flags(flags or {})
    absent = dict.fromkeys(name for name in OPTIONAL if name in sizes and sizes[name] is None)
    present = {name: value for name, value in sizes.items() if name not in absent}
    valid = arrays.check_sizes(present, Polynomial, optional=("n_shared_experts",))
    for is_wrong, problem, expected, small, large in RULES:
        a, b = valid.get(small), valid.get(large)
        if all(arrays.is_array(size) or isinstance(size, int) for size in (a, b)):  # neither is a symbol, nor missing
            found = is_wrong(a, b)
            if found.any() if arrays.is_array(found) else found:
                raise ParamcountError(f"{small} {problem} {large}", expected=f"{expected} {large}")
    arrays.check_overflow(count, valid)
    return count(valid)


def _check_flags(flags: Flags) -> None:
    for name, flag in flags.items():
        if not isinstance(flag, bool) and not (flag is None and name == "o_bias"):
            raise ParamcountError(f"{name} = {describe_value(flag)}", expected="True or False")
