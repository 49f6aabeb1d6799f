"""The reference implementation, built on the meta device from the published config.json of every zoo entry.

`python -m tests.oracle.reference [ID...]` freezes its tensors and sums into tests/data/reference.json, of all entries
or of some, and the names of the tensors of one or two entries of each architecture into tests/data/named_shapes.json.
It needs torch and transformers.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from typing import Any

from tests.comparison import NAMED, REFERENCE, load_configs
from tests.oracle import differential


def is_built(id: str) -> bool:
    """Whether transformers ships the modeling code of an entry, so that its reference can be built."""
    from transformers import CONFIG_MAPPING

    return load_configs()[id]["model_type"] in CONFIG_MAPPING


def build_model(id: str) -> Any:
    """The reference model of an entry on the meta device."""
    import paramcount.zoo as zoo

    return differential.build_model(load_configs()[id], zoo.load_entry(id).sizes.reference)


def count_reference(model: Any) -> dict[str, Any]:
    """The reference's own count: class, total, embedding, lm_head, buffers, and how many saved tensors it has of each
    shape.
    """
    sums = {"lm_head": 0, **differential.sum_reference(model)}
    sums["lm_head"] += count_outer_bias(model)
    learned, _ = differential.name_tensors(model)
    shapes = Counter("×".join(map(str, shape)) for shape in learned.values())
    return {
        "class": type(model).__name__,
        **{name: sums[name] for name in ("total", "embedding", "lm_head", "buffers")},
        "shapes": dict(sorted(shapes.items())),
    }


def count_outer_bias(model: Any) -> int:
    """Values of a bias that the module around the LM head's matrix owns, as in ESM; 0 if the matrix owns its bias."""
    matrix = model.get_output_embeddings()
    around = (module for module in model.modules() if getattr(module, "decoder", None) is matrix is not None)
    biases = {id(bias): bias for module in around if (bias := module._parameters.get("bias")) is not None}
    return sum(bias.numel() for bias in biases.values() if bias is not getattr(matrix, "bias", None))


def list_names(model: Any) -> dict[str, tuple[tuple[int, ...], int]]:
    """{name in the reference, without the layer's index: (shape, how many)}"""
    found: dict[str, tuple[tuple[int, ...], int]] = {}
    for name, tensor in model.named_parameters():
        name = re.sub(r"\.\d+(?=\.)", ".{}", name, count=1)  # the layer's index; other numbers name distinct tensors
        shape = tuple(tensor.shape)
        before, copies = found.get(name, (shape, 0))
        if before != shape:
            raise ValueError(f"{name} is {before} and {shape}")
        found[name] = shape, copies + 1
    return found


def freeze(ids: list[str]) -> None:
    """Freeze the entries with these ids, or all, and drop what the zoo no longer has."""
    import paramcount.zoo as zoo

    frozen = json.loads(REFERENCE.read_text(encoding="utf-8"))
    for id in ids or load_configs():
        if is_built(id):
            frozen[id] = count_reference(build_model(id))
    kept = {id: facts for id, facts in sorted(frozen.items()) if zoo.find_path(id)}
    lines = [f"{json.dumps(id)}: {json.dumps(facts, ensure_ascii=False)}" for id, facts in kept.items()]
    REFERENCE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    freeze_names()


def freeze_names() -> None:
    """The names of the entries that have been recorded, and of the first entry of an architecture of which none has."""
    import paramcount.zoo as zoo

    frozen = json.loads(NAMED.read_text(encoding="utf-8"))
    recorded = {zoo.load_entry(id).architecture for id in frozen}
    for id in load_configs():
        name = zoo.load_entry(id).architecture
        if name not in recorded and is_built(id):
            recorded.add(name)
            frozen[id] = list_names(build_model(id))
    entries = [
        f"{json.dumps(id)}: {{\n"
        + ",\n".join(f"{json.dumps(n)}: {json.dumps(t)}" for n, t in frozen[id].items())
        + "\n}"
        for id in sorted(frozen)
    ]
    NAMED.write_text("{\n" + ",\n".join(entries) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    freeze(sys.argv[1:])
