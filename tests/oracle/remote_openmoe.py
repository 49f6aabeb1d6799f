"""What the authors' code of OpenMoE computes, in plain PyTorch without a cache, a capacity of experts or noise.

The authors' code is not run. Names and order are those of colossalai/legacy/moe/openmoe/model/modeling_openmoe.py and
colossalai/legacy/moe/layer/{layers,experts}.py of hpcaitech/ColossalAI@4f9953be335e.
"""

# mypy: disable-error-code="misc, no-any-return"

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.oracle.remote import RMSNorm
from tests.oracle.remote_decoders import LLAMA_NAMES, Model, attend, rotate
from tests.oracle.remote_encoders import make_modules


def swiglu(x: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return first * F.silu(second)


class OpenMoeMlp(nn.Module):
    def __init__(self, c: Any) -> None:
        super().__init__()
        d, width = c.hidden_size, c.intermediate_size
        self.gate_proj = nn.Linear(d, 2 * width, bias=False)
        self.up_proj, self.down_proj = nn.Linear(d, width, bias=False), nn.Linear(width, d, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(swiglu(self.gate_proj(x)) * self.up_proj(x))


class OpenMoeExperts(nn.Module):
    def __init__(self, c: Any) -> None:
        super().__init__()
        n, d, width = c.num_experts, c.hidden_size, c.intermediate_size
        self.gate_weight = nn.Parameter(torch.ones(n, d))
        shapes = {"wi_gate": (n, d, 2 * width), "wi_up": (n, d, width), "wo": (n, width, d)}
        self.experts = nn.ParameterDict({name: nn.Parameter(torch.ones(shape)) for name, shape in shapes.items()})

    def forward(self, x: Tensor) -> Tensor:
        scores = F.linear(x, self.gate_weight).softmax(-1)
        weights = scores * torch.zeros_like(scores).scatter(1, scores.topk(2, -1).indices, 1.0)
        gate, up, down = (self.experts[name] for name in ("wi_gate", "wi_up", "wo"))
        y = [(swiglu(x @ gate[i]) * (x @ up[i])) @ down[i] * weights[:, i : i + 1] for i in range(len(up))]
        return torch.stack(y).sum(0)


class OpenMoeLayer(nn.Module):
    def __init__(self, c: Any, index: int) -> None:
        super().__init__()
        d, self.d_head, eps = c.hidden_size, c.head_dim, c.rms_norm_eps
        width, narrow = c.num_attention_heads * c.head_dim, c.num_key_value_heads * c.head_dim
        self.self_attn = make_modules(
            q_proj=nn.Linear(d, width, bias=False),
            k_proj=nn.Linear(d, narrow, bias=False),
            v_proj=nn.Linear(d, narrow, bias=False),
            o_proj=nn.Linear(width, d, bias=False),
        )
        self.input_layernorm, self.post_attention_layernorm = RMSNorm(d, eps), RMSNorm(d, eps)
        self.is_moe = (index + 1) % c.moe_layer_interval == 0
        self.mlp = OpenMoeExperts(c) if self.is_moe else OpenMoeMlp(c)
        if self.is_moe:
            self.pre_extra_mlp_layernorm, self.extra_mlp = RMSNorm(d, eps), OpenMoeMlp(c)

    def forward(self, x: Tensor) -> Tensor:
        h, a = self.input_layernorm(x), self.self_attn
        q, k, v = (getattr(a, f"{name}_proj")(h).view(len(x), -1, self.d_head) for name in "qkv")
        x = x + a.o_proj(attend(rotate(q, 1e4), rotate(k, 1e4), v, scale=1.0))
        x = x + self.mlp(self.post_attention_layernorm(x))
        return x + self.extra_mlp(self.pre_extra_mlp_layernorm(x)) if self.is_moe else x


def make_openmoe(c: Any) -> nn.Module:
    """`c`: with LlamaConfig's defaults where a config.json lacks a key."""
    c = SimpleNamespace(**{"rms_norm_eps": 1e-6, "num_key_value_heads": c.num_attention_heads, **vars(c)})
    return Model(c, OpenMoeLayer, RMSNorm(c.hidden_size, c.rms_norm_eps), LLAMA_NAMES, tied=False)


SMALL = {
    "architectures": ["OpenMoeForCausalLM"], "model_type": "llama", "vocab_size": 96, "hidden_size": 32, "head_dim": 12,
    "intermediate_size": 20, "num_hidden_layers": 4, "num_attention_heads": 4, "hidden_act": "swiglu",
    "num_experts": 5, "topk": 2, "gated": True, "moe_layer_interval": 2, "rms_norm_eps": 0.01,
}  # fmt: skip
MODELS: dict[str, dict[str, Any]] = {
    "OpenMoE": SMALL,
    "OpenMoE, grouped": {**SMALL, "num_key_value_heads": 2, "moe_layer_interval": 3},
}
