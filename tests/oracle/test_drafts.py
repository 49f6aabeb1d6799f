"""Draft heads against plain PyTorch: the parameters of published configs, and the logits of small ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import paramcount as pc
from paramcount.counting.sum_weights import list_flows
from paramcount.execution import run_model
from paramcount.execution.inputs import list_inputs
from paramcount.flow import TensorRow
from tests.draft_heads import CONFIGS, SMALL
from tests.oracle import drafts, drafts_of_engines, logits

N, BLOCK = 7, 5


@pytest.mark.parametrize("name", CONFIGS)
def test_a_published_draft_head_has_the_parameters_and_buffers_of_its_code(name: str) -> None:
    with torch.device("meta"):
        model = drafts.build(CONFIGS[name]["config"])
    tensors = pc.count(CONFIGS[name]["config"]).tensors
    expected = {key: tuple(tensor.shape) for key, tensor in model.state_dict().items()}
    found = {
        name: tensor.shape for tensor in tensors if tensor.kind in ("total", "buffer") for name in list_copies(tensor)
    }
    assert found == expected
    assert sum(value.numel() for value in model.parameters()) == CONFIGS[name]["total"]


def list_copies(tensor: TensorRow) -> list[str]:
    """The names of a tensor in all layers that have it."""
    indices = [i for repeat in tensor.repeats for first, n in repeat.runs for i in range(first, first + n)]
    return [tensor.name.replace("{layer}", str(i)) for i in indices] or [tensor.name]


def make_inputs(document: dict[str, Any]) -> dict[str, Any]:
    """Random inputs for N tokens, of which the model takes what it reads."""
    if "transformer_layer_config" in document:
        return {"target_hidden_states": torch.randn(N, 4 * document["transformer_layer_config"]["hidden_size"])}
    d, vocab, states = document["hidden_size" if "hidden_size" in document else "emb_dim"], document["vocab_size"], 0
    if "draft_vocab_size" in document:
        states = document.get("target_hidden_size", d) * 3
    elif "dflash_config" in document:
        states = len(document["dflash_config"]["target_layer_ids"]) * d
    return {
        "drafted_tokens_1": torch.randint(vocab, (N,)),
        "drafted_tokens_2": torch.randint(vocab, (N,)),
        "target_hidden_states": torch.randn(N, states or d),
        "masked_tokens": torch.tensor([0, 0, 1, 0, 1, 1, 0]),
        "embedded_block": torch.randn(BLOCK, d),
        "embedded_tokens_before": torch.randn(BLOCK, d),
        "tokens_before": torch.randint(vocab, (BLOCK,)),
        "target_logits": torch.randn(BLOCK, vocab),
    }


@pytest.mark.parametrize("name", SMALL)
def test_the_flow_of_a_draft_head_computes_the_logits_of_its_code(name: str) -> None:
    torch.manual_seed(1)
    document = SMALL[name]
    model = drafts_of_engines.build(document)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    tokens, given = torch.randint(96, (N,)), make_inputs(document)
    sizes = pc.load(document).sizes
    reads = list_inputs(next(iter(list_flows(sizes)))[0])
    given = {key: value for key, value in given.items() if key in reads}
    with torch.no_grad():
        expected = model(tokens, **{key: value for key, value in given.items() if "drafted" not in key}).numpy()
    assert pc.count(document).total == sum(parameter.numel() for parameter in model.parameters())
    weights = {key: value.numpy() for key, value in model.state_dict().items()}
    run = run_model(sizes, weights, tokens.tolist(), **{key: v.numpy() for key, v in given.items()})
    assert np.abs(run.logits - expected).max() / np.abs(expected).max() < logits.TOLERANCE
