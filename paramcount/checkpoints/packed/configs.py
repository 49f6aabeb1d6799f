"""The quantisation config in a checkpoint's folder.

Source: transformers 5.23, quantizers/auto.py (the methods).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paramcount.checkpoints.checkpoint import Checkpoint
from paramcount.errors import ParamcountError, describe_value, make_printable
from paramcount.formats.files import read_text
from paramcount.formats.quantization_config import Stated, read_stated
from paramcount.formats.strict_json import parse_json

LARGEST_CONFIG = 4 << 20  # bytes

# File, paths of keys in it that may lead to the config, and the method if the file's writer does not name it.
CONFIG_FILES: tuple[tuple[str, tuple[tuple[str, ...], ...], str], ...] = (
    ("config.json", (("quantization_config",), ("text_config", "quantization_config")), ""),
    ("quantize_config.json", ((),), "gptq"),  # AutoGPTQ
    ("quant_config.json", ((),), "awq"),  # AutoAWQ
)


def find_quantization_config(folder: Path) -> tuple[Mapping[str, Any] | None, tuple[str, ...]]:
    """The first quantisation config in a folder, or None, and an error message for each file that cannot be read."""
    faults: list[str] = []
    for name, paths, method in CONFIG_FILES:
        if not os.path.isfile(folder / name):
            continue
        try:
            document = parse_json(read_text(folder / name, "a config", LARGEST_CONFIG))
            for keys in paths:
                config = _get_mapping(document, keys)
                if config is not None:
                    return {**({"quant_method": method} if method else {}), **config}, tuple(faults)
        except ParamcountError as error:
            faults.append(str(error if error.where.startswith(make_printable(folder)) else error.add_location(name)))
    return None, tuple(faults)


def _get_mapping(document: Mapping[str, Any], keys: tuple[str, ...]) -> Mapping[str, Any] | None:
    """The mapping at a path of keys; None if it is missing."""
    value: Any = document
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    if value is not None and not isinstance(value, Mapping):
        raise ParamcountError(f"= {describe_value(value)}", where=".".join(keys), expected="a JSON object")
    return value


def read_quantization(checkpoint: Checkpoint) -> Stated:
    """What is stated in the checkpoint's quantisation config.

    Raises: ParamcountError if the scheme is not supported.
    """
    config = checkpoint.quantization_config
    if config is None or checkpoint.format == "gguf":
        return Stated()
    return read_stated(config)
