"""ERNIE 4.5 MoE: a mixture of experts beside shared ones, whose router's correction is a parameter and not a buffer."""

from typing import ClassVar

from paramcount.declare import Data, ops, parts, sizes


def outside(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """Indices of the layers without experts.

    These are the layers before the first and after the last MoE layer, and those between two multiples of the step.
    """
    keys = {"moe_layer_start_index": 1, "moe_layer_end_index": -1, "moe_layer_interval": 1}
    first, last, step = (js.get(key, absent) for key, absent in keys.items())
    for key, value in zip(keys, (first, last, step)):
        if type(value) is not int:
            raise sizes.make_value_error(value, key, "an integer")
    last = c["n_layers"] - 1 if last == -1 else last
    return tuple(i for i in sizes.per_layer(c) if (i + 1) % step or not first <= i <= last)


class Ernie45Moe(parts.AttentionDecoder):
    """Source: Ernie4_5_MoeDecoderLayer and Ernie4_5_MoeTopKRouter of the reference, modeling_ernie4_5_moe.py."""

    reference = "Ernie4_5_MoeForCausalLM"
    gguf = "ernie4_5-moe"
    adapts_experts = True
    float32 = ("gate.weight", "moe_statics")
    conditions: ClassVar[tuple[sizes.Condition, ...]] = (sizes.padding_in_table(0),)

    n_kv_heads: sizes.Positive = sizes.hf()
    dense_layers: sizes.Indices = sizes.derived(outside)
    d_expert: sizes.Natural = sizes.hf()
    n_routed_experts: sizes.Natural = sizes.hf("num_experts", "moe_num_experts", null=sizes.needed("moe_num_experts"))
    n_active_experts: sizes.Natural = sizes.hf("num_experts_per_tok", "moe_k", null=sizes.needed("moe_k"))
    n_shared_experts: sizes.Natural = sizes.hf("moe_num_shared_experts", null=sizes.needed("moe_num_shared_experts"))
    shared: sizes.Flag = sizes.derived(lambda js, c: c["n_shared_experts"] > 0)
    bias: sizes.Flag = sizes.hf("use_bias", null=False)

    kinds = parts.layers_by_mlp

    def layer(c, x: Data, kind: str) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.bias)
        h = c.norm(x, "post_attention_layernorm")
        if kind == "moe":
            y = parts.mixture(c, h, "mlp.", choose=c.choose)
            return x + (y + parts.shared_experts(c, h, "mlp.", bias=c.bias) if c.shared else y)
        return x + c.gated_mlp(h, bias=c.bias)

    def rotate(c, x: Data) -> Data:
        return ops.rope(x, c.rope, "interleaved")

    def choose(c, logits: Data) -> Data:
        bias = ops.Weight("mlp.moe_statics.e_score_correction_bias", "router", (1, c.n_routed_experts))
        return ops.route(logits, c.n_active_experts, "softmax", bias=bias, normalise=True)

    def head(c, x: Data) -> Data:
        return parts.head(c, x, "model.embed_tokens.weight", bias=c.bias)

    def check(c) -> None:
        sizes.check_rotated_in_pairs(c, "d_head")
