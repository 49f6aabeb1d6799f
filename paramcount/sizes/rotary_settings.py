"""The settings of rotary positions: which part of a config.json describes them, for all layers or for layers of one
kind, and what the reference refuses.

Source: RotaryEmbeddingConfigMixin in modeling_rope_utils.py of the reference, and the config classes that have their
own convert_rope_params_to_dict.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from math import log, sqrt
from typing import Any

from paramcount import flow as ops
from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Rope
from paramcount.sizes.derivations import part_of
from paramcount.sizes.fields import FieldValues, find_reference_default
from paramcount.sizes.setting_fields import USUAL_KINDS, Config, Setting
from paramcount.sizes.setting_kinds import Kind
from paramcount.sizes.settings import ROPE_KEYS, UNFILLED_ROPE_KEYS

FROM_ORIGINAL = ("llama3", "yarn", "longrope")  # kinds that read the context length before scaling
USUAL_BASE, USUAL_POSITIONS = 10_000.0, 2048  # of a config class that states none
THETA, POSITIONS = "rope_theta", "max_position_embeddings"
SHARE, ORIGINAL = "partial_rotary_factor", "original_max_position_embeddings"


def rotary(
    base: float | None = None,
    positions: int | None = None,
    absent: Config | None = None,
    *,
    key: str = THETA,
    share: float | None = None,
    share_key: str = SHARE,
    scaled: bool = True,
    head_key: str = "",
) -> Any:
    """The setting of rotary positions that are the same in all layers.

    Args:
        base: The default of the base. None: that of the reference's config class.
        positions: The default of max_position_embeddings. None: that of the reference's config class.
        absent: The default of rope_parameters, with a base of its own.
        key: The key of the base outside of rope_parameters.
        share: The default of partial_rotary_factor; None if heads rotate as a whole.
        share_key: The key of the share outside of rope_parameters.
        scaled: Whether rope_parameters is read at all.
        head_key: The key of the head size whose share the angles are for, if heads have another size.
    """

    def find_block(config: Config, base: float) -> Config:
        block = find_parameters(config, absent) if scaled else {}
        outside = find_base(block, config, key, base)
        kind = find_kind(block)
        if share is not None or (kind != "default" and config.get(share_key) is not None):
            stated = config.get(share_key, share)
            outside[SHARE] = 1.0 if stated is None else stated
        if kind in FROM_ORIGINAL and config.get(ORIGINAL):
            return overlay({ORIGINAL: config[ORIGINAL]}, block, outside)
        return overlay(block, outside)

    def read(config: Config, sizes: Any) -> Rope:
        known = type(sizes)
        block = find_block(config, base or find_reference_default(known, (THETA,), USUAL_BASE))
        n_positions = positions or find_reference_default(known, (POSITIONS,), USUAL_POSITIONS)
        rope = make_rope(find_kind(block), block[THETA], block, config, n_positions)
        return rope if share is None else mark_odd(rope, config.get(head_key) or sizes.d_head, block[SHARE])

    def check(config: Config, c: FieldValues) -> None:
        is_scaled = scaled and (absent or config.get("rope_scaling") or config.get("rope_parameters"))
        if (
            not is_scaled and config.get(key, USUAL_BASE) is not None
        ):  # as in most models: there is nothing else to check
            return
        block = find_block(config, base or USUAL_BASE)
        where = "rope_scaling" if config.get("rope_scaling") else "rope_parameters"
        for word in sorted(set(c.get("layer_types") or ())) if scaled else ():
            if word in block:
                raise ParamcountError(f"has a block for {word}", where=where, expected="one for all layers")
        check_base(block, f"{where}.{THETA}" if THETA in find_parameters(config, absent) else key)
        check_dynamic(block, c, where, of_head=share is not None)
        if share is None:
            check_whole(block, c, where)
        elif find_kind(block) == "yarn" and part_of(c["d_head"], block[SHARE]) % 2:
            found = f"= {describe_value(block[SHARE])} rotates an odd number of values of a head"
            raise ParamcountError(found, where=f"{where}.{SHARE}", expected="pairs, as YaRN requires")

    return Setting((), read, check=check)


def unchecked(rope: Setting, kinds: Mapping[str, Kind] = USUAL_KINDS) -> Any:
    """The same setting of models that need not rotate by it, so that the reference does not refuse a missing base.
    `kinds`: of keys that are not those in KEY_KINDS.
    """
    return Setting((), rope.default, kinds=kinds)


def rotary_of(
    word: str,
    absent: Config,
    positions: int = 2048,
    *,
    base: float | None = None,
    share: float | None = None,
    optional: bool = False,
    reads_share: bool = False,
) -> Any:
    """The setting of rotary positions of one kind of layers, which have a block of rope_parameters.

    Args:
        word: The kind of layer.
        absent: The default of rope_parameters: a block for each kind of layer.
        positions: The default of max_position_embeddings.
        base: The default of rope_theta for blocks without a base. None: each block has its own, and rope_scaling
            replaces rope_parameters even if it is null.
        share: The default of partial_rotary_factor in a block; None if heads rotate as a whole.
        optional: Whether the layers do not rotate if their block is null.
        reads_share: Whether unscaled angles are computed for a share of the head, too, though it rotates as a whole.
    """

    def find_blocks(config: Config) -> Any:
        replaced = base is None and "rope_scaling" in config
        return config["rope_scaling"] if replaced else find_parameters(config, absent)

    def find_block(config: Config) -> Any:
        block = get_block(find_blocks(config), word)
        return block if base is None or block is None else overlay(block, find_base(block, config, THETA, base))

    def read(config: Config, sizes: Any) -> Rope:
        block = find_block(config)
        if block is None:
            raise LookupError(word)
        rope = read_layer_block(block, find_blocks(config), config, positions)
        absent_share = share if find_kind(block) == "default" else 1.0
        return rope if share is None else mark_odd(rope, sizes.d_head, block.get(SHARE, absent_share))

    def check(config: Config, c: FieldValues) -> None:
        if word not in c["layer_types"]:
            return
        where = "rope_scaling" if "rope_scaling" in config else "rope_parameters"
        block = find_block(config)
        if block is None and optional and word in (find_blocks(config) or {}):
            return
        if block is None:
            raise ParamcountError(f"has no {word}", where=where, expected="an object for each of layer_types")
        check_base(block, f"{where}.{word}.{THETA}")
        check_dynamic(block, c, f"{where}.{word}", of_head=share is not None)
        if share is None:
            check_whole(block, c, f"{where}.{word}", unscaled=reads_share)
        for name in UNFILLED_ROPE_KEYS.get(find_kind(block), ()) if base is None else ():
            if name not in block:
                raise ParamcountError("is missing", where=f"{where}.{word}.{name}", expected="a number")

    return Setting((), read, check=check)


def filled_rotary(word: str, base: float, positions: int = 2048, *, key: str = THETA, scaled: bool = True) -> Any:
    """The setting of rotary positions of one kind of layers, whose block of rope_parameters the reference fills in.

    Args:
        word: The kind of layer.
        base: The default of the base.
        positions: The default of max_position_embeddings.
        key: The key of the base outside of rope_parameters.
        scaled: Whether rope_scaling holds for these layers.
    """

    def find_block(config: Config) -> Config:
        given = config.get("rope_parameters")
        block = {"rope_type": "default"} if given is None else get_block(given, word) or {}
        # An older `type` in rope_scaling changes nothing beside the rope_type of the default.
        scaling = (config.get("rope_scaling") or {}) if scaled else {}
        stated = overlay(scaling, block)
        return overlay(stated, find_base(stated, config, key, base))

    def read(config: Config, sizes: Any) -> Rope:
        return read_layer_block(find_block(config), config.get("rope_parameters"), config, positions)

    def check(config: Config, c: FieldValues) -> None:
        given = config.get("rope_parameters")
        if scaled and config.get("rope_scaling") is not None and given is not None and get_block(given, word) is None:
            expected = f"an object for {word}, because rope_scaling changes it"
            raise ParamcountError(f"has no {word}", where="rope_parameters", expected=expected)
        if word in c["layer_types"]:
            block = find_block(config)
            blocks = {f"rope_parameters.{word}": get_block(given, word), "rope_scaling": config.get("rope_scaling")}
            check_base(block, next((f"{where}.{THETA}" for where, own in blocks.items() if own and THETA in own), key))
            check_dynamic(block, c, f"rope_parameters.{word}")
            outside = {} if config.get(SHARE) is None else {SHARE: config[SHARE]}
            check_whole(overlay(block, outside), c, f"rope_parameters.{word}")

    return Setting((), read, check=check)


def find_parameters(config: Config, absent: Config | None) -> Config:
    """What describes the rotary positions: rope_scaling, else rope_parameters, whose default is `absent`."""
    given: Any = config.get("rope_scaling") or config.get("rope_parameters")
    return (absent or {}) if given is None else given


def find_base(block: Config, config: Config, key: str, base: float) -> dict[str, Any]:
    """The base outside of a block that has none. Whether it is there is asked in any case: an entry may state both."""
    is_stated = key in config
    return {} if THETA in block else {THETA: config[key] if is_stated else base}


def overlay(*mappings: Config) -> Config:
    """One mapping with the keys of several, of which the first counts; no key is looked up that nobody asks for."""
    layers: Any = mappings
    return ChainMap(*layers)


def get_block(parameters: Any, word: str) -> Config | None:
    """The block of a kind of layers; None if there is none."""
    block = parameters.get(word) if isinstance(parameters, Mapping) else None
    return block if isinstance(block, Mapping) else None


def find_kind(block: Config) -> str:
    return str(block.get("rope_type", block.get("type", "default")))


def read_layer_block(block: Config, parameters: Config | None, config: Config, positions: int) -> Rope:
    """The rotary positions that the block of a kind of layers describes. `parameters`: all of rope_parameters.

    The reference looks up `truncate` beside the blocks, and does not copy the original context length into them.
    """
    others = overlay({ORIGINAL: None}, config)
    rounds = {"truncate": True if parameters is None else parameters.get("truncate", True)}
    return make_rope(find_kind(block), block[THETA], overlay(rounds, block), others, positions)


def mark_odd(rope: Rope, d_head: int, share: float) -> Rope:
    """The same rotary positions, if need be of an odd number of values in each head."""
    return rope if rope.kind == "proportional" else rope._replace(is_odd=part_of(d_head, share) % 2 == 1)


def check_base(block: Config, where: str) -> None:
    if block.get(THETA) is None:
        raise ParamcountError("= null" if THETA in block else "is missing", where=where, expected="a positive number")
    if block[THETA] == 1 and find_kind(block) == "yarn":
        raise ParamcountError("= 1", where=where, expected="another base: YaRN divides by its logarithm")


def check_dynamic(block: Config, c: FieldValues, where: str, *, of_head: bool = False) -> None:
    """The reference divides by the rotary dimension minus 2 when it scales with the length of the text.

    `of_head`: whether that dimension is a share of a head, even if a field has it.
    """
    d = c.get("d_head") if of_head else c.get("d_rope", c.get("d_head"))
    share = block.get(SHARE, 1.0)
    if find_kind(block) == "dynamic" and isinstance(d, int) and part_of(d, share) == 2:
        found = "= dynamic for a rotary dimension of 2"
        raise ParamcountError(found, where=f"{where}.rope_type", expected="another type, or a larger rotary dimension")


def check_whole(block: Config, c: FieldValues, where: str, *, unscaled: bool = False) -> None:
    """The reference computes scaled angles for a share of the head that its layers do not rotate alone.

    `unscaled`: whether it does so for other angles, too.
    """
    share, d = block.get(SHARE, 1.0), c.get("d_rope", c.get("d_head"))
    kind = find_kind(block)
    is_shared = kind in ROPE_KEYS and kind != "proportional" and (unscaled or kind != "default")
    if not is_shared or not isinstance(share, (int, float)) or not isinstance(d, int):
        return
    n = int(d * share)
    if n + n % 2 != d + d % 2:
        raise ParamcountError(
            f"= {describe_value(share)}, but the layers rotate whole heads", where=f"{where}.{SHARE}", expected="1"
        )


def axial_rope(config: Config, sizes: Any) -> Rope:
    """The rotary positions of rows and columns, which are never scaled."""
    base = (config.get("rope_parameters") or {}).get("rope_theta", config.get("rope_theta"))
    return Rope(10_000.0 if base is None else base)


def make_rope(kind: str, base: float, parameters: Config, config: Config, positions: int) -> Rope:
    """The rotary positions that rope_parameters describes."""
    if kind == "default":
        return Rope(base)
    n_positions = config.get("max_position_embeddings") or positions
    original = (
        parameters.get("original_max_position_embeddings")
        or config.get("original_max_position_embeddings")
        or n_positions
    )
    factor, amplitude = parameters.get("factor"), parameters.get("attention_factor")
    if kind == "llama3":
        low, high = parameters["low_freq_factor"], parameters["high_freq_factor"]
        return Rope(base, ops.Llama3Scaling(parameters["factor"], original, low, high))
    if kind == "yarn":
        factor = n_positions / original if factor is None else factor
        if amplitude is None:
            m, n = parameters.get("mscale"), parameters.get("mscale_all_dim")
            amplitude = yarn_scale(factor, m) / yarn_scale(factor, n) if m and n else yarn_scale(factor, 1)
        slow, fast = parameters.get("beta_slow") or 1, parameters.get("beta_fast") or 32
        return Rope(base, ops.YarnScaling(factor, original, slow, fast, parameters.get("truncate", True)), amplitude)
    if kind in ("longrope", "su"):
        factor = n_positions / original if factor is None else factor
        if amplitude is None:
            amplitude = 1.0 if factor <= 1 else sqrt(1 + log(factor) / log(original))
        short, long = tuple(parameters["short_factor"]), tuple(parameters["long_factor"])
        return Rope(base, ops.LongRopeScaling(factor, original, short, long), amplitude)
    if kind == "proportional":
        share = parameters.get("partial_rotary_factor", 1.0)
        return Rope(base, ops.ProportionalScaling(1.0 if factor is None else factor, share))
    return scale_evenly(base, kind, factor or 1.0, n_positions)


def scale_evenly(base: float, kind: str, factor: float, n_positions: int) -> Rope:
    """Rotary positions with one factor for all frequencies. `n_positions`: the context length before scaling."""
    if kind == "linear":
        return Rope(base, ops.LinearScaling(factor, n_positions))
    return Rope(
        base,
        ops.DynamicScaling(factor, n_positions) if kind == "dynamic" else ops.OtherScaling(kind, factor, n_positions),
    )


def yarn_scale(factor: float, by: float) -> float:
    """Source: arXiv:2309.00071 §3.4."""
    return 1.0 if factor <= 1 else 0.1 * by * log(factor) + 1


def scale_with_yarn(config: Mapping[str, Any], c: Any) -> float | None:
    """The attention scale of DeepSeek: with YaRN, 1 / √d grows with the context. None: the usual one.

    Source: modeling_deepseek_v3.py of the reference, DeepseekV3Attention.
    """
    parameters = config.get("rope_parameters") or config.get("rope_scaling") or {}
    by, kind = parameters.get("mscale_all_dim", 0), parameters.get("rope_type", parameters.get("type", "default"))
    if kind == "default" or not by:
        return None
    return float((c.d_nope + c.d_rope) ** -0.5 * yarn_scale(parameters["factor"], by) ** 2)
