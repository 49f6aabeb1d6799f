"""OLMo 1 and 2 in the code of the OLMo trainer: q, k and v in one matrix, gate and up in another."""

from typing import Any, Literal

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, describe_value


def size_mlp(js: sizes.ConfigJson, c: sizes.FieldValues) -> Any:
    """Of both halves together, if one gates the other."""
    n, ratio = js.get("mlp_hidden_size"), js.get("mlp_ratio", 4)
    for key, value in (("mlp_ratio", ratio), ("mlp_hidden_size", 1 if n is None else n)):
        if type(value) is not int or value < 1:
            raise sizes.make_value_error(value, key, "a positive integer")
    width: int = ratio * c["d_model"] if n is None else n
    if not c["gated"]:
        return width
    if width % 2:
        problem = f"= {width} cannot be split into gate and up"
        raise ParamcountError(problem, where="mlp_hidden_size", expected="an even number")
    return width // 2


def kv_heads(js: sizes.ConfigJson, c: sizes.FieldValues) -> Any:
    stated, one = js.get("n_kv_heads"), js.get("multi_query_attention")
    usual = 1 if one else c["n_heads"]
    if stated is not None and one is not None and stated != usual:
        raise ParamcountError(f"= {stated}, but multi_query_attention is set", where="n_kv_heads", expected=f"{usual}")
    return usual if stated is None else stated


def size_positions(js: sizes.ConfigJson, c: sizes.FieldValues) -> Any:
    n = js.get("max_sequence_length", 1024)
    if c["learned_positions"] and (type(n) is not int or n < 1):
        raise sizes.make_value_error(n, "max_sequence_length", "a positive integer")
    return n if c["learned_positions"] else 0


