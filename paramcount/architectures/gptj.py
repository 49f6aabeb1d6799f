"""GPT-J: parallel attention and MLP after one norm, rotary positions on part of each head, an LM head with a bias."""

from paramcount.errors import FieldName, ParamcountError
from paramcount.flow import Data, Rope, attend, fused, linear
from paramcount.parts.attentions import partial_rope
from paramcount.parts.decoder import Decoder
from paramcount.parts.decoders import head, use_layer_norm
from paramcount.parts.feed_forward import plain_mlp
from paramcount.parts.tasks import SCORED, SPAN_OF_LABELS
from paramcount.sizes import ABSENT, Buffers, Flag, Natural, Positive, d_model_per_head, derived, hf, setting
from paramcount.sizes.conditions import positions_from
from paramcount.sizes.rules import check_at_most, check_heads_fill, check_rotated_in_pairs


class GPTJ(Decoder):
    """Source: modeling_gptj.py of the reference, GPTJBlock."""

    reference = "GPTJForCausalLM"
    task_heads = SCORED | {"ForQuestionAnswering": SPAN_OF_LABELS}
    conditions = (positions_from(1, "n_positions", "max_position_embeddings"),)
    rotated = "d_rope"

    d_model: Positive = hf("hidden_size", "n_embd")
    n_layers: Natural = hf("num_hidden_layers", "n_layer")
    n_heads: Positive = hf("num_attention_heads", "n_head")
    d_head: Positive = derived(d_model_per_head)
    d_rope: Positive = hf("rotary_dim")
    d_ff: Natural = hf("n_inner", absent=lambda js, c: 4 * c["d_model"], null=ABSENT)
    tie_word_embeddings: Flag = hf()

    prefix = "transformer."
    names = ("wte", "h", "ln_f")
    activation = setting("activation_function", default="gelu_new")
    norm_eps = setting("layer_norm_epsilon", default=1e-5)
    rope = Rope(10_000.0)
    norm = use_layer_norm

    def layer(c, x: Data) -> Data:
        h = c.norm(x, "ln_1")
        mlp = plain_mlp(h, ("mlp.fc_in", "mlp.fc_out"), "mlp", c.d_ff, activation=c.activation, bias=True)
        return x + c.attention(h) + mlp

    def attention(c, x: Data) -> Data:
        q, k, v = (linear(x, f"attn.{name}_proj", f"qkv.{name}", (c.n_heads, c.d_head)) for name in "qkv")
        a = attend(c.rotate(q), c.rotate(k), v)
        return linear(a, "attn.out_proj", "output_projection", c.d_model)

    def rotate(c, x: Data) -> Data:
        return partial_rope(x, c.d_rope, c.rope, "interleaved")

    def head(c, x: Data) -> Data:
        return head(c, x, "transformer.wte.weight", bias=True)

    def check(c) -> None:
        check_heads_fill(c)
        check_rotated_in_pairs(c, "d_rope")
        check_at_most(c, "d_rope", "d_head")


class CodeGen(GPTJ):
    """CodeGen: GPT-J with q, k and v in one matrix, stored in the order q, v, k.

    Source: arXiv:2203.13474, section 2.2; CodeGenBlock of the reference.
    """

    reference = "CodeGenForCausalLM"
    model_types = ("codegen",)

    n_positions: Positive = hf(
        "max_position_embeddings", "n_positions"
    )  # no table: only the masks of older files are as large

    def attention(c, x: Data) -> Data:
        """The matrix is laid out for four devices: each has the q, then the v, then the k of its heads."""
        heads = (c.n_heads, c.d_head)
        q, v, k = fused(x, "attn.qkv_proj", {"qkv.q": heads, "qkv.v": heads, "qkv.k": heads}, groups=4)
        a = attend(c.rotate(q), c.rotate(k), v)
        return linear(a, "attn.out_proj", "output_projection", c.d_model)

    def legacy_buffers(c) -> Buffers:
        return (("transformer.h.{layer}.attn.causal_mask", (1, 1, c.n_positions, c.n_positions), c.n_layers),)

    def check(c) -> None:
        super().check()
        if c.n_heads % 4:
            raise ParamcountError(f"= {c.n_heads}", where=FieldName("n_heads"), expected="a multiple of 4")
