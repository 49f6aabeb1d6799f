"""Evolla, some of whose layers look at a protein."""

from copy import deepcopy
from typing import Any

import pytest

import paramcount as pc
from paramcount.tracing.render import list_footnotes
from tests.oracle.differential import set_path
from tests.type_files import load_facts

CONFIG: dict[str, Any] = {"model_type": "evolla", **load_facts("evolla")["configs"][""]}


def change(path: str, value: object) -> dict[str, Any]:
    """The small config with another value."""
    document: dict[str, Any] = deepcopy(CONFIG)
    set_path(document, path, value)
    return document


@pytest.mark.parametrize(
    ("n_layers", "n_adapters", "expected"),
    [
        (32, 8, (3, 7, 11, 15, 19, 23, 27, 31)),  # 32 // 8 = 4: each fourth layer
        (3, 8, (0, 1, 2)),  # fewer layers than adapters: each layer
        (5, 2, (1, 3)),  # 5 // 2 = 2: the last layer has none
        (3, 1, (2,)),
    ],
)
def test_layers_with_an_adapter(n_layers: int, n_adapters: int, expected: tuple[int, ...]) -> None:
    document = change("num_hidden_layers", n_layers) | {"aligner_num_add_layers": n_adapters}
    sizes: Any = pc.load(document).sizes
    assert sizes.adapters == expected


def test_tokens_of_proteins_are_an_embedding_of_their_own() -> None:
    count = pc.count(CONFIG)
    assert (count.components["embedding"], count.components["other_embedding"]) == (96 * 32, 20 * 24)


def test_a_trace_says_that_the_protein_is_an_input() -> None:
    trace = pc.trace(CONFIG, tokens=5)
    assert "protein, protein and latents: size depends on the input" in list_footnotes(trace)
