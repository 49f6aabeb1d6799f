"""Architectures that only their authors publish: what their code computes, in plain PyTorch without a cache.

The authors' code is not run. Names and order are those of modeling_arctic.py of Snowflake/snowflake-arctic-instruct,
of modeling_grok1.py of hpcai-tech/grok-1 and of step3_text.py of vLLM, with the tensor names of stepfun-ai/step3.
"""

# mypy: disable-error-code="misc, no-any-return"

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.oracle import hyena, recurrent, rwkv


class RMSNorm(nn.Module):
    def __init__(self, d: int, eps: float, name: str = "weight") -> None:
        super().__init__()
        self.eps, self.name = eps, name
        self.register_parameter(name, nn.Parameter(torch.ones(d)))

    def forward(self, x: Tensor) -> Tensor:
        scale: Tensor = getattr(self, self.name)
        return scale * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)


class Attention(nn.Module):
    """Rotary positions in halves and grouped KV heads."""

    def __init__(self, c: Any, base: float, factor: float | None = None, cap: float | None = None) -> None:
        super().__init__()
        self.d = c.hidden_size // c.num_attention_heads
        self.groups = c.num_attention_heads // c.num_key_value_heads
        self.base, self.factor, self.cap = base, factor or self.d**-0.5, cap
        self.q_proj = nn.Linear(c.hidden_size, c.hidden_size, bias=False)
        self.k_proj = nn.Linear(c.hidden_size, c.num_key_value_heads * self.d, bias=False)
        self.v_proj = nn.Linear(c.hidden_size, c.num_key_value_heads * self.d, bias=False)
        self.o_proj = nn.Linear(c.hidden_size, c.hidden_size, bias=False)

    def rotate(self, x: Tensor) -> Tensor:
        frequencies = self.base ** (-torch.arange(0, self.d, 2) / self.d)
        angles = torch.outer(torch.arange(x.shape[-2]), frequencies).repeat(1, 2)
        first, second = x.chunk(2, -1)
        return x * angles.cos() + torch.cat((-second, first), -1) * angles.sin()

    def query(self, x: Tensor) -> Tensor:
        return self.q_proj(x)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        q, k, v = (f(x).view(1, n, -1, self.d).transpose(1, 2) for f in (self.query, self.k_proj, self.v_proj))
        q, k = self.rotate(q), self.rotate(k).repeat_interleave(self.groups, 1)
        scores = q @ k.transpose(2, 3) * self.factor
        if self.cap is not None:
            scores = self.cap * torch.tanh(scores / self.cap)
        scores = scores.masked_fill(torch.ones(n, n).triu(1).bool(), float("-inf"))
        y = scores.softmax(-1) @ v.repeat_interleave(self.groups, 1)
        return self.o_proj(y.transpose(1, 2).reshape(1, n, -1))


class LatentQueryAttention(Attention):
    """Queries out of a normed latent, and one KV head."""

    def __init__(self, c: Any) -> None:
        nn.Module.__init__(self)
        self.d, self.groups, self.base = c.head_dim, c.num_attention_heads, c.rope_theta
        self.factor, self.cap = self.d**-0.5, None
        self.q_proj = nn.Linear(c.hidden_size, c.share_q_dim, bias=False)
        self.inter_norm = RMSNorm(c.share_q_dim, c.rms_norm_eps)
        self.wq = nn.Linear(c.share_q_dim, self.groups * self.d, bias=False)
        self.k_proj = nn.Linear(c.hidden_size, self.d, bias=False)
        self.v_proj = nn.Linear(c.hidden_size, self.d, bias=False)
        self.o_proj = nn.Linear(self.groups * self.d, c.hidden_size, bias=False)

    def query(self, x: Tensor) -> Tensor:
        return self.wq(self.inter_norm(self.q_proj(x)))


