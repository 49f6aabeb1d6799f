"""The reference implementation, built on the meta device from a zoo entry's own sizes: its tensors and what they sum to.

Needs torch and transformers; `python -m tests.oracle.reference` freezes what it finds into tests/data/reference.json.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

from paramcount.sizes import Sizes, key_of

FROZEN = Path(__file__).parent.parent / "data" / "reference.json"
HAND_WRITTEN = ("qwen", "deepseek")  # model types whose modelling code does not ship with transformers


def config_json(sizes: Sizes) -> dict[str, Any]:
    """Sizes back to the keys of config.json, first spelling of each."""
    config: dict[str, Any] = {}
    for field in type(sizes).model_fields:
        value = getattr(sizes, field)
        if not isinstance(value, Sizes) and (names := key_of(type(sizes), field).spellings(field)):
            config[names[0]] = list(value) if isinstance(value, tuple) else value
    if "dense_layers" in type(sizes).model_fields:
        config |= {"mlp_only_layers": list(sizes.dense_layers), "decoder_sparse_step": 1}  # type: ignore[attr-defined]
    if hasattr(sizes, "vision"):
        eyes = sizes.vision
        ratios = [[1, i + 1] for i in range(eyes.n_aspect_ratios)]
        image = {"image_size": math.isqrt(eyes.n_patches) * eyes.patch_size, "supported_aspect_ratios": ratios}
        return {"text_config": config, "vision_config": config_json(eyes) | image}
    return config


def tensors(model_type: str, sizes: Sizes) -> dict[str, Any]:
    """The reference's own count: class, total, embedding, lm_head, buffers, and how many tensors it has of each shape."""
    import torch
    import transformers

    cls = getattr(transformers, sizes.reference)
    with torch.device("meta"):
        model = cls(cls.config_class(**config_json(sizes)))
    shapes: Counter[str] = Counter()
    for name, tensor in model.named_parameters():
        for shape, copies in one_by_one(name, tuple(tensor.shape), stacked=model_type == "gpt_oss"):
            shapes[as_text(shape)] += copies
    table, head = model.get_input_embeddings().weight, model.get_output_embeddings().weight
    return {
        "class": sizes.reference,
        "total": sum(p.numel() for p in model.parameters()),
        "embedding": table.numel(),
        "lm_head": 0 if head is table else head.numel(),
        "buffers": sum(b.numel() for name, b in model.named_buffers() if name in model.state_dict()),
        "shapes": dict(sorted(shapes.items())),
    }


def one_by_one(name: str, shape: tuple[int, ...], *, stacked: bool) -> list[tuple[tuple[int, ...], int]]:
    """Transformers 5 stacks experts and fuses their gate and up; most released files hold them one by one."""
    if stacked or ".experts." not in name or len(shape) != 3:
        return [(shape, 1)]
    n, rows, columns = shape
    return [((rows // 2, columns), 2 * n)] if "gate_up" in name else [((rows, columns), n)]


def as_text(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape))


def freeze() -> None:
    from paramcount import zoo

    frozen = json.loads(FROZEN.read_text()) if FROZEN.exists() else {}
    kept = {id: facts for id, facts in frozen.items() if facts.get("derived")}
    for id in zoo.ids():
        model = zoo.entry(id)
        if model.architecture and model.architecture not in HAND_WRITTEN:
            kept[id] = tensors(model.architecture, model.sizes)
    FROZEN.write_text(json.dumps(dict(sorted(kept.items())), ensure_ascii=False, indent=0) + "\n")


if __name__ == "__main__":
    freeze()
