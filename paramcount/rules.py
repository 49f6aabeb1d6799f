"""What sizes must fulfil together: rules that hold wherever their fields exist, and those that an architecture asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from paramcount.errors import ParamcountError, near, shown
from paramcount.schema_errors import from_pydantic
from paramcount.sizes import MOST_NAMED, Sizes


def divides(c: Sizes, small: str, large: str) -> None:
    a, b = getattr(c, small), getattr(c, large)
    if b % a:
        divisors = [d for d in range(1, min(b, 4096) + 1) if b % d == 0]
        accepted = ", ".join(map(str, divisors[:24])) + (f", … {b}" if divisors[:24][-1] < b else "")
        raise ParamcountError(f"= {a} does not divide {large} = {b}", where=small, accepted=accepted)


def at_most(c: Sizes, small: str, large: str) -> None:
    if getattr(c, small) > getattr(c, large):
        raise ParamcountError(f"= {getattr(c, small)} is more than {large} = {getattr(c, large)}", where=small, accepted=f"at most {getattr(c, large)}")


def heads_fill(c: Any) -> None:
    """For architectures whose reference cuts d_model into heads and nothing else."""
    if c.n_heads * c.d_head != c.d_model:
        product = f"{c.n_heads} × {c.d_head} = {c.n_heads * c.d_head}"
        raise ParamcountError(f"= {product} is not d_model = {c.d_model}", where="n_heads × d_head", accepted=f"{c.d_model}")


def even(c: Sizes, width: str) -> None:
    """Rotary positions turn a width in pairs."""
    if getattr(c, width) % 2:
        raise ParamcountError(f"= {getattr(c, width)} cannot be rotated in pairs", where=width, accepted="an even number")


def below(c: Sizes, indices: str, limit: str) -> None:
    """Layer indices, in order, each once and inside the model."""
    found, n = getattr(c, indices), getattr(c, limit)
    if n > MOST_NAMED:
        raise ParamcountError(f"= {n} beside {indices}", where=limit, accepted=f"at most {MOST_NAMED:,} layers where they are named one by one")
    if list(found) != sorted(set(found)) or (found and found[-1] >= n):
        listed = ", ".join([*map(str, found[:8]), *(["…"] if len(found) > 8 else [])])
        raise ParamcountError(f"= [{listed}] for {limit} = {n}", where=indices, accepted=f"layer indices in rising order, each once, below {n}")


def one_of_each(c: Sizes, words: str, limit: str, known: tuple[str, ...]) -> None:
    """One word a layer, all of them known."""
    found, n = getattr(c, words), getattr(c, limit)
    for i, word in enumerate(found):
        if word not in known:
            raise ParamcountError(f"= {shown(word)}", where=f"{words}.{i}", accepted=", ".join(known), nearest=near(word, known))
    if len(found) != n:
        raise ParamcountError(f"names {len(found)} layers, {limit} = {n}", where=words, accepted="one word a layer")


def groups_share_experts(js: Mapping[str, Any], c: Mapping[str, Any], absent: int = 1) -> None:
    """Routing by groups: as many experts in each. `absent`: the reference's number of groups."""
    groups, n = js.get("n_group", absent), c["n_routed_experts"]
    if groups is not None and n % groups:
        raise ParamcountError(f"= {shown(groups)} does not divide {n} experts", where="n_group", accepted="a divisor")


# Rules that hold wherever both fields exist.
RULES: tuple[tuple[Callable[[Sizes, str, str], None], str, str], ...] = (
    (divides, "n_kv_heads", "n_heads"),
    (at_most, "n_active_experts", "n_routed_experts"),
    (at_most, "n_dense_layers", "n_layers"),
    (below, "dense_layers", "n_layers"),
    (below, "cross_attention_layers", "n_layers"),
    (below, "intermediate_layers", "n_layers"),
)


def validated(architecture: type[Sizes], config: object) -> Sizes:
    """The sizes of a zoo entry's `config` block.

    Raises: ParamcountError that names the field, what was found, what is accepted and the nearest field.
    """
    try:
        sizes = architecture.model_validate(config)
    except ValidationError as error:
        raise from_pydantic(error, architecture) from None
    consistent(sizes)
    return sizes


def consistent(sizes: Sizes) -> None:
    """Raises where sizes contradict each other, those of an inner config too."""
    fields = type(sizes).model_fields
    for rule, small, large in RULES:
        if small in fields and large in fields:
            rule(sizes, small, large)
    if sizes.rotated:
        even(sizes, sizes.rotated)
    sizes.check()
    for name in fields:
        if isinstance(inner := getattr(sizes, name), Sizes):
            try:
                consistent(inner)
            except ParamcountError as error:
                raise error.inside(name) from None
