"""Heads that only publishers have on a model of the reference: what their code computes, in plain PyTorch.

The publishers' code is not run. Names and order are those of qwen2_rm.py, jina.py and voyage.py of vLLM and of
modeling_custom.py of RLHFlow/ArmoRM-Llama3-8B-v0.1.
"""

# mypy: disable-error-code="misc, no-any-return"

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn


class Headed(nn.Module):
    """A model of the reference, without its head, below modules that read its hidden states."""

    base_model_prefix = "model"

    def __init__(self, config: Any, kind: str) -> None:
        super().__init__()
        from transformers import AutoModel

        self.model = AutoModel.from_config(config)
        self.kind, d = kind, config.hidden_size
        if kind.endswith("RewardModel"):
            n = 2 if "Process" in kind else 1
            self.score = nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Linear(d, n))
        elif kind == "JinaForRanking":
            first, second = nn.Linear(d, d // 2, bias=False), nn.Linear(d // 2, 512, bias=False)
            self.projector = nn.Sequential(first, nn.ReLU(), second)
        elif kind.endswith("EmbedModel"):
            self.linear = nn.Linear(d, config.num_labels, bias=False)
        elif kind.endswith("SequenceClassification"):
            self.score = nn.Linear(d, config.num_labels, bias=False)
        elif kind.endswith("WithGating"):
            n, inner = config.num_objectives, config.gating_hidden_dim
            self.regression_layer = nn.Linear(d, n, bias=False)
            self.reward_transform_matrix = nn.Parameter(torch.eye(n))
            widths = [d, *[inner] * config.gating_n_hidden, n]
            self.gating = nn.Module()
            self.gating.logit_scale = nn.Parameter(torch.ones(1))
            self.gating.layers = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(widths))

    def forward(self, input_ids: Tensor) -> dict[str, Tensor]:
        x = self.model(input_ids=input_ids)[0]
        name = next((name for name in ("score", "projector", "linear") if hasattr(self, name)), "")
        y = self.get_submodule(name)(x) if name else x
        return {"logits": y[:, -1:] if self.kind.endswith("SequenceClassification") else y}


def build(document: dict[str, Any]) -> nn.Module:
    from transformers import CONFIG_MAPPING

    config = CONFIG_MAPPING[document["model_type"]].from_dict(document)
    if "Bidirectional" in document["architectures"][0]:
        config.is_causal = False
    return Headed(config, document["architectures"][0]).eval()


SIZES = {
    "vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 44, "max_position_embeddings": 64, "head_dim": 8, "pad_token_id": None,
}  # fmt: skip
CLASSES = (
    ("qwen2", "Qwen2ForRewardModel"),
    ("qwen2", "Qwen2ForProcessRewardModel"),
    ("qwen3", "Qwen3ForRewardModel"),
    ("qwen3", "JinaForRanking"),
    ("qwen3", "VoyageQwen3BidirectionalEmbedModel"),
    ("llama", "LlamaBidirectionalModel"),
    ("llama", "LlamaBidirectionalForSequenceClassification"),
)
MODELS: dict[str, dict[str, Any]] = {}
HEADED: dict[str, dict[str, Any]] = {
    f"{name}, {cls}": {
        **SIZES,
        "model_type": name,
        "architectures": [cls],
        **({"num_labels": 7} if "Bidirectional" in cls else {}),
    }
    for name, cls in CLASSES
}
GATED = {
    **SIZES, "model_type": "llama", "architectures": ["LlamaForRewardModelWithGating"], "num_objectives": 5,
    "gating_hidden_dim": 24, "gating_n_hidden": 2,
}  # fmt: skip
# {model type, class: config.json} of which the flow does not say how the outputs are summed
COUNTED: dict[str, dict[str, Any]] = {
    "llama, LlamaForRewardModelWithGating": GATED,
    "llama, LlamaForRewardModelWithGating of three layers": {**GATED, "gating_n_hidden": 3},
}
