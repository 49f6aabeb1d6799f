"""The model types of transformers 5.23.0 that read images or videos and nothing else.

`python -m tests.oracle.image_types` writes paramcount/huggingface/image_types.json: the types of which all classes that
the automatic mappings name say so themselves (`input_modalities`), and those that generate masks, without the types
whose config has a section for a text.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import paramcount.huggingface

PATH = Path(paramcount.huggingface.__file__).with_name("image_types.json")
SEEN = {"image", "video"}


def list_mapped() -> Iterator[tuple[str, str]]:
    """(model type, class) of every mapping of models."""
    from transformers.models.auto import modeling_auto

    for name, mapping in vars(modeling_auto).items():
        if name.startswith("MODEL_") and name.endswith("_MAPPING_NAMES"):
            for model_type, classes in mapping.items():
                for cls in classes if isinstance(classes, tuple) else (classes,):
                    yield model_type, cls


def list_image_types() -> list[str]:
    read: dict[str, set[str]] = defaultdict(set)
    for model_type, cls in list_mapped():
        read[model_type] |= find_modalities(cls)
    found = {model_type for model_type, modalities in read.items() if modalities <= SEEN}
    return sorted(name for name in found | list_mask_types() if not has_text(name))


def list_mask_types() -> set[str]:
    """Those that read points and boxes besides an image."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASK_GENERATION_MAPPING_NAMES

    return set(MODEL_FOR_MASK_GENERATION_MAPPING_NAMES)


def has_text(model_type: str) -> bool:
    from transformers import CONFIG_MAPPING

    return "text_config" in getattr(CONFIG_MAPPING[model_type], "sub_configs_defaults", {})


def find_modalities(cls: str) -> set[str]:
    """What a class reads; something else if it needs a library that is not installed."""
    import transformers

    try:
        found = getattr(transformers, cls, None)
        modalities = getattr(found, "input_modalities", None) or "unknown"
    except (ImportError, RuntimeError):
        modalities = "unknown"
    return {modalities} if isinstance(modalities, str) else set(modalities)


def format_types(types: list[str]) -> str:
    return "[\n" + ",\n".join(map(json.dumps, types)) + "\n]\n"


if __name__ == "__main__":
    PATH.write_text(format_types(list_image_types()), encoding="utf-8")
