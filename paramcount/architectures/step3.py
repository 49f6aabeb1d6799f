"""Step-3: multi-matrix factorised attention, experts with a shared one, its own vision encoder.

Queries go through a latent; there is one KV head.
"""

from typing import Any, cast

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, Size, Weight, attend, block, elementwise, experts, given, layers, linear, rope, route
from paramcount.parts.attentions import fused_qkv
from paramcount.parts.decoder import Decoder
from paramcount.parts.decoders import layers_by_mlp, post_norm
from paramcount.parts.feed_forward import gated_mlp, plain_mlp
from paramcount.parts.vision import cut_into_patches, insert
from paramcount.sizes import ConfigJson, FieldValues, Sizes, d_model_per_head, derived, hf, per_layer, rotary, setting
from paramcount.sizes.rules import check_heads_fill
from paramcount.sizes.sections import Sections
from paramcount.sizes.types import Flag, Indices, Natural, Positive


def one_kv_head(js: ConfigJson, c: FieldValues) -> None:
    if js.get("num_attention_groups", 1) != 1:
        raise ParamcountError(
            f"= {describe_value(js['num_attention_groups'])} is not supported",
            where="num_attention_groups",
            expected="1",
        )


def layers_without_experts(js: ConfigJson, c: FieldValues) -> tuple[int, ...]:
    """`moe_layers_enum` lists the others, as a list or as text with commas."""
    listed = js.get("moe_layers_enum", range(4, 60))
    if isinstance(listed, str):
        listed = [int(word) for word in listed.strip().split(",")]
    elif listed is None:
        listed = range(1, c["n_layers"])
    moe = set(listed)
    return tuple(i for i in per_layer(c) if i not in moe)


class Step3Text(Decoder):
    """Source: arXiv:2507.19427, section 3; Step3TextDecoderLayer in step3_text.py of vLLM, with the tensor names of
    stepfun-ai/step3.
    """

    reference = "Step3TextForCausalLM of stepfun-ai/step3"
    model_types = ("step3_text",)
    rotated = "d_head"
    conditions = (one_kv_head,)
    defaults = {"vocab_size": 128815, "d_model": 7168, "n_layers": 61}

    n_heads: Positive = hf(absent=64)
    d_head: Positive = hf(absent=256)
    d_q_lora: Positive = hf("share_q_dim", absent=2048)
    d_ff: Natural = hf(absent=18432)
    dense_layers: Indices = derived(layers_without_experts)
    d_expert: Natural = hf(absent=5120)
    n_routed_experts: Positive = hf("moe_num_experts", absent=48)
    n_active_experts: Natural = hf("moe_top_k", absent=3)
    d_shared_expert: Natural = hf("share_expert_dim", absent=5120)
    tie_word_embeddings: Flag = hf(absent=False)

    activation = "silu"
    norm_eps = setting("rms_norm_eps", default=1e-5)
    norm_topk_prob = setting("norm_expert_weight", default=False)
    rope = rotary(500_000, 65536)
    kinds = layers_by_mlp

    def layer(c, x: Data, kind: str) -> Data:
        x = x + c.attention(c.norm(x, "input_layernorm"))
        h = c.norm(x, "post_attention_layernorm")
        if kind == "moe":
            return x + c.mixture(h)
        return x + c.gated_mlp(h)

    def attention(c, x: Data) -> Data:
        latent = c.norm(linear(x, "self_attn.q_proj", "qkv.q_down", c.d_q_lora), "self_attn.inter_norm")
        q = linear(latent, "self_attn.wq", "qkv.q_up", (c.n_heads, c.d_head))
        k, v = (linear(x, f"self_attn.{name}_proj", f"qkv.{name}", (1, c.d_head)) for name in "kv")
        a = attend(rope(q, c.rope), rope(k, c.rope), v)
        return linear(a, "self_attn.o_proj", "output_projection", c.d_model)

    def mixture(c, x: Data) -> Data:
        """Experts stored as one tensor for each projection, and a shared expert."""
        logits = linear(x, "moe.gate", "router", c.n_routed_experts)
        weights = route(logits, c.n_active_experts, "softmax", normalise=c.norm_topk_prob)

        def expert(x: Data) -> Data:
            return gated_mlp(x, "", "experts", c.d_expert, activation=c.activation)

        routed = experts(x, weights, "moe.", c.n_routed_experts, c.n_active_experts, expert, stacked=True)
        return routed + gated_mlp(x, "share_expert.", "shared_experts", c.d_shared_expert, activation=c.activation)


