"""Checks of sizes against each other.

`RULES` apply to every architecture that has the fields. Single architectures call the other checks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter, index
from typing import Any

from paramcount.errors import FieldName, ParamcountError, count_noun, describe_value, list_numbers, make_choice_error
from paramcount.sizes import MOST_NAMED, SLIDING, Sizes, inner_configs
from paramcount.sizes.validation import parse_fields


def check_divides(c: Sizes, small: str, large: str) -> None:
    """One size divides another."""
    a, b = getattr(c, small), getattr(c, large)
    if b % a:
        n = index(b)  # the number itself, also where sizes are symbols
        divisors = [*(d for d in range(1, min(n - 1, 4096) + 1) if n % d == 0), n]
        found, expected = f"= {a} does not divide " + FieldName(large) + f" = {b}", list_numbers(divisors, index(a))
        raise ParamcountError(found, where=FieldName(small), expected=expected, choices=divisors, sizes=(a, b))


def check_at_most(c: Sizes, small: str, large: str) -> None:
    """One size is at most another."""
    a, b = getattr(c, small), getattr(c, large)
    if a > b:
        found = f"= {a} is more than " + FieldName(large) + f" = {b}"
        raise ParamcountError(found, where=FieldName(small), expected=f"at most {b}", sizes=(a, b))


def check_active_experts(c: Any, active: str, routed: str) -> None:
    """Layers with experts, if there are any, have at least one expert, and at most all of them are active."""
    dense = c.n_dense_layers if hasattr(c, "n_dense_layers") else len(getattr(c, "dense_layers", ()))
    if dense < getattr(c, "n_layers", 1):
        check_at_most(c, active, routed)
        if getattr(c, routed) == 0:
            where, expected = FieldName(routed), "a positive integer"
            raise ParamcountError("= 0, but some layers have experts", where=where, expected=expected)


def check_heads_fill(c: Any, heads: str = "n_heads", size: str = "d_head") -> None:
    """The number of heads times the head size is d_model, if the reference reshapes d_model to heads."""
    n, d = getattr(c, heads), getattr(c, size)
    if n * d != c.d_model:
        sizes = (n, d, n * d, c.d_model)
        if d == c.d_model // n:  # then no other head size fits either
            found = f"= {c.d_model} is not a multiple of " + FieldName(heads) + f" = {n}"
            raise ParamcountError(found, where=FieldName("d_model"), expected=f"a multiple of {n}", sizes=sizes)
        found = f"= {n} × {d} = {n * d} is not " + FieldName("d_model") + f" = {c.d_model}"
        where = FieldName(heads) + " × " + FieldName(size)
        raise ParamcountError(found, where=where, expected=f"{c.d_model}", sizes=sizes)


def check_heads_divide(c: Any) -> None:
    """The number of heads divides d_model, as the reference asks even if heads have another size."""
    check_divides(c, "n_heads", "d_model")


def check_stack_heads(c: Any) -> None:
    """`check_heads_fill` for an encoder and a decoder with their own heads."""
    check_heads_fill(c, "n_encoder_heads", "d_encoder_head")
    check_heads_fill(c, "n_decoder_heads", "d_decoder_head")


def check_even(c: Sizes, size: str) -> None:
    """A rotated size is even or 1, which the reference broadcasts against a pair of angles."""
    n = getattr(c, size)
    if n % 2 and n != 1:
        raise ParamcountError(
            f"= {n} is odd, but rotary embedding rotates pairs",
            where=FieldName(size),
            expected="an even number",
            sizes=(n,),
        )


def check_rotated_in_pairs(c: Sizes, size: str) -> None:
    """A rotated size is not 1 either, if the reference rotates neighbouring values (interleaved rotary positions)."""
    if getattr(c, size) == 1:
        raise ParamcountError(
            "= 1 is odd, but rotary embedding rotates pairs", where=FieldName(size), expected="an even number"
        )


def check_pairs_in_latent(c: Any) -> None:
    """The rotated part of a latent attention's head has neighbouring values."""
    check_rotated_in_pairs(c, "d_rope")


def check_reused_choices(c: Any) -> None:
    """The layers that reuse the tokens that an earlier layer has chosen follow one."""
    check_layer_indices(c, "reusing_layers", "n_layers")
    if 0 in c.reusing_layers:
        raise ParamcountError(
            "= [0, …], but layer 0 has no earlier layer whose token selection it can reuse",
            where=FieldName("reusing_layers"),
            expected="layers after 0",
        )


def check_equal(c: Any, path: str, other: str) -> None:
    """Two sizes that config.json states apart are equal. `path`, `other`: with dots for those of inner configs."""
    found, expected = (attrgetter(name)(c) for name in (path, other))
    if found != expected:
        raise ParamcountError(
            f"= {found} is not " + FieldName(other) + f" = {expected}",
            where=FieldName(path),
            expected=f"{expected}",
            sizes=(found, expected),
        )


def check_rotated_in_two_directions(c: Any) -> None:
    """Either half of a head rotates pairs, one by the column and one by the row."""
    if c.d_head % 4:
        raise ParamcountError(
            f"= {c.d_head} cannot be split into pairs for 2D rotary embedding",
            where=FieldName("d_head"),
            expected="a multiple of 4",
            sizes=(c.d_head,),
        )


