"""The rotary positions that paramcount reads from any config.json, and those that the reference builds from it: equal
frequencies times equal amplitudes, or refused by both.

`python -m tests.oracle.rotary [MODEL_TYPE...]` prints what differs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from paramcount.api import load
from paramcount.counting.sum_weights import list_flows
from paramcount.errors import ParamcountError
from paramcount.flow import RotaryApart, RotaryAt, RotaryCut, Rotation, list_steps
from paramcount.flow.operation import Unknown
from tests.model_types import MODEL_TYPES
from tests.oracle import passes, settings
from tests.oracle.differential import build_model, make_config, run_tokens, set_path, silence

Document: TypeAlias = dict[str, Any]
Angles: TypeAlias = frozenset[tuple[float, ...]]  # of each kind of layer: frequencies, and the amplitude as the last

ABSENT = object()
UNSTATED_FAIL = ("ministral3", "mistral4")  # a model is built without keys that it needs to run
YARN = {"factor": 3.0, "original_max_position_embeddings": 8, "truncate": False}
LATER = {"original_max_position_embeddings": 100}
LLAMA3 = {"factor": 3.0, "original_max_position_embeddings": 8, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LINEAR = {"rope_type": "linear", "factor": 3.0}
OTHER_BASES = (
    "rotary_emb_base", "rotary_pct", "rope_local_base_freq", "global_rope_theta", "local_rope_theta", "swa_rope_theta",
    "compress_rope_theta", "rope_percent", "rope_pct", "partial_rotary_factor", "swa_partial_rotary_factor",
)  # fmt: skip
# {name: keys of a section}; "*" stands for each layer type of the section
VARIANTS: dict[str, dict[str, Any]] = {
    "a base": {"rope_theta": 777.0},
    "a whole base": {"rope_theta": 777},
    "older scaling": {"rope_scaling": {"type": "linear", "factor": 3.0}},
    "older scaling with a base": {"rope_scaling": {"type": "linear", "factor": 3.0}, "rope_theta": 777.0},
    "scaling with its base": {"rope_scaling": {**LINEAR, "rope_theta": 555.0}, "rope_theta": 777.0},
    "no parameters": {"rope_parameters": None},
    "empty parameters": {"rope_parameters": {}},
    "no parameters, a base": {"rope_parameters": None, "rope_theta": 777.0},
    "empty parameters, a base": {"rope_parameters": {}, "rope_theta": 777.0},
    "no scaling": {"rope_scaling": None, "rope_theta": 777.0},
    "no base": {"rope_theta": None},
    "no base in the parameters": {"rope_parameters": {"rope_type": "default", "rope_theta": None}},
    "parameters": {"rope_parameters": {"rope_type": "default", "rope_theta": 555.0}},
    "parameters alone": {"rope_parameters": {"rope_theta": 555.0}},
    "parameters without a base": {"rope_parameters": {"rope_type": "default"}},
    "parameters with an older word": {"rope_parameters": {"type": "linear", "factor": 3.0, "rope_theta": 555.0}},
    "linear": {"rope_parameters": {**LINEAR, "rope_theta": 555.0}},
    "linear, a base outside": {"rope_parameters": LINEAR, "rope_theta": 777.0},
    "linear, two bases": {"rope_parameters": {**LINEAR, "rope_theta": 555.0}, "rope_theta": 777.0},
    "both keys": {"rope_parameters": {"rope_type": "default", "rope_theta": 555.0}, "rope_scaling": LINEAR},
    "dynamic": {"rope_parameters": {"rope_type": "dynamic", "factor": 3.0, "rope_theta": 555.0}},
    "yarn": {"rope_parameters": {"rope_type": "yarn", **YARN, "rope_theta": 555.0}},
    "older yarn": {"rope_scaling": {"type": "yarn", **YARN}, "rope_theta": 777.0},
    "yarn without positions": {"rope_scaling": {"rope_type": "yarn", "factor": 3.0}, "rope_theta": 777.0},
    "yarn, positions outside": {
        "rope_scaling": {"rope_type": "yarn", "factor": 3.0, "truncate": False}, "original_max_position_embeddings": 16
    },
    "yarn, positions twice": {
        "rope_scaling": {"rope_type": "yarn", **YARN}, "original_max_position_embeddings": 16, "rope_theta": 777.0,
    },
    "yarn without a factor": {
        "rope_scaling": {"rope_type": "yarn", "original_max_position_embeddings": 16, "factor": None}
    },
    "yarn with an amplitude": {
        "rope_parameters": {"rope_type": "yarn", **YARN, "attention_factor": 0.8, "rope_theta": 555.0}
    },
    "yarn with two amplitudes": {
        "rope_parameters": {"rope_type": "yarn", **YARN, "mscale": 0.7, "mscale_all_dim": 0.9, "rope_theta": 555.0}
    },
    "llama3": {"rope_parameters": {"rope_type": "llama3", **LLAMA3, "rope_theta": 555.0}},
    "proportional": {
        "rope_parameters": {"rope_type": "proportional", "rope_theta": 555.0, "partial_rotary_factor": 0.5}
    },
    "a share": {"partial_rotary_factor": 0.5},
    "a share in the parameters": {"rope_parameters": {"rope_theta": 555.0, "partial_rotary_factor": 0.5}},
    "two shares": {
        "rope_parameters": {"rope_theta": 555.0, "partial_rotary_factor": 0.5}, "partial_rotary_factor": 1.0
    },
    "a share, no parameters": {"partial_rotary_factor": 0.5, "rope_parameters": None, "rope_theta": 777.0},
    "a share, linear": {"partial_rotary_factor": 0.5, "rope_scaling": LINEAR},
    "no share": {"partial_rotary_factor": None},
    "an odd share": {"partial_rotary_factor": 0.3},
    "an odd share in the parameters": {"rope_parameters": {"rope_theta": 555.0, "partial_rotary_factor": 0.7}},
    "layers": {"rope_parameters": {"*": {"rope_type": "default", "rope_theta": 555.0}}},
    "layers without a kind": {"rope_parameters": {"*": {"rope_theta": 555.0}}},
    "layers without bases": {"rope_parameters": {"*": {"rope_type": "default"}}},
    "layers, a base outside": {"rope_parameters": {"*": {"rope_type": "default"}}, "rope_theta": 777.0},
    "layers, linear": {"rope_parameters": {"*": {**LINEAR, "rope_theta": 555.0}}},
    "layers, yarn": {"rope_parameters": {"*": {"rope_type": "yarn", **YARN, "rope_theta": 555.0}}},
    "layers, yarn that does not round": {
        "rope_parameters": {"*": {"rope_type": "yarn", **YARN, **LATER, "rope_theta": 555.0}},
    },
    "layers, yarn that does not round, said outside": {
        "rope_parameters": {"*": {"rope_type": "yarn", **YARN, **LATER, "rope_theta": 555.0}, "truncate": False},
    },
    "yarn that does not round": {"rope_parameters": {"rope_type": "yarn", **YARN, **LATER, "rope_theta": 555.0}},
    "layers, a share": {"rope_parameters": {"*": {"rope_theta": 555.0, "partial_rotary_factor": 0.5}}},
    "layers, a share outside": {
        "rope_parameters": {"*": {"rope_type": "default", "rope_theta": 555.0}}, "partial_rotary_factor": 0.5
    },
    "layers and scaling": {"rope_parameters": {"*": {"rope_theta": 555.0}}, "rope_scaling": LINEAR},
    "layers in the scaling": {"rope_scaling": {"*": {**LINEAR, "rope_theta": 555.0}}},
    "the first kind of layer": {"rope_parameters": {"*0": {"rope_type": "default", "rope_theta": 555.0}}},
    "the last kind of layer": {"rope_parameters": {"*-1": {"rope_type": "default", "rope_theta": 555.0}}},
    "no rotation in a kind of layer": {"rope_parameters": {"*": {"rope_theta": 555.0}, "*0": None}},
    **{key: {key: 0.5 if key.endswith(("pct", "factor", "percent")) else 777.0} for key in OTHER_BASES},
}  # fmt: skip


@cache
def list_small_documents() -> dict[str, tuple[Document, str]]:
    """{model type, perhaps with a class: a config that is quickly built, and its class}."""
    found = {}
    for name in MODEL_TYPES:
        if name in passes.CONFIGS:
            found[name] = (passes.make_document(name), passes.find_class(name))
        elif "." not in name:
            try:
                found[name] = settings.make_small(name)
            except (KeyError, StopIteration):
                continue
    return found


def list_rope_sections(config: Any, prefix: str = "") -> Iterator[tuple[str, list[str]]]:
    """(place of a section with a dot, its layer types) of the sections of a config object with rotary positions."""
    if hasattr(config, "rope_parameters"):
        words = getattr(config, "_rope_type_labels", None) or getattr(config, "layer_types", None) or ()
        yield prefix, sorted(set(words))
    for key in type(config).sub_configs_defaults:
        if (section := getattr(config, key, None)) is not None and not isinstance(section, dict):
            yield from list_rope_sections(section, f"{prefix}{key}.")


def spread(block: Any, words: list[str]) -> Any:
    """A block of a variant for these layer types; ABSENT if there are none."""
    if not isinstance(block, Mapping) or not any(key.startswith("*") for key in block):
        return block
    if not words:
        return ABSENT
    found: dict[str, Any] = {}
    for key, value in block.items():
        for i, word in enumerate(words):
            if not key.startswith("*"):
                found[key] = value
            elif key == "*" or key == f"*{i}" or (key == "*-1" and i == len(words) - 1):
                raised = {"rope_theta": value["rope_theta"] + 100 * i} if value and "rope_theta" in value else {}
                found[word] = None if value is None else {**value, **raised}
    return found


def list_variants(document: Document, cls_name: str) -> Iterator[tuple[str, Document]]:
    """(name, config.json) of each variant of a config.json."""
    try:
        config = make_config(deepcopy(document), cls_name)
    except Exception:
        return
    inside = "text_config." if config.model_type != document["model_type"] and "text_config" in document else ""
    sections = [(place, words) for place, words in list_rope_sections(config, inside) if "vision" not in place]
    for place, words in sections:
        for name, keys in VARIANTS.items():
            blocks = {key: spread(value, words) for key, value in keys.items()}
            if ABSENT in blocks.values():
                continue
            changed = deepcopy(document)
            for key in ("rope_theta", "rope_scaling", "rope_parameters", "partial_rotary_factor", *blocks):
                drop_path(changed, place + key)
            for key, value in blocks.items():
                set_path(changed, place + key, value)
            yield f"{place}{name}", changed


def drop_path(document: Document, path: str) -> None:
    *outer, last = path.split(".")
    for step in outer:
        document = document.get(step) or {}
    document.pop(last, None)


def read_angles(document: Document) -> Angles:
    """Those that paramcount reads, of positions that one number describes.

    Raises: ParamcountError
    """
    found = set()
    sizes = load(deepcopy(document)).sizes
    for flow, *_ in list_flows(sizes):
        for data, *_ in list_steps(flow):
            operation = data.operation
            if isinstance(operation, Rotation):
                rope, d = operation.rope, int(data.shape[-1])
                if isinstance(operation, RotaryCut):
                    d = int(operation.cut_from)
                axes = operation.axes if isinstance(operation, RotaryAt) else None
                if isinstance(rope, Unknown) or isinstance(axes, Unknown):
                    raise ParamcountError("rope is unknown")
                if axes is not None and axes.divides_values:
                    d //= len(axes.sections)
                if isinstance(operation, RotaryApart):
                    d //= int(data.inputs[1].shape[1])
                found.add(make_angles(rope.frequencies(d, 1), rope.attention_factor))
    return frozenset(found)


def make_angles(frequencies: Any, amplitude: float) -> tuple[float, ...]:
    return tuple(float(f"{value:.3e}") for value in (*np.asarray(frequencies, np.float32).ravel(), amplitude))


def build_angles(document: Document, cls_name: str) -> Angles:
    """Those of the modules that the reference builds."""
    found = set()
    model = build_model(deepcopy(document), cls_name, "cpu")
    for module in model.modules():
        for name, buffer in module.named_buffers(recurse=False):
            if name.endswith("inv_freq") and not name.endswith("original_inv_freq"):
                word = name.removesuffix("inv_freq")
                amplitude = getattr(module, f"{word}attention_scaling", getattr(module, "attention_scaling", 1.0))
                found.add(make_angles(buffer.float(), 1.0 if amplitude is None else float(amplitude)))
    return frozenset(found)


def find_difference(document: Document, cls_name: str) -> str:
    """What differs; empty if nothing does."""
    mine: Angles | ParamcountError
    try:
        mine = read_angles(document)
    except ParamcountError as error:
        mine = error
    may_fail = (
        isinstance(mine, ParamcountError)
        or "partial_rotary_factor" in str(document)
        or document["model_type"] in UNSTATED_FAIL
    )
    try:
        expected = build_angles(document, cls_name)
        runs = run_tokens(deepcopy(document), cls_name) if may_fail else None
    except Exception as error:
        return "" if isinstance(mine, ParamcountError) else f"read, though refused: {type(error).__name__}: {error}"
    if isinstance(mine, ParamcountError):
        return "" if runs else f"refused: {mine}"
    if runs:
        return f"read, though it cannot run: {type(runs).__name__}: {runs}"
    if mine - expected:
        return f"{show(mine - expected)} instead of {show(expected - mine)}"
    return ""


def show(angles: Angles) -> str:
    return "; ".join(
        " ".join(f"{value:g}" for value in (*each[:4], each[-1])) + f" ({2 * len(each) - 2})" for each in sorted(angles)
    )


def main(names: list[str]) -> None:
    silence()
    tried = 0
    for name, (document, cls_name) in list_small_documents().items():
        if names and name not in names:
            continue
        differing = {}
        n = 0
        for variant, changed in list_variants(document, cls_name):
            n += 1
            try:
                if found := find_difference(changed, cls_name):
                    differing[variant] = found
            except Exception as error:
                differing[variant] = f"CRASH {type(error).__name__}: {error}"
        tried += n
        if n:
            print(f"{name}: {len(differing)} of {n} differ", flush=True)
        for variant, text in differing.items():
            print(f"    {variant}: {text[:230]}", flush=True)
    print(f"{tried} configs")


if __name__ == "__main__":
    main(sys.argv[1:])
