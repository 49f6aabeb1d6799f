"""EAGLE-3: a layer that drafts from the target's hidden states of three layers and the next token's embedding."""

from collections.abc import Mapping
from typing import ClassVar

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError, make_choice_error

N_STATES = 3  # low, middle and high layers of the target
LAYERS = "transformer_layer_config"


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
    unused_keys: ClassVar[tuple[str, ...]] = (
        "target_model_type",
        "eagle_config",
        "decoder_sparse_step",
        "max_window_layers",
    )

    d_head: sizes.Positive = sizes.hf(absent=sizes.d_model_per_head, null=sizes.ABSENT)
    d_target: sizes.Positive = sizes.hf(
        "target_hidden_size", absent=sizes.equal_to("d_model"), null=sizes.equal_to("d_model")
    )
    n_drafted: sizes.Positive = sizes.hf(
        "draft_vocab_size", absent=sizes.equal_to("vocab_size"), null=sizes.equal_to("vocab_size")
    )
    attention_bias = sizes.constant(False)  # whatever the key says
    fc_norm: sizes.Flag = sizes.hf("fc_norm", absent=False)
    n_states = sizes.constant(N_STATES)  # layers of the target that are read
    has_map = sizes.constant(True)  # of the drafted tokens to those of the target
    norm_before_residual: sizes.Flag = sizes.hf("norm_before_residual", absent=False)
    tie_word_embeddings = sizes.constant(False)  # whatever the key says

    def forward(c, tokens: Data) -> Data:
        """The token behind each position and the target's states there to logits."""
        embedded, states = c.embed(tokens), ops.given("target hidden states", "tokens", c.n_states * c.d_target)
        x = c.draft(c.join_states(states), embedded)
        logits = ops.linear(c.norm(x, "norm"), "lm_head", "lm_head", c.n_drafted)
        return ops.map_draft_ids(logits, c.vocab_size) if c.has_map else logits

    def join_states(c, states: Data) -> Data:
        """The target's hidden states to the size of the draft."""
        if c.fc_norm:
            first, *others = ops.split(states, *(c.d_target,) * c.n_states)
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
        if c.n_layers != 1:
            raise ParamcountError(f"= {c.n_layers}", where=FieldName("n_layers"), expected="1")
        sizes.check_at_most(c, "n_drafted", "vocab_size")


class Eagle3Layers(Eagle3):
    """Plain layers may follow, and attention may have biases.

    Source: Eagle3LlamaForCausalLM of vLLM, llama_eagle3.py.
    """

    reference = "Eagle3LlamaForCausalLM of vllm-project/vllm"
    model_types = ("eagle3.Eagle3LlamaForCausalLM",)
    equivalent_classes: ClassVar[tuple[str, ...]] = ("Eagle3Qwen2_5vlForCausalLM", "Eagle3Qwen3vlForCausalLM")
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

    def check(c) -> None:
        sizes.check_at_most(c, "n_drafted", "vocab_size")


def list_states(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    layers = js.get("eagle_aux_hidden_state_layer_ids") or range(N_STATES)
    if not isinstance(layers, (list, range)):
        raise sizes.make_value_error(layers, "eagle_aux_hidden_state_layer_ids", "a list of layers of the target")
    return len(layers)


def has_head_norms(js: sizes.ConfigJson, c: sizes.FieldValues) -> bool:
    """Whether its layers are those of Qwen 3, which are the default, rather than Llama's."""
    block = js.get(LAYERS)
    if not isinstance(block, Mapping):
        raise ParamcountError("is missing" if block is None else "is no block", where=LAYERS, expected="a JSON object")
    if (found := block.get("model_type", "qwen3")) not in ("llama", "qwen3"):
        raise make_choice_error(found, ("llama", "qwen3"), where=f"{LAYERS}.model_type")
    return bool(found == "qwen3")


class SpeculatorEagle3(Eagle3Layers):
    """Layers of Llama or of Qwen 3. The target's LM head and norm, which training alone reads, are left out.

    Source: Eagle3DraftModel of speculators, models/eagle3/core.py and model_definitions.py.
    """

    reference = "Eagle3DraftModel of vllm-project/speculators"
    model_types = ("eagle3.Eagle3DraftModel",)
    equivalent_classes = ("Eagle3Speculator",)
    unused_keys = (*Eagle3.unused_keys, LAYERS, "speculators_config", "target_hidden_size")
    conditions = ()

    d_target: sizes.Positive = sizes.derived(sizes.equal_to("d_model"))
    n_drafted: sizes.Positive = sizes.hf("draft_vocab_size", absent=32000)
    fc_norm: sizes.Flag = sizes.hf("fc_norm", absent=False)
    norm_before_fc: sizes.Flag = sizes.hf("norm_before_fc", absent=False)
    n_states: sizes.Positive = sizes.derived(list_states)
    has_map: sizes.Flag = sizes.derived(lambda js, c: c["n_drafted"] != c["vocab_size"])
    qk_norm: sizes.Flag = sizes.derived(has_head_norms)

    def join_states(c, states: Data) -> Data:
        return super().join_states(c.norm(states, "input_norm") if c.norm_before_fc else states)

    def normalise_heads(c, q: Data, k: Data) -> tuple[Data, Data]:
        return parts.normalise_heads(c, q, k) if c.qk_norm else (q, k)
