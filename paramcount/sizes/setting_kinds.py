"""Types and ranges of settings: what a config.json key may hold that a setting is read from.

A setting that has a key of its own declares its kind, or has that of its default. A function that computes a setting
reads its section through `CheckedSection`, which checks each key that it reads: KEY_KINDS has their kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf, isfinite
from typing import Any, NamedTuple

from paramcount.errors import ParamcountError, describe_integer, describe_value, find_nearest, list_names
from paramcount.sizes.settings import ACTIVATIONS
from paramcount.sizes.types import LARGEST, MOST_NAMED


class Kind(NamedTuple):
    """The values that a key may have."""

    expected: str
    is_valid: Callable[[Any], bool]
    choices: tuple[str, ...] = ()  # all valid values, if they are names
    takes_null: bool = True  # whether a null is not checked, as the setting's default may stand for it

    def check(self, value: object, where: str) -> None:
        """Raises: ParamcountError if the key `where` may not have this value."""
        if not (value is None and self.takes_null) and not self.is_valid(value):
            nearest = find_nearest(value, self.choices) if isinstance(value, str) else ()
            expected = list_names(self.choices, value) if self.choices else self.expected
            raise ParamcountError(f"= {describe_value(value)}", where=where, expected=expected, nearest=nearest)


def is_number(value: object) -> bool:
    """Whether a value is a finite number. An integer may be too large to be one."""
    return (type(value) is float and isfinite(value)) or (type(value) is int and abs(value) <= LARGEST_NUMBER)


def is_integer(value: object) -> bool:
    return type(value) is int and abs(value) <= LARGEST


def integer_from(least: int) -> Kind:
    """An integer with this lower bound."""
    return Kind(describe_integer(least), lambda value: is_integer(value) and value >= least)


def choice(*names: str) -> Kind:
    return Kind("", lambda value: isinstance(value, str) and value in names, names)


def list_of(kind: Kind, items: str, length: int | None = None) -> Kind:
    """A list of values of one kind. `items`: what they are. `length`: the only valid one."""

    def is_valid(value: Any) -> bool:
        is_list = isinstance(value, Sequence) and not isinstance(value, (str, bytes))
        return is_list and length in (None, len(value)) and len(value) <= MOST_NAMED and all(map(kind.is_valid, value))

    return Kind(f"a list of {items}", is_valid)


def either(kind: Kind, other: Kind) -> Kind:
    """A value of one kind or of the other; a null is the first one's."""
    expected = f"{kind.expected} or {other.expected}"
    return kind._replace(expected=expected, is_valid=lambda value: kind.is_valid(value) or other.is_valid(value))


LARGEST_NUMBER = 10**300  # of integers that stand for a number: they are multiplied as floats
FLAG = Kind("true or false", lambda value: type(value) is bool)
INTEGER = Kind("an integer", is_integer)
NATURAL, POSITIVE = integer_from(0), integer_from(1)
NUMBER = Kind("a number", is_number)
LEAST_ZERO = Kind("a non-negative number", lambda value: is_number(value) and value >= 0)
ABOVE_ZERO = Kind("a positive number", lambda value: is_number(value) and value > 0)
NOT_ZERO = Kind("a number other than 0", lambda value: is_number(value) and value != 0, takes_null=False)
WORD = Kind("a string", lambda value: isinstance(value, str))
OBJECT = Kind("a JSON object", lambda value: isinstance(value, Mapping))
INTEGERS, NUMBERS = list_of(INTEGER, "integers"), list_of(NUMBER, "numbers")
# How a config.json states a number that may be infinite; {"__float__": "Infinity"} is the reference's spelling.
BOUND = Kind("a number", lambda value: is_number(value) or value in (inf, {"__float__": "Infinity"}))
DIVISOR = ABOVE_ZERO._replace(takes_null=False)
FACTOR = NUMBER._replace(takes_null=False)  # the reference multiplies by it as it is, as it divides by the other
NUMBER_OR_NULL = Kind("a number or null", lambda value: value is None or is_number(value))
ACTIVATION = choice(*ACTIVATIONS, "xielu")

BASE = ABOVE_ZERO._replace(takes_null=False)  # of rotary positions
BASES = either(BASE, list_of(ABOVE_ZERO, "positive numbers"))  # of all layers, or of each

