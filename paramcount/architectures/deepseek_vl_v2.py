"""DeepSeek-VL2: SigLIP's vision encoder, a projector and DeepSeek-V2's layers.

They use MLA, or plain attention heads in the smallest model.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError, describe_value

RELEASED = {"projector_type": "downsample_mlp_gelu", "depth": 2, "mlp_ratio": 1, "token_pooling": False}
METHODS = ("gready", "greedy", "group_limited_greedy", "noaux_tc")  # the first is the default, spelled so
LATENT = ("d_q_lora", "d_kv_lora", "d_nope", "d_rope", "d_v")


def n_dense(js: sizes.ConfigJson, c: sizes.FieldValues) -> Any:
    """All layers of a model without routed experts."""
    return (
        c["n_layers"] if js.get("n_routed_experts") is None else min(js.get("first_k_dense_replace", 0), c["n_layers"])
    )


def groups_fit(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if js.get("topk_method") in METHODS[2:] and c["n_dense_layers"] < c["n_layers"]:
        sizes.grouped_routing(None, None)(js, c)


def as_released(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The published code knows other projectors and separators too, which no release has."""
    projector = js.get("projector_config")
    for key, value in RELEASED.items():
        found = projector.get(key, value) if isinstance(projector, Mapping) else value
        if found != value:
            raise ParamcountError(
                f"= {describe_value(found)} is not supported",
                where=f"projector_config.{key}",
                expected=describe_value(value),
            )
    if js.get("tile_tag") != "2D":
        found = f"= {describe_value(js['tile_tag'])} is not supported" if "tile_tag" in js else "is missing"
        raise ParamcountError(found, where="tile_tag", expected="2D")


def is_normalised(js: sizes.ConfigJson, c: Any) -> bool:
    return c.n_active_experts > 1 and bool(js.get("norm_topk_prob", False))


@sizes.options_first
def in_groups(js: sizes.ConfigJson, c: sizes.FieldValues, key: str) -> Any:
    """A number of groups, of which topk_method makes use or not."""
    return js[key] if js.get("topk_method") in METHODS[2:] else 1


class VL2Language(parts.Decoder):
    """The sizes of the language model."""

    section: ClassVar[str | None] = "language_config"
    conditions = (sizes.experts_in_every_layer, sizes.one_of("topk_method", METHODS, METHODS[0]), groups_fit)
    defaults = {"vocab_size": 102400, "d_model": 4096, "n_layers": 30}

    n_heads: sizes.Positive = sizes.hf(absent=32)
    latent: sizes.Flag = sizes.hf("use_mla", absent=True)
    n_kv_heads: sizes.Positive = sizes.hf(absent=32, null=sizes.equal_to("n_heads"))
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_q_lora: sizes.Positive | None = sizes.hf(absent=1536)
    d_kv_lora: sizes.Positive | None = sizes.hf(absent=512)
    d_nope: sizes.Natural = sizes.hf(absent=128)
    d_rope: sizes.Natural = sizes.hf(absent=64)
    d_v: sizes.Natural = sizes.hf(absent=128)
    d_ff: sizes.Natural = sizes.hf(absent=11008)
    n_dense_layers: sizes.Natural = sizes.derived(n_dense)
    d_expert: sizes.Natural = sizes.hf(absent=1407)
    n_routed_experts: sizes.Positive | None = sizes.hf(absent=None)
    n_active_experts: sizes.Natural = sizes.hf(absent=sizes.unvisited, null=sizes.unvisited)
    n_shared_experts: sizes.Positive | None = sizes.hf(absent=None)
    router_bias: sizes.Flag = sizes.derived(lambda js, c: js.get("topk_method") == "noaux_tc")
    attention_bias: sizes.Flag = sizes.hf(absent=False)
    tie_word_embeddings: sizes.Flag = sizes.hf(absent=False)

    rope = sizes.rotary(positions=2048)
    attention_scale = sizes.setting(default=sizes.scale_with_yarn)
    scoring = sizes.setting("scoring_func", default="softmax")
    norm_topk_prob = sizes.setting(default=is_normalised)
    routed_scale = sizes.setting("routed_scaling_factor", default=1.0)
    n_groups = sizes.setting(default=in_groups("n_group"))
    n_active_groups = sizes.setting(default=in_groups("topk_group"))
    kinds = parts.dense_first

    def layer(c, x: Data, kind: str) -> Data:
        h = c.norm(x, "input_layernorm")
        if c.latent:
            x = x + parts.latent_attention(c, h, "self_attn.", bias=c.attention_bias)
        else:
            x = x + c.self_attention(h, bias=c.attention_bias, mix=ops.attend_causally)
        h = c.norm(x, "post_attention_layernorm")
        if kind == "dense":
            return x + c.gated_mlp(h)
        routed = parts.mixture(c, h, "mlp.", choose=c.choose)
        return x + (routed if c.n_shared_experts is None else routed + parts.shared_experts(c, h, "mlp."))

    def choose(c, logits: Data) -> Data:
        """Source: MoEGate of modeling_deepseek.py."""
        if not c.router_bias:
            return parts.choose_in_groups(c, logits, scoring=c.scoring, by="max", excluded=0.0)
        bias = parts.routing_bias(c, "mlp.gate.e_score_correction_bias", role="parameter")
        return parts.choose_in_groups(c, logits, bias, scoring=c.scoring, excluded=0.0)

    def unused_fields(c) -> tuple[str, ...]:
        return ("n_kv_heads", "d_head") if c.latent else LATENT

    def check(c) -> None:
        if not c.latent:
            sizes.check_heads_fill(c)
        elif c.d_kv_lora is None or not c.d_nope or not c.d_rope or not c.d_v:
            raise ParamcountError(
                "= true, but the sizes of MLA are missing",
                where=FieldName("use_mla"),
                expected="kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim and v_head_dim, or use_mla = false",
            )