class Gated(nn.Module):
    """`names`: of gate, up and down."""

    def __init__(self, d: int, d_ff: int, names: tuple[str, str, str], act: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.names, self.act = names, act
        for name, sizes in zip(names, ((d, d_ff), (d, d_ff), (d_ff, d)), strict=True):
            self.add_module(name, nn.Linear(*sizes, bias=False))

    def forward(self, x: Tensor) -> Tensor:
        gate, up, down = (getattr(self, name) for name in self.names)
        return down(self.act(gate(x)) * up(x))


class Mixture(nn.Module):
    def __init__(self, d: int, experts: list[Gated], top_k: int, *, normalise: bool) -> None:
        super().__init__()
        self.gate = nn.Linear(d, len(experts), bias=False)
        self.experts, self.top_k, self.normalise = nn.ModuleList(experts), top_k, normalise

    def forward(self, x: Tensor) -> Tensor:
        weights, chosen = self.gate(x).softmax(-1).topk(self.top_k, -1)
        if self.normalise:
            weights = weights / weights.sum(-1, keepdim=True)
        y = torch.zeros_like(x)
        for i in range(self.gate.out_features):
            y = y + self.run_expert(i, x) * (weights * (chosen == i)).sum(-1, keepdim=True)
        return y

    def run_expert(self, i: int, x: Tensor) -> Tensor:
        return self.experts[i](x)


class StackedMixture(Mixture):
    """The experts are stored as one tensor for each projection."""

    def __init__(self, c: Any) -> None:
        nn.Module.__init__(self)
        n, d, d_expert = c.moe_num_experts, c.hidden_size, c.moe_intermediate_size
        self.top_k, self.normalise = c.moe_top_k, c.norm_expert_weight
        self.gate = nn.Linear(d, n, bias=False)
        for name, sizes in (("gate", (d_expert, d)), ("up", (d_expert, d)), ("down", (d, d_expert))):
            self.add_module(f"{name}_proj", nn.Module())
            getattr(self, f"{name}_proj").weight = nn.Parameter(torch.zeros(n, *sizes))

    def run_expert(self, i: int, x: Tensor) -> Tensor:
        gate, up, down = (getattr(self, f"{name}_proj").weight[i] for name in ("gate", "up", "down"))
        return F.linear(F.silu(F.linear(x, gate)) * F.linear(x, up), down)


class ArcticLayer(nn.Module):
    def __init__(self, c: Any, index: int) -> None:
        super().__init__()
        d, names = c.hidden_size, ("w1", "w3", "w2")
        self.input_layernorm, self.post_attention_layernorm = RMSNorm(d, c.rms_norm_eps), RMSNorm(d, c.rms_norm_eps)
        self.self_attn = Attention(c, c.rope_theta)
        self.is_moe = (index + 1) % c.moe_layer_frequency == 0
        experts = [Gated(d, c.intermediate_size, names, F.silu) for _ in range(c.num_local_experts)]
        if self.is_moe:
            self.block_sparse_moe: nn.Module = Mixture(d, experts, c.num_experts_per_tok, normalise=True)
        else:
            self.block_sparse_moe = nn.Sequential()
            self.block_sparse_moe.add_module("mlp", experts[0])
        self.parallel = c.parallel_attn_mlp_res and self.is_moe
        if self.parallel:
            self.residual_layernorm, self.residual_mlp = RMSNorm(d, c.rms_norm_eps), Gated(d, d, names, F.silu)

    def forward(self, x: Tensor) -> Tensor:
        attended = x + self.self_attn(self.input_layernorm(x))
        if self.parallel:
            y = self.residual_mlp(self.residual_layernorm(attended))
            return attended + y + self.block_sparse_moe(self.post_attention_layernorm(x))
        return attended + self.block_sparse_moe(self.post_attention_layernorm(attended))


class GrokLayer(nn.Module):
    def __init__(self, c: Any, index: int) -> None:
        super().__init__()
        d, names = c.hidden_size, ("linear", "linear_v", "linear_1")
        self.attn = Attention(c, 10_000.0, c.attn_output_multiplier, c.max_attn_value)
        experts = [Gated(d, c.intermediate_size, names, F.gelu) for _ in range(c.num_experts)]
        self.moe_block = Mixture(d, experts, c.num_experts_per_tok, normalise=False)
        for name in ("pre_attn_norm", "post_attn_norm", "pre_moe_norm", "post_moe_norm"):
            self.add_module(name, RMSNorm(d, c.rms_norm_eps, "scale"))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.post_attn_norm(self.attn(self.pre_attn_norm(x)))
        return x + self.post_moe_norm(self.moe_block(self.pre_moe_norm(x)))


class Step3Layer(nn.Module):
    def __init__(self, c: Any, index: int) -> None:
        super().__init__()
        d, names = c.hidden_size, ("gate_proj", "up_proj", "down_proj")
        self.input_layernorm, self.post_attention_layernorm = RMSNorm(d, c.rms_norm_eps), RMSNorm(d, c.rms_norm_eps)
        self.self_attn = LatentQueryAttention(c)
        if str(index) in c.moe_layers_enum.split(","):
            self.moe, self.share_expert = StackedMixture(c), Gated(d, c.share_expert_dim, names, F.silu)
        else:
            self.mlp = Gated(d, c.intermediate_size, names, F.silu)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x))
        h = self.post_attention_layernorm(x)
        return x + (self.mlp(h) if hasattr(self, "mlp") else self.moe(h) + self.share_expert(h))


