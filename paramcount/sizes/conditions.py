"""Conditions on config.json keys that no size is read from.

They raise an error if the reference rejects the config, or if it can build the model but never run it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from paramcount.errors import FieldName, ParamcountError, Text, describe_value, make_choice_error
from paramcount.sizes import SLIDING, Condition, ConfigJson, Derivation, FieldValues, options_first
from paramcount.sizes.derivations import part_of
from paramcount.sizes.layer_types import count_dense
from paramcount.sizes.settings import ROPE_KEYS, check_rope_block

ROUTING_METHODS = ("greedy", "group_limited_greedy")


def rotary_of_each_kind(js: ConfigJson, c: FieldValues) -> None:
    """Rotary positions, if they are stated, are an object for each kind of layers."""
    key = "rope_scaling" if js.get("rope_scaling") else "rope_parameters"
    rope = js.get(key)
    for word in sorted(set(c["layer_types"])) if rope is not None else ():
        if not isinstance(rope, Mapping) or rope.get(word) is None:
            raise ParamcountError(f"has no {word}", where=key, expected="an object for each of layer_types")


@options_first
def rotates_stated_share(js: ConfigJson, c: FieldValues, absent: float, key: str = "partial_rotary_factor") -> None:
    """The reference cuts the rotated share of a head off, for which proportional angles are too many.

    Args:
        absent: The default share.
        key: The key of the share outside of rope_parameters.
    """
    block = js.get("rope_scaling") or js.get("rope_parameters") or {}
    share = block.get("partial_rotary_factor", js.get(key, absent))
    is_proportional = block.get("rope_type", block.get("type")) == "proportional"
    if is_proportional and part_of(c["d_head"], share) != c["d_head"]:
        where = "rope_scaling" if js.get("rope_scaling") else "rope_parameters"
        found = f"= proportional, but {describe_value(share)} of a head rotates"
        raise ParamcountError(found, where=f"{where}.rope_type", expected="another type, or a share of 1")


def ropes_of_kinds_alone(js: ConfigJson, c: FieldValues) -> None:
    """rope_parameters, if it is stated, has an object for kinds of layers, and nothing else."""
    for key, block in (js.get("rope_parameters") or {}).items():
        if key not in SLIDING:
            raise make_choice_error(key, SLIDING, where="a key of rope_parameters")
        if not isinstance(block, Mapping):
            raise ParamcountError(
                f"= {describe_value(block)}", where=f"rope_parameters.{key}", expected="a JSON object, or no such key"
            )


@options_first
def known_ropes(
    js: ConfigJson,
    c: FieldValues,
    find_blocks: Callable[[ConfigJson, FieldValues], Mapping[str, Any]],
    *,
    filled: bool = True,
) -> None:
    """The rotary positions that the model is built with are of known kinds.

    Args:
        find_blocks: {place: what the reference builds them from}.
        filled: Whether the reference copies missing keys from the rest of the config.
    """
    for place, block in find_blocks(js, c).items():
        if not isinstance(block, Mapping):
            raise ParamcountError(f"= {describe_value(block)}", where=place, expected="a JSON object")
        check_rope_block(block, tuple(ROPE_KEYS), place, filled=filled)


@options_first
def even_where_rotated(js: ConfigJson, c: FieldValues, *words: str, named: bool = False) -> None:
    """The head size is even if layers of these kinds exist, the only ones that rotate their heads.

    The reference also checks unused head sizes above 4, if the config.json has head_dim or the config class sets it by
    default (`named`).
    """
    d_head = c["d_head"]
    is_rotated = any(word in words for word in c["layer_types"])
    is_checked = is_rotated or (d_head > 4 and (named or "head_dim" in js))
    if d_head % 2 and d_head > 1 and is_checked:
        raise ParamcountError(
            f"= {d_head} is odd, but rotary embedding rotates pairs",
            where=FieldName("d_head"),
            expected="an even number",
        )


def unused_rope_fits_heads(js: ConfigJson, c: FieldValues) -> None:
    """The head size is even if config.json names rotary positions, though no layer rotates its heads.

    Source: validate_rope in modeling_rope_utils.py of the reference, which all configs go through.
    """
    rope, d_head = js.get("rope_scaling") or js.get("rope_parameters"), c["d_head"]
    if not isinstance(rope, Mapping) or d_head <= 4 or d_head % 2 == 0:
        return
    blocks = [rope[word] for word in sorted(set(c["layer_types"])) if word in rope] or [rope]
    shares = [block.get("partial_rotary_factor", 1.0) for block in blocks if isinstance(block, Mapping)]
    if any(part_of(d_head, share) == d_head for share in shares):
        key = "rope_scaling" if js.get("rope_scaling") else "rope_parameters"
        raise ParamcountError(
            f"= {d_head} is odd, but {key} is set", where=FieldName("d_head"), expected="an even number"
        )


@options_first
def attention_words(js: ConfigJson, c: FieldValues, *choices: str) -> None:
    """The valid strings in layer_types if no weight depends on them. The reference has masks for these strings only."""
    for i, word in enumerate(js.get("layer_types") or ()):
        if word not in choices and word != "attention":  # the old name of full_attention
            raise make_choice_error(word, choices, where=f"layer_types.{i}")


@options_first
def one_mask(js: ConfigJson, c: FieldValues, find_window: Derivation = lambda js, c: c["window"]) -> None:
    """All layers have one mask, whatever layer_types says; the reference's cache reads it and needs a window, too.

    `find_window`: the window of all layers; None without one.
    """
    choices = SLIDING if find_window(js, c) is not None else SLIDING[1:]
    attention_words(*choices)(js, c)


@options_first
def not_null(js: ConfigJson, c: FieldValues, *keys: str) -> None:
    """The reference rejects null for these keys, even if an alias takes precedence."""
    for key in keys:
        if key in js and js[key] is None:
            raise ParamcountError("= null", where=key, expected="a value, or no such key")


@options_first
def experts_named(js: ConfigJson, c: FieldValues, alias: str) -> None:
    """`alias`, another name of the number of experts, is null only if no layer has experts."""
    if js.get(alias, 0) is None and count_dense(c) < c["n_layers"]:
        raise ParamcountError("= null, but some layers have experts", where=alias, expected="a positive integer")


@options_first
def buckets_reach(
    js: ConfigJson, c: FieldValues, buckets: str, farthest: str, absent: int, *, one_sided: bool, least: int = 4
) -> None:
    """The relative position buckets reach beyond the near distances, each of which has its own bucket.

    Half of `n_buckets` are for near distances, a quarter if both directions share the buckets. The others are for
    distances up to the value of the key `farthest`.

    Args:
        buckets: The key of the number of buckets.
        farthest: The key of the largest distance.
        absent: The default of `farthest`.
        one_sided: Whether one of the stacks is a decoder.
        least: The least number of buckets: 2 if there is a decoder alone.
    """
    n, max_distance = c["n_buckets"], js.get(farthest, absent)
    if n < least:
        raise ParamcountError(
            f"= {n} leaves no bucket for near distances", where=buckets, expected=f"an integer of at least {least}"
        )
    near_distances = n // 2 if one_sided else n // 4
    if type(max_distance) is not int or max_distance <= near_distances:
        raise ParamcountError(
            f"= {describe_value(max_distance)} with {n} buckets",
            where=farthest,
            expected=f"an integer of at least {near_distances + 1}",
        )


@options_first
def padding_in_table(js: ConfigJson, c: FieldValues, absent: int | None, *keys: str, more: int = 0) -> None:
    """The padding token is in the token embedding, as the reference requires.

    Args:
        absent: The default of the key.
        keys: Names of the key, the first one present is read. Default: pad_token_id.
        more: The number of rows of the token embedding beyond the vocabulary size.
    """
    key = next((key for key in keys if key in js), "pad_token_id")
    token, n_rows = js.get(key, absent), c["vocab_size"] + more
    if token is not None and (type(token) is not int or not -n_rows <= token < n_rows):
        raise ParamcountError(
            f"= {describe_value(token)} is outside the vocabulary of {n_rows} tokens",
            where=key,
            expected=f"0 to {n_rows - 1}, or null",
        )


@options_first
def positions_from(js: ConfigJson, c: FieldValues, least: int, *keys: str) -> None:
    """The number of positions, with whose table or range the reference begins, is at least `least`.

    `keys`: names of one key, of which the last one present counts. Default: max_position_embeddings.
    """
    present = [key for key in keys or ("max_position_embeddings",) if key in js]
    if present and type(n := js[present[-1]]) is int and n < least:
        raise ParamcountError(f"= {n}", where=present[-1], expected=f"an integer of at least {least}")


def one_rope(js: ConfigJson, c: FieldValues) -> None:
    """The rotary positions are stated once, not for each kind of layer that Qwen 2 and 3 have."""
    key = "rope_scaling" if js.get("rope_scaling") else "rope_parameters"
    words = js.get("layer_types") or (SLIDING if js.get("use_sliding_window", False) else SLIDING[1:])
    for word in words if c["n_layers"] else ():
        if word in (js.get(key) or {}):
            raise ParamcountError(f"has a block for {word}", where=key, expected="one for all layers")


def sliding_layers_have_a_window(js: ConfigJson, c: FieldValues) -> None:
    """No layer uses sliding attention without a window. Qwen has one only if use_sliding_window is true."""
    window = js.get("sliding_window", 4096) if js.get("use_sliding_window", False) else None
    if window is None and "sliding_attention" in (js.get("layer_types") or ()):
        raise ParamcountError(
            "contains sliding_attention, but no window is set",
            where="layer_types",
            expected="use_sliding_window = true and a sliding_window",
        )


@options_first
def grouped_routing(
    js: ConfigJson,
    c: FieldValues,
    groups: int | None,
    kept: int | None,
    keys: tuple[str, ...] = ("n_group",),
    *,
    optional: bool = False,
) -> None:
    """Experts form equal groups of at least two, because DeepSeek-V3's router ranks groups by their two best experts.

    Args:
        groups: The default number of groups.
        kept: The default of topk_group, the number of groups that the router selects.
        keys: Names of the key of the number of groups; the first one present is read.
        optional: Whether null means one group of all experts.
    """
    key = next((key for key in keys if key in js), keys[0])
    n_experts, n_groups, top_k = c["n_routed_experts"], js.get(key, groups), js.get("topk_group", kept)
    if count_dense(c) == c["n_layers"] or (optional and n_groups is None and top_k is None):
        return
    if type(n_groups) is not int or n_groups < 1 or n_experts % n_groups or n_experts // n_groups < 2:
        raise ParamcountError(
            f"= {describe_value(n_groups)} does not split {n_experts} experts into groups of at least two",
            where=key,
            expected=f"a divisor of {n_experts}, at most {n_experts // 2}",
        )
    if type(top_k) is not int or not 0 <= top_k <= n_groups:
        raise ParamcountError(
            f"= {describe_value(top_k)}, but there are {n_groups} groups",
            where="topk_group",
            expected=f"an integer from 0 to {n_groups}",
        )


@options_first
def groups_by_method(js: ConfigJson, c: FieldValues, absent: int | None) -> None:
    """DeepSeek-V2's router chooses the best of all experts, or of the best groups, which are as large as each other.

    `absent`: the default of n_group and topk_group.
    """
    if count_dense(c) == c["n_layers"]:
        return
    method, groups, kept = js.get("topk_method", "greedy"), js.get("n_group", absent), js.get("topk_group", absent)
    n_experts = c["n_routed_experts"]
    if method not in ROUTING_METHODS:
        raise make_choice_error(method, ROUTING_METHODS, where="topk_method")
    if method == "group_limited_greedy" and (groups is None or kept is None or n_experts % groups or kept > groups):
        raise ParamcountError(
            f"= {describe_value(groups)}, with topk_group = {describe_value(kept)} and {n_experts} experts",
            where="n_group",
            expected="a divisor of the number of experts that is at least topk_group",
        )


def routed_sparse_attention(groups: int, kept: int, n_heads: int) -> tuple[Condition, ...]:
    """What DeepSeek-V3.2 and its relatives ask of experts in groups and of MLA for the chosen tokens.

    Args:
        groups: The default number of groups of experts.
        kept: The default of topk_group.
        n_heads: The default of num_key_value_heads.
    """
    return (
        grouped_routing(groups, kept),
        latent_heads_stay_whole(n_heads, masked=True),
        padding_in_table(None),
        experts_named("num_local_experts"),
        not_null("n_routed_experts", "n_group", "topk_group", "num_key_value_heads"),
    )


def angles_fit(js: ConfigJson, c: FieldValues) -> None:
    """MLA's rotary angles fit the rotated part of a head.

    The reference computes angles for head_dim, if the config.json has it, and rotates d_rope values. Their numbers of
    pairs must agree, unless there is a single pair of angles, which interleaved rotation broadcasts.
    """
    if "head_dim" not in js:
        return
    n_pairs = -(-(js["head_dim"] or c["d_model"] // c["n_heads"]) // 2)
    is_broadcast = n_pairs == 1 and js.get("rope_interleave", True)
    if 2 * n_pairs != c["d_rope"] and not is_broadcast:
        raise ParamcountError(
            f"= {describe_value(js['head_dim'])}", where="head_dim", expected=f"{c['d_rope']}, or no such key"
        )


def angles_fit_heads(js: ConfigJson, c: FieldValues) -> None:
    """Rotary angles are for heads of size head_dim, if the config has it, but heads share d_model."""
    d_head = js.get("head_dim")
    if d_head and -(-d_head // 2) * 2 != c["d_head"]:
        raise ParamcountError(
            f"= {describe_value(d_head)}", where="head_dim", expected=f"{c['d_head']}, or no such key"
        )


@options_first
def latent_heads_stay_whole(js: ConfigJson, c: FieldValues, absent: int | None, *, masked: bool = False) -> None:
    """MLA has as many KV heads as heads.

    With fewer in num_key_value_heads, the reference repeats the keys, though every head has its own. It does not if the
    attention kernel handles groups itself, which it never does with a mask.

    Args:
        absent: The default of num_key_value_heads; None for the number of heads.
        masked: Whether the reference always passes a mask.
    """
    n_heads, n_kv_heads = c["n_heads"], js.get("num_key_value_heads", absent)
    if n_kv_heads is None:
        n_kv_heads = n_heads
    kernel_handles_groups = not masked and c["d_nope"] + c["d_rope"] == c["d_v"] <= 256
    if n_heads // n_kv_heads > 1 and not kernel_handles_groups:
        raise ParamcountError(
            f"= {describe_value(n_kv_heads)} for {n_heads} MLA heads",
            where="num_key_value_heads",
            expected=f"{n_heads}; fewer run only with flex attention",
            choices=(n_heads,),
        )


@options_first
def padding_inside(js: ConfigJson, c: FieldValues, absent: int, *tables: str, places: int = 0) -> None:
    """The padding token is in the token embedding and in the other embeddings, as the reference requires.

    Args:
        absent: The default of pad_token_id.
        tables: Fields with the number of rows of other embeddings.
        places: If positions are numbered from the padding token on: the positions that one token needs after it.
            0 if positions are numbered from 0.
    """
    token, n_rows = js.get("pad_token_id", absent), min(c[table] for table in ("vocab_size", *tables))
    if token is None and not places:
        return
    if not isinstance(token, int) or not -n_rows <= token < n_rows:
        outside = "" if token is None else f" is outside a vocabulary of {n_rows} tokens"
        raise ParamcountError(
            f"= {describe_value(token)}{outside}",
            where="pad_token_id",
            expected=f"0 to {n_rows - 1}",
        )
    if places and not -c["n_positions"] <= token <= c["n_positions"] - places:
        raise ParamcountError(
            f"= {c['n_positions']} with pad_token_id = {token}",
            where="n_positions",
            expected=f"at least {token + places}",
        )


@options_first
def positions_after_padding(js: ConfigJson, c: FieldValues, absent: int) -> None:
    """Positions are numbered from behind the padding token on, whose own row the reference clears.

    The reference computes two rows more than n_positions. `absent`: the default of pad_token_id.
    """
    token, n_rows = js.get("pad_token_id", absent), c["n_positions"] + 2
    if not isinstance(token, int) or not -1 <= token < n_rows:
        raise ParamcountError(
            f"= {describe_value(token)}, but positions are numbered from the next id on",
            where="pad_token_id",
            expected=f"0 to {n_rows - 1}",
        )


def make_key_error(js: ConfigJson, key: str, absent: object, expected: str) -> ParamcountError:
    """The error for the value of a key, named with its section. `absent`: the reference's default."""
    return make_value_error(js.get(key, absent), getattr(js, "prefix", "") + key, expected)


