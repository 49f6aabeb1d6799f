"""GPT-2 and GPT-3: learned positions, fused QKV stored [in, out], biases everywhere, tied head."""

from collections.abc import Sequence
from typing import ClassVar

from paramcount.flow import Data, attend, fused, layer_norm, layers, linear, lookup
from paramcount.parts.attentions import causal_masks, gpt_attention, gpt_attention_scale
from paramcount.parts.classic import crossing, source_states
from paramcount.parts.decoders import head as lm_head
from paramcount.parts.feed_forward import gpt_mlp
from paramcount.sizes import ABSENT, Buffers, Flag, Natural, Positive, Sizes, derived, hf, setting
from paramcount.sizes.derivations import d_model_per_head
from paramcount.sizes.rules import check_heads_fill


class GPT2(Sizes):
    """Source: Radford et al. 2019, section 2.3; for GPT-3 arXiv:2005.14165, section 2.1."""

    reference = "GPT2LMHeadModel"
    model_types = ("gpt2", "gpt-sw3")
    gguf = "gpt2"
    task_heads = "GPT2_HEADS"
    reference_names = {"": "transformer.", "lm_head.": "lm_head."}
    prefix: ClassVar[str] = "transformer."  # inside a pair; the released files of GPT-2 itself have none
    # Source: karpathy/nanoGPT, model.py, `from_pretrained`; ml-explore/mlx-lm, models/gpt2.py, `sanitize`.
    transposable = (".attn.c_attn.weight", ".attn.c_proj.weight", ".mlp.c_fc.weight", ".mlp.c_proj.weight")

    vocab_size: Positive = hf()
    n_positions: Positive = hf("max_position_embeddings", "n_positions")
    d_model: Positive = hf("hidden_size", "n_embd")
    n_layers: Natural = hf("num_hidden_layers", "n_layer")
    n_heads: Positive = hf("num_attention_heads", "n_head")
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = hf("n_inner", absent=lambda js, c: 4 * c["d_model"], null=ABSENT)
    tie_word_embeddings: Flag = hf()
    cross_attention: Flag = hf(unstated=False)

    activation = setting("activation_function", default="gelu_new")
    norm_eps = setting("layer_norm_epsilon", default=1e-5)
    attention_scale = setting(default=gpt_attention_scale)
    check = check_heads_fill

    def forward(c, tokens: Data) -> Data:
        memory = (source_states(c.d_model),) if c.cross_attention else ()
        return c.read(tokens, (), memory, prefix="")

    def list_inputs(c, tokens: Data) -> list[Data]:
        """What is looked up besides the tokens: nothing."""
        return []

    def read(
        c, tokens: Data, inputs: Sequence[Data], memory: Sequence[Data], *, head: bool = True, prefix: str = prefix
    ) -> Data:
        """Token ids, and an encoder's output if layers attend to it, to logits, or without `head` to hidden states."""
        table = prefix + "wte.weight"
        x = lookup(tokens, table, "embedding", c.vocab_size, c.d_model)
        x = x + lookup(tokens, prefix + "wpe.weight", "position", c.n_positions, c.d_model, index="positions")
        x = layers(x, prefix + "h.{layer}.", [("layer", c.n_layers)], lambda _, x, *m: c.layer(x, *m), reads=memory)
        x = layer_norm(x, prefix + "ln_f", c.norm_eps)
        return lm_head(c, x, table) if head else x

    def layer(c, x: Data, *memory: Data) -> Data:
        x = x + gpt_attention(c, layer_norm(x, "ln_1", c.norm_eps))
        for source in memory:
            x = crossing(x, "", c.look, source)
        return x + gpt_mlp(c, layer_norm(x, "ln_2", c.norm_eps))

    def look(c, x: Data, memory: Data) -> Data:
        h, heads = layer_norm(x, "ln_cross_attn", c.norm_eps), (c.n_heads, c.d_head)
        q = linear(h, "crossattention.q_attn", "qkv.q", heads, bias=True, transposed=True)
        parts = {"qkv.k": heads, "qkv.v": heads}
        k, v = fused(memory, "crossattention.c_attn", parts, bias=True, transposed=True)
        a = attend(q, k, v, scale=c.attention_scale)
        return x + linear(a, "crossattention.c_proj", "output_projection", c.d_model, bias=True, transposed=True)

    def legacy_buffers(c) -> Buffers:
        return (*causal_masks(c), *(causal_masks(c, "crossattention") if c.cross_attention else ()))
