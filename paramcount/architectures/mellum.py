"""Mellum 2: Qwen 3's layers with windows and mixtures of experts where layer_types and mlp_layer_types say so."""

from functools import partial

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError

ROPES = {  # the reference's default of rope_parameters
    sizes.SLIDING[1]: {"rope_type": "default", "rope_theta": 500_000.0},
    sizes.SLIDING[0]: {"rope_type": "default", "rope_theta": 10_000.0},
}


def one_mtp_layer(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    n = js.get("num_nextn_predict_layers", js.get("num_mtp_layers"))
    if n is not None and n > 1:
        raise ParamcountError(f"= {n}", where="num_mtp_layers", expected="0 or 1")


class Mellum(parts.AttentionBias, parts.SoftmaxExperts, parts.AttentionDecoder):
    """Source: modeling_mellum.py of the reference."""

    reference = "MellumForCausalLM"
    gguf = "mellum"
    adapts_experts = True
    conditions = (one_mtp_layer, sizes.not_null("num_experts"), sizes.padding_in_table(None))
    defaults = {"d_head": 128}

    layer_types: sizes.Words = sizes.hf(absent=sizes.full_every(1), null=sizes.ABSENT)
    window: sizes.Positive | None = sizes.hf()
    dense_layers: sizes.Indices = sizes.derived(sizes.dense_by_type(lambda js, c: ()))
    n_routed_experts: sizes.Positive = sizes.hf("num_local_experts", "num_experts", null=sizes.unused, late=True)

    rope = sizes.rotary_of(sizes.SLIDING[1], ROPES, 131072, reads_share=True)
    local_rope = sizes.rotary_of(sizes.SLIDING[0], ROPES, 131072, reads_share=True)
    kinds = parts.layers_by_type_and_mlp
    norms_heads = True
    check = sizes.check_sliding_or_full

    def layer(c, x: Data, kind: tuple[str, str]) -> Data:
        sliding = kind[0] == sizes.SLIDING[0]
        angles, window = (c.local_rope, c.window) if sliding else (c.rope, None)
        h, prepare = c.norm(x, "input_layernorm"), c.prepare_by(partial(ops.rope, settings=angles))
        x = x + c.self_attention(h, bias=c.attention_bias, prepare=prepare, window=window)
        h = c.norm(x, "post_attention_layernorm")
        if kind[1] == "moe":
            return x + parts.mixture(c, h, "mlp.", choose=c.choose)
        return x + c.gated_mlp(h)
