"""VibeVoice ASR: two encoders of convolutions read the samples of a sound: how it sounds, and what it says."""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError

ENCODER = "vibevoice_acoustic_tokenizer_encoder"
FACTORS, DEPTHS = (2, 2, 4, 5, 5, 8), (3, 3, 3, 3, 3, 3, 8)
CHUNK = 1_440_000


class VibeVoiceEncoder(sizes.Sizes):
    """Stages of ConvNeXt's layers, with convolutions between them that shorten the sound and double its channels."""

    conditions = (sizes.one_of("model_type", (ENCODER,), ENCODER),)

    n_channels: sizes.Positive = sizes.hf("channels")
    d_latent: sizes.Positive = sizes.hf("hidden_size")
    d_conv: sizes.Positive = sizes.hf("kernel_size")
    d_first: sizes.Positive = sizes.hf("num_filters")
    factors: sizes.Widths = sizes.hf("downsampling_ratios", absent=lambda js, c: FACTORS)
    depths: sizes.Indices = sizes.hf("depths", absent=lambda js, c: DEPTHS)
    n_ff_multiples: sizes.Positive = sizes.hf("ffn_expansion")

    activation = sizes.setting("hidden_act", default="gelu")
    norm_eps = sizes.setting("rms_norm_eps", default=1e-5)

    def forward(c, samples: Data) -> Data:
        """[samples, channels] to latents, [samples / all factors, d_latent]."""
        d = c.d_first
        x = c.stage(c.convolve(samples, "stem.conv.conv", d, c.d_conv), "stem.", c.depths[0])
        for i, factor in enumerate(c.factors):
            d, prefix = 2 * d, f"conv_layers.{i}."
            x = c.convolve(x, prefix + "conv.conv", d, 2 * factor, stride=factor)
            x = c.stage(x, prefix, c.depths[i + 1])
        return c.convolve(x, "head.conv", c.d_latent, c.d_conv)

    def stage(c, x: Data, prefix: str, n: int) -> Data:
        return ops.layers(x, prefix + "stage.{layer}.", [("layer", n)], lambda kind, x: c.layer(x)) if n else x

    def layer(c, x: Data) -> Data:
        d = x.shape[-1]
        h = ops.convolve_earlier_frames(ops.rms_norm(x, "norm", c.norm_eps), "mixer.conv", c.d_conv, bias=True)
        x = x + ops.multiply_vector(h, "gamma", "other", d)
        h = ops.rms_norm(x, "ffn_norm", c.norm_eps)
        names = ("ffn.linear1", "ffn.linear2")
        h = parts.plain_mlp(h, names, "mlp", c.n_ff_multiples * d, activation=c.activation, bias=True)
        return x + ops.multiply_vector(h, "ffn_gamma", "other", d)

    def convolve(c, x: Data, name: str, d: ops.Size, width: ops.Size, stride: int = 1) -> Data:
        return ops.convolve_frames(x, name, d, width, stride=stride, padding=ops.BEFORE)

    def check(c) -> None:
        if len(c.depths) <= len(c.factors):
            found, expected = f"= {list(c.depths)}", f"more than the {len(c.factors)} downsampling_ratios"
            raise ParamcountError(found, where="depths", expected=expected)


class AcousticEncoder(VibeVoiceEncoder):
    """How it sounds. It adds noise to its latents, which is left out here."""

    config_class = "VibeVoiceAcousticTokenizerEncoderConfig"

    section = "acoustic_tokenizer_encoder_config"


def semantic_latents(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """The default of a missing section is that of VibeVoiceAsrConfig, that of a missing key the encoder's own."""
    return 128 if js.get("semantic_tokenizer_encoder_config") is None else 64


class SemanticEncoder(VibeVoiceEncoder):
    """What it says."""

    config_class = "VibeVoiceAcousticTokenizerEncoderConfig"

    section = "semantic_tokenizer_encoder_config"

    d_latent: sizes.Positive = sizes.hf("hidden_size", absent=semantic_latents, at_root=True)


def whole_latents(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """Long sounds are read in chunks of so many samples."""
    chunk, per_latent = js.get("acoustic_tokenizer_chunk_size", CHUNK), 1
    for factor in c["acoustic"]["factors"]:
        per_latent *= factor
    if type(chunk) is int and chunk % per_latent:
        expected = f"a multiple of {per_latent:,}, the product of downsampling_ratios"
        raise ParamcountError(f"= {chunk:,}", where="acoustic_tokenizer_chunk_size", expected=expected)


class VibeVoiceAsr(parts.FormerAudioLanguageModel):
    """Source: arXiv:2601.18184, section 2; modeling_vibevoice_asr.py of the reference."""

    reference = "VibeVoiceAsrForConditionalGeneration"
    sections = sizes.Sections(
        "qwen2",
        tie_rule="never",
        other_sections=("semantic_tokenizer_encoder_config", "acoustic_tokenizer_encoder_config"),
    )
    conditions = (whole_latents,)

    acoustic: AcousticEncoder
    semantic: SemanticEncoder

    def hear(c: Any) -> Data:
        """Samples to vectors of the language model's size: what both encoders say."""
        acoustic = c.read(c.acoustic, "acoustic_tokenizer_encoder.")
        semantic = c.read(c.semantic, "semantic_tokenizer_encoder.")
        return ops.block(acoustic, c.projector_prefix, c.merge, reads=(semantic,), part="projector")

    def read(c, encoder: VibeVoiceEncoder, prefix: str) -> Data:
        return ops.block(ops.given("samples", "samples", encoder.n_channels), prefix, encoder.forward, part="audio")

    def merge(c, acoustic: Data, semantic: Data) -> Data:
        return c.project(acoustic, "acoustic_") + c.project(semantic, "semantic_")

    def project(c: Any, x: Data, prefix: str = "") -> Data:
        d_model = c.language.d_model
        x = ops.rms_norm(ops.linear(x, prefix + "linear_1", "projector", d_model, bias=True), prefix + "norm", 1e-6)
        return ops.linear(x, prefix + "linear_2", "projector", d_model, bias=True)