class Model(nn.Module):
    """Token embedding, layers, last norm, LM head. `scales`: of the embedding and of the logits."""

    base_model_prefix = "model"

    def __init__(self, c: Any, layer: Any, *, tied: bool, norm: str = "weight", scales: Any = (1.0, 1.0)) -> None:
        super().__init__()
        self.scales = scales
        self.model = nn.Module()
        self.model.embed_tokens = nn.Embedding(c.vocab_size, c.hidden_size)
        self.model.layers = nn.ModuleList(layer(c, i) for i in range(c.num_hidden_layers))
        self.model.norm = RMSNorm(c.hidden_size, c.rms_norm_eps, norm)
        self.lm_head = nn.Linear(c.hidden_size, c.vocab_size, bias=False)
        if tied:
            self.lm_head.weight = self.model.embed_tokens.weight

    def forward(self, input_ids: Tensor) -> dict[str, Tensor]:
        x = self.model.embed_tokens(input_ids) * self.scales[0]
        for layer in self.model.layers:
            x = layer(x)
        return {"logits": self.lm_head(self.model.norm(x)) * self.scales[1]}


def find_maker(module: str, name: str, **options: Any) -> Callable[[Any], Any]:
    """A class or function of another file, which is made of what is here."""

    def make(c: Any) -> Any:
        return getattr(import_module(f"tests.oracle.{module}"), name)(c, **options)

    return make


class Remote(NamedTuple):
    document: dict[str, Any]
    build: Callable[[Any], Model]


def build(name: str) -> Model:
    remote = MODELS[name]
    return remote.build(SimpleNamespace(**remote.document)).eval()


