"""EAGLE 1 and 2: a layer that drafts the target's next hidden state from the last one and the token behind it."""

from paramcount.declare import Data, ops, parts, sizes


class Eagle(parts.AttentionDecoder):
    """The token embedding and the LM head are the target's.

    Source: arXiv:2401.15077, section 4.1; Model of SafeAILab/EAGLE, cnets1.py, whose bias ea_model.py reads.
    """

    reference = "LlamaForCausalLMEagle of sgl-project/sglang"
    is_draft = True
    is_section_type = False
    shared_with_target = ("embed_tokens.weight",)
    base_model = ""
    config_class = "LlamaConfig"
    prefix = ""
    conditions = (sizes.padding_in_table(None),)

    n_layers: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    qkv_bias: sizes.Flag = sizes.hf(absent=False)
    fc_bias: sizes.Flag = sizes.hf("bias", absent=True)
    tie_word_embeddings = sizes.constant(False)

    check = sizes.check_heads_fill

    def forward(c, tokens: Data) -> Data:
        """The token behind each position and the target's last state there to the state that its LM head reads."""
        states = ops.join(c.embed(tokens), ops.given("target hidden states", "tokens", c.d_model))
        x = ops.linear(states, "fc", "other", c.d_model, bias=c.fc_bias)
        return ops.layers(x, "layers.{layer}.", [("first", 1), ("layer", c.n_layers - 1)], c.layer)

    def layer(c, kind: str, x: Data) -> Data:
        """The first layer has no norm before attention, and nothing stands behind the last."""
        h = x if kind == "first" else c.norm(x, "input_layernorm")
        x = x + c.self_attention(h, bias=c.qkv_bias, o_bias=False)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))


class EagleOfVllm(Eagle):
    """Without a bias unless the config asks for it. Source: EagleLlamaForCausalLM of vLLM, llama_eagle.py."""

    reference = "EagleLlamaForCausalLM of vllm-project/vllm"
    model_types = ("eagle.EagleLlamaForCausalLM",)
    defaults = {"fc_bias": False}
