"""Moshi as Kyutai releases it: every parameter of LMModel, with the names and sizes of moshi/moshi/models/lm.py and
moshi/moshi/modules/{transformer,gating}.py of github kyutai-labs/moshi@e6a55d2722a6. Its code is not run.
"""

# mypy: disable-error-code="misc"

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from tests.oracle.differential import count_document, silence
from tests.oracle.recurrent import linear
from tests.oracle.remote_multimodal import name_modules
from tests.oracle.test_remote_multimodal import list_parameters

PATH = Path(__file__).parents[1] / "data" / "remote_models.json"
SMALL = {
    "dim": 32, "text_card": 90, "n_q": 4, "dep_q": 3, "card": 20, "num_heads": 4, "num_layers": 2, "hidden_scale": 4,
    "layer_scale": None, "context": 30, "gating": "silu", "norm": "rms_norm_f32", "positional_embedding": "rope",
    "depformer_dim": 16, "depformer_dim_feedforward": 66, "depformer_num_heads": 2, "depformer_num_layers": 3,
    "depformer_multi_linear": True, "depformer_pos_emb": "none", "depformer_weights_per_step": True,
    "delays": [0, 0, 1, 1, 1],
}  # fmt: skip
HEARING = {
    **SMALL, "model_type": "stt", "dep_q": 0, "extra_heads_num_heads": 2, "extra_heads_dim": 5, "text_card_out": 70,
    "hidden_scale": 4.125, "norm": "rms_norm",
}  # fmt: skip


def make_norm(d: int) -> nn.Module:
    module = nn.Module()
    module.alpha = nn.Parameter(torch.zeros(1, 1, d))
    return module


def make_gating(d: int, d_ff: int) -> nn.Module:
    hidden = 21 * d // 8 if d_ff == 4 * d else 2 * d_ff // 3
    return name_modules(linear_in=linear(d, 2 * hidden), linear_out=linear(hidden, d))


def make_layer(d: int, d_ff: int, steps: int = 0) -> nn.Module:
    n = max(steps, 1)
    attention = name_modules(
        in_projs=nn.ModuleList(linear(d, 3 * d) for _ in range(n)),
        out_projs=nn.ModuleList(linear(d, d) for _ in range(n)),
    )
    gating = nn.ModuleList(make_gating(d, d_ff) for _ in range(n)) if steps else make_gating(d, d_ff)
    return name_modules(self_attn=attention, norm1=make_norm(d), norm2=make_norm(d), gating=gating)


def make_stack(n_layers: int, d: int, d_ff: int, steps: int = 0) -> nn.Module:
    return name_modules(layers=nn.ModuleList(make_layer(d, d_ff, steps) for _ in range(n_layers)))


def build(document: dict[str, Any]) -> nn.Module:
    c = SimpleNamespace(**document)
    d, width, steps = c.dim, c.depformer_dim, c.dep_q
    model = name_modules(
        emb=nn.ModuleList(nn.Embedding(c.card + 1, d) for _ in range(c.n_q)),
        text_emb=nn.Embedding(c.text_card + 1, d),
        text_linear=linear(d, document.get("text_card_out", c.text_card)),
        transformer=make_stack(c.num_layers, d, int(c.hidden_scale * d)),
        out_norm=make_norm(d),
        depformer_in=nn.ModuleList(linear(d, width) for _ in range(steps)),
        extra_heads=nn.ModuleList(
            linear(d, c.extra_heads_dim) for _ in range(document.get("extra_heads_num_heads", 0))
        ),
        linears=nn.ModuleList(linear(width, c.card) for _ in range(steps)),
    )
    if steps:
        model.depformer_emb = nn.ModuleList(nn.Embedding(c.card + 1, width) for _ in range(steps - 1))
        model.depformer_text_emb = nn.Embedding(c.text_card + 1, width)
        model.depformer = make_stack(c.depformer_num_layers, width, c.depformer_dim_feedforward, steps)
    return model


@pytest.mark.parametrize("name", ["Moshi-7B", "small", "hearing"])
def test_every_tensor_has_the_name_and_the_shape_of_the_transcription(name: str) -> None:
    silence()
    released: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))
    documents: dict[str, dict[str, Any]] = {"small": {**SMALL, "model_type": "moshi"}, "hearing": HEARING}
    document = documents[name] if name in documents else released[name]["config"]
    with torch.device("meta"):
        expected = list_parameters(build(document))
    count, found, buffers = count_document(document)
    assert (found, buffers, count.warnings) == (expected, {}, ())
