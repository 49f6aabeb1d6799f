"""Gemma 4's language models: full-attention layers have their own head size, and their keys may serve as values.

Small models have Gemma 3n's per-layer embeddings and shared KV caches; the MoE model has experts beside the MLP. Every
layer ends with a stored scale.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.architectures.gemma import enlarge
from paramcount.architectures.gemma3n import padding_in_both
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError

FULL = "full_attention"
ROPES: Mapping[str, Any] = {
    FULL: {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1_000_000.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0},
}


def full_at_the_end(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    """The reference makes the last layer a full one, whatever layer_types says of it."""
    words = js.get("layer_types")
    words = sizes.full_every(6)(js, c) if words is None else words
    return (*words[:-1], FULL) if words else ()


def global_kv_heads(js: sizes.ConfigJson, c: sizes.FieldValues) -> Any:
    """Full layers have fewer key heads only where those serve as values."""
    n = js.get("num_global_key_value_heads") if c["v_is_k"] else None
    return c["n_kv_heads"] if n is None else n


def known_attention(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if (found := js.get("use_bidirectional_attention")) not in (None, "all", "vision"):
        raise sizes.make_value_error(found, "use_bidirectional_attention", "all, vision or null")


def visible_tokens(absent: int) -> sizes.Derivation:
    """The tokens that a token sees, itself included; if it sees later ones: on either side, half of them and one."""

    def derive(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
        n = js.get("sliding_window", absent)
        if type(n) is not int or n < 1:
            raise sizes.make_value_error(n, "sliding_window", "a positive integer")
        return n // 2 + 1 if js.get("use_bidirectional_attention") == "all" else n

    return derive


def padding_fits(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    (padding_in_both if c["own_vectors"] else sizes.padding_in_table(0))(js, c)


def moe(c: Any, x: Data) -> Data:
    """Experts and their router read the hidden state before the norm of the MLP."""
    h = ops.multiply_vector(ops.plain_norm(x, "rms", c.norm_eps), "router.scale", "router", c.d_model)
    h = ops.scale_by_root(h, c.d_model, "times 1/√d_model", inverse=True)
    logits = ops.linear(h, "router.proj", "router", c.n_routed_experts)
    weights = ops.route(logits, c.n_active_experts, "softmax", normalise=True)
    weights = ops.multiply_vector(weights, "router.per_expert_scale", "router", c.n_routed_experts)
    return parts.stacked_experts(c, c.norm(x, "pre_feedforward_layernorm_2"), weights, "experts.")


class Gemma4UnifiedText(parts.AttentionBias, parts.AttentionDecoder):
    """The language model of the 12B.

    Source: Gemma4UnifiedTextDecoderLayer of the reference, modeling_gemma4_unified.py.

    A config.json says what full layers have of their own in global_head_dim and num_global_key_value_heads, or in
    per_layer_config, beside which those count for nothing: what it leaves out is as in all layers.
    """

    reference = "Gemma4UnifiedForCausalLM"
    model_types = ("gemma4_unified_text",)
    gguf_rope_factors = "proportional"
    rotated = None
    base_model = "Gemma4UnifiedTextModel"
    layered = {
        FULL: {"head_dim": "d_global_head", "num_key_value_heads": "n_global_kv_heads"},
        "sliding_attention": {"head_dim": "d_head", "num_key_value_heads": "n_kv_heads"},
    }
    conditions = (sizes.padding_in_table(0), known_attention, sizes.rotary_of_each_kind)
    defaults = {"d_head": 256}

    v_is_k: sizes.Flag = sizes.hf("attention_k_eq_v")
    n_global_kv_heads: sizes.Positive = sizes.derived(global_kv_heads)
    d_global_head: sizes.Positive = sizes.hf("global_head_dim", absent=512)
    layer_types: sizes.Words = sizes.derived(full_at_the_end)
    window: sizes.Positive = sizes.derived(visible_tokens(1024))
    kv_sharing_layers: sizes.Indices = sizes.derived(sizes.sharing_layers(0))
    double_wide: sizes.Flag = sizes.hf("use_double_wide_mlp")

    activation = sizes.setting("hidden_activation")
    rope = sizes.rotary_of(FULL, ROPES, 131072)
    local_rope = sizes.rotary_of("sliding_attention", ROPES, 131072)
    attention_scale: ClassVar[float] = 1.0
    is_causal = sizes.setting(
        default=lambda config, c: config.get("is_causal", True) and config.get("use_bidirectional_attention") != "all"
    )
    logit_cap = sizes.setting("final_logit_softcapping", default=None)

    def forward(c, tokens: Data) -> Data:
        return c.read(tokens)

    def read(c, tokens: Data, *others: tuple[Data, int | ops.Unknown]) -> Data:
        """Token ids to logits. `others`: vectors of images and sounds, and the id of the tokens that they replace."""
        x = enlarge(c.embed(tokens))
        for vectors, token in others:
            x = ops.insert(x, tokens, vectors, token)
        return c.head(c.transform(x, *c.own_embeddings(tokens, x)))

    def own_embeddings(c, tokens: Data, x: Data) -> tuple[Data, ...]:
        return ()

    def kinds(c) -> parts.Kinds:
        shared = set(c.kv_sharing_layers)
        return [((word, parts.SHARED if i in shared else parts.OWN), 1) for i, word in enumerate(c.layer_types)]

    def carry(c) -> tuple[ops.Width, ...]:
        """Keys and values of the last full and of the last sliding layer that has some."""
        full, sliding = (c.n_global_kv_heads, c.d_global_head), (c.n_kv_heads, c.d_head)
        return (full, full, sliding, sliding) if c.kv_sharing_layers else ()

    def layer(c, x: Data, *passed: Any) -> Any:
        *before, (word, whose) = passed
        n_own = len(before) - len(c.carry())
        own, kv = before[:n_own], tuple(before[n_own:])
        a, kv = c.attend(c.norm(x, "input_layernorm"), word, whose, kv)
        x = x + c.norm(a, "post_attention_layernorm")
        x = x + c.norm(c.feed_forward(x, whose), "post_feedforward_layernorm")
        for vectors in own:
            x = x + parts.read_own_embedding(c, x, vectors)
        x = ops.multiply_vector(x, "layer_scalar", "other", 1, role="buffer")
        return (x, *kv) if kv else x

    def attend(c, x: Data, word: str, whose: str, kv: tuple[Data, ...]) -> tuple[Data, tuple[Data, ...]]:
        if word == FULL:
            heads = parts.Heads(c.n_heads, c.n_global_kv_heads, c.d_global_head)
            return parts.sharing_attention(
                c, x, heads, (word, whose), kv, angles=c.rope, mask=ops.Causal(), v_is_k=c.v_is_k
            )
        heads = parts.Heads(c.n_heads, c.n_kv_heads, c.d_head)
        mask = ops.see_earlier(c.window)
        return parts.sharing_attention(c, x, heads, (word, whose), kv, angles=c.local_rope, mask=mask)

    def feed_forward(c, x: Data, whose: str) -> Data:
        d_ff = 2 * c.d_ff if c.double_wide and whose == parts.SHARED else c.d_ff
        return parts.gated_mlp(c.norm(x, "pre_feedforward_layernorm"), "mlp.", "mlp", d_ff, activation=c.activation)

    def head(c, x: Data) -> Data:
        return ops.soft_cap(super().head(x), c.logit_cap)

    def unused_fields(c) -> tuple[str, ...]:
        return () if "sliding_attention" in c.layer_types else ("n_kv_heads",)

    def check(c) -> None:
        sizes.check_sliding_or_full(c)
        sizes.check_kv_sources(c)
        sizes.check_divides(c, "n_global_kv_heads", "n_heads")
        sizes.check_even(c, "d_global_head")
        if "sliding_attention" in c.layer_types:
            sizes.check_even(c, "d_head")


class Gemma4Text(Gemma4UnifiedText):
    """Source: Gemma4TextDecoderLayer of the reference, modeling_gemma4.py."""

    reference = "Gemma4ForCausalLM"
    gguf = "gemma4"
    gguf_names = {"post_attention_layernorm": "post_attention_norm"}
    linear_routers = (".router.proj.weight",)
    base_model = "Gemma4TextModel"
    conditions = (padding_fits, known_attention, sizes.rotary_of_each_kind)

    window: sizes.Positive = sizes.derived(visible_tokens(512))
    n_per_layer_rows: sizes.Positive = sizes.hf("vocab_size_per_layer_input")
    d_per_layer: sizes.Natural = sizes.hf("hidden_size_per_layer_input")
    own_vectors: sizes.Flag = sizes.derived(lambda js, c: c["d_per_layer"] > 0)
    mixture: sizes.Flag = sizes.hf("enable_moe_block")
    n_routed_experts: sizes.Natural = sizes.hf("num_experts", absent=0, null=0)
    n_active_experts: sizes.Natural = sizes.hf("top_k_experts", absent=0, null=0)
    d_expert: sizes.Natural = sizes.hf(absent=0, null=0)

    padding = sizes.setting("pad_token_id")

    def embed(c, tokens: Data) -> Data:
        table = c.prefix + "embed_tokens.weight"
        return ops.lookup_known(tokens, table, "embedding", c.vocab_size, c.d_model, **c.padded())

    def own_embeddings(c, tokens: Data, x: Data) -> tuple[Data, ...]:
        return (parts.embed_per_layer(c, tokens, x, c.prefix, **c.padded()),) if c.own_vectors else ()

    def padded(c) -> dict[str, Any]:
        """How placeholders are looked up: as padding."""
        return {"unknown_id": c.padding, "placeholders": c.placeholders()} if c.placeholders() else {}

    def placeholders(c) -> tuple[int | ops.Unknown, ...]:
        """The ids of tokens that stand for images, audio and video."""
        return ()

    def feed_forward(c, x: Data, whose: str) -> Data:
        y = super().feed_forward(x, whose)
        if not c.mixture:
            return y
        return c.norm(y, "post_feedforward_layernorm_1") + c.norm(moe(c, x), "post_feedforward_layernorm_2")

    def unused_fields(c) -> tuple[str, ...]:
        return (*super().unused_fields(), *(() if c.mixture else ("n_active_experts",)))

    def check(c) -> None:
        super().check()
        for field in ("n_routed_experts", "n_active_experts", "d_expert") if c.mixture else ():
            if getattr(c, field) < 1:
                raise ParamcountError(
                    "is missing", where=FieldName(field), expected="a positive integer, because layers have experts"
                )


Gemma4TextOf = sizes.in_section(Gemma4Text, "gemma4.Gemma4ForCausalLM", gguf="gemma4")
Gemma4UnifiedTextOf = sizes.in_section(Gemma4UnifiedText, "gemma4_unified.Gemma4UnifiedForCausalLM")