class VL2Vision(sizes.Sizes):
    """The sizes of the vision encoder."""

    section = "vision_config"

    d_model: sizes.Positive = sizes.hf("width", absent=1024)
    n_layers: sizes.Natural = sizes.hf("layers", absent=24)
    n_heads: sizes.Positive = sizes.hf("heads", absent=16)
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.derived(sizes.times_mlp_ratio(4))
    patch_size: sizes.Positive = sizes.hf("patch_size", absent=16)
    n_patches: sizes.Natural = sizes.derived(lambda js, c: (js.get("image_size", 384) // c["patch_size"]) ** 2)

    check = sizes.check_heads_fill


class DeepseekVL2(parts.Composite):
    """Source: arXiv:2412.10302; modeling_deepseek_vl_v2.py, siglip_vit.py and modeling_deepseek.py of github
    deepseek-ai/DeepSeek-VL2@ef9f91e2b642. The attention pooling behind the vision encoder is allocated and never
    read.
    """

    reference = "DeepseekVLV2ForCausalLM of deepseek-ai/deepseek-vl2"
    required_keys = ("tile_tag",)
    conditions = (as_released,)
    moved = None
    language_prefix = "language."

    language: VL2Language
    vision: VL2Vision
    downsample_ratio: sizes.Positive = sizes.derived(
        lambda js, c: (js.get("projector_config") or {}).get("downsample_ratio", 2)
    )

    def list_inputs(c) -> parts.Inputs:
        vision = c.vision
        pixels = ops.given("pixels", "patches", 3, vision.patch_size, vision.patch_size)
        image = ops.block(pixels, "vision.", lambda x: vision_encoder(vision, x), part="vision")
        image = ops.block(image, "", lambda x: project(c, x), part="projector")
        return ((image, ops.Unknown("image_token")),)

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        x = ops.given("hidden states", "patches", c.vision.d_model)
        pooling = ops.block(x, "vision.attn_pool.", lambda x: pooled_patches(c.vision, x), part="vision")
        return (ops.Unreachable(pooling, "the projector reads the patches, not the pooled vector"),)


def vision_encoder(c: Any, x: Data) -> Data:
    x = parts.cut_into_patches(x, "patch_embed.proj", c.d_model, c.patch_size, bias=True)
    x = ops.elementwise(x, "positions", "pos_embed", "position", 1, c.n_patches, c.d_model)
    x = ops.layers(x, "blocks.{layer}.", [("layer", c.n_layers)], lambda kind, x: vision_layer(c, x))
    return ops.norm(x, "norm", bias=True)


def vision_layer(c: Any, x: Data) -> Data:
    return parts.pre_norm(
        x,
        lambda h: ops.linear(
            ops.attend(*parts.fused_qkv(c, h, "attn.qkv")),
            "attn.proj",
            "output_projection",
            c.d_model,
            bias=True,
        ),
        lambda h: parts.plain_mlp(h, ("mlp.fc1", "mlp.fc2"), "mlp", c.d_ff, bias=True),
        ("norm1", "norm2"),
        bias=True,
    )


def pooled_patches(c: Any, x: Data) -> Data:
    """timm's AttentionPoolLatent: one learned vector looks at all patches."""
    latent = ops.elementwise(Data("first token", (x,), (1, c.d_model)), "query", "latent", "other", 1, 1, c.d_model)
    q = ops.linear(latent, "q", "qkv.q", (c.n_heads, c.d_head), bias=True)  # [n, n_heads, d_head]
    k, v = ops.fused(x, "kv", {"qkv.k": (c.n_heads, c.d_head), "qkv.v": (c.n_heads, c.d_head)}, bias=True)
    h = ops.linear(ops.attend(q, k, v), "proj", "output_projection", c.d_model, bias=True)
    return h + parts.plain_mlp(ops.norm(h, "norm", bias=True), ("mlp.fc1", "mlp.fc2"), "mlp", c.d_ff, bias=True)


def project(c: Any, x: Data) -> Data:
    """Squares of patches through two matrices; learned vectors end rows and part views."""
    width = c.language.d_model
    x = Data("merge", (x,), ("image", c.downsample_ratio * c.downsample_ratio * c.vision.d_model))
    x = ops.linear(
        ops.activate(ops.linear(x, "projector.layers.0", "projector", width, bias=True), "gelu"),
        "projector.layers.2",
        "projector",
        width,
        bias=True,
    )
    return ops.elementwise(
        ops.elementwise(x, "separator", "image_newline", "projector", width),
        "separator",
        "view_seperator",
        "projector",
        width,
    )  # spelled so
