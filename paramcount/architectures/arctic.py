"""Arctic: 128 experts that read a layer's input, in parallel with attention followed by a small dense MLP."""

from paramcount.flow import Data, route
from paramcount.parts.decoder import Decoder
from paramcount.parts.decoders import layers_by_mlp
from paramcount.parts.feed_forward import gated_mlp, mixture
from paramcount.sizes import (
    ABSENT,
    ConfigJson,
    FieldValues,
    Flag,
    Indices,
    Natural,
    Positive,
    derived,
    hf,
    rotary,
    setting,
)
from paramcount.sizes.derivations import d_model_per_head, equal_to, per_layer
from paramcount.sizes.layer_types import check_no_types
from paramcount.sizes.rules import check_heads_fill

WS = ("w1", "w3", "w2")


def between_experts(js: ConfigJson, c: FieldValues) -> tuple[int, ...]:
    every = check_no_types(js, "moe_layer_frequency", 2)
    return tuple(i for i in per_layer(c) if (i + 1) % every)


class Arctic(Decoder):
    """Source: ArcticDecoderLayer in modeling_arctic.py of Snowflake/snowflake-arctic-instruct. The small MLP is as wide
    as the model.
    """

    reference = "ArcticForCausalLM of Snowflake/snowflake-arctic-instruct"
    gguf = "arctic"
    rotated = "d_head"
    defaults = {"vocab_size": 32000, "d_model": 4096, "n_layers": 32}

    dense_layers: Indices = derived(between_experts)
    n_heads: Positive = hf(absent=32)
    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_head: Positive = derived(d_model_per_head)
    window: Positive | None = hf(absent=None)
    d_expert: Natural = hf("intermediate_size", absent=14336)  # also of the MLP in a layer without experts
    n_routed_experts: Positive = hf("num_local_experts", absent=8)
    n_active_experts: Natural = hf(absent=1)
    residual_mlp: Flag = hf("parallel_attn_mlp_res", absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    norm_eps = setting("rms_norm_eps", default=1e-5)
    rope = rotary(1_000_000, positions=4096)
    kinds = layers_by_mlp
    check = check_heads_fill

    def layer(c, x: Data, kind: str) -> Data:
        attended = x + c.self_attention(c.norm(x, "input_layernorm"), window=c.window)
        if kind == "moe" and c.residual_mlp:
            h = c.norm(attended, "residual_layernorm")
            y = gated_mlp(h, "residual_mlp.", "mlp", c.d_model, names=WS, activation=c.activation)
            return attended + y + c.moe(c.norm(x, "post_attention_layernorm"))
        h = c.norm(attended, "post_attention_layernorm")
        if kind == "moe":
            return attended + c.moe(h)
        return attended + gated_mlp(h, "block_sparse_moe.mlp.", "mlp", c.d_expert, names=WS, activation=c.activation)

    def moe(c, x: Data) -> Data:
        return mixture(c, x, "block_sparse_moe.", names=WS, choose=c.choose)

    def choose(c, logits: Data) -> Data:
        return route(logits, c.n_active_experts, "softmax", normalise=True)
