"""What llama.cpp's own converter makes of the declared tensors: `python -m tests.oracle.gguf_layouts FOLDER`, that of
its sources.

Rewrites the tensors in tests/data/types, entry by entry, from their configs. The declared tensors, with
random values, stand for a checkpoint; the converter's `prepare_tensors` names, shapes, splits and joins them, and what
it hands to the writer is frozen. Needs torch, transformers and safetensors.
"""

from __future__ import annotations

import copy
import json
import logging
import sys
import tempfile
from pathlib import Path
from typing import Any

from paramcount.api import count
from paramcount.checkpoints.matching import expand_names
from paramcount.checkpoints.writers.rewriting import transpose
from paramcount.flow import TensorRow
from tests.gguf_layouts import group_names, load_entries
from tests.type_files import save_fact

HEADLESS = ("BertModel", "RobertaModel", "XLMRobertaModel")  # what they publish for embeddings
TOKENS = 90  # of a tokenizer, where a converter counts them
TURNED = (
    "Qwen3VLMoeForConditionalGeneration",
)  # publishes its experts the other way round than the reference keeps them


def list_published(config: dict[str, Any], cls: str) -> dict[str, tuple[int, ...]]:
    """Names and shapes in a checkpoint: each tensor once, an encoder without a head."""
    tensors: list[TensorRow] = []
    for tensor in count(config).tensors:
        headless = cls in HEADLESS and tensor.name.startswith(("lm_head", "cls."))
        if tensor.tied_to is None and tensor.role != "legacy_buffer" and not headless:
            tensors.append(transpose(tensor) if cls in TURNED and tensor.stacked else tensor)
    return {name: tensor.shape for name, tensor in expand_names(tensors).items()}


def convert_model(config: dict[str, Any], cls: str, options: dict[str, Any]) -> tuple[str, dict[str, tuple[int, ...]]]:
    """The architecture, and the names and shapes, that the converter writes."""
    import gguf
    import torch
    from conversion import ModelBase, ModelType, get_model_architecture, get_model_class
    from safetensors.torch import save_file

    generator = torch.Generator().manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        save_file(
            {name: torch.rand(shape, generator=generator) for name, shape in list_published(config, cls).items()},
            at / "model.safetensors",
        )
        (at / "config.json").write_text(json.dumps(config | {"architectures": [cls]}))
        (at / "tokenizer.json").write_text(
            json.dumps({"model": {"vocab": {str(i): i for i in range(TOKENS)}}, "added_tokens": []})
        )
        keys = ModelBase.load_hparams(at, False) | {"architectures": [cls]}
        converter = get_model_class(get_model_architecture(keys, ModelType.TEXT))
        converter.no_mtp = options.get("no_mtp", False)
        more = {key: value for key, value in options.items() if key != "no_mtp"}
        names = gguf.TensorNameMap.block_mappings_cfg  # which one architecture changes for all that come after it
        gguf.TensorNameMap.block_mappings_cfg = copy.deepcopy(names)
        with torch.inference_mode():
            model = converter(at, gguf.LlamaFileType.ALL_F32, at / "model.gguf", eager=True, hparams=keys, **more)
            model.prepare_tensors()
        gguf.TensorNameMap.block_mappings_cfg = names
        writer = getattr(model, "impl", model).gguf_writer
        shapes = {name: tuple(int(n) for n in info.shape) for shard in writer.tensors for name, info in shard.items()}
        return writer.arch, shapes


def main(folder: str) -> None:
    sys.path[:0] = [f"{folder}/gguf-py", folder]
    logging.disable(logging.CRITICAL)
    found: dict[str, list[Any]] = {}
    for entry in load_entries():
        architecture, shapes = convert_model(entry.config, entry.cls, entry.options)
        facts = {
            "class": entry.cls,
            "config": entry.config,
            "options": entry.options,
            "architecture": architecture,
            "tensors": group_names(shapes),
        }
        known = {key: value for key, value in facts.items() if value}
        found.setdefault(entry.config["model_type"], []).append(known)
    for name, entries in found.items():
        save_fact(name, "gguf_layouts", entries)


if __name__ == "__main__":
    main(sys.argv[1])
