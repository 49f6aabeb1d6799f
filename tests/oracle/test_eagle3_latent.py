"""EAGLE-3 with latent attention: parameters and logits of plain PyTorch.

Names and order are those of vllm/model_executor/models/deepseek_eagle3.py of vLLM at commit 6448e3ccc103, with matrices
that it fuses apart. Its code is not run.
"""

# mypy: disable-error-code="misc, no-any-return, override"

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import paramcount as pc
from paramcount.execution import run_model
from tests.oracle import drafts, drafts_of_engines, logits
from tests.oracle.remote import RMSNorm
from tests.oracle.remote_decoders import attend, rotate

SMALL = {
    "model_type": "kimi_k2", "architectures": ["Eagle3DeepseekV2ForCausalLM"], "vocab_size": 96, "hidden_size": 32,
    "intermediate_size": 44, "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 4,
    "q_lora_rank": 12, "kv_lora_rank": 10, "qk_nope_head_dim": 8, "qk_rope_head_dim": 6, "v_head_dim": 7,
    "rms_norm_eps": 0.01, "draft_vocab_size": 50, "rope_theta": 300.0, "hidden_act": "silu",
}  # fmt: skip
CONFIGS: dict[str, dict[str, Any]] = {
    "small": SMALL,
    "norms of the states": {**SMALL, "fc_norm": True, "target_hidden_size": 18, "norm_before_residual": True},
    "plain queries": {**SMALL, "q_lora_rank": None, "architectures": ["Eagle3DeepseekV3ForCausalLM"]},
}


class LatentAttention(nn.Module):
    def __init__(self, c: Any) -> None:
        super().__init__()
        self.c, d, n = c, 2 * c.hidden_size, c.num_attention_heads
        width = n * (c.qk_nope_head_dim + c.qk_rope_head_dim)
        if c.q_lora_rank is None:
            self.q_proj = nn.Linear(d, width, bias=False)
        else:
            self.q_a_proj = nn.Linear(d, c.q_lora_rank, bias=False)
            self.q_a_layernorm = RMSNorm(c.q_lora_rank, c.rms_norm_eps)
            self.q_b_proj = nn.Linear(c.q_lora_rank, width, bias=False)
        self.kv_a_proj_with_mqa = nn.Linear(d, c.kv_lora_rank + c.qk_rope_head_dim, bias=False)
        self.kv_a_layernorm = RMSNorm(c.kv_lora_rank, c.rms_norm_eps)
        self.kv_b_proj = nn.Linear(c.kv_lora_rank, n * (c.qk_nope_head_dim + c.v_head_dim), bias=False)
        self.o_proj = nn.Linear(n * c.v_head_dim, c.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        c, n = self.c, self.c.num_attention_heads
        q = self.q_proj(x) if c.q_lora_rank is None else self.q_b_proj(self.q_a_layernorm(self.q_a_proj(x)))
        q, q_rope = q.view(len(x), n, -1).split((c.qk_nope_head_dim, c.qk_rope_head_dim), -1)
        latent, k_rope = self.kv_a_proj_with_mqa(x).split((c.kv_lora_rank, c.qk_rope_head_dim), -1)
        k, v = (
            self.kv_b_proj(self.kv_a_layernorm(latent))
            .view(len(x), n, -1)
            .split((c.qk_nope_head_dim, c.v_head_dim), -1)
        )
        turned = rotate(k_rope[:, None], c.rope_theta, pairs=True).expand(-1, n, -1)
        q = torch.cat((q, rotate(q_rope, c.rope_theta, pairs=True)), -1)
        return self.o_proj(attend(q, torch.cat((k, turned), -1), v))


class Eagle3Latent(drafts_of_engines.Eagle3):
    def add_layers(self, c: Any, width: int) -> None:
        super().add_layers(c, width)
        self.layers[0].self_attn = LatentAttention(c)


def build(document: dict[str, Any]) -> Eagle3Latent:
    torch.manual_seed(1)
    model = Eagle3Latent(drafts.read_llama(document)).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model


@pytest.mark.parametrize("name", CONFIGS)
def test_parameters_and_logits_are_those_of_its_code(name: str) -> None:
    document, model = CONFIGS[name], build(CONFIGS[name])
    count = pc.count(document)
    shapes = {tensor.name.replace("{layer}", "0"): tensor.shape for tensor in count.tensors if tensor.kind == "total"}
    assert shapes == {key: tuple(weight.shape) for key, weight in model.named_parameters()}
    assert (count.total, count.warnings) == (sum(weight.numel() for weight in model.parameters()), ())
    tokens = torch.randint(96, (7,))
    states = torch.randn(7, 3 * document.get("target_hidden_size", 32))
    with torch.no_grad():
        expected = model(tokens, states).numpy()
    weights = {key: value.numpy() for key, value in model.state_dict().items()}
    run = run_model(pc.load(document).sizes, weights, tokens.tolist(), target_hidden_states=states.numpy())
    assert np.abs(run.logits - expected).max() < logits.TOLERANCE * np.abs(expected).max()
