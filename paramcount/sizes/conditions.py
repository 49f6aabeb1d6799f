"""Conditions on keys that no field is read from: where the reference refuses a config, or could build but never run it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paramcount.errors import ParamcountError, describe_value, make_choice_error
from paramcount.sizes import Condition


def even_where_rotated(*words: str, named: bool = False) -> Condition:
    """Where only layers of these words rotate their heads. The reference also asks it of a head wider than 4 that no layer rotates, if
    it has head_dim, from config.json or (`named`) by default."""

    def condition(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
        d_head, turning = c["d_head"], any(word in words for word in c["layer_types"])
        if d_head % 2 and d_head > 1 and (turning or (d_head > 4 and (named or "head_dim" in js))):
            raise ParamcountError(f"= {d_head} cannot be rotated in pairs", where="d_head", expected="an even number")

    return condition


def attention_words(*known: str) -> Condition:
    """The valid strings in layer_types if no weight depends on them: the reference only has masks for these."""

    def condition(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
        for i, word in enumerate(js.get("layer_types") or ()):
            if word not in known and word != "attention":  # the older word for full_attention
                raise make_choice_error(word, known, where=f"layer_types.{i}")

    return condition


def not_null(*keys: str) -> Condition:
    """The reference rejects null for these keys, even if an alias takes precedence."""

    def condition(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
        for key in keys:
            if key in js and js[key] is None:
                raise ParamcountError("= null", where=key, expected="a value, or no such key")

    return condition


def experts_named(alias: str) -> Condition:
    """If `alias`, another name of the number of experts, is null, the reference has no number: it builds the model only without experts."""

    def condition(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
        n_dense = c["n_dense_layers"] if "n_dense_layers" in c else len(c["dense_layers"])
        if js.get(alias, 0) is None and n_dense < c["n_layers"]:
            raise ParamcountError("= null, but layers have experts", where=alias, expected="a positive integer")

    return condition


def buckets_reach(buckets: str, farthest: str, absent: int, *, one_sided: bool) -> Condition:
    """Relative positions share `n_buckets`: half of them (a quarter if both directions do) for near distances one by one, the others for
    distances up to `farthest`, which must be farther away than those. `buckets`, `farthest`: keys, the latter with its default `absent`.
    `one_sided`: a decoder is among the stacks."""

    def condition(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
        n, reach = c["n_buckets"], js.get(farthest, absent)
        if n < 4:
            raise ParamcountError(
                f"= {n} leaves no bucket for near distances", where=buckets, expected="an integer of at least 4"
            )
        near_distances = n // 2 if one_sided else n // 4
        if type(reach) is not int or reach <= near_distances:
            raise ParamcountError(
                f"= {describe_value(reach)} with {n} buckets",
                where=farthest,
                expected=f"an integer of at least {near_distances + 1}",
            )

    return condition


def padding_in_table(absent: int | None, *keys: str, more: int = 0) -> Condition:
    """The row for padding has to be in the token embedding, where the reference names it to its table. `absent`: without a key.
    `keys`: the first that is present counts; pad_token_id unless given. `more`: rows of the token embedding beyond the vocabulary's."""

    def condition(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
        key = next((key for key in keys if key in js), "pad_token_id")
        row, n = js.get(key, absent), c["vocab_size"] + more
        if row is not None and (type(row) is not int or not -n <= row < n):
            raise ParamcountError(
                f"= {describe_value(row)} is no row of a table with {n}",
                where=key,
                expected="a row of the table, or null",
            )

    return condition


def sliding_layers_have_a_window(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
    """Qwen's keys: without use_sliding_window there is no window, so no layer may use one."""
    window = js.get("sliding_window", 4096) if js.get("use_sliding_window", False) else None
    if window is None and "sliding_attention" in (js.get("layer_types") or ()):
        raise ParamcountError(
            "names sliding_attention without a window",
            where="layer_types",
            expected="use_sliding_window = true and a sliding_window",
        )


def grouped_routing(
    groups: int | None, kept: int | None, keys: tuple[str, ...] = ("n_group",), *, optional: bool = False
) -> Condition:
    """Experts chosen group by group, as DeepSeek-V3 does: as many in each group and at least the two that a group is judged by.
    `groups`, `kept`: if the keys are absent. `keys`: of the number of groups, the first one present counts. `optional`: null means one
    group of all experts."""

    def fits(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
        dense = c["n_dense_layers"] if "n_dense_layers" in c else len(c.get("dense_layers", ()))
        key = next((key for key in keys if key in js), keys[0])
        n, n_groups, n_kept = c["n_routed_experts"], js.get(key, groups), js.get("topk_group", kept)
        if dense == c["n_layers"] or (optional and n_groups is None and n_kept is None):
            return
        if type(n_groups) is not int or n_groups < 1 or n % n_groups or n // n_groups < 2:
            raise ParamcountError(
                f"= {describe_value(n_groups)} for {n} experts",
                where=key,
                expected="a divisor that leaves two in each group",
            )
        if type(n_kept) is not int or not 0 <= n_kept <= n_groups:
            raise ParamcountError(
                f"= {describe_value(n_kept)} of {n_groups} groups", where="topk_group", expected=f"at most {n_groups}"
            )

    return fits


def angles_fit(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
    """Latent attention whose reference makes the angles for head_dim, if config.json has it, and turns d_rope with them: as many pairs,
    or one pair for all where neighbours are turned together."""
    if "head_dim" in js:
        pairs = -(-(js["head_dim"] or c["d_model"] // c["n_heads"]) // 2)
        if 2 * pairs != c["d_rope"] and not (pairs == 1 and js.get("rope_interleave", True)):
            raise ParamcountError(
                f"= {describe_value(js['head_dim'])}", where="head_dim", expected=f"{c['d_rope']}, or no such key"
            )


def latent_heads_stay_whole(absent: int | None, *, masked: bool = False) -> Condition:
    """The reference takes latent attention's keys, which are of every head, for grouped ones where num_key_value_heads says so, and
    repeats them unless the kernel does it, which it does not behind a mask. `absent`: its number of key heads, None for as many as heads."""

    def condition(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
        n_kv_heads = (
            js.get("num_key_value_heads", absent) if js.get("num_key_value_heads", absent) is not None else c["n_heads"]
        )
        if c["n_heads"] // n_kv_heads > 1 and (masked or not c["d_nope"] + c["d_rope"] == c["d_v"] <= 256):
            raise ParamcountError(
                f"= {describe_value(n_kv_heads)} for {c['n_heads']} latent heads",
                where="num_key_value_heads",
                expected=f"{c['n_heads']}; fewer run only under flex attention",
            )

    return condition


def padding_inside(absent: int, *tables: str, places: int = 0) -> Condition:
    """The reference asks that the padding token has a row in the token embedding and in others that `tables` name by their sizes.
    `absent`: its number. `places`: number of positions, which counts from behind the padding, a text of one token
    needs behind that number; 0 where it counts from 0."""

    def condition(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
        pad, n = js.get("pad_token_id", absent), min(c[table] for table in ("vocab_size", *tables))
        if pad is None and not places:
            return
        if not isinstance(pad, int) or not -n <= pad < n:
            raise ParamcountError(
                f"= {describe_value(pad)} of {n} rows", where="pad_token_id", expected=f"0 to {n - 1}"
            )
        if places and not -c["n_positions"] <= pad <= c["n_positions"] - places:
            raise ParamcountError(
                f"= {c['n_positions']} with padding at {pad}", where="n_positions", expected=f"at least {pad + places}"
            )

    return condition


def one_of(key: str, known: tuple[str, ...], absent: str) -> Condition:
    """A string from a fixed set that no weight depends on. `absent`: the reference's default."""

    def condition(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
        word = js.get(key, absent)
        if word not in known:
            raise make_choice_error(word, known, where=key)

    return condition


def memory_needs_a_decoder(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
    if c["cross_attention"] and not c["is_decoder"]:
        raise ParamcountError(
            "= true in an encoder", where="add_cross_attention", expected="is_decoder = true beside it"
        )


def without_experts(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
    """Rejects experts: some publishers release mixtures of experts under the model type of their dense models, with other code."""
    for key in ("num_experts", "num_local_experts"):
        if js.get(key):
            raise ParamcountError(
                "is of a mixture of experts under this model type, which is not supported",
                where=key,
                expected="0, or no such key",
            )


def experts_in_every_layer(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
    """Rejects configs without experts in some later layers: DeepSeek's own code supports them, no release uses them."""
    if js.get("moe_layer_freq", 1) != 1:
        raise ParamcountError(
            f"= {describe_value(js['moe_layer_freq'])} is not supported", where="moe_layer_freq", expected="1"
        )
