"""EAGLE-3 for targets with latent attention, such as DeepSeek-V3 and Kimi K2: the draft's layer has it, too."""

from paramcount.architectures.eagle3 import N_STATES, Eagle3Layers, has_one_layer
from paramcount.declare import Data, ops, parts, sizes


def count_states(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """How many layers of the target are read."""
    n, named = js.get("num_aux_hidden_states"), js.get("eagle_config") or {}
    layers = named.get("eagle_aux_hidden_state_layer_ids") if isinstance(named, dict) else named
    if layers and not isinstance(layers, list):
        raise sizes.make_value_error(layers, "eagle_config.eagle_aux_hidden_state_layer_ids", "a list of layers")
    found: int = (len(layers) if layers else N_STATES) if n is None else n
    return found


class Eagle3Latent(parts.LatentDecoder, Eagle3Layers):
    """Source: Eagle3DeepseekV2ForCausalLM of vLLM, deepseek_eagle3.py. Attention has no biases, and the norms of its
    latents the epsilon of the others.
    """

    reference = "Eagle3DeepseekV2ForCausalLM of vllm-project/vllm"
    model_types = ("eagle3.Eagle3DeepseekV2ForCausalLM",)
    equivalent_classes = ("Eagle3DeepseekV3ForCausalLM",)
    config_class = "DeepseekV3Config"
    is_section_type = False
    unused_keys = (  # of the target's config, which training copies
        *Eagle3Layers.unused_keys, "num_key_value_heads", "head_dim", "n_routed_experts", "num_experts_per_tok",
        "moe_intermediate_size", "n_shared_experts", "first_k_dense_replace", "moe_layer_freq", "n_group", "topk_group",
        "num_nextn_predict_layers", "num_experts",
    )  # fmt: skip
    conditions = (has_one_layer, sizes.padding_in_table(None))

    n_kv_heads = sizes.constant(None)
    d_head = sizes.constant(None)
    attention_bias = sizes.constant(False)
    n_states: sizes.Positive = sizes.derived(count_states)
    fc_norm: sizes.Flag = sizes.hf("fc_norm", absent=False)

    pairing = "interleaved"

    def first_layer(c, x: Data, embedded: Data) -> Data:
        """Attention reads the embedded token, too."""
        h = c.norm(x, "hidden_norm")
        x = h if c.norm_before_residual else x
        h, prefix = ops.join(c.norm(embedded, "input_layernorm"), h), "self_attn."  # [n, 2 * d_model]
        q = parts.turn_queries(c, parts.queries(c, h, prefix, eps=c.norm_eps))  # [n, n_heads, d_nope + d_rope]
        k, v = parts.expand_latents(c, parts.cache_latents(c, h, prefix, eps=c.norm_eps), prefix)
        a = parts.attend_to_chosen(q, k, v, scale=c.attention_scale)  # [n, n_heads, d_v]
        x = x + parts.project_output(a, prefix + "o_proj", c.d_model)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))