def make_value_error(value: object, where: Text, expected: Text) -> ParamcountError:
    """The error for a value that is not what is expected there.

    >>> print(make_value_error("12", "patch_size", "an integer"))
    patch_size = '12' (expected an integer)
    """
    return ParamcountError(f"= {describe_value(value)}", where=where, expected=expected)


@options_first
def one_of(js: ConfigJson, c: FieldValues, key: str, choices: tuple[str, ...], absent: str) -> None:
    """A string from a fixed set that no weight depends on. `absent`: the reference's default."""
    word = js.get(key, absent)
    if word not in choices:
        raise make_choice_error(word, choices, where=getattr(js, "prefix", "") + key)


def encoder_has_image_size(js: ConfigJson, c: FieldValues) -> None:
    """The vision encoder has image_size, which the projector reads: SigLIP 2 has none of its own."""
    section = js.get("vision_config")
    if not isinstance(section, Mapping) or section.get("model_type") != "siglip2_vision_model":
        return
    if section.get("image_size") is None:
        raise ParamcountError("is missing", where="vision_config.image_size", expected="a positive integer")


def memory_needs_a_decoder(js: ConfigJson, c: FieldValues) -> None:
    """Only a decoder has cross-attention."""
    if c["cross_attention"] and not c["is_decoder"]:
        raise ParamcountError(
            "= true, but is_decoder = false", where="add_cross_attention", expected="is_decoder = true"
        )


def without_experts(js: ConfigJson, c: FieldValues) -> None:
    """Rejects experts: some publishers release MoE models with the model type of their dense models, but other code."""
    for key in ("num_experts", "num_local_experts"):
        if js.get(key):
            raise ParamcountError(
                f"= {describe_value(js[key])}, but paramcount does not support experts for this model type",
                where=key,
                expected="0, or no such key",
            )


def experts_in_every_layer(js: ConfigJson, c: FieldValues) -> None:
    """Rejects dense layers between MoE layers: DeepSeek's own code supports them, but no release has any."""
    if js.get("moe_layer_freq", 1) != 1:
        raise ParamcountError(
            f"= {describe_value(js['moe_layer_freq'])} is not supported", where="moe_layer_freq", expected="1"
        )
