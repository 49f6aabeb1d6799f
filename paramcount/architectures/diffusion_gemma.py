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
from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import (
    Data,
    attend,
    block,
    bundle,
    given,
    insert,
    last_tokens,
    layers,
    linear,
    lookup,
    multiply_vector,
    plain_norm,
    put_in_front,
    rope,
    second_value,
    soft_cap,
)
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.decoders import head
from paramcount.parts.feed_forward import gated_mlp
from paramcount.sizes import (
    ConfigJson,
    FieldValues,
    Flag,
    Natural,
    Positive,
    Words,
    derived,
    equal_to,
    hf,
    rotary_of,
    setting,
)
from paramcount.sizes.conditions import not_null, one_of, padding_in_table, rotary_of_each_kind
from paramcount.sizes.rules import check_divides, check_even, check_sliding_or_full

ENCODER, DECODER = "model.encoder.", "model.decoder."
TEXT = ENCODER + "language_model."
NOT_TIED = ("layer_scalar", ".bias")

Inside = Callable[..., Data]  # (body, x, *reads) to what the body returns


def known_attention(js: ConfigJson, c: FieldValues) -> None:
    """With "all" the reference is built but cannot run."""
    if (found := js.get("use_bidirectional_attention")) not in (None, "vision"):
        raise ParamcountError(
            f"= {describe_value(found)}", where="use_bidirectional_attention", expected="vision or null"
        )


class DiffusionGemmaVision(Gemma4Vision):
    config_class = "Gemma4VisionConfig"
    conditions = (one_of("model_type", ("gemma4_vision",), "gemma4_vision"),)


