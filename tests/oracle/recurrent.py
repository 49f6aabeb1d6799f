"""Recurrent models that only their authors publish: what their code computes, in plain PyTorch without a cache.

The authors' code is not run. Names and order are those of fla/models and fla/layers of fla-org/flash-linear-attention
at commit bc3b101dcb71, recurrences those of its fla/ops/*/naive.py.
"""

# mypy: disable-error-code="misc, no-any-return"

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Norm(nn.Module):
    """RMS norm over the last axis."""

    def __init__(self, d: int, eps: float, *, affine: bool = True) -> None:
        super().__init__()
        self.eps = eps
        self.register_parameter("weight", nn.Parameter(torch.ones(d)) if affine else None)

    def forward(self, x: Tensor) -> Tensor:
        y = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps)
        return y if self.weight is None else y * self.weight


def linear(d_in: int, d_out: int, *, bias: bool = False) -> nn.Linear:
    return nn.Linear(d_in, d_out, bias=bias)


def heads(x: Tensor, n: int) -> Tensor:
    """[1, t, n · d] to [t, n, d]."""
    return x.view(x.shape[1], n, -1)


def repeat(x: Tensor, n: int) -> Tensor:
    """[t, groups, d] to [t, n, d], each group several times in a row."""
    return x.repeat_interleave(n // x.shape[1], 1)


def rotate(x: Tensor, base: float = 10_000.0) -> Tensor:
    """Rotary positions in halves, [t, n, d]."""
    d = x.shape[-1]
    angles = torch.outer(torch.arange(len(x)).float(), base ** (-torch.arange(0, d, 2).float() / d))[:, None]
    first, second = x.chunk(2, -1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


class Convolution(nn.Conv1d):
    """ShortConvolution: causal, depthwise."""

    def __init__(self, d: int, width: int) -> None:
        super().__init__(d, d, width, groups=d, bias=False, padding=width - 1)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2)


# ---- the recurrences of fla/ops/*/naive.py; all inputs [t, heads, d]


def gated_linear_attention(q: Tensor, k: Tensor, v: Tensor, g: Tensor, scale: float | None = None) -> Tensor:
    state, out = torch.zeros(q.shape[1], q.shape[2], v.shape[2]), []
    for t in range(len(q)):
        state = state * g[t].exp()[..., None] + k[t][..., None] * v[t][..., None, :]
        out.append(((q[t] * (scale or q.shape[-1] ** -0.5))[..., None] * state).sum(-2))
    return torch.stack(out)


def delta_rule(q: Tensor, k: Tensor, v: Tensor, beta: Tensor, g: Tensor | None = None) -> Tensor:
    state, out = torch.zeros(q.shape[1], q.shape[2], v.shape[2]), []
    for t in range(len(q)):
        if g is not None:
            state = state * g[t].exp().reshape(len(state), -1, 1)
        change = (v[t] - (state * k[t][..., None]).sum(-2)) * beta[t][..., None]
        state = state + k[t][..., None] * change[..., None, :]
        out.append(torch.einsum("hd,hdm->hm", q[t] * q.shape[-1] ** -0.5, state))
    return torch.stack(out)


def retention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    n, h, d = q.shape
    s = (1 - torch.tensor(2.0) ** (-5.0 - torch.arange(h).float())).log2()
    i = torch.arange(n).float()
    decay = torch.exp2((i[:, None] - i) * s[:, None, None]) * (i[:, None] >= i)
    return torch.einsum("hqk,khd->qhd", torch.einsum("qhd,khd->hqk", q * d**-0.5, k) * decay, v)


def slot_attention(q: Tensor, k: Tensor, v: Tensor, g: Tensor) -> Tensor:
    s = 1 - g.exp()
    keys, values = torch.zeros(q.shape[1], q.shape[2], g.shape[2]), torch.zeros(q.shape[1], g.shape[2], v.shape[2])
    out = []
    for t in range(len(q)):
        keys = keys * g[t].exp()[:, None, :] + k[t][..., None] * s[t][:, None, :]
        values = values * g[t].exp()[..., None] + s[t][..., None] * v[t][:, None, :]
        weights = (q[t][..., None] * keys).sum(-2).softmax(-1)
        out.append((weights[..., None] * values).sum(-2))
    return torch.stack(out)


# ---- the mixers of fla/layers, x [1, t, d]; they return [1, t, d]


class Streams(nn.Module):
    """q, k and v with their convolutions, if there are any."""

    def make_streams(self, c: Any, sizes: dict[str, int]) -> None:
        for name, width in sizes.items():
            self.add_module(f"{name}_proj", linear(c.hidden_size, width))
            if getattr(c, "use_short_conv", False):
                self.add_module(f"{name}_conv1d", Convolution(width, c.conv_size))

    def stream(self, x: Tensor, name: str, *, activated: bool = True) -> Tensor:
        y = getattr(self, f"{name}_proj")(x)
        if not hasattr(self, f"{name}_conv1d"):
            return y
        y = getattr(self, f"{name}_conv1d")(y)
        return F.silu(y) if activated else y


class GLAMixer(Streams):
    def __init__(self, c: Any, index: int) -> None:
        super().__init__()
        self.c, self.n, self.groups = c, c.num_heads, c.num_kv_heads or c.num_heads
        dk, dv = int(c.hidden_size * c.expand_k) // self.n, int(c.hidden_size * c.expand_v) // self.n
        self.make_streams(c, {"q": self.n * dk, "k": self.groups * dk, "v": self.groups * dv})
        self.make_decay(c, self.groups * dk)
        if c.use_output_gate:
            self.g_proj = linear(c.hidden_size, self.n * dv)
        self.norm_name = "g_norm_swish_gate" if c.use_output_gate and c.fuse_norm else "g_norm"
        self.add_module(self.norm_name, Norm(dv, c.norm_eps, affine=c.elementwise_affine))
        self.o_proj = linear(self.n * dv, c.hidden_size)

    def make_decay(self, c: Any, d: int) -> None:
        self.gk_proj = nn.Sequential(linear(c.hidden_size, 16), linear(16, d, bias=True))

    def mix(self, x: Tensor, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        g = F.logsigmoid(heads(self.gk_proj(x), self.groups)) / 16
        if self.c.clamp_min is not None:
            g = g.clamp_min(self.c.clamp_min)
        return gated_linear_attention(q, repeat(k, self.n), repeat(v, self.n), repeat(g, self.n))

    def forward(self, x: Tensor) -> Tensor:
        q = heads(self.stream(x, "q"), self.n)
        k, v = heads(self.stream(x, "k"), self.groups), heads(self.stream(x, "v"), self.groups)
        if self.c.feature_map is not None:
            q, k = ({"relu": F.relu, "sqrelu": lambda y: F.relu(y) ** 2}[self.c.feature_map](y) for y in (q, k))
        y = getattr(self, self.norm_name)(self.mix(x, q, k, v)).flatten(1)[None]
        return self.o_proj(y * F.silu(self.g_proj(x)) if self.c.use_output_gate else y)


class RetNetMixer(GLAMixer):
    def make_decay(self, c: Any, d: int) -> None:
        pass

    def mix(self, x: Tensor, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return retention(rotate(q), repeat(rotate(k), self.n), repeat(v, self.n))


class DeltaNetMixer(Streams):
    def __init__(self, c: Any, index: int) -> None:
        super().__init__()
        self.c, self.n = c, c.num_heads
        dk, dv = int(c.hidden_size * c.expand_k), int(c.hidden_size * c.expand_v)
        self.make_streams(c, {"q": dk, "k": dk, "v": dv})
        if c.use_beta:
            self.b_proj = linear(c.hidden_size, self.n)
        if c.use_gate:
            self.g_proj = linear(c.hidden_size, dv)
        self.o_norm, self.o_proj = Norm(dv // self.n, c.norm_eps), linear(dv, c.hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        c = self.c
        q, k = (heads(self.stream(x, name, activated=False), self.n) for name in ("q", "k"))
        v = heads(F.silu(self.stream(x, "v", activated=False)), self.n)
        act = {"silu": F.silu, "relu": F.relu, "elu": lambda y: F.elu(y) + 1, "identity": lambda y: y}[c.qk_activation]
        q, k = act(q), act(k)
        if c.qk_norm == "sum":
            q, k = q / q.sum(-1, keepdim=True), k / k.sum(-1, keepdim=True)
        else:
            q, k = (y * torch.rsqrt(y.square().sum(-1, keepdim=True) + 1e-6) for y in (q, k))
        beta = heads(self.b_proj(x), self.n)[..., 0].sigmoid() if c.use_beta else torch.ones(q.shape[:2])
        y = self.o_norm(delta_rule(q, k, v, beta * 2 if c.allow_neg_eigval else beta)).flatten(1)[None]
        return self.o_proj(y * F.silu(self.g_proj(x)) if c.use_gate else y)


class GatedDeltaNetMixer(Streams):
    def __init__(self, c: Any, index: int) -> None:
        super().__init__()
        self.c, self.n, self.n_v = c, c.num_heads, c.num_v_heads or c.num_heads
        dk, dv = self.n * c.head_dim, self.n_v * int(c.head_dim * c.expand_v)
        self.make_streams(c, {"q": dk, "k": dk, "v": dv})
        self.a_proj, self.b_proj = linear(c.hidden_size, self.n_v), linear(c.hidden_size, self.n_v)
        self.A_log, self.dt_bias = nn.Parameter(torch.zeros(self.n_v)), nn.Parameter(torch.zeros(self.n_v))
        if c.use_gate:
            self.g_proj = linear(c.hidden_size, dv)
        self.o_norm, self.o_proj = Norm(dv // self.n_v, c.norm_eps), linear(dv, c.hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        c = self.c
        q, k, v = (F.silu(self.stream(x, name, activated=False)) for name in ("q", "k", "v"))
        q, k, v = repeat(heads(q, self.n), self.n_v), repeat(heads(k, self.n), self.n_v), heads(v, self.n_v)
        q, k = (y * torch.rsqrt(y.square().sum(-1, keepdim=True) + 1e-6) for y in (q, k))
        beta = self.b_proj(x)[0].sigmoid() * (2 if c.allow_neg_eigval else 1)
        g = -self.A_log.exp() * F.softplus(self.a_proj(x)[0] + self.dt_bias)
        y = self.o_norm(delta_rule(q, k, v, beta, g)).flatten(1)[None]
        return self.o_proj(y * F.silu(self.g_proj(x)) if c.use_gate else y)


class CombaMixer(Streams):
    """With the order of fused_recurrent_comba: p reads the state before it fades."""

    def __init__(self, c: Any, index: int) -> None:
        super().__init__()
        self.c, self.n, self.n_v = c, c.num_heads, c.num_v_heads or c.num_heads
        dk, dv = self.n * c.head_dim, self.n_v * int(c.head_dim * c.expand_v)
        self.make_streams(c, {"q": dk, "k": dk, "v": dv})
        self.a_proj, self.b_proj = linear(c.hidden_size, self.n_v), linear(c.hidden_size, self.n_v)
        self.decay, self.D = nn.Parameter(torch.ones(self.n)), nn.Parameter(torch.ones(self.n))
        self.A_log, self.dt_bias = nn.Parameter(torch.zeros(self.n_v)), nn.Parameter(torch.zeros(self.n_v))
        self.g_proj = linear(c.hidden_size, dv)
        self.o_norm, self.o_proj = Norm(dv // self.n_v, c.norm_eps), linear(dv, c.hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (F.silu(self.stream(x, name, activated=False)) for name in ("q", "k", "v"))
        q, k, v = heads(q, self.n), heads(k, self.n), heads(v, self.n_v)
        p = k * self.decay[None, :, None].sigmoid()
        q = q - self.D[None, :, None] * p
        q, k, p = (repeat(y, self.n_v) for y in (q, k, p))
        q, k, p = (y / (y.square().sum(-1, keepdim=True) + 1e-6).sqrt() for y in (q, k, p))
        beta, g = self.b_proj(x)[0].sigmoid(), -self.A_log.exp() * F.softplus(self.a_proj(x)[0] + self.dt_bias)
        state, out = torch.zeros(self.n_v, k.shape[-1], v.shape[-1]), []
        for t in range(len(q)):
            change = (v[t] - (state * p[t][..., None]).sum(-2)) * beta[t][..., None]
            state = state * g[t].exp()[:, None, None] + k[t][..., None] * change[..., None, :]
            out.append((state * (q[t] * q.shape[-1] ** -0.5)[..., None]).sum(-2))
        return self.o_proj(self.o_norm(torch.stack(out)).flatten(1)[None] * self.g_proj(x).sigmoid())


class KDAMixer(Streams):
    def __init__(self, c: Any, index: int) -> None:
        super().__init__()
        self.c, self.n, self.n_v = c, c.num_heads, c.num_v_heads or c.num_heads
        d, dk, dv = c.hidden_size, c.head_dim, int(c.head_dim * c.expand_v)
        self.make_streams(c, {"q": self.n * dk, "k": self.n * dk, "v": self.n_v * dv})
        self.f_proj = nn.Sequential(linear(d, dv), linear(dv, self.n_v * dk))
        self.b_proj = linear(d, self.n_v)
        self.A_log, self.dt_bias = nn.Parameter(torch.zeros(self.n_v)), nn.Parameter(torch.zeros(self.n_v * dk))
        self.g_proj = nn.Sequential(linear(d, dv), linear(dv, self.n_v * dv, bias=True))
        self.o_norm, self.o_proj = Norm(dv, c.norm_eps), linear(self.n_v * dv, d)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (F.silu(self.stream(x, name, activated=False)) for name in ("q", "k", "v"))
        q, k, v = repeat(heads(q, self.n), self.n_v), repeat(heads(k, self.n), self.n_v), heads(v, self.n_v)
        q, k = (y * torch.rsqrt(y.square().sum(-1, keepdim=True) + 1e-6) for y in (q, k))
        g, rate = heads(self.f_proj(x) + self.dt_bias, self.n_v), self.A_log.exp()[:, None]
        bound = self.c.lower_bound
        g = -rate * F.softplus(g) if bound is None else bound * torch.sigmoid(rate * g)
        beta = self.b_proj(x)[0].sigmoid() * (2 if self.c.allow_neg_eigval else 1)
        y = self.o_norm(delta_rule(q, k, v, beta, g)).flatten(1)[None]
        return self.o_proj(y * self.g_proj(x).sigmoid())


class DeltaProductMixer(Streams):
    def __init__(self, c: Any, index: int) -> None:
        super().__init__()
        self.c, self.n, self.steps = c, c.num_heads, c.num_householder
        dk, dv = self.n * c.head_dim, self.n * int(c.head_dim * c.expand_v)
        self.make_streams(c, {"q": dk, "k": dk * self.steps, "v": dv * self.steps})
        self.b_proj = linear(c.hidden_size, self.n * self.steps)
        if c.use_forget_gate:
            self.a_proj = linear(c.hidden_size, self.n)
            self.A_log, self.dt_bias = nn.Parameter(torch.zeros(self.n)), nn.Parameter(torch.zeros(self.n))
        if c.use_output_gate:
            self.g_proj = linear(c.hidden_size, dv)
        self.o_norm, self.o_proj = Norm(dv // self.n, c.norm_eps), linear(dv, c.hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        c, t = self.c, x.shape[1]
        q, k, v = (F.silu(self.stream(x, name, activated=False)) for name in ("q", "k", "v"))
        q, k, v = heads(q, self.n), k.view(t, self.steps, self.n, -1), v.view(t, self.steps, self.n, -1)
        q, k = (y * torch.rsqrt(y.square().sum(-1, keepdim=True) + 1e-6) for y in (q, k))
        beta = self.b_proj(x).sigmoid().view(t, self.steps, self.n) * (2 if c.allow_neg_eigval else 1)
        state, out = torch.zeros(self.n, k.shape[-1], v.shape[-1]), []
        for i in range(t):
            if c.use_forget_gate:
                g = -self.A_log.exp() * F.softplus(self.a_proj(x)[0, i] + self.dt_bias)
                state = state * g.exp()[:, None, None]
            for j in range(self.steps):
                change = v[i, j] - (state * k[i, j][..., None]).sum(-2)
                state = state + change[:, None, :] * k[i, j][..., None] * beta[i, j][:, None, None]
            out.append((state * (q[i] * q.shape[-1] ** -0.5)[..., None]).sum(-2))
        y = self.o_norm(torch.stack(out)).flatten(1)[None]
        return self.o_proj(y * F.silu(self.g_proj(x)) if c.use_output_gate else y)


class MambaMixer(nn.Module):
    """fla/layers/mamba.py: the slow path."""

    def __init__(self, c: Any, index: int) -> None:
        super().__init__()
        d, inner, self.rank, self.state = c.hidden_size, c.intermediate_size, c.time_step_rank, c.state_size
        self.in_proj, self.out_proj = linear(d, 2 * inner, bias=c.use_bias), linear(inner, d, bias=c.use_bias)
        self.conv1d = nn.Conv1d(inner, inner, c.conv_kernel, groups=inner, padding=c.conv_kernel - 1)
        self.x_proj, self.dt_proj = linear(inner, self.rank + 2 * self.state), linear(self.rank, inner, bias=True)
        self.A_log, self.D = nn.Parameter(torch.zeros(inner, self.state)), nn.Parameter(torch.ones(inner))

    def forward(self, x: Tensor) -> Tensor:
        u, gate = self.in_proj(x).chunk(2, -1)
        u = F.silu(self.conv1d(u.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2))[0]
        step, b, c = self.x_proj(u).split([self.rank, self.state, self.state], -1)
        step, a = F.softplus(self.dt_proj(step)), -self.A_log.exp()
        state, out = torch.zeros_like(a), []
        for t in range(len(u)):
            state = torch.exp(a * step[t][:, None]) * state + step[t][:, None] * b[t] * u[t][:, None]
            out.append(state @ c[t])
        return self.out_proj((torch.stack(out) + u * self.D)[None] * F.silu(gate))


class GSAMixer(Streams):
    def __init__(self, c: Any, index: int) -> None:
        super().__init__()
        self.c, self.n, self.groups = c, c.num_heads, c.num_kv_heads or c.num_heads
        dk, dv = int(c.hidden_size * c.expand_k) // self.n, int(c.hidden_size * c.expand_v) // self.n
        self.make_streams(c, {"q": self.n * dk, "k": self.groups * dk, "v": self.groups * dv})
        self.f_proj = linear(c.hidden_size, self.groups * (c.num_slots or dk))
        self.g_norm = Norm(c.hidden_size, 1e-5, affine=c.elementwise_affine)
        self.o_proj = linear(self.n * dv, c.hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        q = heads(self.stream(x, "q"), self.n)
        k, v = heads(self.stream(x, "k"), self.groups), F.silu(heads(self.stream(x, "v"), self.groups))
        act = F.relu if self.c.feature_map == "relu" else F.silu
        g = F.logsigmoid(heads(self.f_proj(x), self.groups)) / self.c.gate_logit_normalizer
        y = slot_attention(act(q), *(repeat(z, self.n) for z in (act(k), v, g)))
        return self.o_proj(self.g_norm(F.silu(y.flatten(1)[None])))


class HGRNMixer(Streams):
    def __init__(self, c: Any, index: int) -> None:
        super().__init__()
        self.index, d = index, int(c.hidden_size * c.expand_ratio)
        self.make_streams(c, {"i": d, "f": d})
        self.g_proj = linear(c.hidden_size, d)
        self.g_norm = Norm(d, c.norm_eps, affine=c.elementwise_affine)
        self.o_proj = linear(d, c.hidden_size)

    def decay(self, x: Tensor, bound: Tensor | None) -> Tensor:
        f = F.logsigmoid(self.stream(x, "f", activated=False))
        if bound is None or self.index == 0:
            return f
        return torch.logaddexp(bound.log(), torch.log1p(-bound) + f)

    def forward(self, x: Tensor, bound: Tensor | None = None) -> Tensor:
        f = self.decay(x, bound)
        i = F.silu(self.stream(x, "i", activated=False)) * (1 - f.exp())
        h, out = torch.zeros(i.shape[-1]), []
        for t in range(x.shape[1]):
            h = f[0, t].exp() * h + i[0, t]
            out.append(h)
        return self.o_proj(self.g_norm(torch.stack(out)[None]) * F.silu(self.g_proj(x)))


class HGRN2Mixer(HGRNMixer):
    def __init__(self, c: Any, index: int) -> None:
        nn.Module.__init__(self)
        self.index, d = index, c.hidden_size
        self.n = c.num_heads if c.expand_ratio is None else d // c.expand_ratio
        self.make_streams(c, {"q": d, "f": d, "i": d})
        self.g_norm, self.o_proj = Norm(d, 1e-5, affine=c.elementwise_affine), linear(d, d)

    def forward(self, x: Tensor, bound: Tensor | None = None) -> Tensor:
        g = self.decay(x, bound)
        q, i = F.silu(self.stream(x, "q", activated=False)), self.stream(x, "i", activated=False)
        y = gated_linear_attention(*(heads(z, self.n) for z in (q, 1 - g.exp(), i, g)))
        return self.o_proj(self.g_norm(y.flatten(1)[None]))


class FeatureMap(nn.Module):
    def __init__(self, kind: str, d: int) -> None:
        super().__init__()
        self.kind = kind
        names = {"elementwise_product": ("layer1", "layer2"), "hedgehog": ("layer",), "t2r": ("layer",)}
        for name in names.get(kind, ()):
            self.add_module(name, linear(d, d, bias=kind != "t2r"))

    def forward(self, x: Tensor) -> Tensor:
        if self.kind == "elementwise_product":
            return self.layer1(x) * self.layer2(x)
        if self.kind == "hedgehog":
            y = 2 * self.layer(x)
            return torch.cat((y, -y), -1).softmax(-1)
        if self.kind == "t2r":
            return self.layer(x).relu()
        return {"elu": lambda y: F.elu(y) + 1, "relu": F.relu, "identity": lambda y: y}[self.kind](x)


class LinearAttentionMixer(Streams):
    def __init__(self, c: Any, index: int) -> None:
        super().__init__()
        self.c, self.n, self.groups = c, c.num_heads, c.num_kv_heads or c.num_heads
        dk, dv = int(c.hidden_size * c.expand_k) // self.n, int(c.hidden_size * c.expand_v) // self.n
        self.feature_map_q, self.feature_map_k = FeatureMap(c.feature_map, dk), FeatureMap(c.feature_map, dk)
        self.make_streams(c, {"q": self.n * dk, "k": self.groups * dk, "v": self.groups * dv})
        self.norm = Norm(dv, c.norm_eps, affine=c.elementwise_affine)
        self.o_proj = linear(self.n * dv, c.hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        q = self.feature_map_q(heads(self.q_proj(x), self.n))
        k = self.feature_map_k(repeat(heads(self.k_proj(x), self.groups), self.n))
        v = repeat(heads(self.v_proj(x), self.groups), self.n)
        q = q / (q.sum(-1, keepdim=True) + 1e-4) if self.c.norm_q else q
        k = k / (k.sum(-1, keepdim=True) + 1e-4) if self.c.norm_k else k
        y = gated_linear_attention(q, k, v, torch.zeros_like(k))
        if self.c.norm_feature_map:
            y = y / ((q * q.shape[-1] ** -0.5 * k.cumsum(0)).sum(-1, keepdim=True) + 1e-10)
        return self.o_proj(self.norm(y).flatten(1)[None])


class Attention(nn.Module):
    """fla/layers/attn.py, of a model or of the layers that `attn` lists."""

    def __init__(self, c: Any, spec: dict[str, Any]) -> None:
        super().__init__()
        d, self.n, self.groups = c.hidden_size, spec["num_heads"], spec.get("num_kv_heads") or spec["num_heads"]
        bias, d_kv = spec.get("qkv_bias", False), self.groups * (d // self.n)
        self.window, self.base = spec.get("window_size"), spec.get("rope_theta", 10_000.0)
        self.q_proj, self.o_proj = linear(d, d, bias=bias), linear(d, d)
        self.k_proj, self.v_proj = linear(d, d_kv, bias=bias), linear(d, d_kv, bias=bias)
        if spec.get("qk_norm", False):
            self.q_norm, self.k_norm = Norm(d // self.n, 1e-5), Norm(d // self.n, 1e-5)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = heads(self.q_proj(x), self.n), heads(self.k_proj(x), self.groups), heads(self.v_proj(x), self.groups)
        if hasattr(self, "q_norm"):
            q, k = self.q_norm(q), self.k_norm(k)
        q, k, v = rotate(q, self.base), repeat(rotate(k, self.base), self.n), repeat(v, self.n)
        t = torch.arange(len(q))
        hidden = t[:, None] < t
        if self.window is not None:
            hidden = hidden | (t[:, None] - t >= self.window)
        scores = torch.einsum("qhd,khd->hqk", q, k) * q.shape[-1] ** -0.5
        weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
        return self.o_proj(torch.einsum("hqk,khd->qhd", weights, v).flatten(1)[None])


class ForgettingAttention(nn.Module):
    def __init__(self, c: Any, index: int) -> None:
        super().__init__()
        d, self.n, self.groups = c.hidden_size, c.num_heads, c.num_kv_heads or c.num_heads
        d_kv = self.groups * (d // self.n)
        self.q_proj, self.o_proj = linear(d, d, bias=c.qkv_bias), linear(d, d)
        self.k_proj, self.v_proj = linear(d, d_kv, bias=c.qkv_bias), linear(d, d_kv, bias=c.qkv_bias)
        self.f_proj = linear(d, self.n, bias=True)
        if c.use_output_gate:
            self.g_proj = linear(d, d)
        if c.qk_norm:
            self.q_norm, self.k_norm = Norm(d, 1e-5), Norm(d_kv, 1e-5)

    def normalise(self, x: Tensor, norm: Norm) -> Tensor:
        """A group norm of root mean squares."""
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + norm.eps) * norm.weight.view(x.shape[1:])

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = heads(self.q_proj(x), self.n), heads(self.k_proj(x), self.groups), heads(self.v_proj(x), self.groups)
        if hasattr(self, "q_norm"):
            q, k = self.normalise(q, self.q_norm), self.normalise(k, self.k_norm)
        so_far = F.logsigmoid(self.f_proj(x)[0]).cumsum(0).T
        scores = torch.einsum("qhd,khd->hqk", q * q.shape[-1] ** -0.5, repeat(k, self.n))
        scores = scores + so_far[:, :, None] - so_far[:, None, :]
        weights = scores.masked_fill(torch.ones(len(q), len(q)).triu(1).bool(), float("-inf")).softmax(-1)
        y = torch.einsum("hqk,khd->qhd", weights, repeat(v, self.n)).flatten(1)[None]
        return self.o_proj(self.g_proj(x).sigmoid() * y if hasattr(self, "g_proj") else y)


def logcumsumexp_gates(x: Tensor) -> tuple[Tensor, Tensor]:
    """What naive_recurrent_abc and LightNetAttention make of logits, [t, n, d]: shares and logarithms of decays."""
    z = x.logcumsumexp(0)
    return (x - z).exp(), torch.cat((z[:1], z[:-1])) - z


class ABCMixer(Streams):
    def __init__(self, c: Any, index: int) -> None:
        super().__init__()
        self.c, self.n = c, c.num_heads
        dk, dv = int(c.hidden_size * c.expand_k), int(c.hidden_size * c.expand_v)
        self.make_streams(c, {"q": dk, "k": dk, "v": dv})
        self.g_proj, self.s_proj = linear(c.hidden_size, dv), linear(c.hidden_size, self.n * c.num_slots)
        self.g_norm = Norm(dv // self.n, c.norm_eps, affine=c.elementwise_affine)
        self.o_proj = linear(dv, c.hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (heads(self.stream(x, name), self.n) for name in ("q", "k", "v"))
        q, k = (rotate(q), rotate(k)) if self.c.use_rope else (q, k)
        s, g = logcumsumexp_gates(heads(self.s_proj(x), self.n).clamp(self.c.clamp_min, self.c.clamp_max))
        keys, values = torch.zeros(self.n, k.shape[-1], s.shape[-1]), torch.zeros(self.n, s.shape[-1], v.shape[-1])
        out = []
        for t in range(len(q)):
            keys = keys * g[t].exp()[:, None] + k[t][..., None] * s[t][:, None]
            values = values * g[t].exp()[..., None] + s[t][..., None] * v[t][:, None]
            weights = ((q[t] * q.shape[-1] ** -0.5)[..., None] * keys).sum(-2).softmax(-1)
            out.append((weights[..., None] * values).sum(-2))
        return self.o_proj(self.g_norm(torch.stack(out)).flatten(1)[None] * F.silu(self.g_proj(x)))


class LightNetMixer(Streams):
    def __init__(self, c: Any, index: int) -> None:
        super().__init__()
        d = c.hidden_size
        self.n = d // c.expand_ratio
        self.make_streams(c, {"q": d, "k": d, "v": d})
        self.g_proj = nn.Sequential(linear(d, c.gate_low_rank_dim), linear(c.gate_low_rank_dim, d))
        self.g_norm, self.o_proj = Norm(d, 1e-6, affine=c.elementwise_affine), linear(d, d)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (heads(self.stream(x, name, activated=False), self.n) for name in ("q", "k", "v"))
        k, g = logcumsumexp_gates(k)
        y = gated_linear_attention(F.silu(q), k, v, g).flatten(1)[None]
        return self.o_proj(self.g_norm(y) * F.silu(self.g_proj(x)))


class GatedMLP(nn.Module):
    def __init__(self, c: Any) -> None:
        super().__init__()
        d_ff = c.intermediate_size
        if d_ff is None:
            d_ff = 256 * ((int(c.hidden_size * c.hidden_ratio * 2 / 3) + 255) // 256)
        self.gate_proj, self.up_proj = linear(c.hidden_size, d_ff), linear(c.hidden_size, d_ff)
        self.down_proj = linear(d_ff, c.hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    def __init__(self, c: Any, index: int, mixer: Any) -> None:
        super().__init__()
        spec: dict[str, Any] = getattr(c, "attn", None) or {"layers": ()}
        is_hybrid = index in spec["layers"]
        self.attn_norm, self.mlp_norm = Norm(c.hidden_size, c.norm_eps), Norm(c.hidden_size, c.norm_eps)
        self.attn = Attention(c, spec) if is_hybrid else mixer(c, index)
        self.mlp = GatedMLP(c)

    def forward(self, x: Tensor, *bounds: Tensor) -> Tensor:
        x = x + self.attn(self.attn_norm(x), *(() if isinstance(self.attn, Attention) else bounds))
        return x + self.mlp(self.mlp_norm(x))


class Samba(nn.Module):
    base_model_prefix = "backbone"

    def __init__(self, c: Any) -> None:
        super().__init__()
        self.backbone, self.spec = nn.Module(), c.attn
        self.backbone.embeddings = nn.Embedding(c.vocab_size, c.hidden_size)
        self.backbone.layers = nn.ModuleList(self.make_layer(c, i) for i in range(c.num_hidden_layers))
        self.backbone.norm_f, self.lm_head = Norm(c.hidden_size, c.norm_eps), linear(c.hidden_size, c.vocab_size)

    def make_layer(self, c: Any, index: int) -> nn.Module:
        layer = nn.Module()
        layer.mixer_norm, layer.mlp_norm = Norm(c.hidden_size, c.norm_eps), Norm(c.hidden_size, c.norm_eps)
        layer.mixer = Attention(c, c.attn) if index in c.attn["layers"] else MambaMixer(c, index)
        layer.mlp = GatedMLP(SimpleNamespace(**{**vars(c), "intermediate_size": None}))
        return layer

    def forward(self, input_ids: Tensor) -> dict[str, Tensor]:
        x = self.backbone.embeddings(input_ids)
        for layer in self.backbone.layers:
            x = x + layer.mixer(layer.mixer_norm(x))
            x = x + layer.mlp(layer.mlp_norm(x))
        return {"logits": self.lm_head(self.backbone.norm_f(x))}


class FlaModel(nn.Module):
    base_model_prefix = "model"

    def __init__(self, c: Any, mixer: Any) -> None:
        super().__init__()
        self.model = nn.Module()
        self.model.embeddings = nn.Embedding(c.vocab_size, c.hidden_size)
        self.model.layers = nn.ModuleList(Block(c, i, mixer) for i in range(c.num_hidden_layers))
        self.model.norm = Norm(c.hidden_size, c.norm_eps)
        if getattr(c, "use_lower_bound", False):
            self.model.lower_bounds = nn.Parameter(torch.zeros(c.num_hidden_layers, c.hidden_size))
        self.lm_head = linear(c.hidden_size, c.vocab_size)
        if c.tie_word_embeddings:
            self.lm_head.weight = self.model.embeddings.weight

    def forward(self, input_ids: Tensor) -> dict[str, Tensor]:
        x, bounds = self.model.embeddings(input_ids), None
        if hasattr(self.model, "lower_bounds"):
            shares = self.model.lower_bounds.softmax(0)
            bounds = shares.cumsum(0) - shares[0]
        for i, layer in enumerate(self.model.layers):
            x = layer(x) if bounds is None else layer(x, bounds[i])
        return {"logits": self.lm_head(self.model.norm(x))}


SIZES = {
    "vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 3, "intermediate_size": 44, "hidden_ratio": 4,
    "norm_eps": 0.01, "hidden_act": "swish", "tie_word_embeddings": False, "attn": None,
    "elementwise_affine": True,
}  # fmt: skip
HYBRID = {"layers": [1], "num_heads": 4, "num_kv_heads": 2, "qkv_bias": True, "window_size": 7, "rope_theta": 300.0}
CONV = {"use_short_conv": True, "conv_size": 3}
GLA = {
    **SIZES, "model_type": "gla", "num_heads": 4, "num_kv_heads": None, "expand_k": 0.5, "expand_v": 1.0,
    "use_short_conv": False, "conv_size": 4, "use_output_gate": True, "fuse_norm": True, "feature_map": None,
    "clamp_min": None,
}  # fmt: skip
GLA_GROUPED = {
    **GLA, **CONV, "num_kv_heads": 2, "attn": HYBRID, "fuse_norm": False, "feature_map": "sqrelu", "clamp_min": -0.04,
    "tie_word_embeddings": True,
}  # fmt: skip
RETNET = {**GLA, "model_type": "retnet", "expand_k": 1.0, "expand_v": 2.0, "intermediate_size": None, "hidden_ratio": 2}
DELTA_NET = {
    **SIZES, **CONV, "model_type": "delta_net", "num_heads": 4, "expand_k": 1.0, "expand_v": 1.5, "use_gate": False,
    "use_beta": True, "allow_neg_eigval": False, "qk_activation": "silu", "qk_norm": "l2",
}  # fmt: skip
DELTA_NET_ELU = {
    **DELTA_NET, "use_short_conv": False, "use_gate": True, "use_beta": False, "qk_activation": "elu", "qk_norm": "sum",
}  # fmt: skip
GATED_DELTANET = {
    **SIZES, **CONV, "model_type": "gated_deltanet", "num_heads": 2, "num_v_heads": 4, "head_dim": 6, "expand_v": 1.5,
    "use_gate": True, "allow_neg_eigval": True,
}  # fmt: skip
GSA = {
    **SIZES, "model_type": "gsa", "num_heads": 4, "num_kv_heads": 2, "num_slots": 5, "expand_k": 0.5, "expand_v": 1.0,
    "feature_map": "swish", "gate_logit_normalizer": 3, "use_short_conv": False, "elementwise_affine": False,
}  # fmt: skip
HGRN = {**SIZES, "model_type": "hgrn", "expand_ratio": 1, "use_lower_bound": True, "use_short_conv": False}
HGRN_WIDE = {**HGRN, **CONV, "expand_ratio": 1.5, "use_lower_bound": False, "elementwise_affine": False}
HGRN2 = {**HGRN, "model_type": "hgrn2", "expand_ratio": 8, "num_heads": None}
LINEAR_ATTN = {
    **SIZES, "model_type": "linear_attn", "num_heads": 4, "num_kv_heads": 2, "expand_k": 0.5, "expand_v": 1.0,
    "feature_map": "elementwise_product", "norm_q": False, "norm_k": False, "norm_feature_map": False,
}  # fmt: skip
HEDGEHOG = {**LINEAR_ATTN, "feature_map": "hedgehog", "norm_q": True, "norm_k": True, "norm_feature_map": True}
COMBA = {**GATED_DELTANET, "model_type": "comba", "use_output_gate": True}
KDA = {
    **SIZES, **CONV, "model_type": "kda", "num_heads": 2, "num_v_heads": 4, "head_dim": 6, "expand_v": 1.5,
    "allow_neg_eigval": True, "lower_bound": None,
}  # fmt: skip
KDA_BOUNDED = {**KDA, "lower_bound": -4.0, "allow_neg_eigval": False, "num_v_heads": None, "attn": HYBRID}
DELTA_PRODUCT = {
    **SIZES, **CONV, "model_type": "gated_deltaproduct", "num_heads": 2, "head_dim": 6, "expand_v": 1.5,
    "num_householder": 3, "use_output_gate": True, "use_forget_gate": True, "allow_neg_eigval": True,
}  # fmt: skip
DELTA_PRODUCT_PLAIN = {**DELTA_PRODUCT, "use_output_gate": False, "use_forget_gate": False, "num_householder": 2}
SAMBA = {
    **SIZES, "model_type": "samba", "intermediate_size": 40, "state_size": 5, "conv_kernel": 3, "time_step_rank": 7,
    "use_bias": True, "attn": {"layers": [1], "num_heads": 4, "num_kv_heads": 2, "window_size": 7},
}  # fmt: skip
ABC = {
    **SIZES, **CONV, "model_type": "abc", "num_heads": 4, "expand_k": 0.5, "expand_v": 1.0, "num_slots": 5,
    "use_rope": True, "clamp_min": -0.3, "clamp_max": 0.2,
}  # fmt: skip
LIGHTNET = {
    **SIZES, **CONV, "model_type": "lightnet", "expand_ratio": 8, "num_heads": None, "gate_low_rank_dim": 6,
}  # fmt: skip
FOX = {
    **SIZES, "model_type": "forgetting_transformer", "num_heads": 4, "num_kv_heads": 2, "qkv_bias": True,
    "qk_norm": True, "window_size": None, "use_output_gate": True,
}  # fmt: skip
FOX_PLAIN = {**FOX, "qk_norm": False, "use_output_gate": False, "num_kv_heads": None}
TRANSFORMER = {**SIZES, **HYBRID, "model_type": "transformer", "qk_norm": True}
TRANSFORMER = {key: value for key, value in TRANSFORMER.items() if key not in ("attn", "layers")}


def transformer_mixer(c: Any, index: int) -> Attention:
    return Attention(c, vars(c))
