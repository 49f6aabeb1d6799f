"""The declared flow is the real one: what goes into and comes out of every module of the reference that holds a
declared weight.
"""

from __future__ import annotations

import itertools
import random
from math import prod
from typing import Any

import pytest

from paramcount.counting.sum_weights import list_flows
from paramcount.errors import ParamcountError
from paramcount.flow import Data, list_steps
from paramcount.huggingface.config import read_config
from tests.model_types import MODEL_TYPES
from tests.oracle import differential
from tests.oracle.modules import watch_modules

TOKENS = 6
Shapes = dict[str, tuple[int, int]]  # {module: (numbers that go in, numbers that come out)}

# One model type for each kind of block.
KINDS = [
    "llama", "gpt2", "openai-gpt", "gpt_oss", "deepseek_v3", "mixtral", "qwen2_moe", "gpt_neox", "falcon", "bloom",
    "opt", "gemma2", "olmo2", "phi3", "mamba",
    "mamba2", "jamba", "qwen3_next", "zamba2", "recurrent_gemma", "lfm2", "rwkv", "minimax", "bert", "bart", "t5",
    "minicpm3",
]  # fmt: skip


def small_config(name: str) -> dict[str, Any]:
    """A config of that type which both sides take and which is small enough to run."""
    rng = random.Random(2)  # noqa: S311
    for _ in range(400):
        document = differential.make_document(name, rng.choice, MODEL_TYPES[name].vary)
        try:
            count, *_ = differential.count_document(document)
        except ParamcountError:
            continue
        if count.total < 300_000 and not differential.find_differences(document, MODEL_TYPES[name].cls):
            return document
    raise AssertionError(f"no small config of {name} was found")


def count_elements(shape: tuple[Any, ...]) -> int:
    return prod(TOKENS if isinstance(n, str) else n for n in shape)


def declared_shapes(document: dict[str, Any]) -> Shapes:
    found: Shapes = {}
    for out, part in list_flows(read_config(document).sizes):
        for data, names, repeats, _ in list_steps(out, part):
            for weight in data.weights:
                name = weight.name[1:] if weight.name[0] == "/" else names.prefix + weight.name
                singles = [r for r in repeats if r.axis == "layer"]
                if any(r.axis == "expert" for r in repeats) or not name.endswith((".weight", ".bias")):
                    continue
                for indices in itertools.product(*(r.indices for r in singles)):
                    module = name.rpartition(".")[0]
                    for index in indices:
                        module = module.replace("{layer}", str(index), 1)
                    found[module] = count_elements(input_shape(data)), count_elements(data.shape)
    return found


def input_shape(data: Data) -> tuple[Any, ...]:
    return data.inputs[0].shape


def reference_shapes(document: dict[str, Any], cls_name: str) -> Shapes:
    """What the reference's modules read and give, by the names that their weights are saved under."""
    import torch

    model = differential.build_model(document, cls_name, "cpu").eval()
    ids = torch.zeros((1, TOKENS), dtype=torch.long)
    model.config.get_text_config().use_cache = False
    with watch_modules(model) as calls, torch.no_grad():
        model(input_ids=ids, **({"decoder_input_ids": ids} if model.config.is_encoder_decoder else {}))
    return {module: (prod(call.reads), prod(call.gives)) for module, call in calls.items() if call.reads is not None}


@pytest.mark.parametrize("name", KINDS)
def test_what_goes_in_and_out_of_the_references_modules_is_declared(name: str) -> None:
    document = small_config(name)
    cls_name = MODEL_TYPES[name].cls
    expected, has = reference_shapes(document, cls_name), declared_shapes(document)
    prefix = differential.build_model(document, cls_name).base_model_prefix + "."
    expected = {module.removeprefix(prefix): shapes for module, shapes in expected.items()}
    has = {module.removeprefix(prefix): shapes for module, shapes in has.items()}
    both = set(expected) & set(has)
    assert {module: has[module] for module in both} == {module: expected[module] for module in both}
    assert [module for module in expected if module not in has and ".experts" not in module] == []
    assert len(both) > 3
