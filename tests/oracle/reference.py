"""The reference implementation, built on the meta device from a zoo entry's own sizes: its tensors and what they sum
to.

Needs torch and transformers; `python -m tests.oracle.reference` freezes what it finds into tests/data/reference.json,
and the names of the tensors of one or two entries of each architecture into tests/data/named_shapes.json.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

from paramcount.sizes import Sizes, get_key

FROZEN = Path(__file__).parent.parent / "data" / "reference.json"
NAMED = FROZEN.with_name("named_shapes.json")
HAND_WRITTEN = ("qwen", "deepseek")  # model types whose modelling code does not ship with transformers


def make_config(sizes: Sizes) -> dict[str, Any]:
    """Sizes back to the keys of config.json, first spelling of each."""
    config: dict[str, Any] = {}
    for field in type(sizes).model_fields:
        value = getattr(sizes, field)
        if not isinstance(value, Sizes) and (names := get_key(type(sizes), field).spellings(field)):
            config[names[0]] = list(value) if isinstance(value, tuple) else value
    if sizes.reference == "JambaForCausalLM":
        config |= jamba_keys(sizes)
    elif sizes.reference == "T5ForConditionalGeneration":
        config |= {"feed_forward_proj": "gated-gelu" if sizes.gated else "relu"}  # type: ignore[attr-defined]
    elif "cross_attention_layers" in type(sizes).model_fields:
        config |= {"cross_attention_layers": list(sizes.cross_attention_layers)}  # type: ignore[attr-defined]
    elif "dense_layers" in type(sizes).model_fields:
        config |= {"mlp_only_layers": list(sizes.dense_layers), "decoder_sparse_step": 1}  # type: ignore[attr-defined]
    if hasattr(sizes, "vision"):
        eyes = sizes.vision
        ratios = [[1, i + 1] for i in range(eyes.n_aspect_ratios)]
        image = {"image_size": math.isqrt(eyes.n_patches) * eyes.patch_size, "supported_aspect_ratios": ratios}
        return {"text_config": config, "vision_config": make_config(eyes) | image}
    return config


def jamba_keys(c: Any) -> dict[str, Any]:
    """How often attention and experts come, and where first; the widths inside of Mamba."""
    attention = [i for i, word in enumerate(c.layer_types) if word == "attention"]
    experts = sorted(set(range(c.n_layers)) - set(c.dense_layers))
    every = {"attn_layer_period": attention[1] - attention[0], "expert_layer_period": experts[1] - experts[0]}
    first = {"attn_layer_offset": attention[0], "expert_layer_offset": experts[0]}
    return {**every, **first, "mamba_expand": c.d_inner // c.d_model, "mamba_dt_rank": c.dt_rank}


def build_model(sizes: Sizes) -> Any:
    """The reference model on the meta device."""
    import torch
    import transformers

    cls = getattr(transformers, sizes.reference)
    with torch.device("meta"):
        return cls(cls.config_class(**make_config(sizes)))


def count_reference(model_type: str, sizes: Sizes) -> dict[str, Any]:
    """The reference's own count: class, total, embedding, lm_head, buffers, and how many tensors it has of each
    shape.
    """
    model = build_model(sizes)
    shapes: Counter[str] = Counter()
    for name, tensor in model.named_parameters():
        for shape, copies in split_tensor(name, tuple(tensor.shape), stacked=model_type == "gpt_oss"):
            shapes[format_dims(shape)] += copies
    table, head = model.get_input_embeddings().weight, model.get_output_embeddings().weight
    return {
        "class": sizes.reference,
        "total": sum(p.numel() for p in model.parameters()),
        "embedding": table.numel(),
        "lm_head": 0 if head is table else head.numel(),
        "buffers": sum(b.numel() for name, b in model.named_buffers() if name in model.state_dict()),
        "shapes": dict(sorted(shapes.items())),
    }


def list_names(sizes: Sizes) -> dict[str, tuple[tuple[int, ...], int]]:
    """{name in the reference, without the layer's index: (shape, how many)}"""
    found: dict[str, tuple[tuple[int, ...], int]] = {}
    for name, tensor in build_model(sizes).named_parameters():
        name = re.sub(
            r"\.\d+(?=\.)", ".{}", name, count=1
        )  # of the layer; what else is numbered in it are places of their own
        shape = tuple(tensor.shape)
        before, copies = found.get(name, (shape, 0))
        if before != shape:
            raise ValueError(f"{name} is {before} and {shape}")
        found[name] = shape, copies + 1
    return found


def split_tensor(name: str, shape: tuple[int, ...], *, stacked: bool) -> list[tuple[tuple[int, ...], int]]:
    """Transformers 5 stacks experts and fuses their gate and up; most released files hold them one by one."""
    if stacked or ".experts." not in name or len(shape) != 3:
        return [(shape, 1)]
    n, rows, columns = shape
    return [((rows // 2, columns), 2 * n)] if "gate_up" in name else [((rows, columns), n)]


def format_dims(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape))


def freeze() -> None:
    from paramcount import zoo

    frozen = json.loads(FROZEN.read_text()) if FROZEN.exists() else {}
    kept = {id: facts for id, facts in frozen.items() if facts.get("derived")}
    for id in zoo.list_ids():
        model = zoo.load_entry(id)
        if model.architecture and model.architecture not in HAND_WRITTEN:
            kept[id] = count_reference(model.architecture, model.sizes)
    FROZEN.write_text(json.dumps(dict(sorted(kept.items())), ensure_ascii=False, indent=0) + "\n")
    freeze_names()


def freeze_names() -> None:
    """The names of the entries that have been recorded, and of the first entry of an architecture of which none has."""
    from paramcount import zoo

    frozen = json.loads(NAMED.read_text())
    recorded = {zoo.load_entry(id).architecture for id in frozen}
    for id in zoo.list_ids():
        name = zoo.load_entry(id).architecture
        if name and name not in HAND_WRITTEN and (id in frozen or name not in recorded):
            recorded.add(name)
            frozen[id] = list_names(zoo.load_entry(id).sizes)
    entries = [
        f"{json.dumps(id)}: {{\n"
        + ",\n".join(f"{json.dumps(n)}: {json.dumps(t)}" for n, t in frozen[id].items())
        + "\n}"
        for id in sorted(frozen)
    ]
    NAMED.write_text("{\n" + ",\n".join(entries) + "\n}\n")


if __name__ == "__main__":
    freeze()
