"""RWKV-5 to RWKV-7: what their authors' code and flash-linear-attention compute, in plain PyTorch without a cache.

Names and order are those of fla/layers/rwkv6.py, fla/layers/rwkv7.py and fla/models/rwkv{6,7} of
fla-org/flash-linear-attention at commit bc3b101dcb71, and of modeling_rwkv5.py and modeling_rwkv6.py in
BBuf/RWKV-World-HF-Tokenizer at commit 699270b345f2, which are those of RWKV/rwkv-5-world-1b5 and RWKV/rwkv-6-world-1b6.
"""

# mypy: disable-error-code="misc, no-any-return"

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.oracle.recurrent import Attention, heads, linear


def shift(x: Tensor) -> Tensor:
    """The token before, 0 before the first: [1, t, d]."""
    return F.pad(x, (0, 0, 1, -1))


def vector(*axes: int) -> nn.Parameter:
    return nn.Parameter(torch.zeros(*axes))


def bonus_recurrence(r: Tensor, k: Tensor, v: Tensor, w: Tensor, u: Tensor) -> Tensor:
    """naive_recurrent_rwkv6 with a scale of 1; all [t, n, d], `w` the logarithm of the decay."""
    state, out = torch.zeros(k.shape[1], k.shape[2], v.shape[2]), []
    for t in range(len(r)):
        kv = k[t][..., None] * v[t][..., None, :]
        out.append(((state + u[..., None] * kv) * r[t][..., None]).sum(-2))
        state = state * w[t].exp()[..., None] + kv
    return torch.stack(out)


class LoRA(nn.Module):
    def __init__(self, d: int, rank: int, out: int, activation: nn.Module, *, bias: bool = True) -> None:
        super().__init__()
        self.lora = nn.Sequential(linear(d, rank), activation, linear(rank, out, bias=bias))

    def forward(self, x: Tensor) -> Tensor:
        return self.lora(x)


class Lerp(nn.Module):
    """LerpLinear, and DDLerpLinear if it is not `learned`."""

    def __init__(self, d: int, out: int, rank: int | None = None, *, learned: bool = False) -> None:
        super().__init__()
        self.linear = linear(d, out) if rank is None else LoRA(d, rank, out, nn.Tanh())
        if learned:
            self.mu = vector(d)

    def forward(self, x: Tensor, delta: Tensor, mu: Tensor | None = None) -> Tensor:
        return self.linear(x + delta * (self.mu if mu is None else mu))


