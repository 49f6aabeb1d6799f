"""A diffusion transformer from codec tokens to the mel frames of a voice.

Source: arXiv:2503.20215, section 2.4; Qwen2_5OmniToken2WavDiTModel of the reference. One step of the sampler is
described, with guidance left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any, ClassVar

from paramcount.flow import (
    Data,
    activate,
    attend,
    block,
    expand_to_tokens,
    given,
    is_known,
    join,
    layers,
    linear,
    lookup,
    plain_norm,
    rope_first_head,
    scale_by,
    split,
)
from paramcount.flow.masks import Chunk
from paramcount.parts.ecapa import SpeakerEncoder
from paramcount.parts.feed_forward import plain_mlp
from paramcount.sizes import Natural, Positive, hf, rotary, setting

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


class SpeechDiT(SpeakerEncoder):
    """A frame sees the chunk that it is in; in some layers also the chunk before, or after. One head is rotated."""

    rotated = "d_head"
    unused_keys = ("repeats", "max_position_embeddings")

    d_model: Positive = hf()
    n_layers: Natural = hf()
    n_heads: Positive = hf()
    d_head: Positive = hf()
    n_ff_multiples: Positive = hf("ff_mult")
    n_codes: Positive = hf("num_embeds")
    d_code: Positive = hf("emb_dim")
    d_voice: Positive = hf("enc_emb_dim")

    rope: ClassVar = rotary(positions=32768)
    chunk: ClassVar = setting("block_size", usual=24)
    reach: ClassVar = setting(default=kinds_by_reach)

    def denoise(c: Any, codes: Data, mels: Data, time: Data, voice: Data, sample: Data) -> Data:
        """The codec token of each mel frame and noisy mel frames to the direction in which these are denoised.

        `time`: sines and cosines of the time, [1, 256]. `voice`: a vector of the speaker, [1, d_voice]. `sample`: mel
        frames of the speaker.
        """
        h = activate(linear(time, "time_embed.time_mlp.0", "other", c.d_model, bias=True), "silu")
        time = linear(h, "time_embed.time_mlp.2", "other", c.d_model, bias=True)
        code = lookup(codes, "text_embed.codec_embed.weight", "embedding", c.n_codes + 1, c.d_code)
        speaker = block(sample, "input_embed.spk_encoder.", c.encode_speaker)
        read = (mels, expand_to_tokens(mels, speaker), code, expand_to_tokens(mels, voice))
        x = linear(reduce(join, read), "input_embed.proj", "embedding", c.d_model, bias=True)
        kinds = c.reach if is_known(c.reach) else [(NEARBY, c.n_layers)]
        x = layers(x, "transformer_blocks.{layer}.", kinds, lambda kind, *x: c.layer(*x, kind), reads=(time,))
        scale, shift = c.modulate(time, "norm_out.linear", 2)
        return linear(c.adapt(x, scale, shift), "proj_out", "other", c.n_mels, bias=True)

    def layer(c, x: Data, time: Data, reach: tuple[int, int]) -> Data:
        shift, scale, gate, shift_mlp, scale_mlp, gate_mlp = c.modulate(time, "attn_norm.linear", 6)
        h = c.attention(c.adapt(x, scale, shift), reach)
        x = x + h * expand_to_tokens(h, gate)
        names = ("ff.ff.0", "ff.ff.3")
        h = c.adapt(x, scale_mlp, shift_mlp)
        h = plain_mlp(h, names, "mlp", c.n_ff_multiples * c.d_model, activation="gelu_pytorch_tanh", bias=True)
        return x + h * expand_to_tokens(h, gate_mlp)

    def modulate(c, time: Data, name: str, n: int) -> tuple[Data, ...]:
        """n vectors [1, d_model]. Source: arXiv:2212.09748, section 3.2."""
        found = linear(activate(time, "silu"), name, "norm", n * c.d_model, bias=True)
        return split(found, *[c.d_model] * n)

    def adapt(c, x: Data, scale: Data, shift: Data) -> Data:
        x = plain_norm(x, "layer", 1e-6)
        return x * expand_to_tokens(x, scale_by(scale, 1.0, "plus 1", shift=1.0)) + expand_to_tokens(x, shift)

    def attention(c, x: Data, reach: tuple[int, int]) -> Data:
        q, k, v = (linear(x, f"attn.to_{y}", f"qkv.{y}", (c.n_heads, c.d_head), bias=True) for y in "qkv")
        q, k = (rope_first_head(y, c.rope, "interleaved") for y in (q, k))
        a = attend(q, k, v, mask=Chunk(c.chunk, 0, *reach))  # [n, n_heads, d_head]
        return linear(a, "attn.to_out.0", "output_projection", c.d_model, bias=True)


def read_codes(c: SpeechDiT) -> tuple[Data, ...]:
    """The inputs of one step."""
    return (
        given("codec token of each mel frame", "mel frames"),
        given("noisy mel frames", "mel frames", c.n_mels),
        given("sines of the time", 1, D_TIME),
        given("speaker", 1, c.d_voice),
        given("mel frames of the speaker", "frames of the speaker", c.n_mels),
    )
