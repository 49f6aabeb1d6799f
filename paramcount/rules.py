"""What sizes must fulfil together: rules that hold wherever their fields exist, and those that an architecture asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from paramcount.errors import ParamcountError, near, shown
from paramcount.schema_errors import from_pydantic
from paramcount.sizes import MOST_NAMED, SLIDING, Condition, Sizes


def divides(c: Sizes, small: str, large: str) -> None:
    a, b = getattr(c, small), getattr(c, large)
    if b % a:
        divisors = [d for d in range(1, min(b, 4096) + 1) if b % d == 0]
        accepted = ", ".join(map(str, divisors[:24])) + (f", … {b}" if divisors[:24][-1] < b else "")
        raise ParamcountError(f"= {a} does not divide {large} = {b}", where=small, accepted=accepted)


def at_most(c: Sizes, small: str, large: str) -> None:
    if getattr(c, small) > getattr(c, large):
        raise ParamcountError(f"= {getattr(c, small)} is more than {large} = {getattr(c, large)}", where=small, accepted=f"at most {getattr(c, large)}")


def visits_fit(c: Any, active: str, routed: str) -> None:
    """No more experts visited than there are, where a layer has experts at all."""
    dense = c.n_dense_layers if hasattr(c, "n_dense_layers") else len(getattr(c, "dense_layers", ()))
    if not dense or dense < c.n_layers:
        at_most(c, active, routed)


def heads_fill(c: Any, heads: str = "n_heads", width: str = "d_head") -> None:
    """For architectures whose reference cuts d_model into heads and nothing else. `heads`, `width`: the fields."""
    n, d = getattr(c, heads), getattr(c, width)
    if n * d != c.d_model:
        raise ParamcountError(f"= {n} × {d} = {n * d} is not d_model = {c.d_model}", where=f"{heads} × {width}", accepted=f"{c.d_model}")


def stacks_fill(c: Any) -> None:
    """The same of an encoder and a decoder, which may differ in their heads."""
    heads_fill(c, "n_encoder_heads", "d_encoder_head")
    heads_fill(c, "n_decoder_heads", "d_decoder_head")


def both_stacks(*alone: str) -> Condition:
    """For encoder-decoders: classes that hold one of the stacks only are not supported."""

    def condition(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
        first = (js.get("architectures") or [""])[0]
        if first in alone:
            raise ParamcountError(f"= {shown(first)}, half an encoder-decoder, is not supported", where="architectures.0", accepted="a class with both stacks")

    return condition


def even(c: Sizes, width: str) -> None:
    """Rotary positions turn a width in pairs; a width of 1 meets its pair of angles by broadcasting, so the reference runs it."""
    if getattr(c, width) % 2 and getattr(c, width) != 1:
        raise ParamcountError(f"= {getattr(c, width)} cannot be rotated in pairs", where=width, accepted="an even number")


def in_pairs(c: Sizes, width: str) -> None:
    """Where neighbours are turned together, a width of 1 cannot run either."""
    if getattr(c, width) == 1:
        raise ParamcountError("= 1 cannot be rotated in pairs", where=width, accepted="an even number")


def even_where_rotated(*words: str, named: bool = False) -> Condition:
    """Where only layers of these words rotate their heads. The reference also asks it of a head wider than 4 that no layer rotates, if
    it has head_dim, from config.json or (`named`) by default."""

    def condition(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
        d_head, turning = c["d_head"], any(word in words for word in c["layer_types"])
        if d_head % 2 and d_head > 1 and (turning or (d_head > 4 and (named or "head_dim" in js))):
            raise ParamcountError(f"= {d_head} cannot be rotated in pairs", where="d_head", accepted="an even number")

    return condition


def experts_exist(c: Any) -> None:
    """Numbers of experts may be 0 only where no layer has any."""
    dense = c.n_dense_layers if hasattr(c, "n_dense_layers") else len(c.dense_layers)
    for field in ("n_routed_experts", "n_active_experts"):
        if dense < c.n_layers and getattr(c, field) < 1:
            raise ParamcountError("= 0, but layers have experts", where=field, accepted="a whole number from 1")


def attention_words(*known: str) -> Condition:
    """The words that layer_types may hold where no weight depends on them: the reference has a mask for these and no others."""

    def condition(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
        for i, word in enumerate(js.get("layer_types") or ()):
            if word not in known and word != "attention":  # the older word for full_attention
                raise ParamcountError(f"= {shown(word)}", where=f"layer_types.{i}", accepted=", ".join(known), nearest=near(word, known))

    return condition


def not_null(*keys: str) -> Condition:
    """The reference refuses null for these keys, also where another key stands before them."""

    def condition(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
        for key in keys:
            if key in js and js[key] is None:
                raise ParamcountError("= null", where=key, accepted="a value, or no such key")

    return condition


def padding_in_table(absent: int | None, *keys: str, more: int = 0) -> Condition:
    """The row for padding has to be in the token table, where the reference names it to its table. `absent`: without a key.
    `keys`: the first that is present counts; pad_token_id unless given. `more`: rows of the table beside the vocabulary's."""

    def condition(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
        key = next((key for key in keys if key in js), "pad_token_id")
        row, n = js.get(key, absent), c["vocab_size"] + more
        if row is not None and (type(row) is not int or not -n <= row < n):
            raise ParamcountError(f"= {shown(row)} is no row of a table with {n}", where=key, accepted="a row of the table, or null")

    return condition


def sliding_layers_have_a_window(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
    """Qwen's keys: without use_sliding_window there is no window, so no layer may look back over one."""
    window = js.get("sliding_window", 4096) if js.get("use_sliding_window", False) else None
    if window is None and "sliding_attention" in (js.get("layer_types") or ()):
        raise ParamcountError("names sliding_attention without a window", where="layer_types", accepted="use_sliding_window = true and a sliding_window")


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


def sliding_or_full(c: Any) -> None:
    """One word a layer, and a window where a layer slides over one."""
    one_of_each(c, "layer_types", "n_layers", SLIDING)
    if c.window is None and "sliding_attention" in c.layer_types:
        raise ParamcountError("= null, but layers look back over it", where="window", accepted="a whole number")


def groups_share_experts(js: Mapping[str, Any], c: Mapping[str, Any], absent: int = 1) -> None:
    """Routing by groups: as many experts in each. `absent`: the reference's number of groups."""
    groups, n = js.get("n_group", absent), c["n_routed_experts"]
    if groups is not None and n % groups:
        raise ParamcountError(f"= {shown(groups)} does not divide {n} experts", where="n_group", accepted="a divisor")


def grouped_routing(groups: int | None, kept: int | None, keys: tuple[str, str] = ("n_group", "topk_group"), *, optional: bool = False) -> Condition:
    """Experts chosen group by group, as DeepSeek-V3 does: as many in each group and at least the two that a group is judged by.
    `groups`, `kept`: where the keys are absent. `optional`: null means one group of all experts."""

    def fits(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
        dense = c["n_dense_layers"] if "n_dense_layers" in c else len(c.get("dense_layers", ()))
        n, n_groups, n_kept = c["n_routed_experts"], js.get(keys[0], groups), js.get(keys[1], kept)
        if dense == c["n_layers"] or (optional and n_groups is None and n_kept is None):
            return
        if type(n_groups) is not int or n_groups < 1 or n % n_groups or n // n_groups < 2:
            raise ParamcountError(f"= {shown(n_groups)} for {n} experts", where=keys[0], accepted="a divisor that leaves two in each group")
        if type(n_kept) is not int or not 0 <= n_kept <= n_groups:
            raise ParamcountError(f"= {shown(n_kept)} of {n_groups} groups", where=keys[1], accepted=f"at most {n_groups}")

    return fits


def angles_fit(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
    """Latent attention whose reference makes the angles for head_dim, if config.json has it, and turns d_rope with them: as many pairs,
    or one pair for all where neighbours are turned together."""
    if "head_dim" in js:
        pairs = -(-(js["head_dim"] or c["d_model"] // c["n_heads"]) // 2)
        if 2 * pairs != c["d_rope"] and not (pairs == 1 and js.get("rope_interleave", True)):
            raise ParamcountError(f"= {shown(js['head_dim'])}", where="head_dim", accepted=f"{c['d_rope']}, or no such key")


def latent_heads_stay_whole(absent: int | None, *, masked: bool = False) -> Condition:
    """The reference takes latent attention's keys, which are of every head, for grouped ones where num_key_value_heads says so, and
    repeats them unless the kernel does it, which it does not behind a mask. `absent`: its number of key heads, None for as many as heads."""

    def condition(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
        n_kv_heads = js.get("num_key_value_heads", absent) if js.get("num_key_value_heads", absent) is not None else c["n_heads"]
        if c["n_heads"] // n_kv_heads > 1 and (masked or not c["d_nope"] + c["d_rope"] == c["d_v"] <= 256):
            raise ParamcountError(f"= {shown(n_kv_heads)} for {c['n_heads']} latent heads", where="num_key_value_heads", accepted=f"{c['n_heads']}")

    return condition


def padding_inside(absent: int, *tables: str, places: int = 0) -> Condition:
    """The reference asks that the padding token has a row in the token table and in others that `tables` name by their sizes.
    `absent`: its number. `places`: how many rows of the table of places, which counts from behind the padding, a text of one token
    needs behind that number; 0 where it counts from 0."""

    def condition(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
        pad, n = js.get("pad_token_id", absent), min(c[table] for table in ("vocab_size", *tables))
        if pad is None and not places:
            return
        if not isinstance(pad, int) or not -n <= pad < n:
            raise ParamcountError(f"= {shown(pad)} of {n} rows", where="pad_token_id", accepted=f"0 to {n - 1}")
        if places and not -c["n_positions"] <= pad <= c["n_positions"] - places:
            raise ParamcountError(f"= {c['n_positions']} with padding at {pad}", where="n_positions", accepted=f"at least {pad + places}")

    return condition


def one_of(key: str, known: tuple[str, ...], absent: str) -> Condition:
    """A word that no weight depends on. `absent`: the reference's."""

    def condition(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
        word = js.get(key, absent)
        if word not in known:
            raise ParamcountError(f"= {shown(word)}", where=key, accepted=", ".join(known), nearest=near(word, known))

    return condition


def projected_where_it_differs(c: Any) -> None:
    """The reference leads embeddings to d_model where they are of another width, and nowhere else."""
    if c.embeddings_projected != (c.d_embedding != c.d_model):
        raise ParamcountError(
            f"= {shown(c.embeddings_projected)} for widths {c.d_embedding} and {c.d_model}", where="embeddings_projected", accepted="true where they differ"
        )


def memory_needs_a_decoder(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
    if c["cross_attention"] and not c["is_decoder"]:
        raise ParamcountError("= true in an encoder", where="add_cross_attention", accepted="is_decoder = true beside it")


def without_experts(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
    """Some publishers release a mixture of experts, with other code, under the model type of their dense models."""
    for key in ("num_experts", "num_local_experts"):
        if js.get(key):
            raise ParamcountError("is of a mixture of experts under this model type, which is not supported", where=key, accepted="0, or no such key")


# Rules that hold wherever both fields exist.
RULES: tuple[tuple[Callable[[Sizes, str, str], None], str, str], ...] = (
    (divides, "n_kv_heads", "n_heads"),
    (divides, "n_groups", "n_mamba_heads"),
    (divides, "n_linear_k_heads", "n_linear_v_heads"),
    (visits_fit, "n_active_experts", "n_routed_experts"),
    (at_most, "n_dense_layers", "n_layers"),
    (below, "dense_layers", "n_layers"),
    (below, "unrotated_layers", "n_layers"),
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
    fields, idle = type(sizes).model_fields, sizes.idle()
    for rule, small, large in RULES:
        if small in fields and large in fields and small not in idle:
            rule(sizes, small, large)
    if sizes.rotated and sizes.rotated not in idle:
        even(sizes, sizes.rotated)
    sizes.check()
    for name in fields:
        if isinstance(inner := getattr(sizes, name), Sizes):
            try:
                consistent(inner)
            except ParamcountError as error:
                raise error.inside(name) from None