def check_layer_indices(c: Sizes, indices: str, limit: str) -> None:
    """Layer indices are ascending, distinct and smaller than the number of layers."""
    listed, n = getattr(c, indices), getattr(c, limit)
    if n > MOST_NAMED:
        expected = f"at most {MOST_NAMED:,} layers if they are listed by index"
        found = f"= {n} with " + FieldName(indices)
        raise ParamcountError(found, where=FieldName(limit), expected=expected, sizes=(n, MOST_NAMED))
    if list(listed) != sorted(set(listed)) or (listed and listed[-1] >= n):
        first = listed[:8]
        text = ", ".join([*map(str, first), *(["…"] if len(listed) > 8 else [])])
        expected = f"ascending, distinct layer indices below {n}"
        found = f"= [{text}] for " + FieldName(limit) + f" = {n}"
        raise ParamcountError(found, where=FieldName(indices), expected=expected, sizes=(*first, n))


def check_one_per_layer(c: Sizes, words: str, limit: str) -> None:
    """A list has one entry per layer."""
    items, n = getattr(c, words), getattr(c, limit)
    if items is not None and len(items) != n:
        found = f"has {count_noun(len(items), 'entry')} for " + FieldName(limit) + f" = {n}"
        raise ParamcountError(found, where=FieldName(words), expected="one per layer", sizes=(len(items), n))


def check_layer_types(c: Sizes, words: str, limit: str, choices: tuple[str, ...]) -> None:
    """A list has one of these words per layer."""
    for i, word in enumerate(getattr(c, words)):
        if word not in choices:
            raise make_choice_error(word, choices, where=FieldName(words) + f".{i}")
    check_one_per_layer(c, words, limit)


def check_sliding_or_full(c: Any) -> None:
    """`layer_types` is valid, and there is a window if a layer uses sliding attention."""
    check_layer_types(c, "layer_types", "n_layers", SLIDING)
    if c.window is None and "sliding_attention" in c.layer_types:
        found = "= null, but " + FieldName("layer_types") + " has sliding_attention"
        raise ParamcountError(found, where=FieldName("window"), expected="an integer")


def check_sinusoids(c: Any) -> None:
    """Sinusoidal positions whose last angle is position / base need two angles at least."""
    if c.d_model < 4:
        found, where = f"= {c.d_model} is too small for sinusoidal positions", FieldName("d_model")
        raise ParamcountError(found, where=where, expected="at least 4")


def check_projection(c: Any) -> None:
    """Embeddings are projected exactly if their size differs from d_model, as in the reference."""
    if c.embeddings_projected != (c.d_embedding != c.d_model):
        value = describe_value(c.embeddings_projected)
        d_embedding, d_model = FieldName("d_embedding"), FieldName("d_model")
        found = f"= {value} for " + d_embedding + f" = {c.d_embedding} and " + d_model + f" = {c.d_model}"
        expected = "true if " + d_embedding + " differs from " + d_model + ", else false"
        where, sizes = FieldName("embeddings_projected"), (c.d_embedding, c.d_model)
        raise ParamcountError(found, where=where, expected=expected, sizes=sizes)


def check_flag(c: Any, name: str, size: str) -> None:
    """A flag says whether a size is more than 0."""
    flag, n = getattr(c, name), getattr(c, size)
    if flag != (n > 0):
        expected = "true if " + FieldName(size) + " is more than 0, else false"
        found = f"= {describe_value(flag)} for " + FieldName(size) + f" = {n}"
        raise ParamcountError(found, where=FieldName(name), expected=expected, sizes=(n,))


# Rules for every architecture with both fields.
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
    """The validated sizes of a zoo entry's `config` block.

    Raises: ParamcountError that names the field, what was found, what is expected and the nearest field.
    """
    sizes = parse_fields(architecture, config)
    check_consistent(sizes)
    return sizes


def check_consistent(sizes: Sizes) -> None:
    """Raise if sizes contradict each other, here or in an inner config."""
    for check in list_checks(type(sizes)):
        check(sizes)
    for name in inner_configs(type(sizes)):
        if (block := getattr(sizes, name)) is not None:
            try:
                check_consistent(block)
            except ParamcountError as error:
                raise error.add_block(name) from None


@cache
def list_checks(architecture: type[Sizes]) -> tuple[Callable[[Sizes], None], ...]:
    """The checks of an architecture's own sizes. Each reads only the sizes that it compares."""
    fields = architecture.fields
    checks = [make_check(*rule) for rule in RULES if fields.keys() >= set(rule[1:])]
    if rotated := architecture.rotated:
        checks.append(make_check(lambda c, size, _: check_even(c, size), rotated, ""))
    return (*checks, architecture.check)


def make_check(rule: Callable[[Sizes, str, str], None], small: str, large: str) -> Callable[[Sizes], None]:
    """A rule as a check of sizes that use the field."""

    def check(sizes: Sizes) -> None:
        if small not in sizes.unused_fields():
            rule(sizes, small, large)

    return check
