"""The modules of Qwen-VL and Qwen-Audio.

The authors' code is not run. Names, sizes and order are those of modeling_qwen.py, visual.py and audio.py of
Qwen/Qwen-VL and Qwen/Qwen-Audio.
"""

# mypy: disable-error-code="misc, no-any-return"

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from tests.oracle.remote import Gated, RMSNorm
from tests.oracle.remote_multimodal import name_modules, repeat


def make_qwen_vision(c: Any) -> nn.Module:
    width, out = c["width"], c["output_dim"]

    def make_block(i: int) -> nn.Module:
        d_ff = int(width * c["mlp_ratio"])
        attention = name_modules(in_proj=nn.Linear(width, 3 * width), out_proj=nn.Linear(width, width))
        mlp = name_modules(c_fc=nn.Linear(width, d_ff), c_proj=nn.Linear(d_ff, width))
        return name_modules(ln_1=nn.LayerNorm(width), ln_2=nn.LayerNorm(width), attn=attention, mlp=mlp)

    queries = c.get("n_queries", 256)
    pool = name_modules(
        pos_embed=torch.zeros(queries, out),
        query=torch.zeros(queries, out),
        attn=nn.MultiheadAttention(out, out // 128),
        ln_q=nn.LayerNorm(out),
        ln_kv=nn.LayerNorm(out),
    )
    if width != out:
        pool.kv_proj = nn.Linear(width, out, bias=False)
    return name_modules(
        positional_embedding=torch.zeros(256, width),
        proj=torch.zeros(out, out),
        conv1=nn.Conv2d(3, width, c["patch_size"], bias=False),
        ln_pre=nn.LayerNorm(width),
        transformer=name_modules(resblocks=repeat(c["layers"], make_block)),
        attn_pool=pool,
        ln_post=nn.LayerNorm(out),
    )


def make_qwen_audio(c: Any) -> nn.Module:
    """With its positions, which are no parameters, as a buffer."""
    width = c["n_state"]

    def make_block(i: int) -> nn.Module:
        names = {name: nn.Linear(width, width, bias=name != "key") for name in ("query", "key", "value", "out")}
        mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        norms = {"attn_ln": nn.LayerNorm(width), "mlp_ln": nn.LayerNorm(width)}
        return name_modules(attn=name_modules(**names), mlp=mlp, **norms)

    whole = name_modules(
        conv1=nn.Conv1d(c["n_mels"], width, 3),
        conv2=nn.Conv1d(width, width, 3),
        blocks=repeat(c["n_layer"], make_block),
        ln_post=nn.LayerNorm(width),
        proj=nn.Linear(width, c["output_dim"]),
    )
    whole.register_buffer("positional_embedding", torch.zeros(c["n_ctx"], width))
    if c["add_audio_bos_eos_token"]:
        whole.audio_bos_eos_token = nn.Embedding(2, c["output_dim"])
    return whole


def make_qwen(c: Any) -> nn.Module:
    d, heads, d_ff = c.hidden_size, c.kv_channels * c.num_attention_heads, c.intermediate_size // 2

    def make_block(i: int) -> nn.Module:
        attention = name_modules(c_attn=nn.Linear(d, 3 * heads), c_proj=nn.Linear(heads, d, bias=False))
        mlp = Gated(d, d_ff, ("w2", "w1", "c_proj"), F.silu)
        return name_modules(ln_1=RMSNorm(d, 1e-6), attn=attention, ln_2=RMSNorm(d, 1e-6), mlp=mlp)

    layers = repeat(c.num_hidden_layers, make_block)
    transformer = name_modules(wte=nn.Embedding(c.vocab_size, d), h=layers, ln_f=RMSNorm(d, 1e-6))
    if hasattr(c, "visual"):
        transformer.visual = make_qwen_vision(c.visual)
    if hasattr(c, "audio"):
        transformer.audio = make_qwen_audio(c.audio)
    return name_modules(transformer=transformer, lm_head=nn.Linear(d, c.vocab_size, bias=False))
