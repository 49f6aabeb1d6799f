"""dots.llm1: Qwen 3's attention and DeepSeek-V3's experts."""

from paramcount.flow import Data
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.decoders import layers_by_type_and_mlp
from paramcount.parts.feed_forward import choose_in_groups, routing_bias, shared_mixture
from paramcount.sizes import SLIDING, Flag, Indices, Natural, Positive, Words, equal_to, per_layer, rotary, setting
from paramcount.sizes.conditions import grouped_routing, padding_in_table
from paramcount.sizes.fields import ABSENT, ConfigJson, FieldValues, derived, hf
from paramcount.sizes.layer_types import check_no_types, first_dense, needed
from paramcount.sizes.rules import check_experts_exist, check_sliding_or_full


def late_sliding(js: ConfigJson, c: FieldValues) -> tuple[str, ...]:
    """From the layer max_window_layers on over a window, if there is one."""
    first = check_no_types(js, "max_window_layers", 62) if c["window"] is not None else c["n_layers"]
    return tuple(SLIDING[i < first] for i in per_layer(c))


class Dots1(AttentionDecoder):
    """Source: Dots1DecoderLayer and Dots1TopkRouter of the reference, modeling_dots1.py."""

    reference = "Dots1ForCausalLM"
    gguf = "dots1"
    is_section_type = True
    adapts_experts = True
    rotated = "d_head"
    conditions = (grouped_routing(1, 1), padding_in_table(None))

    n_kv_heads: Positive = hf(null=equal_to("n_heads"))
    window: Positive | None = hf()
    layer_types: Words = hf(absent=late_sliding, null=ABSENT)
    d_ff: Natural = hf()
    dense_layers: Indices = derived(first_dense(0))
    d_expert: Natural = hf()
    n_routed_experts: Natural = hf(
        "num_local_experts", "n_routed_experts", absent=needed("n_routed_experts"), null=needed("n_routed_experts")
    )
    n_active_experts: Natural = hf(absent=needed("num_experts_per_tok"), null=ABSENT)
    n_shared_experts: Natural = hf(absent=needed("n_shared_experts"), null=ABSENT)
    attention_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    rope = rotary(positions=2048)
    norm_topk_prob = setting("norm_topk_prob", default=False)
    routed_scale = setting("routed_scaling_factor", default=1.0)
    n_groups = setting("n_group", default=1)
    n_active_groups = setting("topk_group", default=1)
    kinds = layers_by_type_and_mlp

    def layer(c, x: Data, kind: tuple[str, str]) -> Data:
        word, mlp = kind
        window = c.window if word == "sliding_attention" else None
        h = c.norm(x, "input_layernorm")
        x = x + c.self_attention(h, bias=c.attention_bias, qk_norm=True, window=window)
        h = c.norm(x, "post_attention_layernorm")
        if mlp == "moe":
            return x + shared_mixture(c, h, "mlp.", choose=c.choose)
        return x + c.gated_mlp(h)

    def choose(c, logits: Data) -> Data:
        return choose_in_groups(c, logits, routing_bias(c, "mlp.gate.e_score_correction_bias"))

    def check(c) -> None:
        check_sliding_or_full(c)
        check_experts_exist(c)
