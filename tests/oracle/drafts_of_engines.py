"""Draft heads of inference engines and of EAGLE's authors, in plain PyTorch without a cache.

The authors' code is not run. Names, order and sizes are those of eagle/model/cnets1.py of SafeAILab/EAGLE, at commit
cb7e0841fe0c206c6ed74a197ad5e2a1f13f5a2b, and of vllm/model_executor/models/ of vLLM: llama_eagle3.py at commit
00bd1493b3e82d6c13c68ee8a0e1c5a96707e190, medusa.py at 01dbb08195ca9c70ac9044786a906a353e07fcdf, mlp_speculator.py at
0531c2226a6a25cd96ccc856f3bda3f0bb4efb5f, with matrices that they fuse apart; and of src/speculators/models/eagle3/ of
vllm-project/speculators, at commit c05b95b303f7d4f21e8d7624e0ffa1c2d9b4d73b.
"""

# mypy: disable-error-code="misc, no-any-return, override"

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.oracle import drafts
from tests.oracle.remote import RMSNorm


class EagleLayer(nn.Module):
    def __init__(self, c: Any, index: int) -> None:
        super().__init__()
        self.self_attn, self.mlp = drafts.Attention(c, c.hidden_size), drafts.Mlp(c)
        if getattr(c, "qkv_bias", False):
            for name in ("q_proj", "k_proj", "v_proj"):
                matrix = getattr(self.self_attn, name)
                setattr(self.self_attn, name, nn.Linear(matrix.in_features, matrix.out_features))
        if index != 0:
            self.input_layernorm = RMSNorm(c.hidden_size, c.rms_norm_eps)
        self.post_attention_layernorm = RMSNorm(c.hidden_size, c.rms_norm_eps)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x) if hasattr(self, "input_layernorm") else x)
        return x + self.mlp(self.post_attention_layernorm(x))


class Eagle(nn.Module):
    def __init__(self, c: Any, bias: bool = True) -> None:
        super().__init__()
        c.head_dim = c.hidden_size // c.num_attention_heads
        self.embed_tokens = nn.Embedding(c.vocab_size, c.hidden_size)
        self.layers = nn.ModuleList(EagleLayer(c, i) for i in range(c.num_hidden_layers))
        self.fc = nn.Linear(2 * c.hidden_size, c.hidden_size, bias=getattr(c, "bias", bias))

    def forward(self, tokens: Tensor, target_hidden_states: Tensor) -> Tensor:
        x = self.fc(torch.cat((self.embed_tokens(tokens), target_hidden_states), -1))
        for layer in self.layers:
            x = layer(x)
        return x


class Eagle3(drafts.Eagle3):
    """Plain layers may follow the first one, and attention may have biases."""

    def add_layers(self, c: Any, width: int) -> None:
        layers: list[Any] = [drafts.FirstLayer(c), *(drafts.PlainLayer(c) for _ in range(1, c.num_hidden_layers))]
        for i, layer in enumerate(layers):
            d = c.hidden_size if i else 2 * c.hidden_size
            layer.self_attn = drafts.Attention(c, d, bias=c.attention_bias)
        self.layers = nn.ModuleList(layers)

    def transform(self, x: Tensor, embedded: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x, embedded)
        return x


class NormedAttention(drafts.Attention):
    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (self.cut(f(x)) for f in (self.q_proj, self.k_proj, self.v_proj))
        q, k = drafts.rotate(self.q_norm(q), self.base), drafts.rotate(self.k_norm(k), self.base)
        return self.mix(q, k, v, causal=True)