class RWKV6Mixer(nn.Module):
    def __init__(self, c: Any) -> None:
        super().__init__()
        d, self.n, self.rank = c.hidden_size, c.num_heads, c.proj_low_rank_dim
        dk, dv = int(d * c.expand_k), int(d * c.expand_v)
        self.x_proj = nn.Sequential(Lerp(d, 5 * self.rank, learned=True), nn.Tanh(), linear(5 * self.rank, d))
        self.x_bias = vector(5, d)
        self.r_proj, self.w_proj, self.k_proj = Lerp(d, dk), Lerp(d, dk, c.gate_low_rank_dim), Lerp(d, dk)
        self.v_proj, self.g_proj = Lerp(d, dv), Lerp(d, dv)
        self.bonus = vector(self.n, dk // self.n)
        self.g_norm, self.o_proj = nn.GroupNorm(self.n, dv, eps=c.norm_eps), linear(dv, d)

    def forward(self, x: Tensor) -> Tensor:
        delta = shift(x) - x
        low = torch.tanh(self.x_proj[0](x, delta)).view(1, x.shape[1], 5, self.rank)
        mixtures = torch.einsum("btnr,hnr->btnh", low, self.x_proj[2].weight.view(x.shape[-1], 5, -1)) + self.x_bias
        r, w, k, v, g = (f(x, delta, mixtures[:, :, i]) for i, f in enumerate(
            (self.r_proj, self.w_proj, self.k_proj, self.v_proj, self.g_proj)
        ))  # fmt: skip
        r, k, v, w = (heads(z, self.n) for z in (r, k, v, -w.exp()))
        y = bonus_recurrence(r, k, v, w, self.bonus)
        return self.o_proj(self.g_norm(y.flatten(1))[None] * F.silu(g))


class RWKV6FeedForward(nn.Module):
    def __init__(self, c: Any) -> None:
        super().__init__()
        d_ff = 32 * ((int(c.hidden_size * c.hidden_ratio) + 31) // 32)
        self.key, self.value = Lerp(c.hidden_size, d_ff, learned=True), linear(d_ff, c.hidden_size)
        self.receptance = Lerp(c.hidden_size, c.hidden_size, learned=True)

    def forward(self, x: Tensor) -> Tensor:
        delta = shift(x) - x
        return self.receptance(x, delta).sigmoid() * self.value(F.relu(self.key(x, delta)) ** 2)


class RWKV7Mixer(nn.Module):
    def __init__(self, c: Any, index: int) -> None:
        super().__init__()
        d, self.d, self.n, self.fused = c.hidden_size, c.head_dim, c.hidden_size // c.head_dim, c.fuse_norm
        dv = d if c.value_dim is None else c.value_dim[index]
        for name in "rwkvag":
            self.register_parameter(f"x_{name}", vector(1, 1, d))
        self.k_k, self.k_a, self.r_k = vector(d), vector(d), vector(self.n, self.d)
        self.r_proj, self.k_proj, self.v_proj, self.o_proj = linear(d, d), linear(d, d), linear(d, dv), linear(dv, d)
        self.w_lora = LoRA(d, c.decay_low_rank_dim, d, nn.Tanh())
        if index:
            self.v_lora = LoRA(d, c.v_low_rank_dim, dv, nn.Identity())
        self.a_lora = LoRA(d, c.a_low_rank_dim, d, nn.Identity())
        self.g_lora = LoRA(d, c.gate_low_rank_dim, dv, nn.Sigmoid(), bias=False)
        self.g_norm = nn.GroupNorm(self.n, dv, eps=self.d * c.norm_eps)

    def forward(self, x: Tensor, v_first: Tensor | None) -> tuple[Tensor, Tensor]:
        delta = shift(x) - x
        xr, xw, xk, xv, xa, xg = (x + delta * getattr(self, f"x_{name}") for name in "rwkvag")
        r, w, k, v = self.r_proj(xr), -0.6065306597126334 * self.w_lora(xw).sigmoid(), self.k_proj(xk), self.v_proj(xv)
        if v_first is None:
            v_first = v
        else:
            v = torch.lerp(v, v_first, self.v_lora(xv).sigmoid())
        a, g = self.a_lora(xa).sigmoid(), self.g_lora(xg)
        kk = heads(k * self.k_k, self.n)
        kk = kk * torch.rsqrt(kk.square().sum(-1, keepdim=True) + 1e-6) if self.fused else F.normalize(kk, dim=-1)
        k = k + k * (a - 1) * self.k_a
        r, w, k, v, a = (heads(z, self.n) for z in (r, w, k, v, a))
        state, out = torch.zeros(self.n, self.d, v.shape[-1]), []
        for t in range(len(r)):
            removed = (state * -kk[t][..., None]).sum(-2, keepdim=True) * (kk[t] * a[t])[..., None]
            state = state * w[t].exp()[..., None] + removed + k[t][..., None] * v[t][..., None, :]
            out.append(torch.einsum("hd,hdm->hm", r[t], state))
        y = self.g_norm(torch.stack(out).flatten(1))
        y = (y + ((r * k * self.r_k).sum(-1, keepdim=True) * v).flatten(1)) * g[0]
        return self.o_proj(y[None]), v_first


class RWKV7FeedForward(nn.Module):
    def __init__(self, c: Any) -> None:
        super().__init__()
        self.x_k, self.key = vector(c.hidden_size), linear(c.hidden_size, c.intermediate_size)
        self.value = linear(c.intermediate_size, c.hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        return self.value(F.relu(self.key(x + (shift(x) - x) * self.x_k)) ** 2)


class FlaBlock(nn.Module):
    def __init__(self, c: Any, index: int, version: int) -> None:
        super().__init__()
        names = ("pre_norm", "attn_norm", "ffn_norm") if c.norm_first and index == 0 else ("attn_norm", "ffn_norm")
        for name in names:
            self.add_module(name, nn.LayerNorm(c.hidden_size, eps=c.norm_eps, bias=c.norm_bias))
        spec, self.version = getattr(c, "attn", None), version
        if spec is not None and index in spec["layers"]:
            self.attn: nn.Module = Attention(c, spec)
        else:
            self.attn = RWKV7Mixer(c, index) if version == 7 else RWKV6Mixer(c)
        self.ffn: nn.Module = RWKV7FeedForward(c) if version == 7 else RWKV6FeedForward(c)

    def forward(self, x: Tensor, v_first: Tensor | None) -> tuple[Tensor, Tensor | None]:
        x = self.pre_norm(x) if hasattr(self, "pre_norm") else x
        if self.version == 7:
            a, v_first = self.attn(self.attn_norm(x), v_first)
        else:
            a = self.attn(self.attn_norm(x))
        x = x + a
        return x + self.ffn(self.ffn_norm(x)), v_first


class FlaRwkv(nn.Module):
    base_model_prefix = "model"

    def __init__(self, c: Any, version: int) -> None:
        super().__init__()
        self.model = nn.Module()
        self.model.embeddings = nn.Embedding(c.vocab_size, c.hidden_size)
        self.model.layers = nn.ModuleList(FlaBlock(c, i, version) for i in range(c.num_hidden_layers))
        self.model.norm = nn.LayerNorm(c.hidden_size, eps=c.norm_eps, bias=c.norm_bias)
        self.lm_head = linear(c.hidden_size, c.vocab_size)

    def forward(self, input_ids: Tensor) -> dict[str, Tensor]:
        x, v_first = self.model.embeddings(input_ids), None
        for layer in self.model.layers:
            x, v_first = layer(x, v_first)
        return {"logits": self.lm_head(self.model.norm(x))}


# ---- the World models


class WorldAttention(nn.Module):
    def __init__(self, c: Any, version: int) -> None:
        super().__init__()
        d, self.version, self.n = c.hidden_size, version, c.hidden_size // c.head_size
        if version == 5:
            for name in ("gate", "key", "value", "receptance"):
                self.register_parameter(f"time_mix_{name}", vector(1, 1, d))
            self.time_decay = vector(self.n, c.head_size)
        else:
            for name in "xwkvrg":
                self.register_parameter(f"time_maa_{name}", vector(1, 1, d))
            self.time_maa_w1, self.time_maa_w2 = vector(d, 32 * 5), vector(5, 32, d)
            self.time_decay, self.time_decay_w1, self.time_decay_w2 = vector(1, 1, d), vector(d, 64), vector(64, d)
        self.time_faaaa = vector(self.n, c.head_size)
        for name in ("key", "value", "receptance", "gate", "output"):
            self.add_module(name, linear(d, d))
        self.ln_x = nn.GroupNorm(self.n, d, eps=1e-5 if version == 5 else 1e-5 * c.head_size_divisor**2)
        self.divisor = c.head_size_divisor if version == 5 else 1

    def forward(self, x: Tensor) -> Tensor:
        last = shift(x)
        if self.version == 5:
            k, v, r, g = (
                x * m + last * (1 - m)
                for m in (self.time_mix_key, self.time_mix_value, self.time_mix_receptance, self.time_mix_gate)
            )
            w = -self.time_decay.exp().expand(x.shape[1], -1, -1)
        else:
            delta = last - x
            low = torch.tanh((x + delta * self.time_maa_x) @ self.time_maa_w1).view(x.shape[1], 5, -1).transpose(0, 1)
            mw, mk, mv, mr, mg = torch.bmm(low, self.time_maa_w2)[:, None].unbind(0)
            w, k, v = (
                x + delta * (self.time_maa_w + mw),
                x + delta * (self.time_maa_k + mk),
                x + delta * (self.time_maa_v + mv),
            )
            r, g = x + delta * (self.time_maa_r + mr), x + delta * (self.time_maa_g + mg)
            w = heads(self.time_decay + torch.tanh(w @ self.time_decay_w1) @ self.time_decay_w2, self.n)
            w = -w.exp()
        r, k, v, g = self.receptance(r), self.key(k), self.value(v), F.silu(self.gate(g))
        r, k, v = (heads(z, self.n) for z in (r, k, v))
        y = bonus_recurrence(r, k, v, w, self.time_faaaa)
        return self.output(self.ln_x(y.flatten(1) / self.divisor)[None] * g)


class WorldFeedForward(nn.Module):
    def __init__(self, c: Any, version: int) -> None:
        super().__init__()
        d, d_ff, self.version = c.hidden_size, int(c.hidden_size * 3.5 // 32 * 32), version
        for name in ("time_mix_key", "time_mix_receptance") if version == 5 else ("time_maa_k", "time_maa_r"):
            self.register_parameter(name, vector(1, 1, d))
        self.key, self.receptance, self.value = linear(d, d_ff), linear(d, d), linear(d_ff, d)

    def forward(self, x: Tensor) -> Tensor:
        last = shift(x)
        if self.version == 5:
            k, r = (x * m + last * (1 - m) for m in (self.time_mix_key, self.time_mix_receptance))
        else:
            k, r = (x + (last - x) * m for m in (self.time_maa_k, self.time_maa_r))
        return self.receptance(r).sigmoid() * self.value(F.relu(self.key(k)) ** 2)


class WorldBlock(nn.Module):
    def __init__(self, c: Any, index: int, version: int) -> None:
        super().__init__()
        for name in ("pre_ln", "ln1", "ln2")[index > 0 :]:
            self.add_module(name, nn.LayerNorm(c.hidden_size, eps=c.layer_norm_epsilon))
        self.attention, self.feed_forward = WorldAttention(c, version), WorldFeedForward(c, version)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pre_ln(x) if hasattr(self, "pre_ln") else x
        x = x + self.attention(self.ln1(x))
        return x + self.feed_forward(self.ln2(x))


class WorldModel(nn.Module):
    base_model_prefix = "rwkv"

    def __init__(self, c: Any, version: int) -> None:
        super().__init__()
        self.rwkv = nn.Module()
        self.rwkv.embeddings = nn.Embedding(c.vocab_size, c.hidden_size)
        self.rwkv.blocks = nn.ModuleList(WorldBlock(c, i, version) for i in range(c.num_hidden_layers))
        self.rwkv.ln_out = nn.LayerNorm(c.hidden_size)
        self.head = linear(c.hidden_size, c.vocab_size)

    def forward(self, input_ids: Tensor) -> dict[str, Tensor]:
        x = self.rwkv.embeddings(input_ids)
        for block in self.rwkv.blocks:
            x = block(x)
        return {"logits": self.head(self.rwkv.ln_out(x))}


SIZES = {"vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 3, "tie_word_embeddings": False}
FLA = {
    **SIZES, "norm_first": True, "norm_bias": True, "norm_eps": 0.01, "hidden_act": "sqrelu", "attn": None,
    "fuse_norm": True,
}  # fmt: skip
RWKV6 = {
    **FLA, "model_type": "rwkv6", "architectures": ["RWKV6ForCausalLM"], "num_heads": 4, "expand_k": 0.5,
    "expand_v": 1.0, "hidden_ratio": 3.5, "proj_low_rank_dim": 6, "gate_low_rank_dim": 9,
}  # fmt: skip
RWKV6_HYBRID = {
    **RWKV6, "norm_bias": False, "attn": {"layers": [0, 2], "num_heads": 4, "num_kv_heads": 2, "window_size": 7},
}  # fmt: skip
RWKV7 = {
    **FLA, "model_type": "rwkv7", "head_dim": 8, "intermediate_size": 44, "decay_low_rank_dim": 5,
    "gate_low_rank_dim": 6, "a_low_rank_dim": 7, "v_low_rank_dim": 9, "value_dim": None,
}  # fmt: skip
RWKV7_WIDE = {**RWKV7, "value_dim": [64, 64, 64], "norm_first": False, "fuse_norm": False}
WORLD = {**SIZES, "head_size": 8, "layer_norm_epsilon": 0.01, "head_size_divisor": 3, "attention_hidden_size": 32}
RWKV5 = {**WORLD, "model_type": "rwkv5", "architectures": ["Rwkv5ForCausalLM"]}
RWKV6_WORLD = {**WORLD, "model_type": "rwkv6", "architectures": ["Rwkv6ForCausalLM"]}
