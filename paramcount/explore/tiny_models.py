"""The tiny models for the page: their declared flows, operation by operation, and the files of their weights.

JavaScript computes an operation by the name of its class from what stands here; what is computed in which order, and
with which weights, is said here alone.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from paramcount.checkpoints.folding import strip_indices
from paramcount.checkpoints.opening.locate import open_checkpoint
from paramcount.counting.sum_weights import list_flows
from paramcount.counting.tensors import list_tensors
from paramcount.errors import ParamcountError
from paramcount.execution.sources import TensorSource, find_sources
from paramcount.explore.tiny_sentences import DESCRIPTIONS, SENTENCES
from paramcount.flow import Body, Data, Operation, Rotation
from paramcount.flow.masks import Mask
from paramcount.flow.operation import require
from paramcount.flow.walk import OUTSIDE, Names, enter_body, fold_weight
from paramcount.loading import load
from paramcount.output.weight_names import name_block, name_component, name_tensor
from paramcount.tiny import ALPHABET, END, LONGEST, NAMES, SEPARATOR, find_folder
from paramcount.zoo import Model, count_model

WEIGHTS = "model.safetensors"
COMPRESSION = 9


class ExportPlace(NamedTuple):
    """What a body inherits from the flow around it."""

    names: Names = OUTSIDE
    repeats: tuple[Any, ...] = ()
    part: str = "decoder"


def export_tiny_models() -> bytes:
    """The tiny models, compressed: the number of bytes of a JSON text, the text, and the files of weights.

    Raises: ParamcountError if a file does not have the tensors of its model.
    """
    files: list[bytes] = []
    models = []
    for name in NAMES:
        folder = find_folder(name)
        if folder is None:
            raise ParamcountError(f"{name} has no folder")
        content = (folder / WEIGHTS).read_bytes()
        models.append(export_model(load(name), name) | {"n_bytes": len(content)})
        files.append(content)
    letters = {"alphabet": ALPHABET, "separator": SEPARATOR, "end": END, "longest": LONGEST}
    data = {**letters, "sentences": SENTENCES, "models": models}
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
    return gzip.compress(b"".join((len(text).to_bytes(4, "little"), text, *files)), COMPRESSION, mtime=0)


def export_model(model: Model, name: str) -> dict[str, Any]:
    """The flow of a tiny model, with its count."""
    count = count_model(model)
    out, part = next(iter(list_flows(model.sizes, model.reading.head)))
    tensors = list(list_tensors(model.sizes, model.reading.head))
    folder = find_folder(name)
    sources = find_sources(tensors, list(open_checkpoint(str(folder)).tensors))
    flow = FlowExport(sources).export(out, {}, ExportPlace(part=part))
    return {
        "id": name,
        "description": DESCRIPTIONS[name],
        "total": count.total,
        "active": count.active,
        "flow": flow,
    }


class FlowExport:
    """A walk over a flow that yields its operations in the order in which they are computed."""

    def __init__(self, sources: Mapping[str, TensorSource]) -> None:
        self.sources = sources

    def export(self, out: Data, given: Mapping[int, Data], place: ExportPlace) -> dict[str, Any]:
        """The operations that `out` needs, each after its inputs. `given`: data that come from outside, by id."""
        nodes: list[dict[str, Any]] = []
        indices: dict[int, int] = {}

        def visit(data: Data) -> int:
            if id(data) not in indices:
                inputs = [] if id(data) in given else [visit(before) for before in data.inputs]
                nodes.append(self.export_node(data, inputs, place))
                indices[id(data)] = len(nodes) - 1
            return indices[id(data)]

        inputs = [visit(data) for data in given.values()]
        return {"out": visit(out), "inputs": inputs, "nodes": nodes}

    def export_node(self, data: Data, inputs: list[int], place: ExportPlace) -> dict[str, Any]:
        operation = data.operation
        node: dict[str, Any] = {
            "operation": type(operation).__name__,
            "label": operation.label,
            "title": name_step(data),
            "note": operation.describe(),
            "form": operation.form.name,
            "parameters": export_parameters(operation, data),
            "shape": [n if isinstance(n, int) else str(n) for n in data.shape],
            "inputs": inputs,
        }
        if data.weights:
            node["weights"] = [self.export_weight(weight, place) for weight in data.weights]
        if data.bodies:
            node["bodies"] = [self.export_body(data, body, place) for body in data.bodies]
        return node

    def export_weight(self, weight: Any, place: ExportPlace) -> dict[str, Any]:
        """The name of a stored tensor, with {layer} and {expert}, its shape and what it belongs to."""
        row = fold_weight(weight, place.names, place.repeats, place.part)
        declared = row.tied_to or row.name
        source = self.sources.get(strip_indices(declared), TensorSource((strip_indices(declared),)))
        if len(source.names) != 1 or source.rows or source.is_stacked:
            raise ParamcountError("is a part of another tensor", where=declared, expected="a tensor of its own")
        name = source.names[0]
        for repeat in row.repeats:
            name = name.replace("{}", f"{{{repeat.axis}}}", 1)
        return {"name": name, "shape": [int(n) for n in weight.shape], "component": weight.component}

    def export_body(self, data: Data, body: Body, place: ExportPlace) -> dict[str, Any]:
        names, repeats = enter_body(data, body, place.names, place.repeats)
        inside = self.export(
            body.out, {id(x): x for x in body.inputs}, ExportPlace(names, repeats, data.part or place.part)
        )
        return inside | {"axis": body.repeat.axis, "indices": list(body.repeat.indices)}


def name_step(data: Data) -> str:
    """An operation as people call it, by its weights or by the part of them that it takes: "attention: queries"."""
    operation = data.operation
    component = getattr(operation, "component", None)
    if operation.state_shapes:  # its weights say less
        return operation.label
    if data.weights:
        first = data.weights[0]
        components = [name for name, _ in first.splits] or [first.component]
        name = name_tensor(first.name, components)
        component = components[0]
    elif component:
        name = name_component(component, "")
    else:
        return operation.label
    block = name_block(component)
    return f"{block}: {name}" if block and block != name else name


def export_parameters(operation: Operation, data: Data) -> dict[str, Any]:
    """The parameters of an operation as plain data; a rotation has its frequencies."""
    if isinstance(operation, Rotation):
        rope = require(operation.rope)
        if rope.scaling is not None:
            raise ParamcountError("frequencies change with the length of the text", where=operation.label)
        frequencies = rope.frequencies(int(data.shape[-1]), 1).tolist()
        return {"frequencies": frequencies, "factor": rope.attention_factor, "pairing": operation.pairing}
    return {name: export_value(require(getattr(operation, name))) for name in operation.fields}


def export_value(value: Any) -> Any:
    """A parameter as plain data; of a mask, the kinds that it is made of."""
    if isinstance(value, Mask):
        return [type(part).__name__ for part in value.parts]
    return list(map(export_value, value)) if isinstance(value, tuple) else value