class Step3Vision(Sizes):
    """The sizes of the vision encoder."""

    section = "vision_config"

    d_model: Positive = hf(absent=1792)
    n_layers: Natural = hf(absent=63)
    n_heads: Positive = hf(absent=16)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Natural = hf(absent=3072)
    d_out: Positive = hf("output_hidden_size", absent=4096)
    n_channels: Positive = hf("num_channels", absent=3)
    patch_size: Positive = hf("patch_size", absent=14)
    n_patches: Natural = derived(lambda js, c: (js.get("image_size", 728) // c["patch_size"]) ** 2)

    check = check_heads_fill


class Step3VL(Sizes):
    """Source: step3_vl.py of SGLang 0.5.23 and of vLLM, with the tensor names of stepfun-ai/step3."""

    reference = "Step3VLForConditionalGeneration of stepfun-ai/step3"
    model_types = ("step3_vl",)
    sections = Sections("step3_text", tie_rule="never", ignores_model_type=True)

    language: Sizes
    vision: Step3Vision
    projector_bias: Flag = hf("projector_bias", absent=True)

    def forward(c, tokens: Data) -> Data:
        vision = c.vision
        pixels = given("pixels", "patches", vision.n_channels, vision.patch_size, vision.patch_size)
        image = block(pixels, "vision_model.", lambda x: vision_encoder(vision, x), part="vision")
        image = block(image, "", lambda x: project(c, x), part="projector")
        language = cast("Step3Text", c.language)
        return language.decode(insert(language.embed(tokens), image))


def vision_encoder(c: Any, x: Data) -> Data:
    x = cut_into_patches(x, "embeddings.patch_embedding", c.d_model, c.patch_size, bias=True)
    x = elementwise(x, "class token", "embeddings.class_embedding", "embedding", 1, c.d_model)
    x = elementwise(x, "positions", "embeddings.position_embedding.weight", "position", c.n_patches + 1, c.d_model)
    return layers(x, "transformer.layers.{layer}.", [("layer", c.n_layers)], lambda kind, x: vision_layer(c, x))


def vision_layer(c: Any, x: Data) -> Data:
    return post_norm(
        x,
        lambda h: vision_attention(c, h),
        lambda h: plain_mlp(h, ("mlp.fc1", "mlp.fc2"), "mlp", c.d_ff, bias=True),
        ("layer_norm1", "layer_norm2"),
        bias=True,
    )


def vision_attention(c: Any, x: Data) -> Data:
    a = attend(*fused_qkv(c, x, "self_attn.qkv_proj"), cached=())
    return linear(a, "self_attn.out_proj", "output_projection", c.d_model, bias=True)


def project(c: Any, x: Data) -> Data:
    """Two convolutions that shrink the grid of patches, and a matrix to the language model's size."""
    d_out = c.vision.d_out
    x = shrink(x, "vit_downsampler", d_out, 2)
    x = shrink(x, "vit_downsampler2", d_out * 2, 3)
    return linear(x, "vit_large_projector", "projector", c.language.d_model, bias=c.projector_bias)


def shrink(x: Data, name: str, width: Size, kernel: int) -> Data:
    weights = (
        Weight(name + ".weight", "projector", (width, x.shape[-1], kernel, kernel)),
        Weight(name + ".bias", "projector", (width,)),
    )
    return Data("convolve", (x,), ("image", width), weights)
