"""Inkling: images through a hierarchical MLP, in which no patch sees another, and sound as a sum of learned vectors,
one for the level of each mel band.
"""

from typing import Any

from paramcount.architectures.inkling_text import InklingNames, InklingText
from paramcount.declare import Data, ops, parts, sizes


class InklingAudio(sizes.Sizes):
    """Log-mel frames of which each value is one of so many levels."""

    config_class = "InklingAudioConfig"

    section = "audio_config"
    unused_keys = ("text_hidden_size",)

    n_mels: sizes.Positive = sizes.hf("num_codebooks", "n_mel_bins")
    n_levels: sizes.Positive = sizes.hf("codebook_size", "mel_vocab_size")

    def encode(c, levels: Data, d_out: Any) -> Data:
        x = ops.sum_of_streams(ops.lookup_by_column(levels, "encoder.weight", "embedding", c.n_levels, d_out))
        return ops.rms_norm(x, "final_norm", 1e-6)


class Inkling(InklingText):
    """Source: modeling_inkling.py of the reference. Names as the reference saves them."""

    reference = "InklingForConditionalGeneration"
    model_types = ("inkling_mm_model",)
    reference_names = {
        "model.llm.lm_head.": "lm_head.",
        "model.llm.": "model.language_model.",
        "model.audio.encoder.": "model.audio_tower.embed_audio_tokens.embed_audio_tokens.",
    }
    base_model = "InklingModel"
    prefix = "model.llm."
    names = InklingNames(
        "embed", "embed_norm", "model.llm.unembed", "attn.", ("wq_du", "wk_dv", "wv_dv", "wr_du", "wo_ud"), "sconv",
        ("attn_norm", "mlp_norm"), "mlp.gate.bias",
    )  # fmt: skip
    modules = {
        **{f".attn.{name}": (f".self_attn.{new}",) for name, new in zip(names.qkvro, InklingNames().qkvro)},
        ".experts.w13": (".experts.gate_up_proj",), ".experts.w2": (".experts.down_proj",),
        ".llm.embed": (".llm.embed_tokens",), ".unembed": (".lm_head",),
        ".mlp.w13_dn": (".mlp.gate_proj", ".mlp.up_proj"), ".mlp.w2_md": (".mlp.down_proj",),
        **{f".visual.layers.linear_{i}": (f".vision_tower.encoder_layers.{i}.projection",) for i in range(64)},
    }  # fmt: skip
    float32 = ("attn_sconv", "mlp_sconv", "k_sconv", "v_sconv", "mlp.gate.bias", "gate.global_scale")
    section = "text_config"

    vision: parts.HierarchicalMLP
    audio: InklingAudio

    image_token = sizes.setting("/image_token_id", default=200054)
    audio_token = sizes.setting("/audio_token_id", default=200053)

    def forward(c, tokens: Data) -> Data:
        image = ops.block(c.vision.image(), "model.visual.", lambda x: c.vision.encode(x, c.d_model), part="vision")
        levels = ops.given("levels of mel bands", "frames", c.audio.n_mels)
        sound = ops.block(levels, "model.audio.", lambda x: c.audio.encode(x, c.d_model), part="audio")
        x = ops.insert(c.embed(tokens), tokens, image, c.image_token)
        return c.decode(ops.insert(x, tokens, sound, c.audio_token))

    def dense(c, x: Data) -> Data:
        return c.packed(x, "mlp", c.d_ff, ("mlp.w13_dn.weight", "mlp.w2_md.weight"))

    def expert(c, x: Data) -> Data:
        return c.packed(x, "experts", c.d_expert, ("w13_weight", "w2_weight"))

    def shared_expert(c, x: Data) -> Data:
        return c.packed(x, "shared_experts", c.d_expert, ("shared_w13_weight", "shared_w2_weight"))

    def packed(c, x: Data, component: str, d_ff: Any, names: tuple[str, str]) -> Data:
        return parts.packed_mlp(x, component, d_ff, names, activation=c.activation, alternating=True)
