"""The model in a GGUF file: sizes from its metadata, accepted only if every tensor of the file is one of the model's.

The names of metadata are llama.cpp's. Several model types share one of its architectures: each is tried until one has
exactly the file's tensors. Source: github ggml-org/llama.cpp, gguf-py/gguf/constants.py (Keys).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import paramcount.zoo as zoo
from paramcount.architectures import architecture, read_index
from paramcount.checkpoints.checkpoint import Checkpoint
from paramcount.checkpoints.opening.locate import open_checkpoint
from paramcount.checkpoints.packed.quantised import Unpacked, unpack
from paramcount.checkpoints.verify import verify_checkpoint
from paramcount.checkpoints.writers.gguf_tables import HEADLESS
from paramcount.counting.components import TOWERS
from paramcount.errors import ParamcountError, make_printable, quote
from paramcount.huggingface.config import read_config
from paramcount.output.numbers import format_bytes
from paramcount.sizes import Sizes, get_key

ALTERNATIVE = "`paramcount PATH` counts its tensors"
# {size: the metadata that state it, behind the architecture's name}
METADATA = {
    "d_model": ("embedding_length",),
    "n_layers": ("block_count",),
    "n_heads": ("attention.head_count",),
    "n_kv_heads": ("attention.head_count_kv",),
    "d_head": ("attention.key_length",),
    "d_ff": ("feed_forward_length",),
    "n_positions": ("context_length",),
    "window": ("attention.sliding_window",),
    "n_routed_experts": ("expert_count",),
    "n_active_experts": ("expert_used_count",),
    "d_expert": ("expert_feed_forward_length", "feed_forward_length"),
    "n_shared_experts": ("expert_shared_count",),
    "d_shared_expert": ("expert_shared_feed_forward_length",),
    "n_dense_layers": ("leading_dense_block_count",),
    "n_mtp_layers": ("nextn_predict_layers",),
    "d_q_lora": ("attention.q_lora_rank",),
    "d_kv_lora": ("attention.kv_lora_rank",),
    "d_rope": ("rope.dimension_count",),
    "d_v": ("attention.value_length_mla", "attention.value_length"),
    "d_state": ("ssm.state_size",),
    "d_conv": ("ssm.conv_kernel",),
    "d_inner": ("ssm.inner_size",),
    "dt_rank": ("ssm.time_step_rank",),
}
NEEDED = ("d_model", "n_layers", "n_heads")  # if the model has them
# {flag: tensors of a layer of which one is there if it is set}
FLAGS = {
    "attention_bias": ("attn_q.bias", "attn_qkv.bias"),
    "qkv_bias": ("attn_q.bias", "attn_qkv.bias"),
    "o_bias": ("attn_output.bias",),
    "mlp_bias": ("ffn_up.bias", "ffn_down.bias"),
    "qk_norm": ("attn_q_norm.weight",),
}
SETTINGS = {"rope_theta": "rope.freq_base", "rms_norm_eps": "attention.layer_norm_rms_epsilon"}


def load_gguf(path: Path) -> zoo.Model:
    """The model in a GGUF file, whose name is that of the file.

    Raises: ParamcountError if no model type has exactly its tensors.
    """
    checkpoint = open_checkpoint(path)
    name = checkpoint.metadata.get("general.architecture")
    place = make_printable(path)
    if not isinstance(name, str):
        raise ParamcountError("does not state general.architecture", where=place, expected=ALTERNATIVE)
    content = unpack(checkpoint)
    types = list_model_types(name)
    for model_type in types:
        model = try_model_type(model_type, name, checkpoint, content)
        if model is not None:
            return describe(model, path, name, checkpoint)
    problem = f"has the architecture {quote(name)} of llama.cpp, which paramcount does not read"
    if types:
        problem = f"has tensors that no model with the architecture {quote(name)} of llama.cpp has with its metadata"
    raise ParamcountError(problem, where=place, expected=ALTERNATIVE)


def list_model_types(name: str) -> list[str]:
    """The model types with an architecture of llama.cpp; the one of the same name comes first."""
    found = [
        declared for declared, names in read_index("gguf").items() if name in names.split() and "." not in declared
    ]
    plain = name.replace("-", "").replace("_", "")
    return sorted(found, key=lambda declared: declared.replace("-", "").replace("_", "") != plain)


def try_model_type(model_type: str, name: str, checkpoint: Checkpoint, content: Unpacked) -> zoo.Model | None:
    """The model of this type with the file's sizes; None if it has other tensors than the file."""
    cls = architecture(model_type)
    metadata = {
        key.removeprefix(f"{name}."): value
        for key, value in checkpoint.metadata.items()
        if key.startswith(f"{name}.") and not isinstance(value, str)
    }
    values: dict[str, Any] = dict(read_sizes(metadata, cls.fields))
    has_experts = values.get("n_routed_experts", 0) > 0
    if any(field in cls.fields and field not in values for field in NEEDED):
        return None
    if has_experts != ("n_routed_experts" in cls.fields) or (has_experts and "n_active_experts" not in values):
        return None
    values |= read_tensors(checkpoint, cls)
    absent = {"n_mtp_layers": 0, "d_q_lora": None}  # what it means that metadata do not state a size
    values = {field: value for field, value in absent.items() if field in cls.fields} | values
    document = {
        "model_type": model_type,
        "pad_token_id": None,
        **dict(write_keys(cls, values)),
        **read_settings(metadata, has_experts),
    }
    try:
        config = read_config(document, name)
        model = zoo.Model(
            config.id, config.name, config.sizes, config.architecture, config.reading, config.context_length
        )
        count = zoo.count_model(model)
        if any(tensor.part in TOWERS for tensor in count.tensors) or (name in HEADLESS and count.lm_head):
            return None  # the file lacks the model's other parts, or its LM head, whose sizes it does not state
        return model if verify_checkpoint(model, checkpoint, content).ok else None
    except ParamcountError:
        return None


