"""Qwen 3 MoE: Qwen 3 with a mixture of experts, none of them shared."""

from typing import Any, ClassVar

from paramcount.flow import Data, is_known, route
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.decoders import layers_by_mlp
from paramcount.parts.feed_forward import mixture
from paramcount.parts.qwen_vision import mrope_axes, rotation
from paramcount.sizes import Flag, Indices, Natural, Positive, derived, hf, rotary, scattered_dense_layers, setting
from paramcount.sizes.conditions import one_mask, padding_in_table
from paramcount.sizes.layer_types import used_window


class Qwen3MoE(AttentionDecoder):
    """Source: arXiv:2505.09388, section 2."""

    reference = "Qwen3MoeForCausalLM"
    gguf = "qwen3moe"
    is_section_type = True
    task_heads = "GENERIC_MOVED"
    adapts_experts = True
    rotated = "d_head"
    conditions = (padding_in_table(None), one_mask(used_window(4096)))

    d_ff: Natural = hf()
    dense_layers: Indices = derived(scattered_dense_layers)
    d_expert: Natural = hf()
    n_routed_experts: Positive = hf("num_local_experts", "num_experts")
    n_active_experts: Natural = hf()
    attention_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    norm_topk_prob: ClassVar = setting("norm_topk_prob", default=False)
    rope = rotary(positions=32768)
    window: ClassVar = setting(default=used_window(4096))  # of every layer
    kinds = layers_by_mlp

    def layer(c, x: Data, *reads: Any) -> Data:
        """`reads`: the places of the tokens, if there may be images, and the kind of layer."""
        *places, kind = reads
        h = c.norm(x, "input_layernorm")
        window, rotate = c.window if is_known(c.window) else None, rotation(c, *places)
        x = x + c.self_attention(h, window=window, bias=c.attention_bias, qk_norm=True, rotate=rotate)
        h = c.norm(x, "post_attention_layernorm")
        if kind == "moe":
            return x + c.mixture(h)
        return x + c.gated_mlp(h)

    def mixture(c, x: Data) -> Data:
        return mixture(c, x, "mlp.", choose=c.choose)

    def choose(c, logits: Data) -> Data:
        return route(logits, c.n_active_experts, "softmax", normalise=c.norm_topk_prob)


class Qwen3OmniMoeText(Qwen3MoE):
    """The language model of Qwen3-Omni's thinker. Source: arXiv:2509.17765, section 2."""

    reference = "Qwen3OmniMoeThinkerForConditionalGeneration"
    model_types = ("qwen3_omni_moe_text",)
    reference_names = {"model.": ""}
    base_model = "Qwen3OmniMoeThinkerTextModel"

    n_routed_experts: Positive = hf("num_experts")
    tie_word_embeddings: Flag = hf(absent=False, null=False)

    norm_topk_prob = setting("norm_topk_prob", default=True)
    rope = rotary(1_000_000, 32768)
    window = None
    axes = mrope_axes("interleaved", 24, 20, 20)
