"""DFlash: layers that draft a block of tokens at once, and attend to the block and to the target's hidden states."""

from typing import Any, ClassVar

from paramcount.architectures.qwen3 import Qwen3
from paramcount.declare import Data, ops, parts, sizes

BLOCK, ATTENTION, Q_NORM = "dflash_config", "self_attn.", "self_attn.q_norm"


def list_layers(js: sizes.ConfigJson, c: sizes.FieldValues) -> list[Any]:
    """The layers of the target whose states are read: as many as the draft has, unless they are named."""
    found = (js.get(BLOCK) or {}).get("target_layer_ids", [None] * c["n_layers"])
    if not isinstance(found, list) or not found:
        raise sizes.make_value_error(found, f"{BLOCK}.target_layer_ids", "a list of layers of the target")
    return found


def projects_as(js: sizes.ConfigJson, c: sizes.FieldValues, kind: str) -> None:
    """The head that the block names, if any, is that of the class."""
    if (found := (js.get(BLOCK) or {}).get("projector_type")) not in (None, kind):
        raise sizes.make_value_error(found, f"{BLOCK}.projector_type", kind)


class DFlash(Qwen3):
    """The token embedding and the LM head are the target's.

    Source: arXiv:2602.06036; DFlashDraftModel of SpecForge, dflash.py.
    """

    reference = "DFlashDraftModel of sgl-project/SpecForge"
    is_draft = True
    is_section_type = False
    base_model = ""
    prefix = ""
    unused_keys: ClassVar[tuple[str, ...]] = (
        "num_target_layers",
        "max_window_layers",
        "tie_word_embeddings",
        f"{BLOCK}.pure_draft_prefix_len",
    )
    conditions: ClassVar[tuple[sizes.Condition, ...]] = (
        sizes.attention_words("full_attention", "sliding_attention"),
        sizes.sliding_layers_have_a_window,
        sizes.one_rope,
    )

    block_size: sizes.Positive = sizes.hf("block_size")
    n_states: sizes.Positive = sizes.derived(lambda js, c: len(list_layers(js, c)))
    tie_word_embeddings = sizes.constant(False)

    def forward(c, tokens: Data) -> Data:
        return c.transform_block(ops.given("embedded block", c.block_size, c.d_model))

    def transform_block(c, x: Data) -> Data:
        """An embedded block, whose later tokens are masked, to the states that the target's LM head reads."""
        states = ops.given("target hidden states", "tokens", c.n_states * c.d_model)
        states = c.norm(ops.linear(states, "fc", "other", c.d_model), "hidden_norm")
        kinds = c.kinds() or [("full_attention", c.n_layers)]
        x = ops.layers(x, "layers.{layer}.", kinds, c.draft_layer, reads=(states,))
        return c.norm(x, "norm")

    def draft_layer(c, kind: str, x: Data, states: Data) -> Data:
        window = c.window if kind == "sliding_attention" else None
        x = x + c.attend(c.norm(x, "input_layernorm"), states, window)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))

    def attend(c, x: Data, states: Data, window: Any) -> Data:
        """The block attends to the text, whose keys and values are made of the target's states, and to itself."""
        q = c.norm(ops.linear(x, "self_attn.q_proj", "qkv.q", (c.n_heads, c.d_head), bias=c.attention_bias), Q_NORM)
        (k, v), mask = (ops.block(states, ATTENTION, make) for make in (c.keys, c.values)), ops.see_earlier(window)
        k, v = ops.cache(c.rotate(k), mask), ops.cache(v, mask)  # [m, n_kv_heads, d_head]
        own_k, own_v = (
            ops.tie_weights(ops.block(x, ATTENTION, make), "layers.{layer}." + ATTENTION) for make in (c.keys, c.values)
        )
        q, own_k = ops.rope_behind(q, c.rope, k), ops.rope_behind(own_k, c.rope, k)
        s = ops.scores(q, k)  # [n_heads, block, m]
        s = s if window is None else Data("window over the text", (s,), s.shape)
        a = ops.weighted_sum(ops.softmax(s, ops.scores(q, own_k)), v, own_v)  # [block, n_heads, d_head]
        return parts.project_output(a, "self_attn.o_proj", c.d_model, bias=c.attention_bias)

    def keys(c, x: Data) -> Data:
        return c.norm(ops.linear(x, "k_proj", "qkv.k", (c.n_kv_heads, c.d_head), bias=c.attention_bias), "k_norm")

    def values(c, x: Data) -> Data:
        return ops.linear(x, "v_proj", "qkv.v", (c.n_kv_heads, c.d_head), bias=c.attention_bias)

    def unused_fields(c) -> tuple[str, ...]:
        return ("vocab_size",)
