"""StripedHyena: what stripedhyena/model.py and engine.py of togethercomputer/stripedhyena@7e13f6180 compute, with the
filters as convolutions, in plain PyTorch without a cache."""

# mypy: disable-error-code="misc, no-any-return"

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.oracle.recurrent import linear, repeat, rotate


class ScaleNorm(nn.Module):
    def __init__(self, d: int, eps: float) -> None:
        super().__init__()
        self.eps, self.scale = eps, nn.Parameter(torch.ones(d))

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps)


class Attention(nn.Module):
    """flash-attn's MHA."""

    def __init__(self, c: Any) -> None:
        super().__init__()
        d, self.n, self.groups = c.hidden_size, c.num_attention_heads, c.num_attention_heads // c.proj_groups
        self.d, self.base = d // self.n, c.rotary_emb_base
        self.Wqkv = linear(d, (self.n + 2 * self.groups) * self.d, bias=c.qkv_proj_bias)
        self.out_proj = linear(d, d, bias=c.mha_out_proj_bias)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.Wqkv(x)[0].view(x.shape[1], -1, self.d).split([self.n, self.groups, self.groups], 1)
        q, k, v = rotate(q, self.base), repeat(rotate(k, self.base), self.n), repeat(v, self.n)
        scores = torch.einsum("qhd,khd->hqk", q, k) * self.d**-0.5
        weights = scores.masked_fill(torch.ones(len(q), len(q)).triu(1).bool(), float("-inf")).softmax(-1)
        return self.out_proj(torch.einsum("hqk,khd->qhd", weights, v).flatten(1)[None])


class Filter(nn.Module):
    def __init__(self, c: Any) -> None:
        super().__init__()
        d, self.n = c.hidden_size, c.num_attention_heads
        self.D = nn.Parameter(torch.zeros(d))
        self.short_filter_weight = nn.Parameter(torch.zeros(3 * d, 1, c.short_filter_length))
        if c.short_filter_bias:
            self.short_filter_bias = nn.Parameter(torch.zeros(3 * d))
        self.poles = nn.Parameter(torch.zeros(d, c.state_size, 1, 2))
        self.residues = nn.Parameter(torch.zeros(d, c.state_size, 1, 2))

    def forward(self, z: Tensor) -> Tensor:
        length, width = z.shape[1], self.short_filter_weight.shape[-1]
        z = F.conv1d(z.transpose(1, 2), self.short_filter_weight, padding=width - 1, groups=z.shape[-1])[..., :length]
        z = z + self.short_filter_bias[:, None] if hasattr(self, "short_filter_bias") else z
        x2, x1, v = (part.reshape(1, -1, length) for part in z.view(1, self.n, -1, length).chunk(3, 2))
        poles, residues = torch.view_as_complex(self.poles), torch.view_as_complex(self.residues)
        h = (residues * poles ** torch.arange(length)).real.sum(1)  # [d, length]
        u = (x1 * v)[0]
        y = torch.stack([(h[:, : t + 1].flip(1) * u[:, : t + 1]).sum(1) for t in range(length)], 1)
        return ((y + u * self.D[:, None]) * x2[0]).T[None]


class Block(nn.Module):
    def __init__(self, c: Any, index: int) -> None:
        super().__init__()
        d, self.attends = c.hidden_size, index in c.attn_layer_idxs
        self.pre_norm, self.post_norm = ScaleNorm(d, c.eps), ScaleNorm(d, c.eps)
        if self.attends:
            self.inner_mha_cls = Attention(c)
        else:
            self.filter, self.projections, self.out_filter_dense = Filter(c), nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Module()
        self.mlp.l1, self.mlp.l2 = linear(d, c.inner_mlp_size), linear(d, c.inner_mlp_size)
        self.mlp.l3 = linear(c.inner_mlp_size, d)

    def forward(self, x: Tensor) -> Tensor:
        h = self.pre_norm(x)
        x = x + (self.inner_mha_cls(h) if self.attends else self.out_filter_dense(self.filter(self.projections(h))))
        h = self.post_norm(x)
        return x + self.mlp.l3(F.silu(self.mlp.l1(h)) * self.mlp.l2(h))


class StripedHyena(nn.Module):
    base_model_prefix = "backbone"

    def __init__(self, c: Any) -> None:
        super().__init__()
        self.backbone = nn.Module()
        self.backbone.embedding_layer = nn.Embedding(c.vocab_size, c.hidden_size)
        self.backbone.norm = ScaleNorm(c.hidden_size, c.eps)
        self.backbone.unembed = self.backbone.embedding_layer
        if not c.tie_embeddings:
            self.backbone.unembed = nn.Embedding(c.vocab_size, c.hidden_size)
        self.backbone.blocks = nn.ModuleList(Block(c, i) for i in range(c.num_layers))

    def forward(self, input_ids: Tensor) -> dict[str, Tensor]:
        x = self.backbone.embedding_layer(input_ids)
        for block in self.backbone.blocks:
            x = block(x)
        return {"logits": self.backbone.norm(x) @ self.backbone.unembed.weight.T}


STRIPEDHYENA = {
    "model_type": "stripedhyena", "vocab_size": 96, "hidden_size": 32, "num_layers": 3, "num_attention_heads": 4,
    "attn_layer_idxs": [1], "hyena_layer_idxs": [0, 2], "inner_mlp_size": 44, "short_filter_length": 3,
    "short_filter_bias": True, "state_size": 5, "proj_groups": 2, "eps": 0.01, "rotary_emb_base": 300.0,
    "hyena_filter_groups": 1, "qkv_proj_bias": True, "mha_out_proj_bias": False, "tie_embeddings": False,
}  # fmt: skip
EVO = {**STRIPEDHYENA, "tie_embeddings": True, "proj_groups": 1, "mha_out_proj_bias": True, "short_filter_bias": False}
