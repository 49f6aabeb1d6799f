"""Keys of a config.json from which the reference derives the sizes that have no key of their own.

A derivation cannot be turned around. But a size is stated in few ways: likely values of the keys that its derivation
reads are tried, and a key stays if the reference then derives more of the sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import zip_longest
from math import ceil, isqrt, prod
from typing import Any

from paramcount.errors import ParamcountError
from paramcount.huggingface.fields import BROKEN_BY_VALUE, ConfigField, RecordingConfig, list_fields
from paramcount.sizes import Sizes, Tower, inner_configs
from paramcount.sizes.values import to_json

LARGEST_STEP = 8  # between layers of one kind
BELOW_STEP = 128  # hidden sizes of an MLP are rounded up to a multiple of 256
MOST_KEYS = 3  # that a size needs at once
ATTENTION_TYPES = {"full_attention": 1, "linear_attention": 0, "lightning_attention": 0}  # MiniMax-01's
Configs = tuple[Mapping[str, Any], Mapping[str, Any]]  # the section of a block, and the whole config.json
Guess = Callable[[Any, Mapping[str, Any], Any], Iterable[Any]]  # of the size, its block and the key's value so far


def list_derived(sizes: Sizes) -> list[ConfigField]:
    """The fields without a key, in the order in which they are read."""
    return [field for field in list_fields(type(sizes)) if field.inner is None and not field.spellings]


def list_values(architecture: type[Sizes], sizes: Any) -> dict[str, Any]:
    """The values of a block as derivations get them: a part of another model type is an object, others are not.

    `sizes`: with numbers or with symbols.
    """
    inner, named = inner_configs(architecture), architecture.named_parts
    return {
        name: list_values(inner[name], value)
        if name in inner and value is not None and name not in named and inner[name] not in (Sizes, Tower)
        else value
        for name, value in sizes.__dict__.items()
        if name in architecture.fields
    }


def derive(
    field: ConfigField, config: Mapping[str, Any], values: Mapping[str, Any]
) -> tuple[Any, list[str], list[str]]:
    """(the value that the reference derives, or an error if it refuses; the keys and the sizes that it reads)."""
    recorder, sizes = RecordingConfig(config), RecordingConfig(values)
    try:
        value = field.absent(recorder, sizes) if callable(field.absent) else field.absent
    except (ParamcountError, *BROKEN_BY_VALUE) as error:
        value = error
    value = tuple(value) if type(value) is list else value
    return value, list(dict.fromkeys(recorder.accessed)), list(dict.fromkeys(sizes.accessed))


def find_keys(sizes: Sizes, configs: Configs, read: Collection[str]) -> Iterator[tuple[bool, str, Any]]:
    """(whether it is at the root, key, value) of keys to add, so that the sizes of a block are derived from them.

    `read`: the keys from which other fields of the block are read.
    """
    fields, values = list_derived(sizes), list_values(type(sizes), sizes)

    def list_wrong(configs: Configs) -> list[tuple[ConfigField, list[str]]]:
        found = [(field, *derive(field, configs[field.at_root], values)) for field in fields]
        return [(field, keys) for field, value, keys, _ in found if value != values[field.name]]

    def find_better(configs: Configs, n_wrong: int, most: int) -> list[tuple[bool, str, Any]]:
        """At most so many keys, after which fewer sizes are wrong; empty if none are found."""
        for field, keys in list_wrong(configs):
            config = configs[field.at_root]
            for key in keys:
                for value in () if key in read else guess(key, values[field.name], values, config.get(key)):
                    tried = replace_key(configs, field.at_root, key, value)
                    if len(list_wrong(tried)) < n_wrong:
                        return [(field.at_root, key, value)]
                    if most > 1 and (others := find_better(tried, n_wrong, most - 1)):
                        return [(field.at_root, key, value), *others]
        return []

    while wrong := list_wrong(configs):
        found = next(filter(None, (find_better(configs, len(wrong), most) for most in range(1, MOST_KEYS + 1))), [])
        if not found:
            return
        yield from found
        for at_root, key, value in found:
            configs = replace_key(configs, at_root, key, value)


def replace_key(configs: Configs, at_root: bool, key: str, value: Any) -> Configs:
    section, root = configs
    return (section, {**root, key: value}) if at_root else ({**section, key: value}, root)


def guess(key: str, value: Any, c: Mapping[str, Any], old: Any) -> Iterator[Any]:
    """Likely values of a key from which a size is derived."""
    if key in GUESSES:
        with suppress(*BROKEN_BY_VALUE):  # it is for another size
            yield from GUESSES[key](value, c, old)
    if isinstance(value, tuple):
        yield to_json(value)
        yield len(value)
    elif value is not None:
        yield value
    yield from (True, False)


def guess_share(value: Any, c: Mapping[str, Any], old: Any) -> Iterable[float]:
    """The share of each head that is rotated; null may stand for all of it."""
    return [1.0, 0.0] if value is None else [value / c["d_head"]]


def guess_shares(value: Any, c: Mapping[str, Any], old: Any) -> Iterable[list[float]]:
    """The share of each head that is rotated, for each layer."""
    widths = {"full_attention": c["d_rope"], "sliding_attention": c["d_rope_sliding"]}
    return [[widths[kind] / c["d_head"] for kind in c["layer_types"]]]


def guess_rope(value: Any, c: Mapping[str, Any], old: Any) -> Iterator[dict[str, Any]]:
    """The share of each head that is rotated, in all layers or in layers of one kind; or the kinds that rotate any."""
    rope = old if isinstance(old, dict) else {}
    if isinstance(value, tuple):
        yield {**rope, **{kind: None for kind in c["layer_types"] if kind not in value}}
        return
    for share in guess_share(value, c, old):
        added = {"partial_rotary_factor": share}
        yield {**rope, **added}
        kinds = [kind for kind, block in rope.items() if isinstance(block, dict)]
        yield {**rope, **{kind: {**rope[kind], **added} for kind in kinds}}
        for kind in kinds:
            yield {**rope, kind: {**rope[kind], **added}}


def guess_image_size(value: Any, c: Mapping[str, Any], old: Any) -> Iterator[Any]:
    """A square image with so many patches, or so many along a side; otherwise the one that is nearest to a square."""
    side, patch = isqrt(value), c["patch_size"]
    yield from (side * patch, value * patch)
    width = next(n for n in range(side, 0, -1) if value % n == 0)
    yield [value // width * patch, width * patch]


def guess_steps(value: Any, c: Mapping[str, Any], old: Any) -> Iterable[int]:
    return range(1, LARGEST_STEP + 1)


def guess_marks(listed: Any, other: Any) -> Guess:
    """A mark for each layer: whether a size lists it."""
    return lambda value, c, old: [[listed if i in value else other for i in range(c["n_layers"])]]


def guess_groups(value: Any, c: Mapping[str, Any], old: Any) -> Iterable[list[list[int]]]:
    """Each layer with those after it that share its keys and values."""
    firsts = [i - 1 for i in value if i - 1 not in value]
    ends = [i + 1 for i in value if i + 1 not in value]
    return [[list(range(first, end)) for first, end in zip(firsts, ends)]]


def guess_blocks(value: Any, c: Mapping[str, Any], old: Any) -> Iterable[list[Any]]:
    """The attention and the MLP of each layer, as DeciLM has them."""
    attentions = [
        {word: True}
        if word != "full_attention"
        else {"n_heads_in_group": c["n_heads"] // n, "window_length": window or None}
        for word, n, window in zip_longest(c["layer_types"], c["n_kv_heads_by_layer"], c["window_by_layer"])
    ]
    mlps = [
        {word: True} if word != "gated" else {"ffn_mult": 3 * (d_ff - BELOW_STEP) / (2 * c["d_model"])}
        for word, d_ff in zip(c["mlp_types"], c["d_ff_by_layer"])
    ]
    return [[{"attention": attention, "ffn": mlp} for attention, mlp in zip(attentions, mlps)]]


def guess_bandwidths(value: Any, c: Mapping[str, Any], old: Any) -> Iterable[list[float]]:
    """One in kbit per second that has room for so many codebooks, at EnCodec's default sampling rate."""
    bits = ceil(24_000 / prod(c["rates"])) * (c["n_codes"] - 1).bit_length()
    return [[(len(value) + 0.5) * bits / 1000]]


