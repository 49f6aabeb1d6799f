"""The FLOPs of a trace against torch's FlopCounterMode on the reference: prefill and decoding, to the integer.

Both count matrix products, 2 per multiply-add. Like with like: the LM head runs for the last position
(`logits_to_keep=1`), experts run one by one over the rows routed to them, and the products that turn positions into
angles, in the reference's rotary module, are left out.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import paramcount as pc
from tests.oracle import passes

TOKENS, PAST = 7, 5
TYPES = [
    "bloom", "cohere", "deepseek_v3", "falcon", "gemma", "gemma2", "glm4_moe", "gpt2", "gpt_neox", "gpt_oss",
    "granite", "llama", "mistral", "mixtral", "olmo2", "olmoe", "opt", "phi3", "qwen2", "qwen3", "qwen3_moe",
    "stablelm", "starcoder2",
]  # fmt: skip


def count_flops(model: Any, ids: Any, cache: Any = None) -> int:
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
    rotary = [counts for name, counts in counter.get_flop_counts().items() if name.endswith("rotary_emb")]
    return int(counter.get_total_flops() - sum(sum(counts.values()) for counts in rotary))


@pytest.mark.parametrize("name", TYPES)
def test_the_flops_of_a_trace_are_those_of_the_reference(name: str) -> None:
    from transformers import DynamicCache

    document = passes.make_document(name)
    model = passes.build_model(document, passes.find_class(name))
    model.set_attn_implementation("eager")
    model.config._experts_implementation = "eager"
    ids = passes.make_token_ids(TOKENS, 1)
    assert pc.trace(document, tokens=TOKENS).flops == count_flops(model, ids)
    cache = DynamicCache(config=model.config)
    with torch.no_grad():
        model(input_ids=ids[:, :PAST], past_key_values=cache, use_cache=True)
    assert pc.trace(document, tokens=1, past=PAST).flops == count_flops(model, ids[:, :1], cache)


@pytest.mark.parametrize("name", TYPES)
def test_the_flops_of_components_and_layers_are_parts_of_the_total(name: str) -> None:
    trace = pc.trace(passes.make_document(name), tokens=TOKENS)
    assert trace.flops is not None
    assert sum(trace.flops_by_component.values()) == trace.flops
    outside = 2 * sum(step.multiply_adds or 0 for step in trace.steps if not step.layers)
    assert outside >= trace.flops_by_component["lm_head"]
    assert sum(trace.flops_by_layer.values()) == trace.flops - outside
