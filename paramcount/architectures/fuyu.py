"""Fuyu: Persimmon that reads image patches through one matrix, without a vision tower."""

from collections.abc import Mapping
from typing import Any

from paramcount.architectures.persimmon import Persimmon
from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, block, given, linear
from paramcount.parts.composite import FORMER_PREFIXES, SeeingDecoder
from paramcount.parts.decoders import head
from paramcount.sizes import ConfigJson, Derivation, FieldValues, Flag, Natural, Positive, derived, hf, setting
from paramcount.sizes.derivations import rotary_part
from paramcount.sizes.setting_fields import list_settings


def flat(key: str, absent: Any) -> Derivation:
    """Released files have no text_config: without one, the language model's keys stand among the others."""
    return lambda js, c: js.get(key, absent) if js.get("text_config") is None else absent


def inside(js: ConfigJson) -> Mapping[str, Any]:
    """The language model's block; of a flat file only what the reference hands on."""
    block = js.get("text_config")
    return {"rope_scaling": js.get("rope_scaling")} if block is None else block


def of_persimmon(js: ConfigJson, c: FieldValues) -> None:
    section = inside(js)
    if (found := section.get("model_type", "persimmon")) != "persimmon":
        raise ParamcountError(
            f"= {describe_value(found)} is not supported", where="text_config.model_type", expected="persimmon"
        )
    for condition in Persimmon.conditions:
        condition(section, c)


def inner(name: str) -> Any:
    """A setting of the language model."""

    def read(js: ConfigJson, c: Any) -> Any:
        found = list_settings(Persimmon)[name]
        return found.read(inside(js), c, found.default)

    return setting(default=read)


class Fuyu(SeeingDecoder, Persimmon):
    """Source: modeling_fuyu.py of the reference."""

    reference = "FuyuForCausalLM"
    reference_names = FORMER_PREFIXES
    prefix = "language_model.model."
    unused_keys = ("image_size",)
    conditions = (of_persimmon,)

    vocab_size: Positive = hf("text_config.vocab_size", absent=flat("vocab_size", 262144))
    d_model: Positive = hf("text_config.hidden_size", absent=flat("hidden_size", 4096))
    n_layers: Natural = hf("text_config.num_hidden_layers", absent=flat("num_hidden_layers", 36))
    n_heads: Positive = hf("text_config.num_attention_heads", absent=flat("num_attention_heads", 64))
    d_rope: Natural = derived(lambda js, c: rotary_part(0.5)(inside(js), c))
    d_ff: Natural = hf("text_config.intermediate_size", absent=flat("intermediate_size", 16384))
    qk_norm: Flag = hf("text_config.qk_layernorm", absent=flat("qk_layernorm", True))
    patch_size: Positive = hf("patch_size")
    n_channels: Positive = hf("num_channels")

    activation = inner("activation")
    norm_eps = inner("norm_eps")
    rope = inner("rope")

    image_token = setting("image_token_id", default=71011)

    def see(c) -> Data:
        patches = given("image patches", "patches", c.patch_size * c.patch_size * c.n_channels)
        return block(patches, "", c.project, part="projector")

    def project(c, x: Data) -> Data:
        return linear(x, "vision_embed_tokens", "projector", c.d_model, bias=True)

    def head(c, x: Data) -> Data:
        return head(c, x, "language_model.model.embed_tokens.weight", "language_model.lm_head")
