"""The names of dtypes: how weights may be stored, and the values of a KV cache."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from paramcount.counting.quantisation.packing import Packing
from paramcount.counting.quantisation.plans import Group, Plan, make_method_plan
from paramcount.counting.quantisation.scales import Scheme
from paramcount.errors import ParamcountError, describe_value, find_nearest
from paramcount.formats.value_types import BLOCKS

IMATRIX = "-IMATRIX"  # ends the name of a mix
DEFAULT_GROUP = 128  # inputs per scale of GPTQ, AWQ and INT4
PLAIN = {
    "f32": "F32", "fp32": "F32", "float32": "F32", "bf16": "BF16", "bfloat16": "BF16",
    "f16": "F16", "fp16": "F16", "float16": "F16",
}  # fmt: skip
PLAIN_LABELS = {"F32": "FP32", "BF16": "BF16", "F16": "FP16"}
CHANNEL = {"num_bits": 8, "strategy": "channel", "symmetric": True}
# {name: quantization_config that transformers reads}
CONFIGS: Mapping[str, Mapping[str, Any]] = {
    "fp8": {"quant_method": "fp8", "weight_block_size": [128, 128]},
    "fp8-tensor": {"quant_method": "fp8", "weight_block_size": None},
    "fp8-row": {
        "quant_method": "compressed-tensors",
        "format": "float-quantized",
        "config_groups": {"all": {"targets": ["Linear"], "weights": {"type": "float", **CHANNEL}}},
        "ignore": ["lm_head"],
    },
    "int8": {
        "quant_method": "compressed-tensors",
        "format": "int-quantized",
        "config_groups": {"all": {"targets": ["Linear"], "weights": {"type": "int", **CHANNEL}}},
        "ignore": ["lm_head"],
    },
    "nvfp4": {
        "quant_method": "compressed-tensors",
        "format": "nvfp4-pack-quantized",
        "config_groups": {
            "all": {
                "targets": ["Linear"],
                "weights": {"type": "float", "num_bits": 4, "strategy": "tensor_group", "group_size": 16},
                "input_activations": {"dynamic": "local"},
            }
        },
        "ignore": ["lm_head"],
    },
    "bnb-int8": {"quant_method": "bitsandbytes", "load_in_8bit": True},
    "nf4": {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"},
    "nf4-double": {
        "quant_method": "bitsandbytes",
        "load_in_4bit": True,
        "bnb_4bit_quant_type": "nf4",
        "bnb_4bit_use_double_quant": True,
    },
}
LABELS = {
    "fp8": "FP8 (128 × 128 blocks)", "fp8-tensor": "FP8 (per tensor)", "fp8-row": "FP8 (per row)",
    "int8": "INT8 (per row)", "nvfp4": "NVFP4", "bnb-int8": "bitsandbytes INT8", "nf4": "NF4",
    "nf4-double": "NF4 (double quantisation)", "mxfp4": "MXFP4",
}  # fmt: skip
# {mix of llama.cpp: the type of a tensor that no rule names}
MIXES: Mapping[str, str] = {
    "Q4_0": "Q4_0", "Q4_1": "Q4_1", "Q5_0": "Q5_0", "Q5_1": "Q5_1", "Q8_0": "Q8_0", "Q2_K": "Q2_K", "Q2_K_S": "Q2_K",
    "Q3_K_S": "Q3_K", "Q3_K_M": "Q3_K", "Q3_K_L": "Q3_K", "Q4_K_S": "Q4_K", "Q4_K_M": "Q4_K", "Q5_K_S": "Q5_K",
    "Q5_K_M": "Q5_K", "Q6_K": "Q6_K", "IQ1_S": "IQ1_S", "IQ1_M": "IQ1_M", "IQ2_XXS": "IQ2_XXS", "IQ2_XS": "IQ2_XS",
    "IQ2_S": "IQ2_XS", "IQ2_M": "IQ2_S", "IQ3_XXS": "IQ3_XXS", "IQ3_XS": "IQ3_S", "IQ3_S": "IQ3_S", "IQ3_M": "IQ3_S",
    "IQ4_NL": "IQ4_NL", "IQ4_XS": "IQ4_XS", "TQ1_0": "TQ1_0", "TQ2_0": "TQ2_0", "MXFP4_MOE": "MXFP4",
}  # fmt: skip
MIX_ALIASES = {"Q3_K": "Q3_K_M", "Q4_K": "Q4_K_M", "Q5_K": "Q5_K_M"}
GROUPED = re.compile(r"(gptq|awq|int4)(?:-([2348])bit)?(?:-g([1-9][0-9]{0,5}))?")
# {dtype of a cache: (values per block, bytes per block)}
KV_DTYPES = {
    "f32": (1, 4), "bf16": (1, 2), "f16": (1, 2), "fp8": (1, 1), "int8": (1, 1),
    **{name.lower(): BLOCKS[name][:2] for name in ("Q8_0", "Q5_1", "Q5_0", "Q4_1", "Q4_0", "IQ4_NL")},
}  # fmt: skip
KV_ALIASES = {
    "fp32": "f32", "float32": "f32", "bfloat16": "bf16", "fp16": "f16", "float16": "f16", "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
}  # fmt: skip


class WeightFormat(NamedTuple):
    """How weights may be stored."""

    name: str  # as typed: "int4-g64"
    label: str  # for people: "INT4 (group 64)"
    plan: Plan
    only: tuple[str, ...] = ()  # components that are packed; those of a model that has none of them are packed all
    mix: str = ""  # of llama.cpp; the plan then says nothing
    imatrix: bool = False  # whether llama-quantize had an importance matrix


def parse_weight_format(text: object, *, where: str = "dtype") -> WeightFormat:
    """The format with this name.

    >>> parse_weight_format("gptq-4bit-g64").label, parse_weight_format("FP8").label
    ('GPTQ 4-bit (group 64)', 'FP8 (128 × 128 blocks)')

    Raises: ParamcountError for any other name, with the nearest ones.
    """
    name = text.lower() if isinstance(text, str) else ""
    found = find_weight_format(name)
    if found is None:
        nearest = find_nearest(name, list_weight_formats())
        expected = "a dtype such as bf16, fp8, int8, int4, gptq, awq, nf4, mxfp4 or q4_k_m"
        raise ParamcountError(f"= {describe_value(text)}", where=where, expected=expected, nearest=nearest)
    return found


def list_weight_formats() -> tuple[str, ...]:
    """The names of all formats, without group sizes and numbers of bits."""
    return (*PLAIN, *CONFIGS, "mxfp4", "int4", "gptq", "awq", *map(str.lower, (*MIXES, *MIX_ALIASES)))


@lru_cache(maxsize=64)
def find_weight_format(name: str) -> WeightFormat | None:
    """The format with this name; None if there is none."""
    if name in PLAIN:
        return WeightFormat(name, PLAIN_LABELS[PLAIN[name]], Plan("", PLAIN[name], (), PLAIN[name]))
    if name in CONFIGS:
        config = CONFIGS[name]
        return WeightFormat(name, LABELS[name], make_method_plan(str(config["quant_method"]), config, "BF16"))
    if name == "mxfp4":
        group = Group(Scheme("linear", (1, 32)), Packing("fp4", "U8", 4, (1, 32), "F8_E8M0"))
        return WeightFormat(name, LABELS[name], Plan("", "MXFP4", (group,), "BF16"), only=("experts",))
    mix = name.upper().removesuffix(IMATRIX)
    if (mix := MIX_ALIASES.get(mix, mix)) in MIXES:
        imatrix = name.upper().endswith(IMATRIX)
        label = f"{mix} (imatrix)" if imatrix else mix
        return WeightFormat(name, label, Plan("", mix, (), "F16"), mix=mix, imatrix=imatrix)
    match = GROUPED.fullmatch(name)
    if match is None:
        return None
    method, bits, group_size = match[1], int(match[2] or 4), int(match[3] or DEFAULT_GROUP)
    if method != "gptq" and bits != 4:
        return None
    if method == "int4":
        return WeightFormat(name, f"INT4 (group {group_size})", make_int4_plan(group_size))
    config = {"quant_method": method, "bits": bits, "group_size": group_size}
    label = f"{method.upper()} {bits}-bit (group {group_size})"
    return WeightFormat(name, label, make_method_plan(method, config, "BF16"))


def make_int4_plan(group: int) -> Plan:
    """Symmetric 4-bit integers with a scale per group, as compressed-tensors packs them."""
    weights = {"type": "int", "num_bits": 4, "strategy": "group", "group_size": group, "symmetric": True}
    config = {
        "quant_method": "compressed-tensors",
        "format": "pack-quantized",
        "version": "0.20",
        "config_groups": {"all": {"targets": ["Linear"], "weights": weights}},
        "ignore": ["lm_head"],
    }
    return make_method_plan("compressed-tensors", config, "BF16")


class BlockType(NamedTuple):
    """How values are stored in blocks, or one by one."""

    name: str
    values: int  # per block
    block_bytes: int

    @property
    def label(self) -> str:
        return PLAIN_LABELS.get(self.name.upper(), self.name.upper())

    def count_bytes(self, elements: int) -> int:
        """Bytes of so many elements, in whole blocks."""
        n_blocks = elements if self.values == 1 else -(-elements // self.values)  # the first may be a symbol
        return n_blocks * self.block_bytes


class KVDtype(NamedTuple):
    """The dtypes of cached keys and values; that of keys is the one of latents and states, too."""

    keys: BlockType
    values: BlockType

    @property
    def label(self) -> str:
        return self.keys.label if self.keys == self.values else f"{self.keys.label} keys, {self.values.label} values"


def parse_kv_dtype(text: object, *, where: str = "kv_dtype") -> KVDtype:
    """The dtype of a KV cache with this name; keys and values may have one each.

    >>> parse_kv_dtype("q8_0").keys.count_bytes(1024)
    1088
    >>> parse_kv_dtype("q8_0,f16").label
    'Q8_0 keys, FP16 values'

    Raises: ParamcountError for any other name, with the nearest ones.
    """
    names = text.lower().split(",") if isinstance(text, str) else []
    names = [KV_ALIASES.get(name.strip(), name.strip()) for name in names]
    wrong = next((name for name in names if name not in KV_DTYPES), None)
    if wrong is not None or not 1 <= len(names) <= 2:
        nearest = find_nearest(wrong or "", KV_DTYPES)
        raise ParamcountError(
            f"= {describe_value(text)}", where=where, expected="bf16, fp8, int8, q8_0 or q4_0", nearest=nearest
        )
    keys, values = (BlockType(name, *KV_DTYPES[name]) for name in (names[0], names[-1]))
    return KVDtype(keys, values)
