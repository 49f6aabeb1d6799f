"""ERNIE 4.5 MoE: a mixture of experts beside shared ones, whose router's correction is a parameter and not a buffer."""

from typing import ClassVar

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, Weight, rope, route
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.decoders import head, layers_by_mlp
from paramcount.parts.feed_forward import mixture, shared_experts
from paramcount.sizes import (
    Condition,
    ConfigJson,
    FieldValues,
    Flag,
    Indices,
    Natural,
    derived,
    hf,
    rotary,
    setting,
)
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.derivations import per_layer
from paramcount.sizes.layer_types import needed
from paramcount.sizes.rules import check_experts_exist, check_rotated_in_pairs


def outside(js: ConfigJson, c: FieldValues) -> tuple[int, ...]:
    """Indices of the layers without experts.

    These are the layers before the first and after the last MoE layer, and those between two multiples of the step.
    """
    keys = {"moe_layer_start_index": 1, "moe_layer_end_index": -1, "moe_layer_interval": 1}
    first, last, step = (js.get(key, absent) for key, absent in keys.items())
    for key, value in zip(keys, (first, last, step)):
        if type(value) is not int:
            raise ParamcountError(f"= {describe_value(value)}", where=key, expected="an integer")
    last = c["n_layers"] - 1 if last == -1 else last
    return tuple(i for i in per_layer(c) if (i + 1) % step or not first <= i <= last)


class Ernie45Moe(AttentionDecoder):
    """Source: Ernie4_5_MoeDecoderLayer and Ernie4_5_MoeTopKRouter of the reference, modeling_ernie4_5_moe.py."""

    reference = "Ernie4_5_MoeForCausalLM"
    gguf = "ernie4_5-moe"
    is_section_type = True
    adapts_experts = True
    float32 = ("gate.weight", "moe_statics")
    rotated = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(0),)

    d_ff: Natural = hf()
    dense_layers: Indices = derived(outside)
    d_expert: Natural = hf()
    n_routed_experts: Natural = hf("num_experts", "moe_num_experts", null=needed("moe_num_experts"))
    n_active_experts: Natural = hf("num_experts_per_tok", "moe_k", null=needed("moe_k"))
    n_shared_experts: Natural = hf("moe_num_shared_experts", null=needed("moe_num_shared_experts"))
    shared: Flag = derived(lambda js, c: c["n_shared_experts"] > 0)
    bias: Flag = hf("use_bias", null=False)
    tie_word_embeddings: Flag = hf()

    norm_eps = setting("rms_norm_eps", default=1e-5)
    rope = rotary(500_000, positions=131072)
    kinds = layers_by_mlp

    def layer(c, x: Data, kind: str) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.bias, rotate=c.rotate)
        h = c.norm(x, "post_attention_layernorm")
        if kind == "moe":
            y = mixture(c, h, "mlp.", choose=c.choose)
            return x + (y + shared_experts(c, h, "mlp.", bias=c.bias) if c.shared else y)
        return x + c.gated_mlp(h, bias=c.bias)

    def rotate(c, x: Data) -> Data:
        return rope(x, c.rope, "interleaved")

    def choose(c, logits: Data) -> Data:
        bias = Weight("mlp.moe_statics.e_score_correction_bias", "router", (1, c.n_routed_experts))
        return route(logits, c.n_active_experts, "softmax", bias=bias, normalise=True)

    def head(c, x: Data) -> Data:
        return head(c, x, "model.embed_tokens.weight", bias=c.bias)

    def check(c) -> None:
        check_rotated_in_pairs(c, "d_head")
        check_experts_exist(c)
