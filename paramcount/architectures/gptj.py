"""GPT-J: parallel attention and MLP after one norm, rotary positions on part of each head, an LM head with a bias."""

from typing import ClassVar

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError


class GPTJ(parts.Decoder):
    """Source: modeling_gptj.py of the reference, GPTJBlock."""

    reference = "GPTJForCausalLM"
    task_heads = parts.SCORED | {"ForQuestionAnswering": parts.SPAN_OF_LABELS}
    conditions: ClassVar[tuple[sizes.Condition, ...]] = (
        sizes.positions_from(1, "n_positions", "max_position_embeddings"),
    )
    rotated = "d_rope"

    d_model: sizes.Positive = sizes.hf("hidden_size", "n_embd")
    n_layers: sizes.Natural = sizes.hf("num_hidden_layers", "n_layer")
    n_heads: sizes.Positive = sizes.hf("num_attention_heads", "n_head")
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_rope: sizes.Positive = sizes.hf("rotary_dim")
    d_ff: sizes.Natural = sizes.hf("n_inner", absent=lambda js, c: 4 * c["d_model"], null=sizes.ABSENT)

    prefix = "transformer."
    names = ("wte", "h", "ln_f")
    activation = sizes.setting("activation_function")
    norm_eps = sizes.setting("layer_norm_epsilon")
    rope = ops.Rope(10_000.0)
    norm = parts.use_layer_norm

    def layer(c, x: Data) -> Data:
        h = c.norm(x, "ln_1")
        mlp = parts.plain_mlp(h, ("mlp.fc_in", "mlp.fc_out"), "mlp", c.d_ff, activation=c.activation, bias=True)
        return x + c.attention(h) + mlp

    def attention(c, x: Data) -> Data:
        q, k, v = (ops.linear(x, f"attn.{name}_proj", f"qkv.{name}", (c.n_heads, c.d_head)) for name in "qkv")
        a = ops.attend_causally(c.rotate(q), c.rotate(k), v)  # [n, n_heads, d_head]
        return ops.linear(a, "attn.out_proj", "output_projection", c.d_model)

    def rotate(c, x: Data) -> Data:
        return parts.partial_rope(x, c.d_rope, c.rope, "interleaved")

    def head(c, x: Data) -> Data:
        return parts.head(c, x, "transformer.wte.weight", bias=True)

    def check(c) -> None:
        sizes.check_heads_fill(c)
        sizes.check_rotated_in_pairs(c, "d_rope")
        sizes.check_at_most(c, "d_rope", "d_head")


class CodeGen(GPTJ):
    """CodeGen: GPT-J with q, k and v in one matrix, stored in the order q, v, k.

    Source: arXiv:2203.13474, section 2.2; CodeGenBlock of the reference.
    """

    reference = "CodeGenForCausalLM"
    model_types = ("codegen",)

    n_positions: sizes.Positive = sizes.hf(
        "max_position_embeddings", "n_positions"
    )  # no table: only the masks of older files are as large

    def attention(c, x: Data) -> Data:
        """The matrix is laid out for four devices: each has the q, then the v, then the k of its heads."""
        heads = (c.n_heads, c.d_head)
        q, v, k = ops.fused(x, "attn.qkv_proj", {"qkv.q": heads, "qkv.v": heads, "qkv.k": heads}, groups=4)
        a = ops.attend_causally(c.rotate(q), c.rotate(k), v)  # [n, n_heads, d_head]
        return ops.linear(a, "attn.out_proj", "output_projection", c.d_model)

    def legacy_buffers(c) -> sizes.Buffers:
        return (("transformer.h.{layer}.attn.causal_mask", (1, 1, c.n_positions, c.n_positions), c.n_layers),)

    def check(c) -> None:
        super().check()
        if c.n_heads % 4:
            raise ParamcountError(f"= {c.n_heads}", where=FieldName("n_heads"), expected="a multiple of 4")
