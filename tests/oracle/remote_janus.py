"""The modules of Janus as released.

The authors' code is not run. Names, sizes and order are those of modeling_vlm.py, siglip_vit.py, vq_model.py and
projector.py of github deepseek-ai/Janus.
"""

# mypy: disable-error-code="misc, no-any-return"

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from tests.oracle.remote import Attention, Gated, RMSNorm
from tests.oracle.remote_multimodal import GATED, name_modules, repeat

WIDTHS = (128, 128, 256, 256, 512)  # of the levels of the VQ-VAE


def make_tower(c: Any) -> nn.Module:
    large = c["model_name"] == "siglip_large_patch16_384"
    d, layers, d_ff, patch = (1024, 24, 4096, 16) if large else (1152, 27, 4304, 14)

    def make_mlp() -> nn.Module:
        return name_modules(fc1=nn.Linear(d, d_ff), fc2=nn.Linear(d_ff, d))

    def make_block(i: int) -> nn.Module:
        attention = name_modules(qkv=nn.Linear(d, 3 * d), proj=nn.Linear(d, d))
        return name_modules(norm1=nn.LayerNorm(d), attn=attention, norm2=nn.LayerNorm(d), mlp=make_mlp())

    matrices = {"q": nn.Linear(d, d), "kv": nn.Linear(d, 2 * d), "proj": nn.Linear(d, d)}
    pool = name_modules(latent=torch.zeros(1, 1, d), norm=nn.LayerNorm(d), mlp=make_mlp(), **matrices)
    side = c["image_size"] // patch
    used = layers + c["select_layer"] + 1 if c["select_layer"] <= 0 else c["select_layer"]
    return name_modules(
        patch_embed=name_modules(proj=nn.Conv2d(3, d, patch)),
        pos_embed=torch.zeros(1, side * side, d),
        blocks=repeat(min(layers, used), make_block),
        norm=nn.LayerNorm(d),
        attn_pool=pool,
    )


def make_resnet(d_in: int, d_out: int) -> nn.Module:
    whole = name_modules(
        norm1=nn.GroupNorm(32, d_in), conv1=nn.Conv2d(d_in, d_out, 3), norm2=nn.GroupNorm(32, d_out),
        conv2=nn.Conv2d(d_out, d_out, 3),
    )  # fmt: skip
    if d_in != d_out:
        whole.nin_shortcut = nn.Conv2d(d_in, d_out, 1)
    return whole


def make_look(d: int) -> nn.Module:
    return name_modules(norm=nn.GroupNorm(32, d), **{name: nn.Conv2d(d, d, 1) for name in ("q", "k", "v", "proj_out")})


def make_half(widths: tuple[int, ...], n_blocks: int, ends: tuple[int, int], resample: str) -> nn.Module:
    """From `ends[0]` channels to `ends[1]`, through levels of so many channels; only those of 512 have attention."""
    before, levels = (WIDTHS[0], *widths) if resample == "downsample" else (widths[0], *widths), []
    for i, width in enumerate(widths):
        level = nn.Module()
        level.res = repeat(n_blocks, lambda j, i=i, width=width: make_resnet(width if j else before[i], width))
        level.attn = repeat(n_blocks if width == WIDTHS[-1] else 0, lambda j, width=width: make_look(width))
        if i < len(widths) - 1:
            level.add_module(resample, name_modules(conv=nn.Conv2d(width, width, 3)))
        levels.append(level)
    first, d, last = (WIDTHS[0] if resample == "downsample" else widths[0]), WIDTHS[-1], widths[-1]
    return name_modules(
        conv_in=nn.Conv2d(ends[0], first, 3),
        conv_blocks=nn.ModuleList(levels),
        mid=nn.ModuleList([make_resnet(d, d), make_look(d), make_resnet(d, d)]),
        norm_out=nn.GroupNorm(32, last),
        conv_out=nn.Conv2d(last, ends[1], 3),
    )


def make_codec() -> nn.Module:
    quantize = name_modules(embedding=nn.Embedding(16384, 8))
    quantize.register_buffer("codebook_used", torch.zeros(65536))
    return name_modules(
        encoder=make_half(WIDTHS, 2, (3, 256), "downsample"),
        decoder=make_half(WIDTHS[::-1], 3, (256, 3), "upsample"),
        quantize=quantize,
        quant_conv=nn.Conv2d(256, 8, 1),
        post_quant_conv=nn.Conv2d(8, 256, 1),
    )


def make_aligner(c: Any) -> nn.Module:
    matrices: list[nn.Module] = [nn.Linear(c["input_dim"], c["n_embed"])]
    for _ in range(1, c["depth"]):
        matrices += [nn.GELU(), nn.Linear(c["n_embed"], c["n_embed"])]
    return name_modules(layers=nn.Sequential(*matrices))


def make_llama(c: Any) -> nn.Module:
    d = c.hidden_size

    def make_block(i: int) -> nn.Module:
        norms = {name: RMSNorm(d, 1e-6) for name in ("input_layernorm", "post_attention_layernorm")}
        return name_modules(self_attn=Attention(c, 10_000.0), mlp=Gated(d, c.intermediate_size, GATED, F.silu), **norms)

    layers = repeat(c.num_hidden_layers, make_block)
    model = name_modules(embed_tokens=nn.Embedding(c.vocab_size, d), layers=layers, norm=RMSNorm(d, 1e-6))
    return name_modules(model=model, lm_head=nn.Linear(d, c.vocab_size, bias=False))


LLAMA = {"hidden_size": 4096, "intermediate_size": 11008, "num_attention_heads": 32}  # defaults of its config class


def make_janus(c: Any) -> nn.Module:
    from types import SimpleNamespace

    language = {**LLAMA, **c.language_config}
    language.setdefault("num_key_value_heads", language["num_attention_heads"])
    head, codes = c.gen_head_config["params"], c.gen_vision_config["params"]
    return name_modules(
        vision_model=name_modules(vision_tower=make_tower(c.vision_config["params"])),
        aligner=make_aligner(c.aligner_config["params"]),
        gen_vision_model=make_codec(),
        gen_aligner=make_aligner(c.gen_aligner_config["params"]),
        gen_head=name_modules(
            output_mlp_projector=nn.Linear(head["n_embed"], head["image_token_embed"]),
            vision_head=nn.Linear(head["image_token_embed"], head["image_token_size"]),
        ),
        gen_embed=nn.Embedding(codes["image_token_size"], codes["n_embed"]),
        language_model=make_llama(SimpleNamespace(**language)),
    )