class DiffusionGemma(AttentionDecoder):
    """Source: modeling_diffusion_gemma.py of the reference.

    The flow is one denoising step of a canvas after a prompt.
    """

    reference = "DiffusionGemmaForBlockDiffusion"
    base_model = "DiffusionGemmaModel"
    prefix = DECODER
    section = "text_config"
    linear_routers = (".router.proj.weight",)
    layered = {
        FULL: {"head_dim": "d_global_head", "num_key_value_heads": "n_global_kv_heads"},
        "sliding_attention": {"head_dim": "d_head", "num_key_value_heads": "n_kv_heads"},
    }
    conditions = (
        padding_in_table(0),
        known_attention,
        rotary_of_each_kind,
        not_null("final_logit_softcapping"),
    )
    defaults = {"d_head": 256}

    n_global_kv_heads: Positive = hf(
        "num_global_key_value_heads", absent=equal_to("n_kv_heads"), null=equal_to("n_kv_heads")
    )
    d_global_head: Positive = hf("global_head_dim", absent=512)
    d_ff: Natural = hf()
    layer_types: Words = derived(full_at_the_end)
    window: Positive = hf()
    n_routed_experts: Positive = hf("num_experts")
    n_active_experts: Natural = hf("top_k_experts")
    d_expert: Natural = hf("moe_intermediate_size")
    attention_bias: Flag = hf()
    tie_word_embeddings: Flag = hf("/tie_word_embeddings", absent=True)
    vision: DiffusionGemmaVision

    activation = setting("hidden_activation", default="gelu_pytorch_tanh")
    rope = rotary_of(FULL, ROPES, 131072)
    local_rope = rotary_of("sliding_attention", ROPES, 131072)
    logit_cap = setting("final_logit_softcapping", default=30.0)
    image_token = setting("/image_token_id", default=258880)

    def forward(c, tokens: Data) -> Data:
        image = block(c.vision.image(), ENCODER + "vision_tower.", c.vision.forward, part="vision")
        eps = c.vision.norm_eps
        image = block(image, ENCODER + "embed_vision.", lambda x: project(x, c.d_model, eps), part="projector")
        prompt = c.embed_prompt(given("source tokens", "source"), image)
        kinds = [(kind, 1) for kind in c.layer_types]
        canvas = c.embed_canvas(tokens)
        x = layers(
            canvas, DECODER + "layers.{layer}.", kinds, lambda kind, x, e: c.layers_beside(x, e, kind), others=(prompt,)
        )
        read = second_value(x, c.d_model, "source")
        x = bundle(c.norm(x, DECODER + "norm"), c.encoder("", DECODER)(lambda e: c.norm(e, "norm"), read))
        return soft_cap(head(c, x, DECODER + "embed_tokens.weight"), c.logit_cap)

    def embed_prompt(c, tokens: Data, image: Data) -> Data:
        table = DECODER + "embed_tokens.weight" if c.tie_word_embeddings else None
        x = lookup(tokens, TEXT + "embed_tokens.weight", "embedding", c.vocab_size, c.d_model, tied_to=table)
        return insert(enlarge(x), tokens, image, c.image_token)

    def embed_canvas(c, tokens: Data) -> Data:
        """The canvas, which has been told what the last step expected: the mean of all token embeddings, each with its
        probability. It is 0 in the first step.
        """
        component = "embedding" if c.tie_word_embeddings else "other_embedding"
        x = enlarge(lookup(tokens, DECODER + "embed_tokens.weight", component, c.vocab_size, c.d_model))
        expected = given("expected embeddings", "tokens", c.d_model, default=0)
        h = c.norm(expected, DECODER + "self_conditioning.pre_norm")
        h = gated_mlp(h, DECODER + "self_conditioning.", "mlp", c.d_ff, activation=c.activation)
        return plain_norm(x + h, "rms", c.norm_eps)

    def encoder(c, prefix: str, tied_to: str) -> Inside:
        """What runs a part of a layer with the encoder's weights, which are the decoder's if they are tied."""
        tied = tied_to + prefix if c.tie_word_embeddings else None

        def run(body: Callable[..., Data], x: Data, *reads: Data) -> Data:
            return block(x, f"/{TEXT}{prefix}", body, reads=reads, part="encoder", tied_to=tied, own=NOT_TIED)

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
            far, seen = last_tokens(far, c.window - 1), last_tokens(seen, c.window - 1)
        k, v = put_in_front(far, k), put_in_front(seen, v)
        q = c.find_queries(h, kind, after=prompt)
        return c.feed_forward(x, attend(q, k, v, cached=(), causal=False, scale=1.0)), after

    def read_prompt(c, e: Data, h: Data, k: Data, v: Data, *, kind: str) -> Data:
        window = None if kind == FULL else c.window
        a = attend(c.find_queries(h, kind), k, v, causal=True, window=window, scale=1.0)
        return c.feed_forward(e, a)

    def find_queries(c, h: Data, kind: str, after: Data | None = None) -> Data:
        shape, angles = (c.n_heads, c.d_global_head if kind == FULL else c.d_head), c.angles(kind)
        q = linear(h, "self_attn.q_proj", "qkv.q", shape, bias=c.attention_bias)
        return rope(c.norm(q, "self_attn.q_norm"), angles, after=after)

    def find_keys_and_values(c, h: Data, kind: str, inside: Inside, after: Data | None = None) -> tuple[Data, Data]:
        """In full layers the keys before their norm are the values."""
        shape = (c.n_global_kv_heads, c.d_global_head) if kind == FULL else (c.n_kv_heads, c.d_head)

        def project(name: str, component: str) -> Data:
            return inside(lambda h: linear(h, name, component, shape, bias=c.attention_bias), h)

        k = project("self_attn.k_proj", "qkv.k")
        v = k if kind == FULL else project("self_attn.v_proj", "qkv.v")
        k = rope(inside(lambda k: c.norm(k, "self_attn.k_norm"), k), c.angles(kind), after=after)
        return k, plain_norm(v, "rms", c.norm_eps)

    def angles(c, kind: str) -> Any:
        return c.rope if kind == FULL else c.local_rope

    def feed_forward(c, x: Data, a: Data) -> Data:
        """The rest of a layer behind the attended values: an MLP and experts side by side."""
        a = linear(a, "self_attn.o_proj", "output_projection", c.d_model, bias=c.attention_bias)
        x = x + c.norm(a, "post_attention_layernorm")
        y = gated_mlp(c.norm(x, "pre_feedforward_layernorm"), "mlp.", "mlp", c.d_ff, activation=c.activation)
        y = c.norm(y, "post_feedforward_layernorm_1")
        y = y + c.norm(moe(c, x), "post_feedforward_layernorm_2")
        x = x + c.norm(y, "post_feedforward_layernorm")
        return multiply_vector(x, "layer_scalar", "other", 1, role="buffer")

    def unused_fields(c) -> tuple[str, ...]:
        return () if "sliding_attention" in c.layer_types else ("n_kv_heads",)

    def check(c) -> None:
        check_sliding_or_full(c)
        check_divides(c, "n_global_kv_heads", "n_heads")
        check_even(c, "d_global_head")
        if "sliding_attention" in c.layer_types:
            check_even(c, "d_head")
