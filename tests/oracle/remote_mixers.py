"""Decoders that only their authors publish, in plain PyTorch without a cache.

The authors' code is not run. Names and order are those of src/glublm/model.py of github Den-Sec/glublm@f6b0c55b93ae, of
custom_models/sba of github fla-org/flame@e11e7be75b9e, and of modeling_hymba.py of nvidia/Hymba-1.5B-Base in github
gunho1123/lutmamba@a8bc85da5a5c, with the mask of barebones_hymba_block.py of github NVlabs/hymba@df5b2a95b990; and
those of fla/layers and fla/ops/mesa_net/naive.py of github fla-org/flash-linear-attention@bc3b101dcb71. What MoBA and
NSA choose is not computed.
"""

# mypy: disable-error-code="misc, no-any-return"

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from tests.oracle import recurrent
from tests.oracle.recurrent import heads, linear
from tests.oracle.remote import Gated, RMSNorm
from tests.oracle.remote_decoders import attend, rotate
from tests.oracle.remote_multimodal import name_modules


class GlubBlock(nn.Module):
    def __init__(self, c: Any) -> None:
        super().__init__()
        d, self.c = c.d_model, c
        self.norm1, self.norm2 = RMSNorm(d, c.rms_norm_eps), RMSNorm(d, c.rms_norm_eps)
        self.attn = name_modules(qkv_proj=linear(d, 3 * d), out_proj=linear(d, d))
        self.ffn = Gated(d, c.ffn_hidden, ("gate_proj", "up_proj", "down_proj"), nn.functional.silu)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (y.view(len(x), self.c.n_heads, -1) for y in self.attn.qkv_proj(self.norm1(x)).chunk(3, -1))
        q, k = rotate(q, self.c.rope_theta), rotate(k, self.c.rope_theta)
        x = x + self.attn.out_proj(attend(q, k, v))
        return x + self.ffn(self.norm2(x))


class Glub(nn.Module):
    base_model_prefix = ""

    def __init__(self, c: Any) -> None:
        super().__init__()
        self.c, self.embedding = c, nn.Embedding(c.vocab_size, c.d_model)
        self.blocks = nn.ModuleList(GlubBlock(c) for _ in range(c.n_layers))
        self.final_norm = RMSNorm(c.d_model, c.rms_norm_eps)
        self.lm_head = linear(c.d_model, c.vocab_size)
        if c.tie_embeddings:
            self.lm_head.weight = self.embedding.weight

    def forward(self, input_ids: Tensor) -> dict[str, Tensor]:
        x = self.embedding(input_ids[0]) * self.c.d_model**0.5
        for block in self.blocks:
            x = block(x)
        return {"logits": self.lm_head(self.final_norm(x))[None]}


class StickBreaking(nn.Module):
    """The recurrence of sb_varlen_fwd.py, key by key from the nearest."""

    def __init__(self, c: Any, index: int) -> None:
        super().__init__()
        d, self.n = c.hidden_size, c.num_heads
        for name in ("q_proj", "k_proj", "v_proj"):
            self.add_module(name, linear(d, d, bias=c.qkv_bias))
        self.o_proj = linear(d, d)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (heads(f(x), self.n) for f in (self.q_proj, self.k_proj, self.v_proj))
        out = torch.zeros_like(q)
        for i in range(len(q)):
            left = torch.ones(self.n, 1)
            for j in range(i - 1, -1, -1):
                share = ((q[i] * k[j]).sum(-1, keepdim=True) * q.shape[-1] ** -0.5).sigmoid()
                out[i] += left * share * v[j]
                left = left * (1 - share)
        return self.o_proj(out.flatten(1)[None])


