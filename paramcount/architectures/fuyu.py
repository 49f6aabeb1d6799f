"""Fuyu: Persimmon that reads image patches through one matrix, without a vision tower."""

from collections.abc import Mapping
from typing import Any

from paramcount.architectures.persimmon import Persimmon
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, describe_value


@sizes.options_first
def flat(js: sizes.ConfigJson, c: sizes.FieldValues, key: str, absent: Any) -> Any:
    """Released files have no text_config: without one, the language model's keys stand among the others."""
    return js.get(key, absent) if js.get("text_config") is None else absent


def inside(js: sizes.ConfigJson) -> Mapping[str, Any]:
    """The language model's block; of a flat file only what the reference hands on."""
    block = js.get("text_config")
    return {"rope_scaling": js.get("rope_scaling")} if block is None else block


def of_persimmon(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    section = inside(js)
    if (found := section.get("model_type", "persimmon")) != "persimmon":
        raise ParamcountError(
            f"= {describe_value(found)} is not supported", where="text_config.model_type", expected="persimmon"
        )
    for condition in Persimmon.conditions:
        condition(section, c)


def inner(name: str) -> Any:
    """A setting of the language model."""

    def read(js: sizes.ConfigJson, c: Any) -> Any:
        found = sizes.list_settings(Persimmon)[name]
        return found.read(inside(js), c, sizes.find_default(Persimmon, name, found.default))

    return sizes.setting(default=read)


class Fuyu(parts.SeeingDecoder, Persimmon):
    """Source: modeling_fuyu.py of the reference."""

    reference = "FuyuForCausalLM"
    passes_rope_on = True
    is_section_type = False
    reference_names = parts.FORMER_PREFIXES
    prefix = "language_model.model."
    head_name = "language_model.lm_head"
    section = None
    unused_keys = ("image_size",)
    conditions = (of_persimmon,)

    vocab_size: sizes.Positive = sizes.hf("text_config.vocab_size", absent=flat("vocab_size", 262144))
    d_model: sizes.Positive = sizes.hf("text_config.hidden_size", absent=flat("hidden_size", 4096))
    n_layers: sizes.Natural = sizes.hf("text_config.num_hidden_layers", absent=flat("num_hidden_layers", 36))
    n_heads: sizes.Positive = sizes.hf("text_config.num_attention_heads", absent=flat("num_attention_heads", 64))
    d_rope: sizes.Natural = sizes.derived(lambda js, c: sizes.rotary_dimension(0.5, paired=False)(inside(js), c))
    d_ff: sizes.Natural = sizes.hf("text_config.intermediate_size", absent=flat("intermediate_size", 16384))
    qk_norm: sizes.Flag = sizes.hf("text_config.qk_layernorm", absent=flat("qk_layernorm", True))
    patch_size: sizes.Positive = sizes.hf("patch_size")
    n_channels: sizes.Positive = sizes.hf("num_channels")

    activation = inner("activation")
    norm_eps = inner("norm_eps")
    rope = inner("rope")

    image_token = sizes.setting("image_token_id")

    def see(c) -> Data:
        patches = ops.given("image patches", "patches", c.patch_size * c.patch_size * c.n_channels)
        return ops.block(patches, "", c.project, part="projector")

    def project(c, x: Data) -> Data:
        return ops.linear(x, "vision_embed_tokens", "projector", c.d_model, bias=True)
