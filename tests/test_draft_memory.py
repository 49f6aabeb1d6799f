"""A draft head's weights and cache lie beside those of its target, without what it has of the target's."""

from __future__ import annotations

import pytest

import paramcount as pc
from tests.draft_heads import CONFIGS

CACHED = 2 * 8 * 128 * 2  # bytes of a token in a layer: keys and values of 8 heads in BF16
CONTEXT = 8192
# (draft, its target, layers that cache)
DRAFTS = [
    ("llama3-8B-eagle3", "llama-3.1-8b", 1),
    ("qwen3-8b-dflash", "qwen3-8b", 5),
    ("qwen3-8b-peagle", "qwen3-8b", 4),
]


@pytest.mark.parametrize("engine", ["minimal", "vllm", "sglang"])
@pytest.mark.parametrize(("name", "target", "layers"), DRAFTS)
def test_a_draft_head_adds_its_weights_without_the_targets_embedding_and_its_cache(
    engine: str, name: str, target: str, layers: int
) -> None:
    row = CONFIGS[name]
    memory = pc.memory(target, engine=engine, draft=row["config"], context=CONTEXT, gpu="h100")
    assert memory.draft is not None
    maps = memory.draft.weights_bytes - 2 * (row["total"] - row["embedding"])  # of its tokens, in a few bytes each
    assert row["buffers"] <= maps <= 8 * row["buffers"]
    per_token = layers * CACHED
    assert (
        CONTEXT * per_token <= memory.draft.cache_bytes <= (CONTEXT + 16) * per_token
    )  # and a page or block for padding
