"""Sizes of state-space and linear-attention layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paramcount.errors import ParamcountError, describe_value
from paramcount.sizes import Condition, Derivation, part_of
from paramcount.sizes.layer_types import check_no_types


def dt_rank(key: str) -> Derivation:
    """The rank of the time step projection: "auto" is a sixteenth of d_model, rounded up."""

    def found(js: Mapping[str, Any], c: Mapping[str, Any]) -> Any:
        rank = js.get(key, "auto")
        return -(-c["d_model"] // 16) if rank == "auto" else rank

    return found


def expand_d_model(key: str, absent: int = 2) -> Derivation:
    """d_model times the expansion factor in `key`."""

    def found(js: Mapping[str, Any], c: Mapping[str, Any]) -> int:
        n: int = check_no_types(js, key, absent) * c["d_model"]
        return n

    return found


def no_key(*keys: str) -> Condition:
    """Keys that the reference computes itself and rejects in a config."""

    def condition(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
        for key in keys:
            if key in js:
                raise ParamcountError(
                    f"= {describe_value(js[key])}", where=key, expected="nothing: it follows from other keys"
                )

    return condition


def mamba_head(js: Mapping[str, Any], c: Mapping[str, Any]) -> Any:
    """The size of a Mamba 2 head: "auto" is the inner size divided by the number of heads."""
    width = js.get("mamba_d_head", "auto")
    return inner_width(js, c) // c["n_mamba_heads"] if width == "auto" else width


def inner_width(js: Mapping[str, Any], c: Mapping[str, Any]) -> int:
    """What the heads of Mamba 2 fill: mamba_d_ssm, which only Falcon-H1 reads, or d_model as many times as mamba_expand says."""
    width: int = expand_d_model("mamba_expand")(js, c) if c.get("d_ssm") is None else c["d_ssm"]
    return width


def check_mamba_heads(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
    check_mixer_fills(c, inner_width(js, c))


def check_mixer_fills(c: Mapping[str, Any], inner: int) -> None:
    n, width = c["n_mamba_heads"], c["d_mamba_head"]
    if n * width != inner:
        raise ParamcountError(
            f"= {n} × {width} = {n * width} is not the expanded width {inner}",
            where="n_mamba_heads × d_mamba_head",
            expected=f"{inner}",
        )


def rotated_share(absent: float, *, key: bool = True) -> Derivation:
    """How much of a head rotary positions turn, always in pairs: partial_rotary_factor of it, which may stand among rope_parameters, or
    `absent`. `key`: the factor may also stand outside."""

    def found(js: Mapping[str, Any], c: Mapping[str, Any]) -> int:
        outside = js.get("partial_rotary_factor", absent) if key else absent
        rope = js.get("rope_scaling") or js.get("rope_parameters") or {}
        width = part_of(c["d_head"], rope.get("partial_rotary_factor", outside))
        return width + width % 2

    return found


ATTENTION, MIXER = ("attention", "full_attention", "sliding_attention"), ("mamba", "linear_attention")


def list_unused_fields(words: Sequence[str]) -> tuple[str, ...]:
    """What contradicts nothing where a hybrid has no layer of attention, or none of the other kind."""
    attention = () if set(words) & set(ATTENTION) else ("n_kv_heads", "d_head", "d_rope")
    return attention if set(words) & set(MIXER) else (*attention, "n_groups", "n_linear_k_heads")


def unless(words: tuple[str, ...]) -> Derivation:
    """What null means of a size that only layers of these kinds read: any value does where there are none."""

    def found(js: Mapping[str, Any], c: Mapping[str, Any]) -> int | None:
        return None if set(c["layer_types"]) & set(words) else 1

    return found


if_no_mixer, if_no_attention = unless(MIXER), unless(ATTENTION)


def null_counts(key: str, word: str | None = None) -> Condition:
    """Another name of a key counts before it with null too, which the reference cannot build layers from; where no layer is a `word`,
    nothing is built from it."""

    def condition(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
        if key in js and js[key] is None and (word is None or word in c["layer_types"]):
            raise ParamcountError("= null", where=key, expected="a value, or no such key")

    return condition
