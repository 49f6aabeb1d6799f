"""Decoders that only their authors publish, in plain PyTorch without a cache.

The authors' code is not run. Names and order are those of src/glublm/model.py of github Den-Sec/glublm@f6b0c55b93ae and
of custom_models/sba of github fla-org/flame@e11e7be75b9e.
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


BUILDERS = {"glublm": Glub, "sba": lambda c: recurrent.FlaModel(c, StickBreaking)}
GLUB = {
    "model_type": "glublm", "architectures": ["GlubLM"], "vocab_size": 96, "d_model": 32, "n_layers": 3, "n_heads": 4,
    "ffn_hidden": 44, "max_seq_len": 64, "rope_theta": 300.0, "tie_embeddings": True, "rms_norm_eps": 0.01,
}  # fmt: skip
SBA = {
    **recurrent.SIZES, "model_type": "sba", "num_heads": 4, "num_kv_heads": None, "qkv_bias": False,
    "window_size": 7, "rope_theta": 300.0,
}  # fmt: skip
MODELS: dict[str, dict[str, Any]] = {
    "glublm": GLUB,
    "glublm, not tied": {**GLUB, "tie_embeddings": False},
    "sba": SBA,
    "sba, biased": {**SBA, "qkv_bias": True, "intermediate_size": None, "tie_word_embeddings": True},
}


def build(name: str) -> nn.Module:
    c = SimpleNamespace(**MODELS[name])
    return BUILDERS[c.model_type](c).eval()
