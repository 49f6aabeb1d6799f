"""Directories of sentence-transformers: a model without head, then the modules that modules.json lists.

Dense and LayerNorm have weights, Pooling, Normalize and Dropout have none.

Source: github huggingface/sentence-transformers, sentence_transformers/models/{Transformer,Pooling,Dense,LayerNorm}.py.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import paramcount.zoo as zoo
from paramcount.architectures import ARCHITECTURES, architecture
from paramcount.architectures.classes import get_base_class
from paramcount.architectures.task_heads import with_task_head
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, describe_value, join_words, locate_errors, make_choice_error
from paramcount.formats.files import read_text
from paramcount.formats.strict_json import parse_json

FILE = "modules.json"
MOST_MODULES, LARGEST_FILE = 32, 1 << 16
BODY = "Transformer"
WEIGHTLESS = ("Pooling", "Normalize", "Dropout")
WITH_WEIGHTS = ("Dense", "LayerNorm")
# Classes that load the encoder of an encoder-decoder alone.
ENCODERS = {"t5": "T5EncoderModel", "mt5": "MT5EncoderModel", "umt5": "UMT5EncoderModel"}
ACTIVATIONS = {"Tanh": "tanh", "ReLU": "relu", "GELU": "gelu", "Sigmoid": "sigmoid", "SiLU": "silu"}
POOLING = "pooling_mode_"
CLASS = "SentenceTransformer"


class SentenceModule(NamedTuple):
    """One module: its class, its position, and what its config says."""

    kind: str
    position: int
    folder: Path
    config: Mapping[str, Any]


class DenseSizes(NamedTuple):
    """A module with weights behind the pooled vector."""

    kind: str  # Dense | LayerNorm
    name: str
    inputs: int
    outputs: int
    bias: bool
    activation: str  # empty: none


def find_modules(folder: Path) -> list[SentenceModule] | None:
    """The modules of a directory; None if it has no modules.json of sentence-transformers.

    Raises: ParamcountError for an unknown module, whose weights would be missing.
    """
    path = folder / FILE
    if not os.path.isfile(path):
        return None
    text = read_text(path, "a modules.json", LARGEST_FILE)
    if '"type"' not in text or "sentence_transformers" not in text:
        return None
    with locate_errors(path):
        rows = parse_json(f'{{"modules": {text}}}')["modules"]
        if not isinstance(rows, list) or not 0 < len(rows) <= MOST_MODULES:
            raise ParamcountError("does not list modules", expected="a list of modules")
        modules = [read_module(folder, i, row) for i, row in enumerate(rows)]
        if modules[0].kind != BODY or any(module.kind == BODY for module in modules[1:]):
            raise ParamcountError(f"begins with {modules[0].kind}", expected=f"one {BODY}, and then other modules")
    return modules


def read_module(folder: Path, index: int, row: object) -> SentenceModule:
    kind, place = (row.get("type"), row.get("path", "")) if isinstance(row, Mapping) else (None, "")
    if not isinstance(kind, str) or not isinstance(place, str) or ".." in place or os.path.isabs(place):
        raise ParamcountError(
            f"= {describe_value(row)}", where=f"modules.{index}", expected="type and path of a module"
        )
    kind = kind.rpartition(".")[2]
    if kind not in (BODY, *WEIGHTLESS, *WITH_WEIGHTS):
        raise make_choice_error(kind, (BODY, *WEIGHTLESS, *WITH_WEIGHTS), where=f"modules.{index}.type")
    path = folder / place / "config.json"
    if kind == BODY or not os.path.isfile(path):
        return SentenceModule(kind, index, folder / place, {})
    with locate_errors(path):
        config = parse_json(read_text(path, "the config of a module", LARGEST_FILE))
    return SentenceModule(kind, index, folder / place, config)


def use_base_class(document: Mapping[str, Any]) -> dict[str, Any]:
    """The config.json with the class that sentence-transformers loads: the one without a head."""
    model_type = document.get("model_type")
    if not isinstance(model_type, str) or model_type not in ARCHITECTURES:
        return dict(document)
    base = ENCODERS.get(model_type) or get_base_class(architecture(model_type))
    return {**document, "architectures": [base]} if base else dict(document)


def add_modules(model: zoo.Model, modules: list[SentenceModule]) -> zoo.Model:
    """The model with the modules behind its hidden states, and a note that lists them."""
    width = int(vars(model.sizes).get("d_model", 0))
    found: list[DenseSizes] = []
    modes: tuple[str, ...] = ()
    for module in modules[1:]:
        with locate_errors(module.folder / "config.json"):
            if module.kind == "Pooling":
                modes = list_pooling_modes(module.config)
                width *= max(len(modes), 1)
            elif module.kind in WITH_WEIGHTS:
                found.append(read_sizes(module, width))
                width = found[-1].outputs
    note = f"read as a sentence-transformers model: {join_words([module.kind for module in modules], 'and')}"
    reading = model.reading._replace(notes=(note, *model.reading.notes))
    if not found:
        return replace(model, reading=reading)
    made = make_class(type(model.sizes), modes, tuple(found))
    reading = reading._replace(reference=CLASS, head=True, not_counted=())
    return replace(model, config=made.make(model.sizes.__dict__), reading=reading)


def list_pooling_modes(config: Mapping[str, Any]) -> tuple[str, ...]:
    """The ways in which tokens become one vector; several vectors are joined."""
    modes = config.get("pooling_mode")
    if isinstance(modes, str):
        return (modes,)
    return tuple(
        key.removeprefix(POOLING) for key, value in config.items() if key.startswith(POOLING) and value is True
    )


def read_sizes(module: SentenceModule, width: int) -> DenseSizes:
    """The sizes of a module with weights, whose input is the vector before it."""
    config = module.config
    is_dense = module.kind == "Dense"
    keys = ("in_features", "out_features") if is_dense else ("dimension", "dimension")
    for key in keys:
        value = config.get(key)
        if type(value) is not int or value < 1:
            problem = "is missing" if value is None else f"= {describe_value(value)}"
            raise ParamcountError(problem, where=key, expected="a positive integer")
    inputs, outputs = (int(config[key]) for key in keys)
    if inputs != width:
        raise ParamcountError(f"= {inputs}, but the vector before it has {width} elements", where=keys[0])
    name = str(config.get("activation_function", "")).rpartition(".")[2]
    return DenseSizes(
        module.kind,
        f"{module.position}.{'linear' if is_dense else 'norm'}",
        inputs,
        outputs,
        config.get("bias", True) is not False,
        ACTIVATIONS.get(name, ""),
    )


@lru_cache(maxsize=100)
def make_class(
    architecture: type[sizes.Sizes], modes: tuple[str, ...], found: tuple[DenseSizes, ...]
) -> type[sizes.Sizes]:
    """The architecture with these modules behind it."""

    def build(c: Any, x: Data) -> Data:
        y = pool(x, modes)
        for module in found:
            if module.kind == "LayerNorm":
                y = ops.layer_norm(y, module.name, 1e-5)
                continue
            y = ops.linear(y, module.name, "other", module.outputs, bias=module.bias)
            y = ops.activate(y, module.activation) if module.activation else y
        return y

    return with_task_head(architecture, CLASS, parts.tasks.TaskHead(build, {}))


def pool(x: Data, modes: tuple[str, ...]) -> Data:
    """The vectors of a text, joined."""
    known = {"mean_tokens": "mean", "mean": "mean", "lasttoken": "last position"}
    vectors = []
    for mode in modes or ("",):
        if mode in ("cls_token", "cls"):
            vectors.append(ops.first_token(x))
        else:
            vectors.append(ops.pool_text(x, known.get(mode) or ops.Unknown("pooling")))  # type: ignore[arg-type]
    y = vectors[0]
    for vector in vectors[1:]:
        y = ops.join(y, vector)
    return y
