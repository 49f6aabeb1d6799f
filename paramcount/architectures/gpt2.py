"""GPT-2 and GPT-3: learned positions, fused QKV stored [in, out], biases everywhere, tied head."""

from collections.abc import Sequence
from typing import ClassVar

from paramcount.declare import Data, ops, parts, sizes


class GPT2(sizes.Sizes):
    """Source: Radford et al. 2019, section 2.3; for GPT-3 arXiv:2005.14165, section 2.1."""

    reference = "GPT2LMHeadModel"
    model_types = ("gpt2", "gpt-sw3")
    gguf = "gpt2"
    task_heads = "GPT2_HEADS"
    reference_names = {"": "transformer.", "lm_head.": "lm_head."}
    prefix: ClassVar[str] = "transformer."  # inside a pair; the released files of GPT-2 itself have none
    # Source: karpathy/nanoGPT, model.py, `from_pretrained`; ml-explore/mlx-lm, models/gpt2.py, `sanitize`.
    transposable = (".attn.c_attn.weight", ".attn.c_proj.weight", ".mlp.c_fc.weight", ".mlp.c_proj.weight")

    vocab_size: sizes.Positive = sizes.hf()
    n_positions: sizes.Positive = sizes.hf("max_position_embeddings", "n_positions")
    d_model: sizes.Positive = sizes.hf("hidden_size", "n_embd")
    n_layers: sizes.Natural = sizes.hf("num_hidden_layers", "n_layer")
    n_heads: sizes.Positive = sizes.hf("num_attention_heads", "n_head")
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Positive = sizes.hf("n_inner", absent=lambda js, c: 4 * c["d_model"], null=sizes.ABSENT)
    tie_word_embeddings: sizes.Flag = sizes.hf()
    cross_attention: sizes.Flag = sizes.hf(unstated=False)

    activation = sizes.setting("activation_function")
    norm_eps = sizes.setting("layer_norm_epsilon")
    attention_scale = sizes.setting(default=parts.gpt_attention_scale)
    check = sizes.check_heads_fill

    def forward(c, tokens: Data) -> Data:
        memory = (parts.source_states(c.d_model),) if c.cross_attention else ()
        return c.read(tokens, (), memory, prefix="")

    def list_inputs(c, tokens: Data) -> list[Data]:
        """What is looked up besides the tokens: nothing."""
        return []

    def read(
        c, tokens: Data, inputs: Sequence[Data], memory: Sequence[Data], *, head: bool = True, prefix: str = prefix
    ) -> Data:
        """Token ids, and an encoder's output if layers attend to it, to logits, or without `head` to hidden states."""
        table = prefix + "wte.weight"
        x = ops.lookup(tokens, table, "embedding", c.vocab_size, c.d_model)
        x = x + ops.lookup_position(tokens, prefix + "wpe.weight", c.n_positions, c.d_model)
        x = ops.layers(x, prefix + "h.{layer}.", [("layer", c.n_layers)], lambda _, x, *m: c.layer(x, *m), reads=memory)
        x = ops.layer_norm(x, prefix + "ln_f", c.norm_eps)
        return parts.head(c, x, table) if head else x

    def layer(c, x: Data, *memory: Data) -> Data:
        x = x + parts.gpt_attention(c, ops.layer_norm(x, "ln_1", c.norm_eps))
        for source in memory:
            x = parts.crossing(x, "", c.look, source)
        return x + parts.gpt_mlp(c, ops.layer_norm(x, "ln_2", c.norm_eps))

    def look(c, x: Data, memory: Data) -> Data:
        h, heads = ops.layer_norm(x, "ln_cross_attn", c.norm_eps), (c.n_heads, c.d_head)
        q = ops.linear(h, "crossattention.q_attn", "qkv.q", heads, bias=True, transposed=True)
        shares = {"qkv.k": heads, "qkv.v": heads}
        k, v = ops.fused(memory, "crossattention.c_attn", shares, bias=True, transposed=True)
        a = ops.attend_to_memory(q, k, v, scale=c.attention_scale)  # [n, n_heads, d_head]
        return x + ops.linear(a, "crossattention.c_proj", "output_projection", c.d_model, bias=True, transposed=True)

    def legacy_buffers(c) -> sizes.Buffers:
        return (*parts.causal_masks(c), *(parts.causal_masks(c, "crossattention") if c.cross_attention else ()))
