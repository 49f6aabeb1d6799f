"""Qwen 1: fused QKV with a bias although `no_bias` is set, a gated MLP whose config gives both halves together.

Qwen-VL and Qwen-Audio have its model type and class, and a section for an encoder more.
"""

from collections.abc import Mapping
from typing import Any

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError
from paramcount.parts.resampler import D_HEAD, Resampler, resample


def ntk_rope(config: Mapping[str, Any], c: Any) -> ops.Rope:
    """Beyond the length of training the base grows step by step."""
    scaling = ops.StepScaling(config.get("seq_length", 2048))
    return ops.Rope(config.get("rotary_emb_base", 10_000), scaling if config.get("use_dynamic_ntk", True) else None)


class QwenImages(parts.VisionEncoder):
    """OpenCLIP's encoder and a resampler. Source: arXiv:2308.12966, section 2.1; visual.py of Qwen/Qwen-VL."""

    section = "visual"
    unused_keys = ("image_size",)

    d_model: sizes.Positive = sizes.hf("width")
    n_layers: sizes.Natural = sizes.hf("layers")
    n_heads: sizes.Positive = sizes.hf("heads")
    d_ff: sizes.Natural = sizes.derived(sizes.times_mlp_ratio(4.0))
    patch_size: sizes.Positive = sizes.hf("patch_size")
    n_queries: sizes.Positive = sizes.hf("n_queries", absent=256)
    d_out: sizes.Positive = sizes.hf("output_dim", absent=512)
    n_query_heads: sizes.Positive = sizes.derived(lambda js, c: c["d_out"] // D_HEAD)
    widens: sizes.Flag = sizes.derived(lambda js, c: c["d_model"] != c["d_out"])

    activation = "gelu"
    norm_eps = 1e-6

    def forward(c, pixels: Data) -> Data:
        """An image to vectors of its patches, [patches, d_model]; positions are those of 16 × 16 patches."""
        x = parts.embed_patches(pixels, "conv1", c.d_model, c.patch_size)
        x = ops.elementwise(x, "positions", "positional_embedding", "position", 256, c.d_model)
        return c.encode(c.norm(x, "ln_pre"), name="transformer.resblocks.{layer}.")

    def layer(c, x: Data, *reads: Data) -> Data:
        q, k, v = parts.fused_qkv(c, c.norm(x, "ln_1"), "attn.in_proj", groups=c.n_heads)  # [n, n_heads, d_head]
        x = x + ops.linear(ops.attend(q, k, v), "attn.out_proj", "output_projection", c.d_model, bias=True)
        return x + parts.encoder_mlp(c, c.norm(x, "ln_2"), ("mlp.c_fc", "mlp.c_proj"))

    def project(c, x: Data) -> Data:
        """Patches to vectors of the language model's size."""
        resampler = Resampler(c.n_queries, c.n_query_heads, c.d_out, c.widens, has_table=True)
        x = c.norm(ops.block(x, "attn_pool.", lambda x: resample(resampler, x)), "ln_post")
        return Data("linear", (x,), x.shape, (ops.Weight("proj", "projector", (c.d_out, c.d_out)),))


class QwenAudio(sizes.Sizes):
    """Whisper's encoder, the mean of every two states, and one matrix.

    Source: arXiv:2311.07919, section 3.1; audio.py of Qwen/Qwen-Audio.
    """

    section = "audio"

    n_mels: sizes.Positive = sizes.hf("n_mels")
    n_frames: sizes.Positive = sizes.hf("n_ctx")
    d_model: sizes.Positive = sizes.hf("n_state")
    n_heads: sizes.Positive = sizes.hf("n_head")
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    n_layers: sizes.Natural = sizes.hf("n_layer")
    d_ff: sizes.Natural = sizes.derived(lambda js, c: 4 * c["d_model"])
    d_out: sizes.Positive = sizes.hf("output_dim", absent=512)
    halves: sizes.Flag = sizes.hf("avg_pool", absent=True)
    marks: sizes.Flag = sizes.hf("add_audio_bos_eos_token", absent=True)

    norm_eps = 1e-5
    norm = parts.use_layer_norm
    check = sizes.check_heads_fill

    def forward(c, frames: Data) -> Data:
        """Log-mel frames [frames, n_mels] to states [frames, d_model]."""
        x = ops.activate(ops.convolve_frames(frames, "conv1", c.d_model, 3), "gelu")
        x = ops.activate(ops.convolve_frames(x, "conv2", c.d_model, 3, stride=2), "gelu")
        x = ops.elementwise(x, "positions", "positional_embedding", "position", c.n_frames, c.d_model, role="buffer")
        x = ops.layers(x, "blocks.{layer}.", [("layer", c.n_layers)], lambda kind, x: c.layer(x))
        return c.norm(ops.mean_of_blocks(x, 2) if c.halves else x, "ln_post")

    def layer(c, x: Data) -> Data:
        h, heads = c.norm(x, "attn_ln"), (c.n_heads, c.d_head)
        q = ops.linear(h, "attn.query", "qkv.q", heads, bias=True)  # [n, n_heads, d_head]
        k = ops.linear(h, "attn.key", "qkv.k", heads)  # [n, n_heads, d_head]
        v = ops.linear(h, "attn.value", "qkv.v", heads, bias=True)  # [n, n_heads, d_head]
        x = x + ops.linear(ops.attend(q, k, v), "attn.out", "output_projection", c.d_model, bias=True)
        return x + parts.plain_mlp(c.norm(x, "mlp_ln"), ("mlp.0", "mlp.2"), "mlp", c.d_ff, activation="gelu", bias=True)

    def project(c, x: Data) -> Data:
        """States to vectors of the language model's size, between two learned ones."""
        x = ops.linear(x, "proj", "projector", c.d_out, bias=True)
        if not c.marks:
            return x
        return ops.elementwise(x, "separator", "audio_bos_eos_token.weight", "projector", 2, c.d_out)


class Qwen(parts.Decoder):
    """Source: arXiv:2309.16609, sections 2.3 and 2.4; modeling_qwen.py of Qwen/Qwen-7B. `d_ff` is the hidden size of
    the MLP, half of config.json's `intermediate_size`.
    """

    reference = "QWenLMHeadModel of Qwen/Qwen-7B"
    gguf = "qwen"
    prefix = "transformer."
    names = ("wte", "h", "ln_f")
    rotated = "d_head"
    defaults = {"vocab_size": 151936, "d_model": 4096, "n_layers": 32}

    n_heads: sizes.Positive = sizes.hf(absent=32)
    d_head: sizes.Positive = sizes.hf("kv_channels", absent=128)
    d_ff: sizes.Natural = sizes.derived(lambda js, c: js.get("intermediate_size", 22016) // 2)
    vision: QwenImages | None
    audio: QwenAudio | None

    norm_eps = sizes.setting("layer_norm_epsilon", default=1e-6)
    activation = sizes.setting(default="silu")
    rope = sizes.setting(default=ntk_rope)
    # The length beyond which queries grow with the logarithm of their position.
    logn_length = sizes.setting(
        default=lambda config, c: config.get("seq_length", 2048) if config.get("use_logn_attn", True) else None
    )

    def forward(c, tokens: Data) -> Data:
        x, place = c.embed(tokens), ops.Unknown("image_start_id")
        if c.vision:
            image = ops.block(c.vision.image(), "transformer.visual.", c.vision.forward, part="vision")
            image = ops.block(image, "transformer.visual.", c.vision.project, part="projector")
            x = ops.insert(x, tokens, image, place)
        if c.audio:
            frames = ops.given("log-mel frames", "frames", c.audio.n_mels)
            sound = ops.block(frames, "transformer.audio.", c.audio.forward, part="audio")
            sound = ops.block(sound, "transformer.audio.", c.audio.project, part="projector")
            x = ops.insert(x, tokens, sound, place)
        return c.decode(x)

    def layer(c, x: Data) -> Data:
        x = x + c.attend(c.norm(x, "ln_1"))
        h, names = c.norm(x, "ln_2"), ("w2", "w1", "c_proj")
        return x + c.gated_mlp(h, names=names)

    def attend(c, x: Data) -> Data:
        q, k, v = parts.fused_qkv(c, x, "attn.c_attn")  # [n, n_heads, d_head]
        length = c.logn_length if ops.is_known(c.logn_length) else None
        q = ops.scale_by_logarithm(ops.rope(q, c.rope), length)
        a = ops.attend_causally(q, ops.rope(k, c.rope), v)  # [n, n_heads, d_head]
        return ops.linear(a, "attn.c_proj", "output_projection", c.d_model)

    def check(c) -> None:
        sizes.check_heads_fill(c)
        for key, part in (("visual", c.vision), ("audio", c.audio)):
            if part and part.d_out != c.d_model:
                size = f"{c.d_model}, the hidden size"
                raise ParamcountError(f"= {part.d_out}", where=f"{key}.output_dim", expected=size)
        if c.vision and isinstance(c.d_model, int) and c.d_model % D_HEAD:
            raise ParamcountError(f"= {c.d_model}", where="visual.output_dim", expected=f"a multiple of {D_HEAD}")