def can_build(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """Releases have no ALiBi, do not group their blocks and do not scale their logits."""
    for key, absent, wanted in (("alibi", False, False), ("scale_logits", False, False), ("block_group_size", 1, 1)):
        if (value := js.get(key, absent)) != wanted:
            raise sizes.make_value_error(value, key, describe_value(wanted))
    if c["qk_norm"] and not sizes.flag(js, "attention_layer_norm_with_affine", True):
        raise sizes.make_value_error(False, "attention_layer_norm_with_affine", "true")


class HfOlmo(parts.EqualHeads, parts.AttentionDecoder):
    """Source: OLMoSequentialBlock in olmo/model.py of github allenai/OLMo. `d_ff` is the hidden size of the MLP, half
    of config.json's `mlp_hidden_size` if the MLP is gated. `n_positions`: of learned positions, 0 if heads are rotated.
    """

    reference = "OLMoForCausalLM of allenai/OLMo-7B"
    prefix = "model.transformer."
    unused_keys = ("vocab_size",)  # where embedding_size is stated
    names = ("wte", "blocks", "ln_f")
    head_name = "model.transformer.ff_out"
    conditions = (
        can_build,
        sizes.one_of("activation_type", ("swiglu", "gelu", "relu"), "swiglu"),
        sizes.one_of("block_type", ("sequential",), "sequential"),
        sizes.one_of("layer_norm_type", ("default", "low_precision", "rms"), "default"),
    )

    vocab_size: sizes.Positive = sizes.hf(
        "embedding_size", absent=50304, null=lambda js, c: js.get("vocab_size", 50257)
    )
    d_model: sizes.Positive = sizes.hf("d_model", absent=768)
    n_layers: sizes.Natural = sizes.hf("n_layers", absent=12)
    n_heads: sizes.Positive = sizes.hf("n_heads", absent=12)
    n_kv_heads: sizes.Positive = sizes.derived(kv_heads)
    learned_positions: sizes.Flag = sizes.derived(lambda js, c: not sizes.flag(js, "rope", False))
    n_positions: sizes.Natural = sizes.derived(size_positions)
    gated: sizes.Flag = sizes.derived(lambda js, c: js.get("activation_type", "swiglu") == "swiglu")
    d_ff: sizes.Natural = sizes.derived(size_mlp, late=True)
    bias: sizes.Flag = sizes.hf("include_bias", absent=True)
    norm_weight: sizes.Flag = sizes.hf("layer_norm_with_affine", absent=True)
    norm_bias: sizes.Flag = sizes.hf("bias_for_layer_norm", absent=sizes.equal_to("bias"), null=sizes.equal_to("bias"))
    root_mean_square: sizes.Flag = sizes.derived(lambda js, c: js.get("layer_norm_type", "default") == "rms")
    qk_norm: sizes.Flag = sizes.hf("attention_layer_norm", absent=False)
    embedding_norm: sizes.Flag = sizes.hf("embedding_layer_norm", absent=False)
    norm_after: sizes.Flag = sizes.hf("norm_after", absent=False)
    tie_word_embeddings: sizes.Flag = sizes.hf("weight_tying", absent=True)

    activation = sizes.setting(default=lambda js, c: "silu" if c.gated else js["activation_type"])
    norm_eps = sizes.setting("layer_norm_eps", default=1e-5)
    limit = sizes.setting("clip_qkv", default=None)
    rope = sizes.rotary(10_000, positions=1024)

    def embed(c, tokens: Data) -> Data:
        x = super().embed(tokens)
        x = c.norm(x, "model.transformer.emb_norm") if c.embedding_norm else x
        if c.learned_positions:
            x = x + ops.lookup_position(tokens, "model.transformer.wpe.weight", c.n_positions, c.d_model)
        return x

    def layer(c, x: Data) -> Data:
        x = x + c.normed(x, c.attention, "attn_norm")
        return x + c.normed(x, c.mlp, "ff_norm")

    def normed(c, x: Data, step: Any, name: str) -> Data:
        """A step with its norm before or behind it."""
        return c.norm(step(x), name) if c.norm_after else step(c.norm(x, name))

    def attention(c, x: Data) -> Data:
        few = (c.n_kv_heads, c.d_head)
        shares = {"qkv.q": (c.n_heads, c.d_head), "qkv.k": few, "qkv.v": few}
        q, k, v = ops.fused(x, "att_proj", shares, bias=c.bias)
        if isinstance(c.limit, (int, float)):
            q, k, v = (ops.clip(y, -c.limit, c.limit) for y in (q, k, v))
        if c.qk_norm:
            q, k = (c.any_norm(y, name, True, wide=True) for y, name in ((q, "q_norm"), (k, "k_norm")))
        if not c.learned_positions:
            q, k = c.rotate(q), c.rotate(k)
        a = ops.attend_causally(q, k, v)  # [n, n_heads, d_head]
        return ops.linear(a, "attn_out", "output_projection", c.d_model, bias=c.bias)

    def mlp(c, x: Data) -> Data:
        names = ("ff_proj", "ff_out")
        if not c.gated:
            return parts.plain_mlp(x, names, "mlp", c.d_ff, activation=c.activation, bias=c.bias)
        return parts.fused_gated_mlp(
            x, "", "mlp", c.d_ff, activation=c.activation, bias=c.bias, names=names, up_first=True
        )

    def norm(c, x: Data, name: str) -> Data:
        return c.any_norm(x, name, c.norm_weight)

    def any_norm(c, x: Data, name: str, has_weight: bool, *, wide: bool = False) -> Data:
        kind: Literal["rms", "layer"] = "rms" if c.root_mean_square else "layer"
        if not has_weight:
            return ops.plain_norm(x, kind, c.norm_eps)
        return ops.norm(x, name, kind=kind, eps=c.norm_eps, bias=c.norm_bias, wide=wide)

    def head(c, x: Data) -> Data:
        return parts.head(c, x, "model.transformer.wte.weight", c.head_name, bias=c.bias and not c.tie_word_embeddings)

    def check(c) -> None:  # type: ignore[override]
        sizes.check_heads_fill(c)
        sizes.check_flag(c, "learned_positions", "n_positions")
