"""The modules of Phi-4-multimodal as released.

The authors' code is not run. Names, sizes and order are those of modeling_phi4mm.py of
microsoft/Phi-4-multimodal-instruct, those of the encoder for speech of phi4mm_utils.py of SGLang.
"""

# mypy: disable-error-code="misc, no-any-return"

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from tests.oracle.remote import RMSNorm
from tests.oracle.remote_multimodal import name_modules, repeat


def make_siglip(width: int, layers: int, d_ff: int, patch: int, places: int) -> nn.Module:
    """With a head that pools the patches."""

    def make_mlp() -> nn.Module:
        return name_modules(fc1=nn.Linear(width, d_ff), fc2=nn.Linear(d_ff, width))

    def make_block(i: int) -> nn.Module:
        attention = name_modules(
            **{name: nn.Linear(width, width) for name in ("q_proj", "k_proj", "v_proj", "out_proj")}
        )
        norms = {f"layer_norm{i}": nn.LayerNorm(width) for i in (1, 2)}
        return name_modules(self_attn=attention, mlp=make_mlp(), **norms)

    head = name_modules(
        probe=torch.zeros(1, 1, width), attention=nn.MultiheadAttention(width, 1), layernorm=nn.LayerNorm(width),
        mlp=make_mlp(),
    )  # fmt: skip
    embeddings = {"patch_embedding": nn.Conv2d(3, width, patch), "position_embedding": nn.Embedding(places, width)}
    return name_modules(
        embeddings=name_modules(**embeddings),
        encoder=name_modules(layers=repeat(layers, make_block)),
        post_layernorm=nn.LayerNorm(width),
        head=head,
    )


def make_conformer(c: Any) -> nn.Module:
    """Convolutions that halve time and bands, then layers; the mean and the scale of bands are buffers."""
    d, d_ff, channels, bands = (
        c["attention_dim"],
        c["linear_units"],
        c["nemo_conv_settings"]["conv_channels"],
        c["input_size"],
    )

    def make_mlp() -> nn.Module:
        gated = name_modules(linear=nn.Linear(d, 2 * d_ff))
        return name_modules(
            layer_norm=nn.LayerNorm(d), net=nn.Sequential(gated, nn.Dropout(), nn.Linear(d_ff, d), nn.Dropout())
        )

    def make_block(i: int) -> nn.Module:
        wide, n = c["depthwise_multiplier"] * d, c["kernel_size"]
        apart = name_modules(dw_conv=nn.Conv1d(d, wide, n, groups=d), pw_conv=nn.Conv1d(wide, d, 1))
        gate = name_modules(ext_pw_conv_1d=nn.Conv1d(d, 2 * d, 1), b1=torch.zeros(1, d, 1), b2=torch.zeros(1, d, 1))
        conv = name_modules(
            layer_norm=nn.LayerNorm(d), glu=gate, dw_sep_conv_1d=apart, ext_pw_conv_1d=nn.Conv1d(d, d, 1)
        )
        attention = name_modules(**{f"linear_{name}": nn.Linear(d, d) for name in ("q", "k", "v", "out")})
        norms = {name: nn.LayerNorm(d) for name in ("layer_norm_att", "layer_norm")}
        return name_modules(
            feed_forward_in=make_mlp(), self_attn=attention, conv=conv, feed_forward_out=make_mlp(), **norms
        )

    steps: list[nn.Module] = [nn.Conv2d(1, channels, 3), nn.ReLU()]
    reduction, bands_left = c["time_reduction"], (bands + 1) // 2
    while reduction > 2:
        steps += [nn.Conv2d(channels, channels, 3, groups=channels), nn.Conv2d(channels, channels, 1), nn.ReLU()]
        reduction, bands_left = reduction // 2, (bands_left + 1) // 2
    distances = 2 * c["relative_attention_bias_args"]["t5_bias_max_distance"]
    scaled = nn.Module()
    for name in ("global_mean", "global_invstd"):
        scaled.register_buffer(name, torch.zeros(bands))
    return name_modules(
        encoder_embedding=scaled,
        embed=name_modules(conv=nn.Sequential(*steps), out=nn.Linear(channels * bands_left, d)),
        relative_attention_bias_layer=name_modules(bias_values=nn.Embedding(distances, c["attention_heads"])),
        encoders=repeat(c["num_blocks"], make_block),
    )


def make_adapted(c: Any, d_in: int, d_out: int) -> nn.Module:
    """A matrix with two adapters, as PEFT names them."""
    ranks = {way: getattr(c, f"{way}_lora")["r"] for way in ("vision", "speech")}
    return name_modules(
        base_layer=nn.Linear(d_in, d_out, bias=False),
        lora_A=name_modules(**{way: nn.Linear(d_in, rank, bias=False) for way, rank in ranks.items()}),
        lora_B=name_modules(**{way: nn.Linear(rank, d_out, bias=False) for way, rank in ranks.items()}),
    )


def make_phi4mm(c: Any) -> nn.Module:
    d, d_ff, d_head = c.hidden_size, c.intermediate_size, c.hidden_size // c.num_attention_heads
    audio = c.audio_processor["config"]

    def make_block(i: int) -> nn.Module:
        heads = (c.num_attention_heads + 2 * c.num_key_value_heads) * d_head
        attention = {"qkv_proj": make_adapted(c, d, heads), "o_proj": make_adapted(c, d, d)}
        mlp = {"gate_up_proj": make_adapted(c, d, 2 * d_ff), "down_proj": make_adapted(c, d_ff, d)}
        norms = {name: RMSNorm(d, c.rms_norm_eps) for name in ("input_layernorm", "post_attention_layernorm")}
        return name_modules(self_attn=name_modules(**attention), mlp=name_modules(**mlp), **norms)

    def project(width: int) -> nn.Module:
        return nn.Sequential(nn.Linear(width, d), nn.GELU(), nn.Linear(d, d))

    image = name_modules(
        img_processor=make_siglip(1152, 27, 4304, 14, 32 * 32),
        glb_GN=torch.zeros(1, 1, 1152),
        sub_GN=torch.zeros(1, 1, 1, 1152),
        img_projection=project(1152),
    )
    ways = name_modules(speech=project(audio["attention_dim"]), vision=project(audio["attention_dim"]))
    sound = name_modules(encoder=make_conformer(audio), audio_projection=ways)
    return name_modules(
        model=name_modules(
            embed_tokens=nn.Embedding(c.vocab_size, d),
            embed_tokens_extend=name_modules(image_embed=image, audio_embed=sound),
            layers=repeat(c.num_hidden_layers, make_block),
            norm=RMSNorm(d, c.rms_norm_eps),
        )
    )
