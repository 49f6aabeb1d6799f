"""How the configs in a checkpoint's folder say that its weights are quantised: where it stands there, and what it says.

Source: transformers 5.23, quantizers/auto.py (the methods).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paramcount.checkpoints.checkpoint import Checkpoint
from paramcount.counting.quantisation.configs import QuantizationScheme, read_scheme
from paramcount.errors import ParamcountError, describe_value, make_printable
from paramcount.formats.files import read_text
from paramcount.formats.strict_json import parse_json

LARGEST_CONFIG = 4 << 20  # bytes

# The file, the keys that lead to what it says, and the method that the file's writer leaves out.
SAYING: tuple[tuple[str, tuple[tuple[str, ...], ...], str], ...] = (
    ("config.json", (("quantization_config",), ("text_config", "quantization_config")), ""),
    ("quantize_config.json", ((),), "gptq"),  # AutoGPTQ
    ("quant_config.json", ((),), "awq"),  # AutoAWQ
)


def quantization_config(folder: Path) -> tuple[Mapping[str, Any] | None, tuple[str, ...]]:
    """How the weights of a folder's checkpoint are quantised, as the first file says that speaks of it; and which of them cannot be read."""
    wrong: list[str] = []
    for name, ways, method in SAYING:
        if not os.path.isfile(folder / name):
            continue
        try:
            said = parse_json(read_text(folder / name, "a config", LARGEST_CONFIG))
            for keys in ways:
                found = _at(said, keys)
                if found is not None:
                    return {**({"quant_method": method} if method else {}), **found}, tuple(wrong)
        except ParamcountError as error:
            wrong.append(str(error if error.where.startswith(make_printable(folder)) else error.add_location(name)))
    return None, tuple(wrong)


def _at(said: Mapping[str, Any], keys: tuple[str, ...]) -> Mapping[str, Any] | None:
    """The mapping that keys lead to; None where there is none."""
    found: Any = said
    for key in keys:
        found = found.get(key) if isinstance(found, Mapping) else None
    if found is not None and not isinstance(found, Mapping):
        raise ParamcountError(f"= {describe_value(found)}", where=".".join(keys), expected="a mapping")
    return found


def read_quantization(checkpoint: Checkpoint) -> QuantizationScheme:
    """What the configuration beside a checkpoint says.

    Raises: ParamcountError where it names a scheme that is not read.
    """
    config = checkpoint.quantization_config
    if config is None or checkpoint.format == "gguf":
        return QuantizationScheme()
    return read_scheme(config)
