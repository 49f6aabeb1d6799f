"""Draft heads for speculative decoding: what their authors' code computes, in plain PyTorch without a cache.

The authors' code is not run. Names, order and sizes are those of SpecForge, specforge/modeling/draft/, at commit
a6b6b0230009d15ec2a97a57384e6f53f0f96946: llama3_eagle.py, peagle.py, dflash.py, domino.py and dspark.py.
"""

# mypy: disable-error-code="misc, no-any-return, override"

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import LlamaConfig, Qwen3Config

from tests.oracle.remote import RMSNorm


def rotate(x: Tensor, base: float, first: int = 0) -> Tensor:
    """[heads, n, d], from a position on."""
    d, n = x.shape[-1], x.shape[-2]
    angles = torch.outer(torch.arange(first, first + n), base ** (-torch.arange(0, d, 2) / d)).repeat(1, 2)
    a, b = x.chunk(2, -1)
    return x * angles.cos() + torch.cat((-b, a), -1) * angles.sin()


class Attention(nn.Module):
    """Of `width` inputs. With norms of heads and `bias` if it is Qwen 3's."""

    def __init__(self, c: Any, width: int, *, bias: bool = False, norms: bool = False) -> None:
        super().__init__()
        self.d, self.kv, self.base = c.head_dim, c.num_key_value_heads, getattr(c, "rope_theta", 10_000.0)
        heads = c.num_attention_heads * self.d
        self.q_proj = nn.Linear(width, heads, bias=bias)
        self.k_proj = nn.Linear(width, self.kv * self.d, bias=bias)
        self.v_proj = nn.Linear(width, self.kv * self.d, bias=bias)
        self.o_proj = nn.Linear(heads, c.hidden_size, bias=bias)
        if norms:
            self.q_norm, self.k_norm = RMSNorm(self.d, c.rms_norm_eps), RMSNorm(self.d, c.rms_norm_eps)

    def cut(self, x: Tensor) -> Tensor:
        """[n, heads · d] to [heads, n, d]."""
        return x.unflatten(-1, (-1, self.d)).transpose(0, 1)

    def mix(self, q: Tensor, k: Tensor, v: Tensor, *, causal: bool) -> Tensor:
        k, v = (y.repeat_interleave(len(q) // self.kv, 0) for y in (k, v))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return self.o_proj(a.transpose(0, 1).flatten(1))

    def forward(self, x: Tensor) -> Tensor:
        """Of a text, with itself."""
        q, k, v = (self.cut(f(x)) for f in (self.q_proj, self.k_proj, self.v_proj))
        return self.mix(rotate(q, self.base), rotate(k, self.base), v, causal=True)

    def read(self, x: Tensor, states: Tensor) -> Tensor:
        """Of a block, with the states of a text before it and itself."""
        both = torch.cat((states, x))
        q, k = self.q_norm(self.cut(self.q_proj(x))), self.k_norm(self.cut(self.k_proj(both)))
        q, k = rotate(q, self.base, len(states)), rotate(k, self.base)
        return self.mix(q, k, self.cut(self.v_proj(both)), causal=False)


class Mlp(nn.Module):
    def __init__(self, c: Any) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(c.hidden_size, c.intermediate_size, bias=False)
        self.up_proj = nn.Linear(c.hidden_size, c.intermediate_size, bias=False)
        self.down_proj = nn.Linear(c.intermediate_size, c.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class FirstLayer(nn.Module):
    def __init__(self, c: Any) -> None:
        super().__init__()
        self.self_attn, self.mlp = Attention(c, 2 * c.hidden_size), Mlp(c)
        self.before = getattr(c, "norm_before_residual", False)
        for name in ("hidden_norm", "input_layernorm", "post_attention_layernorm"):
            self.add_module(name, RMSNorm(c.hidden_size, c.rms_norm_eps))

    def forward(self, x: Tensor, embedded: Tensor) -> Tensor:
        h = self.hidden_norm(x)
        x = (h if self.before else x) + self.self_attn(torch.cat((self.input_layernorm(embedded), h), -1))
        return x + self.mlp(self.post_attention_layernorm(x))


class PlainLayer(nn.Module):
    def __init__(self, c: Any) -> None:
        super().__init__()
        self.self_attn, self.mlp = Attention(c, c.hidden_size), Mlp(c)
        self.input_layernorm = RMSNorm(c.hidden_size, c.rms_norm_eps)
        self.post_attention_layernorm = RMSNorm(c.hidden_size, c.rms_norm_eps)

    def forward(self, x: Tensor, embedded: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


class Eagle3(nn.Module):
    def __init__(self, c: Any) -> None:
        super().__init__()
        d, drafted = c.hidden_size, getattr(c, "draft_vocab_size", None) or c.vocab_size
        target = getattr(c, "target_hidden_size", d)
        self.embed_tokens = nn.Embedding(c.vocab_size, d)
        self.add_layers(c, 3 * target)
        self.fc = nn.Linear(3 * target, d, bias=False)
        if getattr(c, "fc_norm", False):
            self.fc_norm = nn.ModuleList(RMSNorm(target, c.rms_norm_eps) for _ in range(3))
        self.norm = RMSNorm(d, c.rms_norm_eps)
        self.lm_head = nn.Linear(d, drafted, bias=False)
        self.register_buffer("t2d", torch.ones(c.vocab_size, dtype=torch.bool))
        self.register_buffer("d2t", torch.zeros(drafted, dtype=torch.int64))

    def add_layers(self, c: Any, width: int) -> None:
        self.midlayer = FirstLayer(c)

    def transform(self, x: Tensor, embedded: Tensor) -> Tensor:
        return self.midlayer(x, embedded)

    def forward(self, tokens: Tensor, target_hidden_states: Tensor) -> Tensor:
        x = target_hidden_states
        if hasattr(self, "fc_norm"):
            x = torch.cat([norm(part) for norm, part in zip(self.fc_norm, x.chunk(3, -1), strict=True)], -1)
        return self.lm_head(self.norm(self.transform(self.fc(x), self.embed_tokens(tokens))))


class PEagle(Eagle3):
    def add_layers(self, c: Any, width: int) -> None:
        others = (PlainLayer(c) for _ in range(1, c.num_hidden_layers))
        self.layers = nn.ModuleList([FirstLayer(c), *others])
        self.mask_hidden = nn.Parameter(torch.randn(1, 1, width))

    def transform(self, x: Tensor, embedded: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x, embedded)
        return x

    def forward(self, tokens: Tensor, target_hidden_states: Tensor, masked_tokens: Tensor) -> Tensor:
        """`masked_tokens`: 1 for tokens that are drafted at once with the one before."""
        states = torch.where(masked_tokens[:, None] == 1, self.mask_hidden[0], target_hidden_states)
        return super().forward(tokens, states)


class BlockLayer(nn.Module):
    def __init__(self, c: Any) -> None:
        super().__init__()
        self.self_attn = Attention(c, c.hidden_size, bias=c.attention_bias, norms=True)
        self.mlp = Mlp(c)
        self.input_layernorm = RMSNorm(c.hidden_size, c.rms_norm_eps)
        self.post_attention_layernorm = RMSNorm(c.hidden_size, c.rms_norm_eps)

    def forward(self, x: Tensor, states: Tensor) -> Tensor:
        x = x + self.self_attn.read(self.input_layernorm(x), states)
        return x + self.mlp(self.post_attention_layernorm(x))


class DFlash(nn.Module):
    def __init__(self, c: Any) -> None:
        super().__init__()
        block = getattr(c, "dflash_config", None) or {}
        self.layers = nn.ModuleList(BlockLayer(c) for _ in range(c.num_hidden_layers))
        n_states = len(block["target_layer_ids"]) if "target_layer_ids" in block else c.num_hidden_layers
        self.norm = RMSNorm(c.hidden_size, c.rms_norm_eps)
        self.fc = nn.Linear(n_states * c.hidden_size, c.hidden_size, bias=False)
        self.hidden_norm = RMSNorm(c.hidden_size, c.rms_norm_eps)
        self.add_head(c, block)

    def add_head(self, c: Any, block: dict[str, Any]) -> None:
        pass

    def forward(self, tokens: Tensor, embedded_block: Tensor, target_hidden_states: Tensor) -> Tensor:
        x, states = embedded_block, self.hidden_norm(self.fc(target_hidden_states))
        for layer in self.layers:
            x = layer(x, states)
        return self.norm(x)


class Domino(DFlash):
    def add_head(self, c: Any, block: dict[str, Any]) -> None:
        d, width = c.hidden_size, block["gru_hidden_dim"]
        self.prefix_gru = nn.GRU(d, width, batch_first=True, bias=False)
        self.embed_proj = nn.Sequential(
            nn.Linear(d + width, block["emb_dim"], bias=False),
            nn.SiLU(),
            nn.Linear(block["emb_dim"], c.vocab_size, bias=False),
        )
        self.shifted = block.get("shift_label", False)
        self.first = block.get("pure_draft_prefix_len", 0) + (0 if self.shifted else 1)

    def forward(
        self, *inputs: Tensor, embedded_tokens_before: Tensor, target_logits: Tensor, **named: Tensor
    ) -> Tensor:
        x, n, first = super().forward(*inputs, **named), len(embedded_tokens_before), self.first
        if self.shifted:
            read = self.prefix_gru(embedded_tokens_before[None])[0][0, first:]
        else:
            read = self.prefix_gru(embedded_tokens_before[None, : n - 1])[0][0, first - 1 :]
        more = self.embed_proj(torch.cat((x[first:], read), -1))
        logits = target_logits
        return torch.cat((logits[:first], logits[first:] + more))


class MarkovHead(nn.Module):
    def __init__(self, c: Any, rank: int, kind: str) -> None:
        super().__init__()
        self.markov_w1 = nn.Embedding(c.vocab_size, rank)
        self.markov_w2 = nn.Linear(rank, c.vocab_size, bias=False)
        if kind == "gated":
            self.gate_proj = nn.Linear(c.hidden_size + rank, rank)
        elif kind == "rnn":
            self.joint_proj = nn.Linear(2 * rank + c.hidden_size, 3 * rank)

    def forward(self, ids: Tensor, x: Tensor) -> Tensor:
        before = self.markov_w1(ids)
        if hasattr(self, "gate_proj"):
            before = torch.sigmoid(self.gate_proj(torch.cat((x, before), -1))) * before
        elif hasattr(self, "joint_proj"):
            state, found = torch.zeros_like(before[0]), []
            for e, h in zip(before, x, strict=True):
                gate, new, out = self.joint_proj(torch.cat((state, e, h))).chunk(3)
                state = torch.sigmoid(gate) * state + (1 - torch.sigmoid(gate)) * torch.tanh(new)
                found.append(torch.tanh(out))
            before = torch.stack(found)
        return self.markov_w2(before)


class DSpark(DFlash):
    def add_head(self, c: Any, block: dict[str, Any]) -> None:
        rank = block.get("markov_rank", 0)
        self.markov_head = MarkovHead(c, rank, block.get("markov_head_type", "vanilla")) if rank else None
        if block.get("enable_confidence_head", block.get("confidence_head_alpha", 0) > 0):
            width = c.hidden_size + (rank if block.get("confidence_head_with_markov", False) else 0)
            self.confidence_head = nn.ModuleDict({"proj": nn.Linear(width, 1)})

    def forward(
        self, *inputs: Tensor, tokens_before: Tensor | None = None, target_logits: Tensor | None = None, **named: Tensor
    ) -> Tensor:
        x = super().forward(*inputs, **named)
        return x if self.markov_head is None else target_logits + self.markov_head(tokens_before, x)


def read_llama(document: dict[str, Any]) -> Any:
    """The config without the checks of the newest library: some heads do not fill the hidden size."""
    c = SimpleNamespace(**{**LlamaConfig().to_dict(), "num_key_value_heads": None, "head_dim": None, **document})
    c.num_key_value_heads = c.num_key_value_heads or c.num_attention_heads
    c.head_dim = c.head_dim or c.hidden_size // c.num_attention_heads
    return c


def read_qwen3(document: dict[str, Any]) -> Any:
    return SimpleNamespace(**{**Qwen3Config().to_dict(), **document})


CLASSES: dict[str, tuple[Callable[[dict[str, Any]], Any], Any]] = {
    "LlamaForCausalLMEagle3": (read_llama, Eagle3),
    "PEagleDraftModel": (read_llama, PEagle),
    "DFlashDraftModel": (read_qwen3, DFlash),
    "DominoDraftModel": (read_qwen3, Domino),
    "DSparkDraftModel": (read_qwen3, DSpark),
}


def build(document: dict[str, Any]) -> Any:
    make_config, model = CLASSES[document["architectures"][0]]
    return model(make_config(document)).eval()
