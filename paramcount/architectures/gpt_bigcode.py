"""GPTBigCode (StarCoder 1, SantaCoder): GPT-2 with matrices stored [out, in], usually with multi-query attention."""

from paramcount.errors import ParamcountError
from paramcount.flow import Data, attend, fused, linear, lookup
from paramcount.parts.decoder import Decoder
from paramcount.parts.decoders import use_layer_norm
from paramcount.parts.feed_forward import plain_mlp
from paramcount.sizes import (
    ABSENT,
    ConfigJson,
    FieldValues,
    Flag,
    Natural,
    Positive,
    d_model_per_head,
    derived,
    flag,
    hf,
    setting,
)
from paramcount.sizes.rules import check_heads_fill


def self_attention_only(js: ConfigJson, c: FieldValues) -> None:
    """The reference builds no cross-attention with multi_query, and cannot run what it builds without: keys and values
    of all heads are split as if they were those of one head, and have too few axes then.
    """
    if js.get("add_cross_attention"):
        problem = "= true, but the reference cannot run its cross-attention"
        raise ParamcountError(problem, where="add_cross_attention", expected="false")


class GPTBigCode(Decoder):
    """Source: arXiv:2305.06161; GPTBigCodeBlock of the reference."""

    reference = "GPTBigCodeForCausalLM"
    gguf = "starcoder"
    task_heads = "GPT"
    conditions = (self_attention_only,)

    n_positions: Positive = hf("max_position_embeddings", "n_positions")
    d_model: Positive = hf("hidden_size", "n_embd")
    n_layers: Natural = hf("num_hidden_layers", "n_layer")
    n_heads: Positive = hf("num_attention_heads", "n_head")
    n_kv_heads: Positive = derived(lambda js, c: 1 if flag(js, "multi_query", True) else c["n_heads"])
    d_head: Positive = derived(d_model_per_head)
    d_ff: Natural = hf("n_inner", absent=lambda js, c: 4 * c["d_model"], null=ABSENT)
    tie_word_embeddings: Flag = hf()

    prefix = "transformer."
    names = ("wte", "h", "ln_f")
    activation = setting("activation_function", default="gelu_pytorch_tanh")
    norm_eps = setting("layer_norm_epsilon", default=1e-5)
    attention_scale = setting(default=lambda js, c: None if js.get("scale_attn_weights", True) else 1.0)
    rope = None
    norm = use_layer_norm
    check = check_heads_fill

    def embed(c, tokens: Data) -> Data:
        x = super().embed(tokens)
        return x + lookup(tokens, "transformer.wpe.weight", "position", c.n_positions, c.d_model, index="positions")

    def layer(c, x: Data) -> Data:
        x = x + c.attention(c.norm(x, "ln_1"))
        h = c.norm(x, "ln_2")
        return x + plain_mlp(h, ("mlp.c_fc", "mlp.c_proj"), "mlp", c.d_ff, activation=c.activation, bias=True)

    def attention(c, x: Data) -> Data:
        """With several KV heads, the q, k and v of each head are contiguous."""
        parts = {"qkv.q": (c.n_heads, c.d_head), "qkv.k": (c.n_kv_heads, c.d_head), "qkv.v": (c.n_kv_heads, c.d_head)}
        q, k, v = fused(x, "attn.c_attn", parts, bias=True, groups=c.n_kv_heads)
        a = attend(q, k, v, scale=c.attention_scale)
        return linear(a, "attn.c_proj", "output_projection", c.d_model, bias=True)
