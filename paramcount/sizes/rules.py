"""What sizes must fulfil together: rules that hold wherever their fields exist, and those that an architecture asks for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from pydantic import ValidationError

from paramcount.errors import ParamcountError, describe_value, find_nearest
from paramcount.formats.schema_errors import convert_validation_error
from paramcount.sizes import MOST_NAMED, SLIDING, Sizes, inner_configs


def check_divides(c: Sizes, small: str, large: str) -> None:
    a, b = getattr(c, small), getattr(c, large)
    if b % a:
        divisors = [d for d in range(1, min(b, 4096) + 1) if b % d == 0]
        expected = ", ".join(map(str, divisors[:24])) + (f", … {b}" if divisors[:24][-1] < b else "")
        raise ParamcountError(f"= {a} does not divide {large} = {b}", where=small, expected=expected)


def check_at_most(c: Sizes, small: str, large: str) -> None:
    if getattr(c, small) > getattr(c, large):
        raise ParamcountError(f"= {getattr(c, small)} is more than {large} = {getattr(c, large)}", where=small, expected=f"at most {getattr(c, large)}")


def check_active_experts(c: Any, active: str, routed: str) -> None:
    """No more experts visited than there are, where a layer has experts at all."""
    dense = c.n_dense_layers if hasattr(c, "n_dense_layers") else len(getattr(c, "dense_layers", ()))
    if not dense or dense < c.n_layers:
        check_at_most(c, active, routed)


def check_heads_fill(c: Any, heads: str = "n_heads", width: str = "d_head") -> None:
    """For architectures whose reference cuts d_model into heads and nothing else. `heads`, `width`: the fields."""
    n, d = getattr(c, heads), getattr(c, width)
    if n * d != c.d_model:
        raise ParamcountError(f"= {n} × {d} = {n * d} is not d_model = {c.d_model}", where=f"{heads} × {width}", expected=f"{c.d_model}")


def check_stack_heads(c: Any) -> None:
    """The same of an encoder and a decoder, which may differ in their heads."""
    check_heads_fill(c, "n_encoder_heads", "d_encoder_head")
    check_heads_fill(c, "n_decoder_heads", "d_decoder_head")


def check_even(c: Sizes, width: str) -> None:
    """Rotary positions turn a width in pairs; a width of 1 meets its pair of angles by broadcasting, so the reference runs it."""
    if getattr(c, width) % 2 and getattr(c, width) != 1:
        raise ParamcountError(f"= {getattr(c, width)} cannot be rotated in pairs", where=width, expected="an even number")


def check_rotated_in_pairs(c: Sizes, width: str) -> None:
    """Where neighbours are turned together, a width of 1 cannot run either."""
    if getattr(c, width) == 1:
        raise ParamcountError("= 1 cannot be rotated in pairs", where=width, expected="an even number")


def check_experts_exist(c: Any) -> None:
    """Numbers of experts may be 0 only where no layer has any."""
    dense = c.n_dense_layers if hasattr(c, "n_dense_layers") else len(c.dense_layers)
    for field in ("n_routed_experts", "n_active_experts"):
        if dense < c.n_layers and getattr(c, field) < 1:
            raise ParamcountError("= 0, but layers have experts", where=field, expected="a whole number from 1")


def check_layer_indices(c: Sizes, indices: str, limit: str) -> None:
    """Layer indices, in order, each once and inside the model."""
    found, n = getattr(c, indices), getattr(c, limit)
    if n > MOST_NAMED:
        raise ParamcountError(f"= {n} beside {indices}", where=limit, expected=f"at most {MOST_NAMED:,} layers where they are named one by one")
    if list(found) != sorted(set(found)) or (found and found[-1] >= n):
        listed = ", ".join([*map(str, found[:8]), *(["…"] if len(found) > 8 else [])])
        raise ParamcountError(f"= [{listed}] for {limit} = {n}", where=indices, expected=f"layer indices in rising order, each once, below {n}")


def check_one_per_layer(c: Sizes, words: str, limit: str) -> None:
    """One word a layer."""
    found, n = getattr(c, words), getattr(c, limit)
    if found is not None and len(found) != n:
        raise ParamcountError(f"names {len(found)} layers, {limit} = {n}", where=words, expected="one word a layer")


def check_layer_types(c: Sizes, words: str, limit: str, known: tuple[str, ...]) -> None:
    """One word a layer, all of them known."""
    for i, word in enumerate(getattr(c, words)):
        if word not in known:
            raise ParamcountError(f"= {describe_value(word)}", where=f"{words}.{i}", expected=", ".join(known), nearest=find_nearest(word, known))
    check_one_per_layer(c, words, limit)


def check_sliding_or_full(c: Any) -> None:
    """One word a layer, and a window where a layer slides over one."""
    check_layer_types(c, "layer_types", "n_layers", SLIDING)
    if c.window is None and "sliding_attention" in c.layer_types:
        raise ParamcountError("= null, but layers look back over it", where="window", expected="a whole number")


def check_projection(c: Any) -> None:
    """The reference leads embeddings to d_model where they are of another width, and nowhere else."""
    if c.embeddings_projected != (c.d_embedding != c.d_model):
        raise ParamcountError(
            f"= {describe_value(c.embeddings_projected)} for widths {c.d_embedding} and {c.d_model}",
            where="embeddings_projected",
            expected="true where they differ",
        )


# Rules that hold wherever both fields exist.
RULES: tuple[tuple[Callable[[Sizes, str, str], None], str, str], ...] = (
    (check_divides, "n_kv_heads", "n_heads"),
    (check_divides, "n_groups", "n_mamba_heads"),
    (check_divides, "n_linear_k_heads", "n_linear_v_heads"),
    (check_active_experts, "n_active_experts", "n_routed_experts"),
    (check_at_most, "n_dense_layers", "n_layers"),
    (check_one_per_layer, "layer_types", "n_layers"),
    (check_layer_indices, "dense_layers", "n_layers"),
    (check_layer_indices, "unrotated_layers", "n_layers"),
    (check_layer_indices, "cross_attention_layers", "n_layers"),
    (check_layer_indices, "intermediate_layers", "n_layers"),
)


def validate_sizes(architecture: type[Sizes], config: object) -> Sizes:
    """The sizes of a zoo entry's `config` block.

    Raises: ParamcountError that names the field, what was found, what is expected and the nearest field.
    """
    try:
        sizes = architecture.model_validate(config)
    except ValidationError as error:
        raise convert_validation_error(error, architecture) from None
    check_consistent(sizes)
    return sizes


@cache
def list_rules(architecture: type[Sizes]) -> list[tuple[Callable[[Sizes, str, str], None], str, str]]:
    """The RULES whose fields an architecture has."""
    fields = architecture.model_fields
    return [(rule, small, large) for rule, small, large in RULES if small in fields and large in fields]


def check_consistent(sizes: Sizes) -> None:
    """Raises where sizes contradict each other, those of an inner config too."""
    idle = sizes.unused_fields()
    for rule, small, large in list_rules(type(sizes)):
        if small not in idle:
            rule(sizes, small, large)
    if sizes.rotated and sizes.rotated not in idle:
        check_even(sizes, sizes.rotated)
    sizes.check()
    for name in inner_configs(type(sizes)):
        if (block := getattr(sizes, name)) is not None:
            try:
                check_consistent(block)
            except ParamcountError as error:
                raise error.inside(name) from None