GUESSES: dict[str, Guess] = {
    "upsampling_ratios": lambda value, c, old: [list(value[::-1])],
    "target_bandwidths": guess_bandwidths,
    "image_size": guess_image_size,
    "partial_rotary_factor": guess_share,
    "rotary_pct": guess_share,
    "partial_rotary_factors": guess_shares,
    "rope_parameters": guess_rope,
    "moe_layer_frequency": guess_steps,
    "encoder_sparse_step": guess_steps,
    "decoder_sparse_step": guess_steps,
    "cla_share_factor": guess_steps,
    "num_sparse_encoder_layers": lambda value, c, old: [value.count("sparse")],
    "num_sparse_decoder_layers": lambda value, c, old: [value.count("sparse")],
    "global_attn_idx": lambda value, c, old: [[i for i, kind in enumerate(value) if kind == "full_attention"]],
    "attn_layer_indices": lambda value, c, old: [[i for i, kind in enumerate(value) if kind == "attention"]],
    "attn_type_list": lambda value, c, old: [[ATTENTION_TYPES.get(kind) for kind in value]],
    "moe_layers": lambda value, c, old: [[i for i in range(c["n_layers"]) if i not in value]],
    "moe_layer_freq": guess_marks(0, 1),
    "mlp_layer_types": guess_marks("dense", "sparse"),
    "mlp_ratio": lambda value, c, old: [value / c["d_model"], (value + 0.5) / c["d_model"]],  # only whole parts count
    "indexer_types": guess_marks("shared", "full"),
    "position_embedding_type": lambda value, c, old: ["rotary", "absolute"],
    "num_ln_in_parallel_attn": lambda value, c, old: [1, 2],
    "norm_type": lambda value, c, old: ["layer_norm", "rms_norm", "time_group_norm"],
    "norm_rel_ebd": lambda value, c, old: ["layer_norm"],
    "intermediate_size": lambda value, c, old: [2 * value],
    "sliding_window": lambda value, c, old: [2 * value],
    "attention_window": lambda value, c, old: [[2 * n for n in value]],
    "v_channels": lambda value, c, old: [value * c["n_heads"]],
    "bias_max_distance": lambda value, c, old: [value // 2],
    "kv_reuse_group": guess_groups,
    "block_configs": guess_blocks,
    "ple_layer_ids": lambda value, c, old: [[i + 1 for i in value]],
    "summary_idxs": lambda value, c, old: [list(range(value))],
    "num_code_groups": lambda value, c, old: [len(value) + 1],
    "downsample_rate": lambda value, c, old: [f"{c['query_side']}/{c['window_side']}"],
    "qk_channels": lambda value, c, old: [value * c["n_heads"]],
    "qkv_hidden_size": lambda value, c, old: [value * c["n_heads"]],
}