def read_sizes(metadata: Mapping[str, Any], fields: Collection[str]) -> Iterator[tuple[str, int]]:
    """(size, value) for the sizes that metadata state."""
    for field, keys in METADATA.items():
        value = next((metadata[key] for key in keys if key in metadata), None)
        if field in fields and type(value) is int:
            yield field, value - metadata.get("nextn_predict_layers", 0) if field == "n_layers" else value
    if "d_nope" in fields and type(rotated := metadata.get("rope.dimension_count")) is int:
        whole = metadata.get("attention.key_length_mla", metadata.get("attention.key_length"))
        if type(whole) is int:
            yield "d_nope", whole - rotated


def read_tensors(checkpoint: Checkpoint, cls: type[Sizes]) -> dict[str, Any]:
    """The sizes and flags that the names and shapes of tensors tell."""
    tensors = checkpoint.tensors
    found: dict[str, Any] = {"tie_word_embeddings": "output.weight" not in tensors}
    for field, name, axis in (("vocab_size", "token_embd.weight", 0), ("n_positions", "position_embd.weight", 0)):
        if name in tensors and (shape := tensors[name].shape):
            found[field] = shape[axis]
    if "token_types.weight" in tensors and (shape := tensors["token_types.weight"].shape):
        found["n_token_types"] = shape[0]
    in_layers = {name.split(".", 2)[2] for name in tensors if name.startswith("blk.") and name.count(".") > 1}
    found |= {flag: not in_layers.isdisjoint(names) for flag, names in FLAGS.items()}
    return {field: value for field, value in found.items() if field in cls.fields}


def write_keys(cls: type[Sizes], values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """(key of a config.json, value) for the sizes that a config.json states."""
    for field, value in values.items():
        key = get_key(cls, field)
        spellings = key.spellings(field)
        if spellings and not spellings[0].startswith("/"):
            yield spellings[0], value


def read_settings(metadata: Mapping[str, Any], has_experts: bool) -> dict[str, Any]:
    found = {key: metadata[name] for key, name in SETTINGS.items() if type(metadata.get(name)) is float}
    if has_experts:  # all in one group unless the file says otherwise
        found["n_group"] = metadata.get("expert_group_count", 1)
        found["topk_group"] = metadata.get("expert_group_used_count", 1)
    return found


def describe(model: zoo.Model, path: Path, name: str, checkpoint: Checkpoint) -> zoo.Model:
    """The model with the name of its file, and notes on where its sizes come from and what the file stores."""
    stored = sum(tensor.size or 0 for tensor in checkpoint.tensors.values())
    notes = (
        f"read as a GGUF file of llama.cpp's architecture {make_printable(name, 40)}, all tensors of which match",
        f"the file stores the weights in {format_bytes(stored)}",
    )
    reading = model.reading._replace(notes=(*notes, *model.reading.notes))
    stem = make_printable(path.stem, 100)
    return replace(model, id=make_printable(path), name=stem, reading=reading)
