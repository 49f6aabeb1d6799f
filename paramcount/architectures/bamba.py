"""Bamba: Mamba 2 layers with a few attention layers among them, each followed by a gated MLP."""

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data
from paramcount.parts.attentions import partial_rope
from paramcount.parts.decoder import Decoder
from paramcount.parts.decoders import layers_by_type
from paramcount.parts.state_space import mamba2
from paramcount.sizes import ConfigJson, FieldValues, Flag, Natural, Positive, Words, derived, hf, rotary, setting
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.derivations import d_model_per_head, equal_to, per_layer
from paramcount.sizes.mixers import (
    check_mamba_heads,
    if_no_attention,
    if_no_mixer,
    list_unused_fields,
    mamba_head,
    no_key,
    rotated_share,
    time_step_limit,
)


def kinds(js: ConfigJson, c: FieldValues) -> tuple[str, ...]:
    indices = js.get("attn_layer_indices")
    if indices is not None and not (isinstance(indices, list) and all(type(i) is int for i in indices)):
        raise ParamcountError(
            f"= {describe_value(indices)}", where="attn_layer_indices", expected="a list of layer indices"
        )
    return tuple("attention" if i in (indices or ()) else "mamba" for i in per_layer(c))


class Bamba(Decoder):
    """Source: modeling_bamba.py of the reference."""

    reference = "BambaForCausalLM"
    gguf = "granitehybrid"
    is_section_type = True
    names = ("embed_tokens", "layers", "final_layernorm")
    conditions = (padding_in_table(0), no_key("layer_types", "layers_block_type"), check_mamba_heads)

    layer_types: Words = derived(kinds)
    n_heads: Positive = hf()
    n_kv_heads: Positive = hf(null=equal_to("n_heads"))
    d_head: Positive = hf(absent=d_model_per_head, null=if_no_attention)
    d_rope: Natural = derived(rotated_share(0.5, key=False))
    d_ff: Natural = hf()
    n_mamba_heads: Positive = hf()
    d_mamba_head: Positive = derived(mamba_head)
    n_groups: Positive = hf(null=if_no_mixer)
    d_state: Positive = hf(null=if_no_mixer)
    d_conv: Positive = hf(null=if_no_mixer)
    conv_bias: Flag = hf(null=False)
    mixer_bias: Flag = hf(null=False)
    attention_bias: Flag = hf()
    mlp_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    norm_eps = setting("rms_norm_eps", default=1e-5)
    rope = rotary(positions=262144, share=0.5, share_key="")
    time_step_limit = setting(default=time_step_limit)
    kinds = layers_by_type

    def layer(c, x: Data, kind: str) -> Data:
        h = c.norm(x, "input_layernorm")
        if kind == "mamba":
            x = x + mamba2(c, h, "mamba.", groups=c.n_groups)
        else:
            x = x + c.self_attention(h, bias=c.attention_bias, rotate=c.rotate)
        return x + c.gated_mlp(c.norm(x, "pre_ff_layernorm"), "feed_forward.", bias=c.mlp_bias)

    def rotate(c, x: Data) -> Data:
        return partial_rope(x, c.d_rope, c.rope)

    def unused_fields(c) -> tuple[str, ...]:
        return list_unused_fields(c.layer_types)