class SpeculatorEagle3(Eagle3):
    """With norms of heads if its layers are Qwen 3's, and with norms of the states before or after they are cut."""

    def __init__(self, document: dict[str, Any]) -> None:
        layers = document["transformer_layer_config"]
        c = (drafts.read_llama if layers["model_type"] == "llama" else drafts.read_qwen3)({**layers})
        c.norm_before_residual, c.draft_vocab_size = document["norm_before_residual"], document["draft_vocab_size"]
        super().__init__(c)
        if layers["model_type"] == "qwen3":
            for i, layer in enumerate(self.layers):
                width = c.hidden_size if i else 2 * c.hidden_size
                layer.self_attn = NormedAttention(c, width, bias=c.attention_bias, norms=True)
        d, self.n = c.hidden_size, len(document["eagle_aux_hidden_state_layer_ids"])
        self.fc = nn.Linear(self.n * d, d, bias=False)
        if document["norm_before_fc"]:
            self.input_norm = RMSNorm(self.n * d, c.rms_norm_eps)
        if document["fc_norm"]:
            self.fc_norm = nn.ModuleList(RMSNorm(d, c.rms_norm_eps) for _ in range(self.n))
        if c.draft_vocab_size == c.vocab_size:
            del self.t2d, self.d2t

    def forward(self, tokens: Tensor, target_hidden_states: Tensor) -> Tensor:
        x = target_hidden_states
        if hasattr(self, "input_norm"):
            x = self.input_norm(x)
        if hasattr(self, "fc_norm"):
            x = torch.cat([norm(part) for norm, part in zip(self.fc_norm, x.chunk(self.n, -1), strict=True)], -1)
        return self.lm_head(self.norm(self.transform(self.fc(x), self.embed_tokens(tokens))))


class MedusaBlock(nn.Module):
    def __init__(self, c: Any) -> None:
        super().__init__()
        d, bias = c.hidden_size, getattr(c, "medusa_fc_bias", False)
        self.layers = nn.ModuleList(nn.Linear(d, d, bias=bias) for _ in range(c.num_hidden_layers))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + F.silu(layer(x))
        return x


class Medusa(nn.Module):
    """The logits of the first head."""

    def __init__(self, c: Any) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(MedusaBlock(c) for _ in range(c.num_heads))
        n, self.one = getattr(c, "truncated_vocab_size", None) or c.vocab_size, getattr(c, "original_lm_head", False)
        if self.one:
            self.lm_head = nn.Linear(c.hidden_size, n, bias=False)
        else:
            self.lm_heads = nn.ModuleList(nn.Linear(c.hidden_size, n, bias=False) for _ in range(c.num_heads))

    def forward(self, tokens: Tensor, target_hidden_states: Tensor) -> Tensor:
        return (self.lm_head if self.one else self.lm_heads[0])(self.blocks[0](target_hidden_states))


class BiasedNorm(RMSNorm):
    def __init__(self, d: int) -> None:
        super().__init__(d, 1e-6)
        self.bias = nn.Parameter(torch.zeros(d))

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + self.bias


class MlpSpeculator(nn.Module):
    """The logits of the first step."""

    def __init__(self, c: Any) -> None:
        super().__init__()
        d, n, inner = c.emb_dim, c.n_predict, c.inner_dim or c.emb_dim
        self.scaled, self.state = c.scale_input, 0.5 ** (0.5 / n)
        self.weight = ((1 - self.state**2) * (inner / 2)) ** 0.5
        self.proj = nn.ModuleList(nn.Linear(inner if i else d, inner, bias=False) for i in range(n))
        self.emb = nn.ModuleList(nn.Embedding(c.vocab_size, inner) for _ in range(n))
        self.ln = nn.ModuleList(BiasedNorm(inner) for _ in range(n))
        self.head = nn.ModuleList(nn.Linear(inner, c.vocab_size, bias=False) for _ in range(n))
        if c.tie_weights:
            for modules, first in ((self.emb, 0), (self.proj, 1), (self.ln, 0), (self.head, 0)):
                for i in range(first + 1, n):
                    modules[i] = modules[first]

    def forward(self, tokens: Tensor, target_hidden_states: Tensor) -> Tensor:
        x = target_hidden_states
        if self.scaled:
            x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) / 2**0.5
        x = self.proj[0](x) + self.emb[0](tokens) * (self.weight / self.state)
        return self.head[0](F.gelu(self.ln[0](x)))


def build(document: dict[str, Any]) -> Any:
    match document["architectures"][0]:
        case "LlamaForCausalLMEagle":
            return Eagle(drafts.read_llama(document)).eval()
        case "EagleLlamaForCausalLM":
            return Eagle(drafts.read_llama(document), bias=False).eval()
        case "Eagle3LlamaForCausalLM":
            return Eagle3(drafts.read_llama(document)).eval()
        case "Eagle3DraftModel":
            return SpeculatorEagle3(document).eval()
        case "MedusaModel":
            return Medusa(SimpleNamespace(**document)).eval()
        case "MLPSpeculatorPreTrainedModel":
            return MlpSpeculator(SimpleNamespace(**document)).eval()
    return drafts.build(document)