# (kind, config.json keys) of the keys that functions compute settings from, and of those whose default says too little.
KEYS_BY_KIND: tuple[tuple[Kind, str], ...] = (
    (
        FLAG,
        "gelu_activation is_causal kda_safe_gate mup_use_scaling norm_topk_prob quant_mode rescale_embeddings"
        " rope_interleave safe_gate scale_attn_by_inverse_layer_idx scale_attn_weights scale_embedding token_dropout"
        " truncate use_causal_conv use_dynamic_ntk use_expectation use_logn_attn use_sliding_window",
    ),
    (either(FLAG, INTEGER), "attn_temperature_tuning"),
    (either(FLAG, WORD), "use_bidirectional_attention"),
    (
        INTEGER,
        "audio_bos_token_id audio_pad_token_id audio_token_id audio_token_index eoi_token_index image_token_id"
        " image_token_index img_context_token_id mask_token_id max_position_embeddings max_relative_positions"
        " max_window_layers media_placeholder_token_id pad_token_id"
        " position_buckets sliding_window sound_context_token_id spatial_vision_layer video_token_id video_token_index",
    ),
    (NATURAL, "attention_context_right index_local_blocks num_random_blocks qk_rope_head_dim sparse_local_block"),
    (
        POSITIVE,
        "attention_chunk_size attention_context_left base_seqlen block_per_row block_size hash_code_len hidden_size"
        " indexer_kv_heads n_group original_max_position_embeddings pooling_kernel_size"
        " seq_length topk_group training_seqlen unpadded_vocab_size",
    ),
    (either(INTEGER, INTEGERS), "vision_feature_layer vision_feature_layers vit_layers"),
    (
        INTEGERS,
        "enc_dilations global_attn_indexes look_ahead_layers look_backward_layers mrope_section rope_scaling_layers",
    ),
    (
        NUMBER,
        "alpha attention_factor attention_logit_cap attention_multiplier attention_value_scale attn_scale clip_qkv"
        " dim_model_base embedding_scale final_logit_softcapping floor_scale gate_lower_bound"
        " kda_lower_bound linear_lower_bound llama_4_scaling_beta log_scaling_n_floor logits_scaling long_mscale"
        " mamba_dt_min moe_eval_capacity_token_fraction moe_normalize_expert_weights"
        " moe_router_logit_softcapping moe_token_dropout mup_attn_multiplier mscale mscale_all_dim"
        " residual_multiplier rope_ratio rotary_scaling_factor routed_scaling_factor"
        " scale_depth short_mscale softmax_scale time_step_min",
    ),
    (NOT_ZERO, "high_freq_factor low_freq_factor"),  # the reference divides the context by them
    (LEAST_ZERO, "layer_norm_eps partial_rotary_factor rms_norm_eps rotary_dim rotary_pct"),
    (
        ABOVE_ZERO,
        "audio_frame_step beta_fast beta_slow factor initializer_range max_period min_period"
        " pixel_shuffle_ratio query_pre_attn_scalar scaling_factor",
    ),
    (
        BASE,
        "base compress_rope_theta global_rope_theta local_rope_theta rope_embedding_base rope_local_base_freq"
        " rope_theta rotary_emb_base swa_rope_theta",
    ),
    (NUMBERS, "layer_rope_theta partial_rotary_factors xdrope_section"),
    (NUMBERS._replace(takes_null=False), "long_factor short_factor"),
    (list_of(INTEGERS, "lists of integers"), "resblock_dilation_sizes"),
    (either(NUMBER, NUMBERS), "activation_sparsity_pattern"),
    (list_of(BOUND, "2 numbers", 2)._replace(takes_null=False), "time_step_limit"),
    (list_of(NUMBER_OR_NULL, "numbers"), "swiglu_limits swiglu_limits_shared"),
    (
        WORD,
        "attention_type classifier_pooling default_language expert_selection_fn feed_forward_proj model_type name"
        " output_gate_type pad_mode pooling projector_act rope_type second_expert_policy spatial_pool_mode topk_method"
        " type",
    ),
    (list_of(WORD, "strings"), "layer_types"),
    (ACTIVATION, "hidden_act"),
    (choice("relu", "silu", "gelu", "swish"), "afn"),
    (choice("rms_norm", "rms_norm_f32"), "norm"),
    (choice("softmax", "sigmoid"), "scoring_func"),  # of remote code: the reference takes any activation
    (choice("default", "full"), "vision_feature_select_strategy"),
    (choice("patch", "cls_patch"), "mm_vision_select_feature"),
    (
        OBJECT,
        "attn_config compress encoder ffn_act_fn ffn_config full_attention hybrid hybrid_sliding indexed_attention"
        " linear_attn_config main model_args perceiver_config qformer_config rope_parameters rope_scaling rotary"
        " sliding_attention sparse_attention_config text_config thinker_config",
    ),
    (
        Kind("an object of token ids", lambda ids: isinstance(ids, Mapping) and all(map(is_integer, ids.values()))),
        "vocabulary_map",
    ),
)
KEY_KINDS = {key: kind for kind, keys in KEYS_BY_KIND for key in keys.split()}


def infer_kind(names: Sequence[str], default: object) -> Kind | None:
    """The kind of a setting with these keys: that of its default. None if the default does not determine it."""
    match default:
        case bool():
            return FLAG
        case int():
            if default < 0 or any("token" in name for name in names):  # -1 may stand for no token
                return INTEGER
            return POSITIVE if default else NATURAL
        case float():
            return LEAST_ZERO if any("eps" in name for name in names) else NUMBER
        case str() if default in ACTIVATION.choices:
            return ACTIVATION
        case tuple() if all(map(is_integer, default)):
            return INTEGERS
        case _:
            return next((KEY_KINDS[name] for name in names if name in KEY_KINDS), None)


class CheckedSection(Mapping[str, Any]):
    """A section of a config.json that checks each value when it is read.

    Args:
        values: The section.
        place: The path to it, with a dot behind it; empty at the top level.
        kinds: Kinds of its keys that differ from those in KEY_KINDS; dots lead into sections.
    """

    __slots__ = ("kinds", "place", "values_by_key")

    def __init__(self, values: Mapping[str, Any], place: str, kinds: Mapping[str, Kind]) -> None:
        self.values_by_key, self.place, self.kinds = values, place, kinds

    def __getitem__(self, key: str) -> Any:
        value = self.values_by_key[key]
        if kind := self.kinds.get(key) or KEY_KINDS.get(key):
            kind.check(value, self.place + key)
        if not isinstance(value, Mapping):
            return value
        prefix = f"{key}."
        inner = {path[len(prefix) :]: kind for path, kind in self.kinds.items() if path.startswith(prefix)}
        return CheckedSection(value, self.place + prefix, inner)

    def __contains__(self, key: object) -> bool:
        return key in self.values_by_key

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_key)

    def __len__(self) -> int:
        return len(self.values_by_key)
