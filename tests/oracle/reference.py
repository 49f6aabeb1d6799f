"""The reference implementation, built on the meta device from the published config.json of every zoo entry.

`python -m tests.oracle.reference [ID...]` freezes its tensors and sums, of all entries or of some, and the names of the
tensors of one entry of each architecture, into the files of the model types. It needs torch and transformers.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection
from importlib.util import find_spec
from typing import Any

from tests.comparison import load_configs, load_reference, load_reference_names, load_zoo_facts, merge_names
from tests.oracle import differential
from tests.type_files import load_all, load_facts, save_fact

NEED_SCIPY = ("inkling_mm_model",)  # its layers of pixels are assigned by scipy if they are fewer than the scales


def is_built(id: str) -> bool:
    """Whether transformers ships the modeling code of an entry, and what that needs is installed."""
    from transformers import CONFIG_MAPPING

    model_type = load_configs()[id]["model_type"]
    if model_type in NEED_SCIPY and find_spec("scipy") is None:
        return False
    return model_type in CONFIG_MAPPING and differential.can_be_built(model_type)


def build_model(id: str) -> Any:
    """The reference model of an entry on the meta device."""
    import transformers

    import paramcount.zoo as zoo

    document, model = load_configs()[id], zoo.load_entry(id)
    named = (*document.get("architectures", ()), "")[0]
    is_other = named in model.sizes.equivalent_classes and hasattr(transformers, named)
    return differential.build_model(document, named if is_other else model.reading.reference)


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
    if matrix is None and hasattr(model, "embedding_decoder"):
        return int(model.embedding_decoder.bias.numel())
    if matrix is None and type(model).__name__.startswith("Blip"):
        return int(model.text_decoder.get_output_embeddings().bias.numel())
    around = (module for module in model.modules() if getattr(module, "decoder", None) is matrix is not None)
    biases = {id(bias): bias for module in around if (bias := module._parameters.get("bias")) is not None}
    return sum(bias.numel() for bias in biases.values() if bias is not getattr(matrix, "bias", None))


def freeze(ids: list[str]) -> None:
    """Freeze the entries with these ids, or all, and drop what the zoo no longer has."""
    import paramcount.zoo as zoo

    frozen = dict(load_reference())
    for id in ids or load_configs():
        if is_built(id):
            frozen[id] = count_reference(build_model(id))
    save_zoo_facts("reference", {id: facts for id, facts in sorted(frozen.items()) if zoo.find_path(id)})
    freeze_names(drop=ids)


def save_zoo_facts(kind: str, facts: dict[str, dict[str, Any]]) -> None:
    import paramcount.zoo as zoo

    tables: dict[str, dict[str, Any]] = {name: {} for name in load_all(kind)}
    for id, one in facts.items():
        tables.setdefault(str(zoo.load_entry(id).architecture), {})[id] = one
    for name, table in tables.items():
        if table != load_facts(name).get(kind, {}):
            save_fact(name, kind, table)
    load_zoo_facts.cache_clear()


def freeze_names(drop: Collection[str]) -> None:
    """The names of one entry of each architecture: of those recorded, and of the smallest where none has been.

    `drop`: recorded entries to forget first, because their sizes changed.
    """
    import paramcount.zoo as zoo

    totals = {id: facts["total"] for id, facts in load_reference().items()}
    frozen = {id: facts for id, facts in load_reference_names().items() if id not in drop and zoo.find_path(id)}
    recorded = {zoo.load_entry(id).architecture for id in frozen}
    for id in sorted(totals, key=totals.__getitem__):
        name = zoo.load_entry(id).architecture
        if name not in recorded and is_built(id):
            recorded.add(name)
            model = build_model(id)
            frozen[id] = {"prefix": f"{model.base_model_prefix}.", "tensors": list_names(model)}
    save_zoo_facts("reference_names", dict(sorted(frozen.items())))


def list_names(model: Any) -> dict[str, dict[str, int]]:
    """{name as the reference saves it, without its prefix and indices: {shape: how many}}"""
    learned, _ = differential.name_tensors(model)
    named = [(name, shape, 1) for name, shape in learned.items() if 0 not in shape]
    return merge_names(named, f"{model.base_model_prefix}.")


if __name__ == "__main__":
    freeze(sys.argv[1:])