class Mesa(recurrent.Streams):
    """The system of each token is solved exactly, as naive_mesa_net_exact does."""

    def __init__(self, c: Any, index: int) -> None:
        super().__init__()
        d, self.c, width = c.hidden_size, c, c.num_heads * c.head_dim
        for name in ("q", "k", "v"):
            self.add_module(f"{name}_proj", linear(d, width))
        self.q_conv1d, self.k_conv1d = (
            recurrent.Convolution(width, c.conv_size),
            recurrent.Convolution(width, c.conv_size),
        )
        self.a_proj, self.b_proj = linear(d, c.num_heads, bias=True), linear(d, c.num_heads, bias=True)
        self.lambda_params = nn.Parameter(torch.zeros(width))
        if c.use_output_gate:
            self.g_proj = linear(d, width)
        self.o_norm, self.o_proj = recurrent.Norm(c.head_dim, c.norm_eps), linear(width, d)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (heads(self.stream(x, name), self.c.num_heads) for name in ("q", "k", "v"))
        q, k = (y * torch.rsqrt(y.square().sum(-1, keepdim=True) + 1e-6) for y in (q, k))
        beta, decay = self.b_proj(x)[0].sigmoid(), self.a_proj(x)[0].sigmoid()[..., None, None]
        ridge = nn.functional.softplus(self.lambda_params).view(q.shape[1:]) + self.c.lambda_lower_bound
        keys, values, out = torch.zeros(1), torch.zeros(1), []
        for t in range(len(q)):
            scaled = (k[t] * beta[t, :, None])[..., None]
            keys, values = keys * decay[t] + scaled * k[t, :, None], values * decay[t] + scaled * v[t, :, None]
            solved = torch.linalg.solve(keys + torch.diag_embed(ridge), q[t])
            out.append((solved[..., None] * values).sum(-2))
        y = self.o_norm(torch.stack(out))
        if self.c.use_output_gate:
            y = y * nn.functional.silu(heads(self.g_proj(x), self.c.num_heads))
        return self.o_proj(y.flatten(1)[None])


