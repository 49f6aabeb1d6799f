"""dots.llm1: Qwen 3's attention and DeepSeek-V3's experts."""

from paramcount.declare import Data, parts, sizes


def late_sliding(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    """From the layer max_window_layers on over a window, if there is one."""
    first = sizes.check_no_types(js, "max_window_layers", 62) if c["window"] is not None else c["n_layers"]
    return tuple(sizes.SLIDING[i < first] for i in sizes.per_layer(c))


class Dots1(parts.AttentionBias, parts.GroupedExperts, parts.AttentionDecoder):
    """Source: Dots1DecoderLayer and Dots1TopkRouter of the reference, modeling_dots1.py."""

    reference = "Dots1ForCausalLM"
    gguf = "dots1"
    conditions = (sizes.grouped_routing(1, 1), sizes.padding_in_table(None))

    window: sizes.Positive | None = sizes.hf()
    layer_types: sizes.Words = sizes.hf(absent=late_sliding, null=sizes.ABSENT)
    dense_layers: sizes.Indices = sizes.derived(sizes.first_dense(0))
    n_routed_experts: sizes.Natural = sizes.hf(
        "num_local_experts",
        "n_routed_experts",
        absent=sizes.needed("n_routed_experts"),
        null=sizes.needed("n_routed_experts"),
        late=True,
    )
    n_active_experts: sizes.Natural = sizes.hf(absent=sizes.needed("num_experts_per_tok"), null=sizes.ABSENT, late=True)
    n_shared_experts: sizes.Natural = sizes.hf(absent=sizes.needed("n_shared_experts"), null=sizes.ABSENT)

    kinds = parts.layers_by_type_and_mlp
    norms_heads = True
    check = sizes.check_sliding_or_full

    def layer(c, x: Data, kind: tuple[str, str]) -> Data:
        word, mlp = kind
        window = c.window if word == "sliding_attention" else None
        h = c.norm(x, "input_layernorm")
        x = x + c.self_attention(h, bias=c.attention_bias, window=window)
        h = c.norm(x, "post_attention_layernorm")
        if mlp == "moe":
            return x + parts.shared_mixture(c, h, "mlp.", choose=c.choose)
        return x + c.gated_mlp(h)
