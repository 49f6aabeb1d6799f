"""The modules of Kimi K3.

No such code is run. Names, sizes and order are those of python/sglang/srt/models/kimi_k3.py and kimi_k3_vl.py of
sgl-project/sglang@0000e9b46f38, whose vision encoder has the names of the released files; q, k and v, and gate and up,
stand apart as there. A_log has a value for each channel of a head, as in the headers of the released files.
"""

# mypy: disable-error-code="misc, no-any-return"

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from tests.oracle.remote import RMSNorm
from tests.oracle.remote_multimodal import name_modules, repeat


def matrix(n_in: int, n_out: int) -> nn.Module:
    return nn.Linear(n_in, n_out, bias=False)


def make_gated(d: int, width: int, names: tuple[str, str, str] = ("gate_proj", "up_proj", "down_proj")) -> nn.Module:
    return name_modules(**dict(zip(names, (matrix(d, width), matrix(d, width), matrix(width, d)))))


def make_delta(c: Any) -> nn.Module:
    linear, d = c.linear_attn_config, c.hidden_size
    n, d_head, size = linear["num_heads"], linear["head_dim"], linear["short_conv_kernel_size"]
    width = n * d_head
    model = name_modules(
        **{f"{y}_proj": matrix(d, width) for y in "qkv"},
        **{f"{y}_conv1d": nn.Conv1d(width, width, size, groups=width, bias=False) for y in "qkv"},
        f_a_proj=matrix(d, d_head),
        f_b_proj=matrix(d_head, width),
        b_proj=matrix(d, n),
        o_norm=RMSNorm(d_head, 1e-5),
        o_proj=matrix(width, d),
    )
    model.A_log, model.dt_bias = nn.Parameter(torch.ones(d_head)), nn.Parameter(torch.ones(width))
    if linear.get("use_full_rank_gate"):
        model.g_proj = matrix(d, width)
    else:
        model.g_a_proj, model.g_b_proj = matrix(d, d_head), matrix(d_head, width)
    return model


def make_latent(c: Any) -> nn.Module:
    d, n = c.hidden_size, c.num_attention_heads
    model = name_modules(
        q_a_proj=matrix(d, c.q_lora_rank),
        q_a_layernorm=RMSNorm(c.q_lora_rank, 1e-5),
        q_b_proj=matrix(c.q_lora_rank, n * (c.qk_nope_head_dim + c.qk_rope_head_dim)),
        kv_a_proj_with_mqa=matrix(d, c.kv_lora_rank + c.qk_rope_head_dim),
        kv_a_layernorm=RMSNorm(c.kv_lora_rank, 1e-5),
        kv_b_proj=matrix(c.kv_lora_rank, n * (c.qk_nope_head_dim + c.v_head_dim)),
        o_proj=matrix(n * c.v_head_dim, d),
    )
    if c.mla_use_output_gate:
        model.g_proj = matrix(d, n * c.v_head_dim)
    return model


def make_mixture(c: Any) -> nn.Module:
    d, latent = c.hidden_size, getattr(c, "routed_expert_hidden_size", None)
    gate = matrix(d, c.num_experts)
    gate.register_buffer("e_score_correction_bias", torch.ones(c.num_experts))
    names = ("w1", "w3", "w2")
    experts = repeat(c.num_experts, lambda i: make_gated(latent or d, c.moe_intermediate_size, names))
    shared = make_gated(d, c.num_shared_experts * c.moe_intermediate_size)
    model = name_modules(gate=gate, experts=experts, shared_experts=shared)
    if latent:
        model.routed_expert_down_proj, model.routed_expert_up_proj = matrix(d, latent), matrix(latent, d)
        if c.latent_moe_use_norm:
            model.routed_expert_norm = RMSNorm(latent, 1e-5)
    return model


def make_layer(c: Any, i: int) -> nn.Module:
    d, is_linear = c.hidden_size, i + 1 in c.linear_attn_config["kda_layers"]
    model = name_modules(
        input_layernorm=RMSNorm(d, 1e-5),
        post_attention_layernorm=RMSNorm(d, 1e-5),
        self_attn=make_delta(c) if is_linear else make_latent(c),
    )
    if i < c.first_k_dense_replace:
        model.mlp = make_gated(d, c.intermediate_size)
    else:
        model.block_sparse_moe = make_mixture(c)
    add_residuals(c, model, "self_attention_res", "mlp_res")
    return model


def add_residuals(c: Any, model: nn.Module, *names: str) -> None:
    for name in names if c.attn_res_block_size else ():
        model.add_module(f"{name}_norm", RMSNorm(c.hidden_size, 1e-5))
        model.add_module(f"{name}_proj", matrix(c.hidden_size, 1))


def make_text(c: Any) -> nn.Module:
    body = name_modules(
        embed_tokens=nn.Embedding(c.vocab_size, c.hidden_size),
        layers=repeat(c.num_hidden_layers, lambda i: make_layer(c, i)),
        norm=RMSNorm(c.hidden_size, 1e-5),
    )
    add_residuals(c, body, "output_attn_res")
    return name_modules(model=body, lm_head=matrix(c.hidden_size, c.vocab_size))


def make_vision(c: Any) -> nn.Module:
    d, width, biased = c.vt_hidden_size, c.qkv_hidden_size, c.linear_bias

    def make_block(i: int) -> nn.Module:
        return name_modules(
            norm0=RMSNorm(d, 1e-5),
            norm1=RMSNorm(d, 1e-5),
            wqkv=nn.Linear(d, 3 * width, bias=c.attn_bias),
            wo=nn.Linear(width, d, bias=c.attn_bias),
            mlp=name_modules(
                fc0=nn.Linear(d, c.vt_intermediate_size, bias=biased),
                fc1=nn.Linear(c.vt_intermediate_size, d, bias=biased),
            ),
        )

    positions = nn.Module()
    positions.weight = nn.Parameter(torch.ones(c.init_pos_emb_height, c.init_pos_emb_width, d))
    proj = nn.Conv2d(3, d, c.patch_size, bias=c.patch_embed_proj_bias)
    return name_modules(
        patch_embed=name_modules(proj=proj, pos_emb=positions),
        encoder=name_modules(blocks=repeat(c.vt_num_hidden_layers, make_block), final_layernorm=RMSNorm(d, 1e-5)),
    )


def make_kimi_k3(c: Any) -> nn.Module:
    vision, text = SimpleNamespace(**c.vision_config), SimpleNamespace(**c.text_config)
    width = vision.vt_hidden_size * vision.merge_kernel_size[0] * vision.merge_kernel_size[1]
    return name_modules(
        vision_tower=make_vision(vision),
        mm_projector=name_modules(
            proj=nn.Sequential(matrix(width, width), nn.GELU(), matrix(width, text.hidden_size)),
            post_norm=RMSNorm(text.hidden_size, 1e-5),
        ),
        language_model=make_text(text),
    )
