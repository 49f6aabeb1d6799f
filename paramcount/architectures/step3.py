"""Step-3: multi-matrix factorised attention, experts with a shared one, its own vision encoder.

Queries go through a latent; there is one KV head.
"""

from typing import Any, cast

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, describe_value


def one_kv_head(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if js.get("num_attention_groups", 1) != 1:
        raise ParamcountError(
            f"= {describe_value(js['num_attention_groups'])} is not supported",
            where="num_attention_groups",
            expected="1",
        )


def layers_without_experts(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """`moe_layers_enum` lists the others, as a list or as text with commas."""
    listed = js.get("moe_layers_enum", range(4, 60))
    if isinstance(listed, str):
        listed = [int(word) for word in listed.strip().split(",")]
    elif listed is None:
        listed = range(1, c["n_layers"])
    moe = set(listed)
    return tuple(i for i in sizes.per_layer(c) if i not in moe)


class Step3Text(parts.Decoder):
    """Source: arXiv:2507.19427, section 3; Step3TextDecoderLayer in step3_text.py of vLLM, with the tensor names of
    stepfun-ai/step3.
    """

    reference = "Step3TextForCausalLM of stepfun-ai/step3"
    model_types = ("step3_text",)
    rotated = "d_head"
    conditions = (one_kv_head,)
    defaults = {"vocab_size": 128815, "d_model": 7168, "n_layers": 61}

    n_heads: sizes.Positive = sizes.hf(absent=64)
    d_head: sizes.Positive = sizes.hf(absent=256)
    d_q_lora: sizes.Positive = sizes.hf("share_q_dim", absent=2048)
    d_ff: sizes.Natural = sizes.hf(absent=18432)
    dense_layers: sizes.Indices = sizes.derived(layers_without_experts)
    d_expert: sizes.Natural = sizes.hf(absent=5120)
    n_routed_experts: sizes.Positive = sizes.hf("moe_num_experts", absent=48)
    n_active_experts: sizes.Natural = sizes.hf("moe_top_k", absent=3)
    d_shared_expert: sizes.Natural = sizes.hf("share_expert_dim", absent=5120)
    tie_word_embeddings: sizes.Flag = sizes.hf(absent=False)

    activation = "silu"
    norm_eps = sizes.setting("rms_norm_eps", default=1e-5)
    norm_topk_prob = sizes.setting("norm_expert_weight", default=False)
    rope = sizes.rotary(500_000, 65536)
    kinds = parts.layers_by_mlp

    def layer(c, x: Data, kind: str) -> Data:
        x = x + c.attention(c.norm(x, "input_layernorm"))
        h = c.norm(x, "post_attention_layernorm")
        if kind == "moe":
            return x + c.mixture(h)
        return x + c.gated_mlp(h)

    def attention(c, x: Data) -> Data:
        latent = c.norm(ops.linear(x, "self_attn.q_proj", "qkv.q_down", c.d_q_lora), "self_attn.inter_norm")
        q = ops.linear(latent, "self_attn.wq", "qkv.q_up", (c.n_heads, c.d_head))  # [n, n_heads, d_head]
        k, v = (ops.linear(x, f"self_attn.{name}_proj", f"qkv.{name}", (1, c.d_head)) for name in "kv")
        a = ops.attend_causally(ops.rope(q, c.rope), ops.rope(k, c.rope), v)  # [n, n_heads, d_head]
        return ops.linear(a, "self_attn.o_proj", "output_projection", c.d_model)

    def mixture(c, x: Data) -> Data:
        """Experts stored as one tensor for each projection, and a shared expert."""
        logits = ops.linear(x, "moe.gate", "router", c.n_routed_experts)  # [n, experts]
        weights = ops.route(logits, c.n_active_experts, "softmax", normalise=c.norm_topk_prob)

        def expert(x: Data) -> Data:
            return parts.gated_mlp(x, "", "experts", c.d_expert, activation=c.activation)

        routed = ops.experts(x, weights, "moe.", c.n_routed_experts, c.n_active_experts, expert, stored="stacked")
        return routed + parts.gated_mlp(
            x, "share_expert.", "shared_experts", c.d_shared_expert, activation=c.activation
        )


class Step3Vision(sizes.Sizes):
    """The sizes of the vision encoder."""

    section = "vision_config"

    d_model: sizes.Positive = sizes.hf(absent=1792)
    n_layers: sizes.Natural = sizes.hf(absent=63)
    n_heads: sizes.Positive = sizes.hf(absent=16)
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf(absent=3072)
    d_out: sizes.Positive = sizes.hf("output_hidden_size", absent=4096)
    n_channels: sizes.Positive = sizes.hf("num_channels", absent=3)
    patch_size: sizes.Positive = sizes.hf("patch_size", absent=14)
    n_patches: sizes.Natural = sizes.derived(lambda js, c: (js.get("image_size", 728) // c["patch_size"]) ** 2)

    check = sizes.check_heads_fill


class Step3VL(sizes.Sizes):
    """Source: step3_vl.py of SGLang 0.5.23 and of vLLM, with the tensor names of stepfun-ai/step3."""

    reference = "Step3VLForConditionalGeneration of stepfun-ai/step3"
    model_types = ("step3_vl",)
    sections = sizes.Sections("step3_text", tie_rule="never", ignores_model_type=True)

    language: sizes.Sizes
    vision: Step3Vision
    projector_bias: sizes.Flag = sizes.hf("projector_bias", absent=True)

    def forward(c, tokens: Data) -> Data:
        vision = c.vision
        pixels = ops.given("pixels", "patches", vision.n_channels, vision.patch_size, vision.patch_size)
        image = ops.block(pixels, "vision_model.", lambda x: vision_encoder(vision, x), part="vision")
        image = ops.block(image, "", lambda x: project(c, x), part="projector")
        language = cast("Step3Text", c.language)
        return language.decode(parts.insert(language.embed(tokens), image))


def vision_encoder(c: Any, x: Data) -> Data:
    x = parts.cut_into_patches(x, "embeddings.patch_embedding", c.d_model, c.patch_size, bias=True)
    x = ops.elementwise(x, "class token", "embeddings.class_embedding", "embedding", 1, c.d_model)
    x = ops.elementwise(x, "positions", "embeddings.position_embedding.weight", "position", c.n_patches + 1, c.d_model)
    return ops.layers(x, "transformer.layers.{layer}.", [("layer", c.n_layers)], lambda kind, x: vision_layer(c, x))


def vision_layer(c: Any, x: Data) -> Data:
    return parts.post_norm(
        x,
        lambda h: vision_attention(c, h),
        lambda h: parts.plain_mlp(h, ("mlp.fc1", "mlp.fc2"), "mlp", c.d_ff, bias=True),
        ("layer_norm1", "layer_norm2"),
        bias=True,
    )


def vision_attention(c: Any, x: Data) -> Data:
    a = ops.attend(*parts.fused_qkv(c, x, "self_attn.qkv_proj"))
    return ops.linear(a, "self_attn.out_proj", "output_projection", c.d_model, bias=True)


def project(c: Any, x: Data) -> Data:
    """Two convolutions that shrink the grid of patches, and a matrix to the language model's size."""
    d_out = c.vision.d_out
    x = shrink(x, "vit_downsampler", d_out, 2)
    x = shrink(x, "vit_downsampler2", d_out * 2, 3)
    return ops.linear(x, "vit_large_projector", "projector", c.language.d_model, bias=c.projector_bias)


def shrink(x: Data, name: str, width: ops.Size, kernel: int) -> Data:
    weights = (
        ops.Weight(name + ".weight", "projector", (width, x.shape[-1], kernel, kernel)),
        ops.Weight(name + ".bias", "projector", (width,)),
    )
    return Data("convolve", (x,), ("image", width), weights)