SIZES = {
    "vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 44, "num_experts_per_tok": 3, "rms_norm_eps": 0.01, "max_position_embeddings": 64,
}  # fmt: skip
ARCTIC = {
    **SIZES, "model_type": "arctic", "num_local_experts": 8, "moe_layer_frequency": 2, "parallel_attn_mlp_res": True,
    "rope_theta": 300.0, "tie_word_embeddings": False,
}  # fmt: skip
GROK = {
    **SIZES, "model_type": "grok-1", "num_experts": 8, "attn_output_multiplier": 0.3, "max_attn_value": 2.0,
    "embedding_multiplier_scale": 3.0, "output_multiplier_scale": 0.6, "tie_word_embeddings": True,
}  # fmt: skip
STEP3 = {
    **SIZES, "model_type": "step3_text", "head_dim": 10, "share_q_dim": 12, "moe_layers_enum": "1,2",
    "moe_intermediate_size": 14, "moe_num_experts": 8, "moe_top_k": 3, "share_expert_dim": 18,
    "norm_expert_weight": True, "rope_theta": 300.0, "tie_word_embeddings": False,
}  # fmt: skip
MOLMO = {
    **SIZES, "model_type": "molmo", "embedding_size": 101, "layer_norm_eps": 0.01, "rope_theta": 300.0,
    "qkv_bias": True, "attention_layer_norm": False, "norm_after": False, "layer_norm_type": "rms",
}  # fmt: skip
MOLMO_TEXT = find_maker("remote_multimodal", "Molmo", sees=False)
MODELS = {
    "arctic": Remote(ARCTIC, lambda c: Model(c, ArcticLayer, tied=False)),
    "arctic, in turn": Remote({**ARCTIC, "parallel_attn_mlp_res": False}, lambda c: Model(c, ArcticLayer, tied=False)),
    "step3_text": Remote(STEP3, lambda c: Model(c, Step3Layer, tied=False)),
    "step3_text, not normalised": Remote(
        {**STEP3, "norm_expert_weight": False}, lambda c: Model(c, Step3Layer, tied=False)
    ),
    "grok-1": Remote(
        GROK,
        lambda c: Model(
            c, GrokLayer, tied=True, norm="scale", scales=(c.embedding_multiplier_scale, c.output_multiplier_scale)
        ),
    ),
    "molmo": Remote(MOLMO, MOLMO_TEXT),
    "molmo, OLMo 2's norms": Remote({**MOLMO, "attention_layer_norm": True, "norm_after": True}, MOLMO_TEXT),
    "molmo, layer norms": Remote({**MOLMO, "layer_norm_type": "default", "embedding_size": None}, MOLMO_TEXT),
    "gla": Remote(recurrent.GLA, lambda c: recurrent.FlaModel(c, recurrent.GLAMixer)),
    "gla, grouped": Remote(recurrent.GLA_GROUPED, lambda c: recurrent.FlaModel(c, recurrent.GLAMixer)),
    "retnet": Remote(recurrent.RETNET, lambda c: recurrent.FlaModel(c, recurrent.RetNetMixer)),
    "delta_net": Remote(recurrent.DELTA_NET, lambda c: recurrent.FlaModel(c, recurrent.DeltaNetMixer)),
    "delta_net, elu": Remote(recurrent.DELTA_NET_ELU, lambda c: recurrent.FlaModel(c, recurrent.DeltaNetMixer)),
    "gated_deltanet": Remote(recurrent.GATED_DELTANET, lambda c: recurrent.FlaModel(c, recurrent.GatedDeltaNetMixer)),
    "gsa": Remote(recurrent.GSA, lambda c: recurrent.FlaModel(c, recurrent.GSAMixer)),
    "hgrn": Remote(recurrent.HGRN, lambda c: recurrent.FlaModel(c, recurrent.HGRNMixer)),
    "hgrn, wide": Remote(recurrent.HGRN_WIDE, lambda c: recurrent.FlaModel(c, recurrent.HGRNMixer)),
    "hgrn2": Remote(recurrent.HGRN2, lambda c: recurrent.FlaModel(c, recurrent.HGRN2Mixer)),
    "linear_attn": Remote(recurrent.LINEAR_ATTN, lambda c: recurrent.FlaModel(c, recurrent.LinearAttentionMixer)),
    "linear_attn, hedgehog": Remote(
        recurrent.HEDGEHOG, lambda c: recurrent.FlaModel(c, recurrent.LinearAttentionMixer)
    ),
    "comba": Remote(recurrent.COMBA, lambda c: recurrent.FlaModel(c, recurrent.CombaMixer)),
    "kda": Remote(recurrent.KDA, lambda c: recurrent.FlaModel(c, recurrent.KDAMixer)),
    "kda, bounded": Remote(recurrent.KDA_BOUNDED, lambda c: recurrent.FlaModel(c, recurrent.KDAMixer)),
    "gated_deltaproduct": Remote(recurrent.DELTA_PRODUCT, lambda c: recurrent.FlaModel(c, recurrent.DeltaProductMixer)),
    "gated_deltaproduct, plain": Remote(
        recurrent.DELTA_PRODUCT_PLAIN, lambda c: recurrent.FlaModel(c, recurrent.DeltaProductMixer)
    ),
    "stripedhyena": Remote(hyena.STRIPEDHYENA, hyena.StripedHyena),
    "stripedhyena, Evo": Remote(hyena.EVO, hyena.StripedHyena),
    "abc": Remote(recurrent.ABC, lambda c: recurrent.FlaModel(c, recurrent.ABCMixer)),
    "lightnet": Remote(recurrent.LIGHTNET, lambda c: recurrent.FlaModel(c, recurrent.LightNetMixer)),
    "forgetting_transformer": Remote(recurrent.FOX, lambda c: recurrent.FlaModel(c, recurrent.ForgettingAttention)),
    "forgetting_transformer, plain": Remote(
        recurrent.FOX_PLAIN, lambda c: recurrent.FlaModel(c, recurrent.ForgettingAttention)
    ),
    "samba": Remote(recurrent.SAMBA, recurrent.Samba),
    "rwkv5": Remote(rwkv.RWKV5, lambda c: rwkv.WorldModel(c, 5)),
    "rwkv6": Remote(rwkv.RWKV6, lambda c: rwkv.FlaRwkv(c, 6)),
    "rwkv6, hybrid": Remote(rwkv.RWKV6_HYBRID, lambda c: rwkv.FlaRwkv(c, 6)),
    "rwkv6.Rwkv6ForCausalLM": Remote(rwkv.RWKV6_WORLD, lambda c: rwkv.WorldModel(c, 6)),
    "rwkv7": Remote(rwkv.RWKV7, lambda c: rwkv.FlaRwkv(c, 7)),
    "rwkv7, wide": Remote(rwkv.RWKV7_WIDE, lambda c: rwkv.FlaRwkv(c, 7)),
    "transformer": Remote(recurrent.TRANSFORMER, lambda c: recurrent.FlaModel(c, recurrent.transformer_mixer)),
}
