"""How the configs in a checkpoint's folder say that its weights are quantised: where it stands there, and what it says.

Source: transformers 5.23, quantizers/auto.py (the methods).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from paramcount.checkpoints.checkpoint import Checkpoint
from paramcount.checkpoints.packed.foreign import NAMES, refused
from paramcount.counting.quantisation import LARGEST_BLOCK, block_of
from paramcount.errors import ParamcountError, printable, quoted, shown
from paramcount.formats.files import read_text
from paramcount.formats.strict_json import loads

LARGEST_CONFIG = 4 << 20  # bytes

# The file, the keys that lead to what it says, and the method that the file's writer leaves out.
SAYING: tuple[tuple[str, tuple[tuple[str, ...], ...], str], ...] = (
    ("config.json", (("quantization_config",), ("text_config", "quantization_config")), ""),
    ("quantize_config.json", ((),), "gptq"),  # AutoGPTQ
    ("quant_config.json", ((),), "awq"),  # AutoAWQ
)
AWQ_LAYOUTS = {"gemm": "awq", "gemv": "awq gemv", "gemv_fast": "awq fast", "llm-awq": "awq fast"}


def quantization_config(folder: Path) -> tuple[Mapping[str, Any] | None, tuple[str, ...]]:
    """How the weights of a folder's checkpoint are quantised, as the first file says that speaks of it; and which of them cannot be read."""
    wrong: list[str] = []
    for name, ways, method in SAYING:
        if not os.path.isfile(folder / name):
            continue
        try:
            said = loads(read_text(folder / name, "a config", LARGEST_CONFIG))
            for keys in ways:
                found = _at(said, keys)
                if found is not None:
                    return {**({"quant_method": method} if method else {}), **found}, tuple(wrong)
        except ParamcountError as error:
            wrong.append(str(error if error.where.startswith(printable(folder)) else error.at(name)))
    return None, tuple(wrong)


def _at(said: Mapping[str, Any], keys: tuple[str, ...]) -> Mapping[str, Any] | None:
    """The mapping that keys lead to; None where there is none."""
    found: Any = said
    for key in keys:
        found = found.get(key) if isinstance(found, Mapping) else None
    if found is not None and not isinstance(found, Mapping):
        raise ParamcountError(f"= {shown(found)}", where=".".join(keys), accepted="a mapping")
    return found


# ---- what it says


class Said(NamedTuple):
    """What a configuration says of how weights are packed; None where it says nothing."""

    method: str | None = None  # words | fp8 | mxfp4
    name: str = ""  # of the method, for people
    layout: str | None = None  # gptq | awq …
    bits: int | None = None
    group: int | None = None  # inputs that share a scale; 0 where all of them do
    block: tuple[int, int] | None = None
    various: bool = False  # some modules are packed otherwise


def said_of(checkpoint: Checkpoint) -> Said:
    """What the configuration beside a checkpoint says.

    Raises: ParamcountError where it names a scheme that is not read.
    """
    config = checkpoint.quantization_config
    if config is None or checkpoint.format == "gguf":
        return Said()
    return read(config)


def read(config: Mapping[str, Any]) -> Said:
    """What `quantization_config` of a config.json says.

    >>> read({"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": True})
    Said(method='words', name='GPTQ', layout='gptq', bits=4, group=128, block=None, various=False)
    """
    if config.get("load_in_4bit") is True or config.get("load_in_8bit") is True:
        raise refused("bitsandbytes")
    method = config.get("quant_method")
    if method is None:
        return Said()
    word = method.lower() if isinstance(method, str) else ""
    match word:
        case "gptq" | "awq":
            return _words(word, config)
        case "auto-round" if any(name in str(config.get("packing_format")) for name in ("gptq", "awq")):
            return _words("gptq" if "gptq" in str(config["packing_format"]) else "awq", config)._replace(various=True)
        case "fp8" | "fbgemm_fp8":
            return Said("fp8", "FP8", block=block_of(config.get("weight_block_size")))
        case "mxfp8":
            return Said("fp8", "MXFP8", block=block_of(config.get("weight_block_size")) or (1, 32))
        case "mxfp4":
            return Said("mxfp4", "MXFP4")
        case "compressed-tensors" if _eight_bit_floats(config):
            return Said("fp8", "FP8 by compressed-tensors", various=True)
        case "modelopt" if config.get("quant_algo") == "FP8":
            return Said("fp8", "FP8 by ModelOpt")
    raise refused(NAMES.get(word) or next((name for start, name in NAMES.items() if word.startswith(start)), quoted(str(method))))


def _words(method: str, config: Mapping[str, Any]) -> Said:
    bits, group = (config.get(key, config.get(other)) for key, other in (("bits", "w_bit"), ("group_size", "q_group_size")))
    form = config.get("checkpoint_format") or config.get("format") or config.get("version")
    written = form.lower() if isinstance(form, str) else None
    layout: str | None = "gptq" if method == "gptq" else "awq"
    if config.get("is_marlin_format") is True or written in ("marlin", "bitblas", "qqq"):
        raise refused(f"{method.upper()} in the layout of {'Marlin' if written is None else quoted(written)}")
    if method == "awq" and written is not None:
        layout = AWQ_LAYOUTS.get(written)
    return Said(
        "words",
        method.upper(),
        layout,
        bits if type(bits) is int and 1 <= bits <= 8 else None,
        None if type(group) is not int or group > LARGEST_BLOCK else max(group, 0),
        various=bool(config.get("dynamic")),
    )


def _eight_bit_floats(config: Mapping[str, Any]) -> bool:
    """Whether compressed-tensors holds weights of FP8 and nothing else."""
    groups = config.get("config_groups")
    weights = [group.get("weights") if isinstance(group, dict) else None for group in groups.values()] if isinstance(groups, dict) else []
    return bool(weights) and all(isinstance(w, dict) and w.get("type") == "float" and w.get("num_bits") == 8 for w in weights)
