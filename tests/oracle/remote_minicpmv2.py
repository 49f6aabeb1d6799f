"""The modules of MiniCPM-V 2.0.

The authors' code is not run. Names, sizes and order are those of modeling_minicpmv.py, resampler.py and
modeling_minicpm.py of openbmb/MiniCPM-V-2; the encoder's are those of timm's vit_so400m_patch14_siglip_384.
"""

# mypy: disable-error-code="misc, no-any-return"

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from tests.oracle.remote import Attention, Gated, RMSNorm
from tests.oracle.remote_multimodal import GATED, name_modules, repeat


def make_encoder(layers: int) -> nn.Module:
    def make_block(i: int) -> nn.Module:
        attention = name_modules(qkv=nn.Linear(1152, 3 * 1152), proj=nn.Linear(1152, 1152))
        mlp = name_modules(fc1=nn.Linear(1152, 4304), fc2=nn.Linear(4304, 1152))
        return name_modules(norm1=nn.LayerNorm(1152), attn=attention, norm2=nn.LayerNorm(1152), mlp=mlp)

    return name_modules(
        pos_embed=torch.zeros(1, 27 * 27, 1152),
        patch_embed=name_modules(proj=nn.Conv2d(3, 1152, 14)),
        blocks=repeat(layers, make_block),
        norm=nn.LayerNorm(1152),
    )


def make_resampler(queries: int, d: int) -> nn.Module:
    norms = {name: nn.LayerNorm(d) for name in ("ln_q", "ln_kv", "ln_post")}
    return name_modules(
        pos_embed=torch.zeros(queries, d),
        query=torch.zeros(queries, d),
        proj=torch.zeros(d, d),
        kv_proj=nn.Linear(1152, d, bias=False),
        attn=nn.MultiheadAttention(d, d // 128),
        **norms,
    )


def make_minicpmv2(c: Any) -> nn.Module:
    d = c.hidden_size

    def make_block(i: int) -> nn.Module:
        norms = {name: RMSNorm(d, c.rms_norm_eps) for name in ("input_layernorm", "post_attention_layernorm")}
        mlp = Gated(d, c.intermediate_size, GATED, F.silu)
        return name_modules(self_attn=Attention(c, c.rope_theta), mlp=mlp, **norms)

    layers = repeat(c.num_hidden_layers, make_block)
    model = name_modules(embed_tokens=nn.Embedding(c.vocab_size, d), layers=layers, norm=RMSNorm(d, c.rms_norm_eps))
    return name_modules(
        llm=name_modules(model=model, lm_head=nn.Linear(d, c.vocab_size, bias=False)),
        vpm=make_encoder(27 - c.drop_vision_last_layer),
        resampler=make_resampler(int(c.query_num**0.5) ** 2, d),
    )
