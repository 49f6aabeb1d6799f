"""GPTBigCode (StarCoder 1, SantaCoder): GPT-2 with matrices stored [out, in], usually with multi-query attention."""

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError


def self_attention_only(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The reference builds no cross-attention with multi_query, and cannot run what it builds without: keys and values
    of all heads are split as if they were those of one head, and have too few axes then.
    """
    if js.get("add_cross_attention"):
        problem = "= true, but the reference cannot run its cross-attention"
        raise ParamcountError(problem, where="add_cross_attention", expected="false")


class GPTBigCode(parts.EqualHeads, parts.Decoder):
    """Source: arXiv:2305.06161; GPTBigCodeBlock of the reference."""

    reference = "GPTBigCodeForCausalLM"
    gguf = "starcoder"
    task_heads = "GPT"
    conditions = (self_attention_only,)

    n_positions: sizes.Positive = sizes.hf("max_position_embeddings", "n_positions")
    d_model: sizes.Positive = sizes.hf("hidden_size", "n_embd")
    n_layers: sizes.Natural = sizes.hf("num_hidden_layers", "n_layer")
    n_heads: sizes.Positive = sizes.hf("num_attention_heads", "n_head")
    n_kv_heads: sizes.Positive = sizes.derived(lambda js, c: 1 if sizes.flag(js, "multi_query", True) else c["n_heads"])
    d_ff: sizes.Natural = sizes.hf("n_inner", absent=lambda js, c: 4 * c["d_model"], null=sizes.ABSENT)

    prefix = "transformer."
    names = ("wte", "h", "ln_f")
    activation = sizes.setting("activation_function")
    norm_eps = sizes.setting("layer_norm_epsilon")
    attention_scale = sizes.setting(default=lambda js, c: None if js.get("scale_attn_weights", True) else 1.0)
    rope = None
    norm = parts.use_layer_norm

    def embed(c, tokens: Data) -> Data:
        x = super().embed(tokens)
        return x + ops.lookup_position(tokens, "transformer.wpe.weight", c.n_positions, c.d_model)

    def layer(c, x: Data) -> Data:
        x = x + c.attention(c.norm(x, "ln_1"))
        h = c.norm(x, "ln_2")
        return x + parts.plain_mlp(h, ("mlp.c_fc", "mlp.c_proj"), "mlp", c.d_ff, activation=c.activation, bias=True)

    def attention(c, x: Data) -> Data:
        """With several KV heads, the q, k and v of each head are contiguous."""
        shares = {"qkv.q": (c.n_heads, c.d_head), "qkv.k": (c.n_kv_heads, c.d_head), "qkv.v": (c.n_kv_heads, c.d_head)}
        q, k, v = ops.fused(x, "attn.c_attn", shares, bias=True, groups=c.n_kv_heads)
        a = ops.attend_causally(q, k, v, scale=c.attention_scale)  # [n, n_heads, d_head]
        return ops.linear(a, "attn.c_proj", "output_projection", c.d_model, bias=True)
