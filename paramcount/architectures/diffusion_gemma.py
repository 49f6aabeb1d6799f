"""DiffusionGemma: Gemma 4's layers with experts, once as an encoder of the prompt, once as a decoder of a canvas.

Tokens of the canvas, which are refined together, see one another and the keys and values of the same layer of the
encoder. Both stacks share all matrices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paramcount.architectures.gemma import enlarge
from paramcount.architectures.gemma4 import Gemma4Vision, project
from paramcount.architectures.gemma4_text import FULL, ROPES, full_at_the_end, moe
from paramcount.declare import Data, ops, parts, sizes

ENCODER, DECODER = "model.encoder.", "model.decoder."
TEXT = ENCODER + "language_model."
NOT_TIED = ("layer_scalar", ".bias")

Inside = Callable[..., Data]  # (body, x, *reads) to what the body returns


def known_attention(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """With "all" the reference is built but cannot run."""
    if (found := js.get("use_bidirectional_attention")) not in (None, "vision"):
        raise sizes.make_value_error(found, "use_bidirectional_attention", "vision or null")


class DiffusionGemmaVision(Gemma4Vision):
    config_class = "Gemma4VisionConfig"
    conditions = (sizes.one_of("model_type", ("gemma4_vision",), "gemma4_vision"),)


class DiffusionGemma(parts.AttentionDecoder):
    """Source: modeling_diffusion_gemma.py of the reference.

    The flow is one denoising step of a canvas after a prompt.
    """

    reference = "DiffusionGemmaForBlockDiffusion"
    base_model = "DiffusionGemmaModel"
    prefix = DECODER
    section = "text_config"
    rotated = None
    linear_routers = (".router.proj.weight",)
    layered = {
        FULL: {"head_dim": "d_global_head", "num_key_value_heads": "n_global_kv_heads"},
        "sliding_attention": {"head_dim": "d_head", "num_key_value_heads": "n_kv_heads"},
    }
    conditions = (
        sizes.padding_in_table(0),
        known_attention,
        sizes.rotary_of_each_kind,
        sizes.not_null("final_logit_softcapping"),
    )
    defaults = {"d_head": 256}

    n_global_kv_heads: sizes.Positive = sizes.hf(
        "num_global_key_value_heads", absent=sizes.equal_to("n_kv_heads"), null=sizes.equal_to("n_kv_heads")
    )
    d_global_head: sizes.Positive = sizes.hf("global_head_dim", absent=512)
    d_ff: sizes.Natural = sizes.hf()
    layer_types: sizes.Words = sizes.derived(full_at_the_end)
    window: sizes.Positive = sizes.hf()
    n_routed_experts: sizes.Positive = sizes.hf("num_experts")
    n_active_experts: sizes.Natural = sizes.hf("top_k_experts")
    d_expert: sizes.Natural = sizes.hf("moe_intermediate_size")
    attention_bias: sizes.Flag = sizes.hf()
    tie_word_embeddings: sizes.Flag = sizes.hf("/tie_word_embeddings", absent=True)
    vision: DiffusionGemmaVision

    activation = sizes.setting("hidden_activation")
    rope = sizes.rotary_of(FULL, ROPES, 131072)
    local_rope = sizes.rotary_of("sliding_attention", ROPES, 131072)
    logit_cap = sizes.setting("final_logit_softcapping", default=30.0)
    image_token = sizes.setting("/image_token_id", default=258880)

    def forward(c, tokens: Data) -> Data:
        image = ops.block(c.vision.image(), ENCODER + "vision_tower.", c.vision.forward, part="vision")
        eps = c.vision.norm_eps
        image = ops.block(image, ENCODER + "embed_vision.", lambda x: project(x, c.d_model, eps), part="projector")
        prompt = c.embed_prompt(ops.given("source tokens", "source"), image)
        kinds = [(kind, 1) for kind in c.layer_types]
        canvas = c.embed_canvas(tokens)
        x = ops.layers(
            canvas, DECODER + "layers.{layer}.", kinds, lambda kind, x, e: c.layers_beside(x, e, kind), others=(prompt,)
        )
        read = ops.second_value(x, c.d_model, "source")
        x = ops.bundle(c.norm(x, DECODER + "norm"), c.encoder("", DECODER)(lambda e: c.norm(e, "norm"), read))
        return ops.soft_cap(parts.head(c, x, DECODER + "embed_tokens.weight"), c.logit_cap)

    def embed_prompt(c, tokens: Data, image: Data) -> Data:
        table = DECODER + "embed_tokens.weight" if c.tie_word_embeddings else None
        x = ops.lookup(tokens, TEXT + "embed_tokens.weight", "embedding", c.vocab_size, c.d_model, tied_to=table)
        return ops.insert(enlarge(x), tokens, image, c.image_token)

    def embed_canvas(c, tokens: Data) -> Data:
        """The canvas, which has been told what the last step expected: the mean of all token embeddings, each with its
        probability. It is 0 in the first step.
        """
        component = "embedding" if c.tie_word_embeddings else "other_embedding"
        x = enlarge(ops.lookup(tokens, DECODER + "embed_tokens.weight", component, c.vocab_size, c.d_model))
        expected = ops.given("expected embeddings", "tokens", c.d_model, default=0)
        h = c.norm(expected, DECODER + "self_conditioning.pre_norm")
        h = parts.gated_mlp(h, DECODER + "self_conditioning.", "mlp", c.d_ff, activation=c.activation)
        return ops.plain_norm(x + h, "rms", c.norm_eps)

    def encoder(c, prefix: str, tied_to: str) -> Inside:
        """What runs a part of a layer with the encoder's weights, which are the decoder's if they are tied."""
        tied = tied_to + prefix if c.tie_word_embeddings else None

        def run(body: Callable[..., Data], x: Data, *reads: Data) -> Data:
            return ops.tie_weights(
                ops.block(x, f"/{TEXT}{prefix}", body, reads=reads, part="encoder"), tied, own=NOT_TIED
            )

        return run

    def layers_beside(c, x: Data, prompt: Data, kind: str) -> tuple[Data, Data]:
        """A layer of the decoder, and the same one of the encoder, whose keys and values it reads."""
        inside = c.encoder("layers.{layer}.", DECODER)
        h = inside(lambda e: c.norm(e, "input_layernorm"), prompt)
        far, seen = c.find_keys_and_values(h, kind, inside)
        after = inside(lambda e, *read: c.read_prompt(e, *read, kind=kind), prompt, h, far, seen)
        h = c.norm(x, "input_layernorm")
        k, v = c.find_keys_and_values(h, kind, lambda body, *x: body(*x), after=prompt)
        if kind != FULL:
            far, seen = ops.last_tokens(far, c.window - 1), ops.last_tokens(seen, c.window - 1)
        k, v = ops.put_in_front(far, k), ops.put_in_front(seen, v)
        q = c.find_queries(h, kind, after=prompt)
        return c.feed_forward(x, ops.attend(q, k, v, scale=1.0)), after

    def read_prompt(c, e: Data, h: Data, k: Data, v: Data, *, kind: str) -> Data:
        window = None if kind == FULL else c.window
        a = ops.attend_causally(c.find_queries(h, kind), k, v, window=window, scale=1.0)
        return c.feed_forward(e, a)

    def find_queries(c, h: Data, kind: str, after: Data | None = None) -> Data:
        shape, angles = (c.n_heads, c.d_global_head if kind == FULL else c.d_head), c.angles(kind)
        q = ops.linear(h, "self_attn.q_proj", "qkv.q", shape, bias=c.attention_bias)
        return ops.rope(c.norm(q, "self_attn.q_norm"), angles, after=after)

    def find_keys_and_values(c, h: Data, kind: str, inside: Inside, after: Data | None = None) -> tuple[Data, Data]:
        """In full layers the keys before their norm are the values."""
        shape = (c.n_global_kv_heads, c.d_global_head) if kind == FULL else (c.n_kv_heads, c.d_head)

        def project(name: str, component: str) -> Data:
            return inside(lambda h: ops.linear(h, name, component, shape, bias=c.attention_bias), h)

        k = project("self_attn.k_proj", "qkv.k")
        v = k if kind == FULL else project("self_attn.v_proj", "qkv.v")
        k = ops.rope(inside(lambda k: c.norm(k, "self_attn.k_norm"), k), c.angles(kind), after=after)
        return k, ops.plain_norm(v, "rms", c.norm_eps)

    def angles(c, kind: str) -> Any:
        return c.rope if kind == FULL else c.local_rope

    def feed_forward(c, x: Data, a: Data) -> Data:
        """The rest of a layer behind the attended values: an MLP and experts side by side."""
        a = ops.linear(a, "self_attn.o_proj", "output_projection", c.d_model, bias=c.attention_bias)
        x = x + c.norm(a, "post_attention_layernorm")
        y = parts.gated_mlp(c.norm(x, "pre_feedforward_layernorm"), "mlp.", "mlp", c.d_ff, activation=c.activation)
        y = c.norm(y, "post_feedforward_layernorm_1")
        y = y + c.norm(moe(c, x), "post_feedforward_layernorm_2")
        x = x + c.norm(y, "post_feedforward_layernorm")
        return ops.multiply_vector(x, "layer_scalar", "other", 1, role="buffer")

    def unused_fields(c) -> tuple[str, ...]:
        return () if "sliding_attention" in c.layer_types else ("n_kv_heads",)

    def check(c) -> None:
        sizes.check_sliding_or_full(c)
        sizes.check_divides(c, "n_global_kv_heads", "n_heads")
        sizes.check_even(c, "d_global_head")
        if "sliding_attention" in c.layer_types:
            sizes.check_even(c, "d_head")
