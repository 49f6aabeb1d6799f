"""The names of kinds of layers and of weights are words that people read."""

from __future__ import annotations

import re

import pytest

import paramcount as pc
from paramcount.counting.tree import group_tensors
from paramcount.output.layer_kinds import describe_kind
from tests.batches import in_batches
from tests.structures import pick_structures
from tests.test_tensor_tree import list_groups


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("sliding_attention", "sliding-window attention"),
        ("full_attention moe", "full attention MoE"),
        ("dense True", "dense"),
        ("full_attention shared all 8192", "shared-KV full attention"),
        ("sliding_attention own sparse 16384", "sparse-MLP sliding-window attention"),
        ("no_op 0 0 gated 14336", "no attention"),
        ("word sliding_attention window 256 reads_values False", "sliding-window attention"),
        ("rotates False chooses True latent own mlp moe", "MoE"),
        ("full_attention moe 7.0 16.0", "full attention MoE"),
        ("shifted windows", "shifted-window attention"),
        ("window", "windowed attention"),
        ("window_attention", "windowed attention"),
        ("sparse", "MoE"),
        ("use 0 owner 6 first True", "shared block"),
        ("12 2", ""),
    ],
)
def test_a_kind_of_layer_is_named_in_words(label: str, name: str) -> None:
    assert describe_kind(label) == name


@in_batches("id", pick_structures(every=10))
def test_no_group_of_a_tree_has_flags_numbers_or_module_names_in_its_title(id: str) -> None:
    groups = [group for group in list_groups(group_tensors(pc.count(id))) if group.kind != "model"]
    for group in groups:
        assert group.title, group.label
    for layers in (group for group in groups if group.kind == "layers"):
        assert re.fullmatch(r"([A-Za-z ,-]+ )?layers? × [0-9,]+", layers.title)
        assert re.search(r"\b(True|False|None|own|first)\b", layers.title) is None
    for tensor in (group for group in groups if group.kind == "tensor"):
        assert not re.search(r"[{}.]|_proj|layernorm", tensor.title)
