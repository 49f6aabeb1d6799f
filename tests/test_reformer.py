"""Reformer's layers, which its config.json names."""

from __future__ import annotations

import paramcount as pc

SMALL = {
    "model_type": "reformer", "vocab_size": 96, "hidden_size": 32, "attention_head_size": 6, "num_attention_heads": 3,
    "feed_forward_size": 40, "attn_layers": ["lsh"], "axial_pos_shape": [4, 6], "axial_pos_embds_dim": [20, 12],
    "max_position_embeddings": 24,
}  # fmt: skip


def test_layers_of_one_kind_may_be_more_than_are_named() -> None:
    one, three = (pc.count({**SMALL, "num_hidden_layers": n}).total for n in (1, 3))
    assert three - one == 2 * (3 * 32 * 18 + 2 * 32 * 40 + 40 + 32 + 2 * 2 * 32)
