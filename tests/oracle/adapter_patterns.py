"""Which modules of the reference peft adapts by patterns, indices and full names, for every model type.

`python -m tests.oracle.adapter_patterns` compares all types and prints those that differ.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import paramcount as pc
from tests.model_types import MODEL_TYPES, default_document
from tests.oracle.differential import build_model, can_be_built, find_table, silence

peft: Any = pytest.importorskip("peft", reason="the oracle tests need peft: pip install peft==0.21.2")
# {argument of paramcount: that of peft}, where they have different names
NAMES = {"targets": "target_modules", "target_pattern": "target_modules", "exclude_pattern": "exclude_modules"}


def list_requests(model: Any) -> Iterator[dict[str, Any]]:
    """Arguments for paramcount that concern the first linear layer of the model's first layer, and its other ones."""
    linear = [name for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)]
    inside = [name for name in linear if re.search(r"\.\d+\.", name)]
    name = inside[0] if inside else linear[0]
    leaf, other = name.rpartition(".")[2], linear[len(linear) // 2].rpartition(".")[2]
    first = re.match(r"(.*?)([^.]*)\.(\d+)\.(.*)", name)
    stack, index, rest = first.groups()[1:] if first else ("layers", "0", leaf)
    some = re.sub(r"\d+", r"\\d+", re.escape(name))
    yield {"target_pattern": rf".*\.{leaf}"}
    yield {"target_pattern": some}
    yield {"target_pattern": rf".*{stack}\.[01]\..*(?:{leaf}|{other})", "exclude_modules": [other]}
    yield {"targets": [name]}
    yield {"targets": [f"{stack}.{index}.{rest}", other]}
    yield {"targets": [leaf, other], "layers_to_transform": [0, 1]}
    yield {"targets": [leaf], "layers_to_transform": [0], "layers_pattern": [stack]}
    yield {"targets": [leaf, other], "exclude_pattern": rf".*{stack}\.0\..*"}
    yield {"targets": "all-linear", "exclude_modules": [leaf]}
    yield {"targets": [leaf, other], "rank_pattern": {rf"0\..*{leaf}": 2, other: 3}}


def count_trainable(model: Any, request: dict[str, Any]) -> int | None:
    """The trainable parameters of peft's adapter; None if peft refuses the request."""
    options = {NAMES.get(name, name): value for name, value in request.items()}
    if type(model).__name__.startswith("PPFormulaNet"):  # which does not say where its token embedding is
        model.base_model.get_input_embeddings = lambda: find_table(model)
    try:
        with torch.device("meta"):
            adapted = peft.get_peft_model(model, peft.LoraConfig(r=4, **options))
    except ValueError:
        return None
    n: int = sum(values.numel() for values in adapted.parameters() if values.requires_grad)
    return n


def find_differences(name: str, step: int = 1, start: int = 0) -> Iterator[tuple[dict[str, Any], int | None, Any]]:
    """Each request that paramcount and peft answer differently, with both answers. `step`: every how many requests."""
    document = default_document(name)
    architecture = document["architectures"][0]
    for request in list(list_requests(build_model(document, architecture)))[start % step :: step]:
        expected = count_trainable(build_model(document, architecture), request)
        try:
            found: int | str = pc.lora(document, r=4, **request).trainable
        except pc.ParamcountError as error:
            found = str(error)
        if found != expected and not (expected is None and isinstance(found, str)):
            yield request, expected, found


def main() -> None:
    silence()
    warnings.simplefilter("ignore")
    step = int(sys.argv[1]) if sys.argv[1:] else 1
    names = sorted(MODEL_TYPES)
    for i, name in enumerate(names):
        for request, expected, found in find_differences(name, step, i) if can_be_built(name) else ():
            print(name, request, expected, found, sep="\t", flush=True)


if __name__ == "__main__":
    main()