class BlockAttention(nn.Module):
    """The modules of MoBA and of NSA."""

    def __init__(self, c: Any, index: int) -> None:
        super().__init__()
        d, n, groups = c.hidden_size, c.num_heads, c.num_kv_heads or c.num_heads
        width = getattr(c, "head_dim", d // n)
        self.q_proj, self.o_proj = linear(d, n * width, bias=c.qkv_bias), linear(n * width, d)
        self.k_proj, self.v_proj = (linear(d, groups * width, bias=c.qkv_bias) for _ in range(2))
        if c.model_type == "nsa":
            self.g_proj: nn.Module = linear(d, 3 * n)
            return
        self.o_norm = RMSNorm(width, 1e-6)
        if c.qk_norm:
            self.q_norm, self.k_norm = RMSNorm(width, 1e-5), RMSNorm(width, 1e-5)
        if c.use_output_gate:
            self.g_proj = nn.Sequential(linear(d, width), linear(width, d))


class HymbaBlock(nn.Module):
    def __init__(self, c: Any, *, reuses: bool) -> None:
        super().__init__()
        self.c, self.reuses, self.d_inner = c, reuses, c.mamba_expand * c.hidden_size
        d, state, rank = c.hidden_size, c.mamba_d_state, c.mamba_dt_rank
        self.d_kv = [c.num_key_value_heads * width // c.num_attention_heads for width in (d, self.d_inner)]
        width = d + (0 if reuses else sum(self.d_kv)) + 2 * self.d_inner
        self.self_attn = nn.Module()
        if c.kq_norm == "rms":
            d_head = d // c.num_attention_heads
            self.self_attn.q_norm, self.self_attn.k_norm = RMSNorm(d_head, 1e-6), RMSNorm(d_head, 1e-6)
        self.pre_avg_layernorm1 = RMSNorm(self.d_inner, c.rms_norm_eps)
        self.pre_avg_layernorm2 = RMSNorm(self.d_inner, c.rms_norm_eps)
        self.in_proj = linear(d, width, bias=c.mamba_proj_bias)
        self.out_proj = linear(self.d_inner, d, bias=c.mamba_proj_bias)
        self.conv1d = recurrent.Convolution(self.d_inner, c.mamba_d_conv)
        if c.mamba_conv_bias:
            self.conv1d.bias = nn.Parameter(torch.zeros(self.d_inner))
        self.x_proj = nn.ModuleList([linear(self.d_inner, rank + 2 * state)])
        self.dt_proj = nn.ModuleList([linear(rank, self.d_inner, bias=True)])
        self.A_log = nn.ParameterList([torch.zeros(self.d_inner, state)])
        self.D = nn.ParameterList([torch.zeros(self.d_inner)])
        if c.mamba_inner_layernorms:
            self.dt_layernorm = RMSNorm(rank, c.rms_norm_eps)
            self.B_layernorm, self.C_layernorm = RMSNorm(state, c.rms_norm_eps), RMSNorm(state, c.rms_norm_eps)

    def split(self, x: Tensor, n: int) -> Tensor:
        return x.view(len(x), n, -1)

    def prepare(self, x: Tensor, norm: str) -> Tensor:
        c, d = self.c, x.shape[-1]
        x = getattr(self.self_attn, norm)(x) if c.kq_norm == "rms" else x
        stretch = 2 * c.max_position_embeddings / c.orig_max_position_embeddings - 1
        return rotate(x, c.rope_theta * (stretch ** (d / (d - 2)) if c.rope_type == "ntk" else 1)) if c.rope else x

    def attend(self, q: Tensor, k: Tensor, v: Tensor, *, is_whole: bool) -> Tensor:
        n, groups = len(q), self.c.num_attention_heads // self.c.num_key_value_heads
        scores = torch.einsum("qhd,khd->hqk", q, k.repeat_interleave(groups, 1)) * q.shape[-1] ** -0.5
        i, j = torch.arange(n)[:, None], torch.arange(n)
        shown = (
            torch.ones(n, n).bool() if is_whole else (i - j <= self.c.sliding_window) | (j < self.c.num_memory_tokens)
        )
        weights = scores.masked_fill(~(shown & (j <= i)), float("-inf")).softmax(-1)
        return torch.einsum("hqk,khd->qhd", weights, v.repeat_interleave(groups, 1)).flatten(1)

    def scan(self, x: Tensor, z: Tensor) -> Tensor:
        c = self.c
        x = nn.functional.silu(self.conv1d(x[None])[0])
        step, b, out = self.x_proj[0](x).split((c.mamba_dt_rank, c.mamba_d_state, c.mamba_d_state), -1)
        if c.mamba_inner_layernorms:
            step, b, out = self.dt_layernorm(step), self.B_layernorm(b), self.C_layernorm(out)
        step, a = nn.functional.softplus(self.dt_proj[0](step)), -self.A_log[0].exp()
        state, rows = torch.zeros_like(a), []
        for t in range(len(x)):
            state = (step[t, :, None] * a).exp() * state + step[t, :, None] * b[t] * x[t, :, None]
            rows.append(state @ out[t] + self.D[0] * x[t])
        return torch.stack(rows) * nn.functional.silu(z)

    def forward(self, x: Tensor, kv: Any, *, is_whole: bool) -> tuple[Tensor, Any]:
        c = self.c
        widths = [c.hidden_size, *([] if self.reuses else self.d_kv), self.d_inner, self.d_inner]
        q, *own, u, z = self.in_proj(x).split(widths, -1)
        if own:
            k, v = (self.split(y, c.num_key_value_heads) for y in own)
            kv = self.prepare(k, "k_norm"), v
        a = self.attend(self.prepare(self.split(q, c.num_attention_heads), "q_norm"), *kv, is_whole=is_whole)
        return self.out_proj((self.pre_avg_layernorm1(a) + self.pre_avg_layernorm2(self.scan(u, z))) / 2), kv


class HymbaLayer(nn.Module):
    def __init__(self, c: Any, index: int) -> None:
        super().__init__()
        d, self.is_whole = c.hidden_size, c.sliding_window is None or index in c.global_attn_idx
        self.mamba = HymbaBlock(c, reuses=any(index in group[1:] for group in c.kv_reuse_group or ()))
        self.input_layernorm, self.pre_moe_layernorm = RMSNorm(d, c.rms_norm_eps), RMSNorm(d, c.rms_norm_eps)
        mlp: nn.Module = Gated(d, c.intermediate_size, ("gate_proj", "up_proj", "down_proj"), nn.functional.silu)
        if c.mlp_hidden_act == "relu2":
            mlp = name_modules(down_proj=linear(c.intermediate_size, d), up_proj=linear(d, c.intermediate_size))
        self.moe = name_modules(experts=nn.ModuleList([mlp]))

    def forward(self, x: Tensor, kv: Any) -> tuple[Tensor, Any]:
        y, kv = self.mamba(self.input_layernorm(x), kv, is_whole=self.is_whole)
        x, mlp = x + y, self.moe.experts[0]
        h = self.pre_moe_layernorm(x)
        return x + (mlp(h) if isinstance(mlp, Gated) else mlp.down_proj(mlp.up_proj(h).relu() ** 2)), kv


class Hymba(nn.Module):
    base_model_prefix = "model"

    def __init__(self, c: Any) -> None:
        super().__init__()
        self.model, self.n = nn.Module(), c.num_memory_tokens
        self.model.embed_tokens = nn.Embedding(c.vocab_size, c.hidden_size)
        self.model.layers = nn.ModuleList(HymbaLayer(c, i) for i in range(c.num_hidden_layers))
        self.model.final_layernorm = RMSNorm(c.hidden_size, c.rms_norm_eps)
        if self.n:
            self.model.memory_tokens = nn.Parameter(torch.zeros(self.n, c.hidden_size))
        self.lm_head = linear(c.hidden_size, c.vocab_size)
        if c.tie_word_embeddings:
            self.lm_head.weight = self.model.embed_tokens.weight

    def forward(self, input_ids: Tensor) -> dict[str, Tensor]:
        x, kv = self.model.embed_tokens(input_ids[0]), None
        x = torch.cat((self.model.memory_tokens, x)) if self.n else x
        for layer in self.model.layers:
            x, kv = layer(x, kv)
        return {"logits": self.lm_head(self.model.final_layernorm(x[self.n :]))[None]}


BUILDERS: dict[str, Any] = {
    "mesa_net": lambda c: recurrent.FlaModel(c, Mesa),
    "moba": lambda c: recurrent.FlaModel(c, BlockAttention),
    "nsa": lambda c: recurrent.FlaModel(c, BlockAttention),
    "hymba": Hymba,
    "glublm": Glub,
    "sba": lambda c: recurrent.FlaModel(c, StickBreaking),
}
GLUB = {
    "model_type": "glublm", "architectures": ["GlubLM"], "vocab_size": 96, "d_model": 32, "n_layers": 3, "n_heads": 4,
    "ffn_hidden": 44, "max_seq_len": 64, "rope_theta": 300.0, "tie_embeddings": True, "rms_norm_eps": 0.01,
}  # fmt: skip
SBA = {
    **recurrent.SIZES, "model_type": "sba", "num_heads": 4, "num_kv_heads": None, "qkv_bias": False,
    "window_size": 7, "rope_theta": 300.0,
}  # fmt: skip
MESA = {
    **recurrent.SIZES, "model_type": "mesa_net", "num_heads": 3, "head_dim": 10, "conv_size": 3,
    "use_output_gate": False, "lambda_lower_bound": 0.25,
}  # fmt: skip
MOBA = {**SBA, "model_type": "moba", "num_kv_heads": 2, "qk_norm": False, "use_output_gate": False}
NSA = {**SBA, "model_type": "nsa", "num_heads": 32, "num_kv_heads": 2, "head_dim": 6}
HYMBA = {
    "model_type": "hymba", "vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 5, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 44, "rms_norm_eps": 0.01, "hidden_act": "silu",
    "mlp_hidden_act": "silu", "kq_norm": "none", "rope": True, "rope_theta": 300.0, "rope_type": "ntk",
    "max_position_embeddings": 128, "orig_max_position_embeddings": 64, "sliding_window": 7, "global_attn_idx": [0, 4],
    "kv_reuse_group": [[1, 2, 3]], "num_memory_tokens": 5, "mamba_d_state": 6, "mamba_d_conv": 3, "mamba_expand": 2,
    "mamba_dt_rank": 5, "mamba_conv_bias": True, "mamba_proj_bias": False, "mamba_inner_layernorms": True,
    "tie_word_embeddings": True,
}  # fmt: skip
MODELS: dict[str, dict[str, Any]] = {
    "hymba": HYMBA,
    "hymba, plain": {
        **HYMBA,
        "kq_norm": "rms",
        "kv_reuse_group": None,
        "num_memory_tokens": 0,
        "rope": False,
        "sliding_window": None,
        "mamba_proj_bias": True,
        "mamba_conv_bias": False,
        "mamba_inner_layernorms": False,
        "mlp_hidden_act": "relu2",
        "tie_word_embeddings": False,
    },
    "hymba, only a window": {**HYMBA, "num_memory_tokens": 0, "rope_type": None},
    "glublm": GLUB,
    "glublm, not tied": {**GLUB, "tie_embeddings": False},
    "sba": SBA,
    "mesa_net": MESA,
    "mesa_net, gated": {**MESA, "use_output_gate": True, "attn": recurrent.HYBRID, "lambda_lower_bound": 0.5},
    "sba, biased": {**SBA, "qkv_bias": True, "intermediate_size": None, "tie_word_embeddings": True},
}

COUNTED: dict[str, dict[str, Any]] = {
    "moba": MOBA,
    "moba, gated": {**MOBA, "qk_norm": True, "use_output_gate": True, "qkv_bias": True, "num_kv_heads": None},
    "nsa": NSA,
    "nsa, biased": {**NSA, "qkv_bias": True},
}


def build(name: str) -> nn.Module:
    c = SimpleNamespace(**{**MODELS, **COUNTED}[name])
    model: nn.Module = BUILDERS[c.model_type](c).eval()
    return model
