"""EAGLE-3: a layer that drafts from the target's hidden states of three layers and the next token's embedding."""

from typing import Any, ClassVar

from paramcount.declare import Data, ops, parts, sizes

N_STATES = 3  # low, middle and high layers of the target


def has_one_layer(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """SpecForge builds one whatever the key says; SGLang refuses others."""
    if c["n_layers"] != 1:
        raise sizes.make_value_error(c["n_layers"], "num_hidden_layers", "1")


class Eagle3(parts.AttentionDecoder):
    """The token embedding is the target's. The LM head is its own, of the tokens that it drafts.

    Source: arXiv:2503.01840, section 3.1; LlamaForCausalLMEagle3 of SpecForge, llama3_eagle.py.
    """

    reference = "LlamaForCausalLMEagle3 of sgl-project/SpecForge"
    is_draft = True
    draft_key = "draft_vocab_size"
    is_section_type = False
    shared_with_target = ("embed_tokens.weight",)
    base_model = ""
    config_class = "LlamaConfig"
    prefix = ""
    conditions: ClassVar[tuple[sizes.Condition, ...]] = (has_one_layer, sizes.padding_in_table(None))
    unused_keys = ("target_model_type", "eagle_config", "decoder_sparse_step", "max_window_layers")

    d_head: sizes.Positive = sizes.hf(absent=sizes.d_model_per_head, null=sizes.ABSENT)
    d_target: sizes.Positive = sizes.hf(
        "target_hidden_size", absent=sizes.equal_to("d_model"), null=sizes.equal_to("d_model")
    )
    n_drafted: sizes.Positive = sizes.hf(
        "draft_vocab_size", absent=sizes.equal_to("vocab_size"), null=sizes.equal_to("vocab_size")
    )
    attention_bias: ClassVar[Any] = False  # whatever the key says
    fc_norm: sizes.Flag = sizes.hf("fc_norm", absent=False)
    norm_before_residual: sizes.Flag = sizes.hf("norm_before_residual", absent=False)
    tie_word_embeddings = sizes.constant(False)  # whatever the key says

    def forward(c, tokens: Data) -> Data:
        """The token behind each position and the target's states there to logits."""
        embedded, states = c.embed(tokens), ops.given("target hidden states", "tokens", N_STATES * c.d_target)
        x = c.draft(c.join_states(states), embedded)
        logits = ops.linear(c.norm(x, "norm"), "lm_head", "lm_head", c.n_drafted)
        return ops.map_draft_ids(logits, c.vocab_size)

    def join_states(c, states: Data) -> Data:
        """The target's hidden states to the size of the draft."""
        if c.fc_norm:
            first, *others = ops.split(states, *(c.d_target,) * N_STATES)
            states = c.norm(first, "fc_norm.0")
            for i, part in enumerate(others, 1):
                states = ops.join(states, c.norm(part, f"fc_norm.{i}"))
        return ops.linear(states, "fc", "other", c.d_model)

    def draft(c, x: Data, embedded: Data) -> Data:
        return ops.block(x, "midlayer.", c.first_layer, reads=(embedded,))

    def first_layer(c, x: Data, embedded: Data) -> Data:
        """Attention reads the embedded token, too."""
        h = c.norm(x, "hidden_norm")
        x = h if c.norm_before_residual else x
        h = ops.join(c.norm(embedded, "input_layernorm"), h)  # [n, 2 * d_model]
        q, k, v = c.project_heads(h, "self_attn.", bias=c.attention_bias)  # [n, heads, d_head]
        a = c.mix_heads(*c.prepare(q, k), v, None)  # [n, n_heads, d_head]
        x = x + parts.project_output(a, "self_attn.o_proj", c.d_model, bias=c.attention_bias)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))

    def check(c) -> None:
        sizes.check_at_most(c, "n_drafted", "vocab_size")


class Eagle3Layers(Eagle3):
    """Plain layers may follow, and attention may have biases.

    Source: Eagle3LlamaForCausalLM of vLLM, llama_eagle3.py.
    """

    reference = "Eagle3LlamaForCausalLM of vllm-project/vllm"
    model_types = ("eagle3.Eagle3LlamaForCausalLM",)
    equivalent_classes = ("Eagle3Qwen2_5vlForCausalLM", "Eagle3Qwen3vlForCausalLM")
    conditions: ClassVar[tuple[sizes.Condition, ...]] = (sizes.padding_in_table(None),)

    n_layers: sizes.Positive = sizes.hf()
    attention_bias: sizes.Flag = sizes.hf()
    fc_norm = sizes.constant(False)

    def draft(c, x: Data, embedded: Data) -> Data:
        kinds = [("first", 1), ("layer", c.n_layers - 1)]
        return ops.layers(x, "layers.{layer}.", kinds, c.layer, reads=(embedded,))

    def layer(c, kind: str, x: Data, embedded: Data) -> Data:
        if kind == "first":
            return c.first_layer(x, embedded)
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.attention_bias)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))
