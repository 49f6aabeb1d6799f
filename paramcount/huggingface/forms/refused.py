"""Files of other tools, which are recognised and refused by name: what each is, and what to pass instead."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from paramcount.errors import ParamcountError, make_printable

CONFIG = "a model's config.json"
SIBLING = "the config.json in the same directory"
CONFIG_OF_CHECKPOINT = f"{SIBLING}; `paramcount PATH` counts a checkpoint"
BASE = "the config.json of the model that it trains"
LANGUAGE_MODEL = "the config.json of a language model"

# (keys that identify the kind, what it is, what to pass instead). The first that fits is meant.
FILES: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (("_diffusers_version", "scheduler"), "a diffusion pipeline's model_index.json",
     f"{LANGUAGE_MODEL}, such as text_encoder/"),
    (("_diffusers_version",), "a diffusion pipeline's config", CONFIG),
    (("_class_name",), "a diffusion pipeline's config", CONFIG),
    (("weight_map",), "the index of a checkpoint's shards", CONFIG_OF_CHECKPOINT),
    (("tokenizer_class",), "a tokenizer's config", SIBLING),
    (("added_tokens", "model"), "a tokenizer", SIBLING),
    (("added_tokens_decoder",), "a tokenizer's config", SIBLING),
    (("processor_class",), "a processor's config", SIBLING),
    (("image_processor_type",), "an image processor's config", SIBLING),
    (("feature_extractor_type",), "a feature extractor's config", SIBLING),
    (("_from_model_config",), "a generation config", SIBLING),
    (("eos_token_id", "temperature"), "a generation config", SIBLING),
    (("word_embedding_dimension", "pooling_mode_mean_tokens"), "a pooling config of sentence-transformers",
     "the directory of the model, one level up"),
    (("max_seq_length", "do_lower_case"), "a config of sentence-transformers", SIBLING),
    (("dim", "n_layers", "n_heads"), "params.json of an original release",
     "the config.json of the Hugging Face version"),
    (("n_dim", "n_layers"), "a config of another tool", CONFIG),
    (("zero_optimization",), "a DeepSpeed config", BASE),
    (("train_batch_size",), "a training config", CONFIG),
    (("base_model", "datasets"), "an axolotl training config", BASE),
    (("base_model", "adapter"), "an axolotl training config", BASE),
    (("model_name_or_path", "stage"), "a LLaMA-Factory training config", BASE),
    (("model_name_or_path", "finetuning_type"), "a LLaMA-Factory config", BASE),
    (("model_name_or_path",), "a training config", BASE),
    (("parallelism", "tokens"), "a nanotron training config",
     f"{CONFIG}, with model_type and the keys of model.model_config"),
    (("checkpointer", "tokenizer"), "a torchtune recipe", BASE),
    (("model_args", "training_args"), "a training config", BASE),
    (("run_name", "fsdp", "model"), "an OLMo training config", CONFIG),
    (("trainer", "exp_manager"), "a NeMo training config", CONFIG),
    (("model", "training", "job"), "a torchtitan training config", CONFIG),
    (("models", "merge_method"), "a mergekit config", "the config.json of the merged model"),
    (("slices", "merge_method"), "a mergekit config", "the config.json of the merged model"),
    (("num_layers", "hidden_size", "num_attention_heads", "seq_length"), "a Megatron config",
     f"{CONFIG}, with model_type"),
    (("num-layers", "hidden-size"), "a Megatron or GPT-NeoX config", f"{CONFIG}, with model_type"),
    (("num_layers", "pipe_parallel_size"), "a GPT-NeoX config", f"{CONFIG}, with model_type"),
    (("model_lib", "context_window_size"), "an MLC config", SIBLING),
    (("model", "temperature"), "the config of a program that calls a model", CONFIG),
    (("model", "max_tokens"), "the config of a program that calls a model", CONFIG),
    (("model", "api_key"), "the config of a program that calls a model", CONFIG),
    (("__metadata__",), "the header of a safetensors file", CONFIG_OF_CHECKPOINT),
)  # fmt: skip


# (pattern near the beginning of a text that is no JSON, what it is, what to pass instead)
TEXTS = (
    (re.compile(r"^FROM\s+(?P<name>\S+)", re.MULTILINE), "an Ollama Modelfile", "the model that FROM names: {name}"),
    (re.compile(r"--num-layers\s"), "a Megatron script", f"{CONFIG}, with model_type"),
    (re.compile(r"^\[(?:model|job|training|metrics)\]\s*$", re.MULTILINE), "a torchtitan training config (TOML)", BASE),
    (re.compile(r"^(?:import|from)\s+\w", re.MULTILINE), "a Python file", CONFIG),
    (re.compile(r"^#!", re.MULTILINE), "a script", CONFIG),
)
SNIFFED = 1 << 16  # characters
TOP_KEY = re.compile(r"^([A-Za-z_][\w.-]*)\s*:", re.MULTILINE)
ZOO_KEYS = {"architecture", "config", "id", "name", "estimate", "family", "sources"}


def find_text_kind(text: str) -> ParamcountError | None:
    """The error for a text of another tool that is no JSON; None for a broken JSON file, and if none is recognised."""
    if text.lstrip()[:1] in ("", "{"):
        return None
    for pattern, kind, expected in TEXTS:
        if match := pattern.search(text, 0, SNIFFED):
            names = {name: make_printable(value, 60) for name, value in match.groupdict().items()}
            return ParamcountError(f"is {kind}", expected=expected.format(**names) if names else expected)
    return None


def find_yaml_kind(text: str) -> ParamcountError | None:
    """The error for a YAML file of another tool, by its keys at the top level; None if it may be a zoo entry."""
    keys = dict.fromkeys(TOP_KEY.findall(text, 0, SNIFFED))
    if not keys or not ZOO_KEYS.isdisjoint(keys):
        return None
    expected = "a zoo entry with architecture and config, or a config.json"
    return find_other_tool(keys) or ParamcountError("is a YAML file that states no model", expected=expected)


def find_other_tool(document: Mapping[str, Any]) -> ParamcountError | None:
    """The error for the file of another tool; None if no tool is recognised."""
    for keys, kind, expected in FILES:
        if all(key in document for key in keys):
            return ParamcountError(f"is {kind}", expected=expected)
    return None


def check_is_config(document: Mapping[str, Any]) -> None:
    """Check that a file without `model_type` names a class in `architectures`.

    Raises: ParamcountError that says what kind of file it is instead.
    """
    from paramcount.huggingface.config import get_class_name

    if error := find_other_tool(document):
        raise error
    if get_class_name(document):
        return
    if "auto_map" in document:
        raise ParamcountError(
            "is missing, and auto_map names custom modeling code, which paramcount does not run",
            where="model_type",
            expected="a model type from `paramcount architectures`",
        )
    raise ParamcountError(
        "is missing",
        where="model_type",
        expected="a config.json with model_type, or a zoo entry with architecture and config",
    )
