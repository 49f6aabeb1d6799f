"""The tree of parts, layers, components, experts and tensors that pictures of a model show, and its names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from math import prod

import pytest

import paramcount as pc
from paramcount.counting.tree import TensorGroup, group_tensors
from paramcount.output.layer_kinds import describe_kind
from tests.batches import in_batches
from tests.structures import pick_structures


def list_leaves(group: TensorGroup, copies: int = 1, active: int = 1) -> Iterator[tuple[TensorGroup, int, int]]:
    """(tensor, copies, active copies) of every tensor below a group."""
    copies, active = copies * group.count, active * group.active
    if group.kind == "tensor":
        yield group, copies, active
    for child in group.children:
        yield from list_leaves(child, copies, active)


def list_groups(group: TensorGroup) -> Iterator[TensorGroup]:
    yield group
    for child in group.children:
        yield from list_groups(child)


@in_batches("id", pick_structures(every=10))
def test_a_tree_has_the_components_the_parts_and_the_active_parameters_of_its_model(id: str) -> None:
    count = pc.count(id)
    tree = group_tensors(count)
    leaves = list(list_leaves(tree))
    components: Counter[str] = Counter()
    for leaf, copies, _ in leaves:
        assert prod(leaf.shape) * copies == leaf.parameters
        components[leaf.component.partition(".")[0]] += leaf.parameters
    assert components == {name: n for name, n in count.components.items() if n}
    assert {part.label: part.parameters for part in tree.children} == {name: n for name, n in count.parts.items() if n}
    assert sum(prod(leaf.shape) * active for leaf, _, active in leaves) == count.active
    for group in list_groups(tree):
        assert group.kind == "tensor" or sum(child.parameters for child in group.children) == group.parameters


def test_stacked_experts_are_one_matrix_each() -> None:
    # One tensor [experts, in, out] in the file of gpt-oss, one tensor [experts · d_ff, d_model] in that of DBRX.
    # transformers' DbrxConfig: 4 experts of size 3,584 and a hidden size of 2,048 by default.
    dbrx = {"model_type": "dbrx", "attn_config": {"rope_theta": 500000.0, "clip_qkv": 8.0}}
    for model, experts, shape in (("gpt-oss-20b", 32, (2880, 2880)), (dbrx, 4, (3584, 2048))):
        groups = [group for group in list_groups(group_tensors(pc.count(model))) if group.kind == "experts"]
        assert {group.count for group in groups} == {experts}
        assert shape in {leaf.shape for leaf in groups[0].children}


def test_a_tensor_of_each_stream_is_as_many_tensors() -> None:
    # Gemma3nTextConfig: altup_num_inputs is 4 and hidden_size 2,048; the reference projects all streams but the first.
    leaves = [leaf for leaf in list_leaves(group_tensors(pc.count("gemma-3n-e2b"))) if "{stream}" in leaf[0].label]
    assert [(leaf.label.split(".")[-3], leaf.shape, copies, active) for leaf, copies, active in leaves] == [
        ("altup_projections", (2048, 2048), 3, 3),
        ("altup_unembed_projections", (2048, 2048), 3, 3),
    ]


# ---- names


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
        ("sliding_attention dense <unknown MLP limits>", "sliding-window attention dense"),
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
