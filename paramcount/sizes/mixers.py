"""Sizes of state-space and linear-attention layers."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

from paramcount.errors import FieldName, ParamcountError, describe_value
from paramcount.sizes import ConfigJson, FieldValues, options_first
from paramcount.sizes.layer_types import check_no_types


@options_first
def dt_rank(js: ConfigJson, c: FieldValues, key: str) -> Any:
    """The rank of the time step projection. "auto" is a sixteenth of d_model, rounded up."""
    rank = js.get(key, "auto")
    return -(-c["d_model"] // 16) if rank == "auto" else rank


@options_first
def expand_d_model(js: ConfigJson, c: FieldValues, key: str) -> int:
    """d_model times the expansion factor in `key`, 2 if it is missing."""
    n: int = check_no_types(js, key, 2) * c["d_model"]
    return n


@options_first
def no_key(js: ConfigJson, c: FieldValues, *keys: str) -> None:
    """Keys that the reference computes itself and rejects in a config."""
    for key in keys:
        if key in js:
            found = f"= {describe_value(js[key])}, but the reference computes it from other keys"
            raise ParamcountError(found, where=key, expected="no such key")


def time_step_limit(config: ConfigJson, c: Any) -> tuple[float, float]:
    """The setting of the least and the largest time step of Mamba 2."""
    least, most = config.get("time_step_limit") or (0.0, inf)
    return float(least), float(most)


@options_first
def least_time_step(config: ConfigJson, c: Any, *keys: str) -> tuple[float, float]:
    """The setting of the time steps of a Mamba 2 that has no largest one; the least is the first of `keys`."""
    return next((float(config[key]) for key in keys if key in config), 0.001), inf


def mamba_head(js: ConfigJson, c: FieldValues) -> Any:
    """The size of a Mamba 2 head. "auto" is the inner size divided by the number of heads."""
    d_head = js.get("mamba_d_head", "auto")
    return get_inner_size(js, c) // c["n_mamba_heads"] if d_head == "auto" else d_head


def get_inner_size(js: ConfigJson, c: FieldValues) -> int:
    """The inner size of Mamba 2: mamba_d_ssm, which only Falcon-H1 reads, or mamba_expand times d_model."""
    inner: int = expand_d_model("mamba_expand")(js, c) if c.get("d_ssm") is None else c["d_ssm"]
    return inner


def check_mamba_heads(js: ConfigJson, c: FieldValues) -> None:
    """The number of Mamba 2 heads times the head size is the inner size."""
    check_mixer_fills(c, get_inner_size(js, c))


def check_mixer_fills(c: FieldValues, inner: int) -> None:
    """The number of heads times the head size is `inner`."""
    n_heads, d_head = c["n_mamba_heads"], c["d_mamba_head"]
    if n_heads * d_head != inner:
        raise ParamcountError(
            f"= {n_heads} × {d_head} = {n_heads * d_head} is not the inner size {inner}",
            where=FieldName("n_mamba_heads") + " × " + FieldName("d_mamba_head"),
            expected=f"{inner}",
        )


ATTENTION, MIXER = ("attention", "full_attention", "sliding_attention"), ("mamba", "linear_attention")


def list_unused_fields(words: Sequence[str]) -> tuple[str, ...]:
    """The fields that no layer of a hybrid model reads because it has no attention layers, or no other layers."""
    attention = () if set(words) & set(ATTENTION) else ("n_kv_heads", "d_head", "d_rope")
    return attention if set(words) & set(MIXER) else (*attention, "n_groups", "n_linear_k_heads")


@options_first
def unless(js: ConfigJson, c: FieldValues, words: tuple[str, ...]) -> int | None:
    """The meaning of null for a size that only layers of these kinds read: 1 if there are none, null otherwise."""
    return None if set(c["layer_types"]) & set(words) else 1


if_no_mixer, if_no_attention = unless(MIXER), unless(ATTENTION)


@options_first
def null_counts(js: ConfigJson, c: FieldValues, key: str, word: str | None = None) -> None:
    """An alias that takes precedence over the usual key is not null, unless no layer reads it.

    Args:
        key: The alias.
        word: The only kind of layer that reads it; None if all layers do.
    """
    if key in js and js[key] is None and (word is None or word in c["layer_types"]):
        raise ParamcountError("= null", where=key, expected="a value, or no such key")
