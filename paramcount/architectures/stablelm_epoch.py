"""StableLM 3B and Stable Code 3B as first released: StableLM's layers under other keys."""

from paramcount.flow import Data
from paramcount.parts.attentions import partial_rope
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.decoders import use_layer_norm
from paramcount.sizes import ConfigJson, FieldValues, Flag, Natural, Positive, derived, hf, rotary, setting
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.derivations import d_model_per_head, part_of
from paramcount.sizes.rules import check_at_most, check_even, check_heads_fill


def rotary_part(js: ConfigJson, c: FieldValues) -> int:
    return part_of(c["d_head"], js.get("rope_pct", 0.25), "rope_pct")


class StableLMEpoch(AttentionDecoder):
    """Source: configuration_stablelm_epoch.py and modeling_stablelm_epoch.py of stabilityai/stable-code-3b, and of
    stabilityai/stablelm-2-1_6b for use_qkv_bias."""

    reference = "StableLMEpochForCausalLM of stabilityai/stable-code-3b"
    rotated = "d_rope"
    conditions = (padding_in_table(None),)
    defaults = {"vocab_size": 50304, "d_model": 2560, "n_layers": 32, "n_heads": 32, "n_kv_heads": 32}

    d_head: Positive = derived(d_model_per_head)
    d_rope: Natural = derived(rotary_part)
    d_ff: Natural = hf(absent=6912)
    qkv_bias: Flag = hf("use_qkv_bias", absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    norm_eps = setting("norm_eps", default=1e-5)
    rope = rotary(positions=4096)
    norm = use_layer_norm

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.qkv_bias, o_bias=False, rotate=c.rotate)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))

    def rotate(c, x: Data) -> Data:
        return partial_rope(x, c.d_rope, c.rope)

    def check(c) -> None:
        check_heads_fill(c)
        check_at_most(c, "d_rope", "d_head")
        check_even(c, "d_rope")
