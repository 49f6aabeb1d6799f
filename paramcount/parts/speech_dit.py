"""A diffusion transformer from codec tokens to the mel frames of a voice.

Source: arXiv:2503.20215, section 2.4; Qwen2_5OmniToken2WavDiTModel of the reference. One step of the sampler is
described, with guidance left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any, ClassVar

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.flow import Data

D_TIME = 256  # sines and cosines of the time
NEARBY = (0, 0)  # chunks before and after its own that a frame also sees


def kinds_by_reach(js: Mapping[str, Any], c: Any) -> tuple[tuple[tuple[int, int], int], ...]:
    """((chunks before, chunks after), number of layers) in order."""
    back, ahead = js.get("look_backward_layers", (0, 20)), js.get("look_ahead_layers", (10,))
    kinds, start = [], 0
    for i in sorted({i for i in (*back, *ahead) if 0 <= i < c.n_layers}):
        kinds += [(NEARBY, i - start), ((int(i in back), int(i in ahead)), 1)]
        start = i + 1
    return (*kinds, (NEARBY, c.n_layers - start))


class SpeechDiT(parts.SpeakerEncoder):
    """A frame sees the chunk that it is in; in some layers also the chunk before, or after. One head is rotated."""

    rotated = "d_head"
    unused_keys = ("repeats", "max_position_embeddings")

    d_model: sizes.Positive = sizes.hf()
    n_layers: sizes.Natural = sizes.hf()
    n_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.hf()
    n_ff_multiples: sizes.Positive = sizes.hf("ff_mult")
    n_codes: sizes.Positive = sizes.hf("num_embeds")
    d_code: sizes.Positive = sizes.hf("emb_dim")
    d_voice: sizes.Positive = sizes.hf("enc_emb_dim")

    rope: ClassVar = sizes.rotary(positions=32768)
    chunk: ClassVar = sizes.setting("block_size", usual=24)
    reach: ClassVar = sizes.setting(default=kinds_by_reach)

    def denoise(c: Any, codes: Data, mels: Data, time: Data, voice: Data, sample: Data) -> Data:
        """The codec token of each mel frame and noisy mel frames to the direction in which these are denoised.

        `time`: sines and cosines of the time, [1, 256]. `voice`: a vector of the speaker, [1, d_voice]. `sample`: mel
        frames of the speaker.
        """
        h = ops.activate(ops.linear(time, "time_embed.time_mlp.0", "other", c.d_model, bias=True), "silu")
        time = ops.linear(h, "time_embed.time_mlp.2", "other", c.d_model, bias=True)
        code = ops.lookup(codes, "text_embed.codec_embed.weight", "embedding", c.n_codes + 1, c.d_code)
        speaker = ops.block(sample, "input_embed.spk_encoder.", c.encode_speaker)
        read = (mels, ops.expand_to_tokens(mels, speaker), code, ops.expand_to_tokens(mels, voice))
        x = ops.linear(reduce(ops.join, read), "input_embed.proj", "embedding", c.d_model, bias=True)
        kinds = c.reach if ops.is_known(c.reach) else [(NEARBY, c.n_layers)]
        x = ops.layers(x, "transformer_blocks.{layer}.", kinds, lambda kind, *x: c.layer(*x, kind), reads=(time,))
        scale, shift = c.modulate(time, "norm_out.linear", 2)
        return ops.linear(c.adapt(x, scale, shift), "proj_out", "other", c.n_mels, bias=True)

    def layer(c, x: Data, time: Data, reach: tuple[int, int]) -> Data:
        shift, scale, gate, shift_mlp, scale_mlp, gate_mlp = c.modulate(time, "attn_norm.linear", 6)
        h = c.attention(c.adapt(x, scale, shift), reach)
        x = x + h * ops.expand_to_tokens(h, gate)
        names = ("ff.ff.0", "ff.ff.3")
        h = c.adapt(x, scale_mlp, shift_mlp)
        h = parts.plain_mlp(h, names, "mlp", c.n_ff_multiples * c.d_model, activation="gelu_pytorch_tanh", bias=True)
        return x + h * ops.expand_to_tokens(h, gate_mlp)

    def modulate(c, time: Data, name: str, n: int) -> tuple[Data, ...]:
        """n vectors [1, d_model]. Source: arXiv:2212.09748, section 3.2."""
        found = ops.linear(ops.activate(time, "silu"), name, "norm", n * c.d_model, bias=True)
        return ops.split(found, *[c.d_model] * n)

    def adapt(c, x: Data, scale: Data, shift: Data) -> Data:
        x = ops.plain_norm(x, "layer", 1e-6)
        return x * ops.expand_to_tokens(x, ops.scale_by(scale, 1.0, "plus 1", shift=1.0)) + ops.expand_to_tokens(
            x, shift
        )

    def attention(c, x: Data, reach: tuple[int, int]) -> Data:
        q, k, v = (ops.linear(x, f"attn.to_{y}", f"qkv.{y}", (c.n_heads, c.d_head), bias=True) for y in "qkv")
        q, k = (ops.rope_first_head(y, c.rope, "interleaved") for y in (q, k))
        a = ops.attend(q, k, v, mask=ops.Chunk(c.chunk, 0, *reach))  # [n, n_heads, d_head]
        return ops.linear(a, "attn.to_out.0", "output_projection", c.d_model, bias=True)


def read_codes(c: SpeechDiT) -> tuple[Data, ...]:
    """The inputs of one step."""
    return (
        ops.given("codec token of each mel frame", "mel frames"),
        ops.given("noisy mel frames", "mel frames", c.n_mels),
        ops.given("sines of the time", 1, D_TIME),
        ops.given("speaker", 1, c.d_voice),
        ops.given("mel frames of the speaker", "frames of the speaker", c.n_mels),
    )
