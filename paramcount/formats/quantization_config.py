"""Which modules are quantised with what, according to a `quantization_config`: for planning and for files alike.

Sources: transformers 5.23, quantizers/auto.py (the methods) and utils/quantization_config.py (their keys). The methods
that mix formats are in files of their own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from paramcount.errors import ParamcountError, describe_value, quote
from paramcount.formats.module_names import ModuleNames, is_excluded, is_matched
from paramcount.formats.packing import Block, Packing
from paramcount.formats.weights import describe_abilities, get_abilities, guess_format, list_abilities, load_formats

DTYPES = {"bfloat16": "BF16", "float16": "F16", "float32": "F32", "float64": "F64"}
PLACES = (("quantization_config",), ("text_config", "quantization_config"), ("compression_config",), ("quantization",))
COMPRESSED = "compressed-tensors"  # a method whose groups are in one format each
GPTQ_KEYS = {"desc_act", "sym", "damp_percent", "zero_point", "version"}  # of configs that MLX does not write
MODELOPT = "modelopt"  # the same of NVIDIA
MODELOPT_FILE = "hf_quant_config.json"  # its config, beside a config.json that may not have it
UNQUANTISED = ("embedding", "other_embedding", "position", "router", "norm", "lm_head")
LARGEST_BLOCK = 2**20


class Stated(NamedTuple):
    """What a `quantization_config` states of the packing; fields are None if it does not say."""

    family: str = ""  # see Pattern; "" if nothing is quantised, or in an unsupported way
    name: str = ""  # display name of the method
    layout: str | None = None
    bits: int | None = None
    group: int | None = None  # inputs per scale; 0 for all
    block: Block | None = None
    various: bool = False  # some modules are packed differently


class Selection(NamedTuple):
    """Which weights a method quantises."""

    excluded: tuple[str, ...] = ()  # modules that the config.json excludes
    # For compressed-tensors: modules to quantise; "re:" marks a regular expression, empty means all.
    targets: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()  # for compressed-tensors: modules that no scheme quantises
    unquantised: tuple[str, ...] = UNQUANTISED  # components
    experts: str = ""  # "only": experts alone; "stacked": experts alone, [experts, inputs, outputs] in one tensor
    needs_layer: bool = False  # whether only modules of layers are quantised
    listed: ModuleNames | None = None  # the only modules that are quantised
    left_out: ModuleNames | None = None  # modules that are not quantised, and all inside them
    also: tuple[str, ...] = ()  # name endings of matrices that are quantised though others of their kind are not

    @property
    def selects_by_name(self) -> bool:
        """Whether the config.json selects modules by name."""
        return bool(self.excluded or self.targets or self.ignored or self.listed is not None or self.left_out)

    def quantises(self, module: str) -> bool:
        """Whether the module of this name is quantised."""
        if self.targets and not is_matched(module, self.targets):
            return False
        if (self.listed is not None and module not in self.listed) or (self.left_out and module in self.left_out):
            return False
        return not is_matched(module, self.ignored) and not is_excluded(module, self.excluded, frozenset(self.excluded))

    def names(self, module: str) -> bool:
        """Whether the config.json names this module or one that encloses it, rather than a class or a pattern of all.

        Writers list the modules of the model that they wrote, so what they name is in the files.
        """
        targets = () if "Linear" in self.targets else self.targets
        if is_matched(module, targets) or module in self.ignored:
            return True
        return any(names is not None and module in names for names in (self.listed, self.left_out))


class PackedGroup(NamedTuple):
    """Weights with the same packing."""

    selection: Selection
    packing: Packing


class Plan(NamedTuple):
    """How a model is stored, according to its config.json."""

    method: str
    text: str
    groups: tuple[PackedGroup, ...]
    dtype: str  # of everything else
    exact: bool = True
    language_only: bool = False  # whether vision and audio encoders are not quantised
    # "linear": linear layers wherever they are, routers included; "exported": the same without routers; "stacks":
    # experts in one tensor are packed together, too; "release": so are those of the MTP layers, which publishers who
    # use the method release. Of "linear" and "exported", experts in one tensor are packed one by one
    scope: str = ""


class WeightDtype(NamedTuple):
    """How weights may be stored, as --dtype names it."""

    name: str  # as typed: "int4-g64"
    label: str  # for people: "INT4 (group 64)"
    plan: Plan
    only: tuple[str, ...] = ()  # components that are packed; those of a model that has none of them are packed all
    mix: str = ""  # of llama.cpp; the plan then says nothing
    imatrix: bool = False  # whether llama-quantize had an importance matrix


def make_linear_dtype(name: str, label: str, packing: Packing) -> WeightDtype:
    """A format in which the linear layers are packed, except for the LM head."""
    group = PackedGroup(select_linear(), packing)
    return WeightDtype(name, label, Plan("", label, (group,), "BF16", scope="linear"))


def select_linear(targets: tuple[str, ...] = ("Linear",), ignored: tuple[str, ...] = ("lm_head",)) -> Selection:
    """The linear layers that compressed-tensors selects; without targets all but the LM head."""
    unquantised = tuple(name for name in UNQUANTISED if name != "lm_head") if targets else UNQUANTISED
    return Selection((), targets, ignored, unquantised)


# ---- reading


def read_stated(config: Mapping[str, Any]) -> Stated:
    """What the `quantization_config` of a config.json states.

    >>> read_stated({"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": True})
    Stated(family='words', name='GPTQ', layout='gptq', bits=4, group=128, block=None, various=False)

    Raises: ParamcountError if files of the method cannot be verified.
    """
    method = find_method(config)
    if method is None:
        return Stated()
    name = method.lower() if isinstance(method, str) else ""
    for format in load_formats():
        stated = format.read(name, config)
        if stated is not None and stated.family and format.patterns:
            return stated
        if stated is not None:
            raise make_unsupported_error(stated.name)
    raise make_unsupported_error(name if name == COMPRESSED else quote(str(method)))


def find_method(config: Mapping[str, Any]) -> Any:
    """The quantisation method that a `quantization_config` states; None if it states none."""
    if config.get("load_in_4bit") or config.get("load_in_8bit"):
        return "bitsandbytes"
    method = config.get("quant_method")
    if method is None and "quant_algo" in config:
        return MODELOPT
    if method is None and {"bits", "group_size"} <= config.keys() and GPTQ_KEYS.isdisjoint(config):
        return "mlx"
    if isinstance(method, str) and method.lower().startswith(MODELOPT):  # "modelopt_fp4", as engines call it
        return MODELOPT
    return method


def make_unsupported_error(name: str) -> ParamcountError:
    """The error for a scheme whose files cannot be verified."""
    format = next((format for format in load_formats() if format.name == name), None)
    what = f"{name}; {describe_abilities(format)}" if format and get_abilities(format).planned else name
    verified = [abilities.name for abilities in list_abilities() if abilities.verified]
    expected = f"{', '.join(verified)}, or not quantised"
    return ParamcountError(f"uses an unsupported quantisation scheme: {what}", expected=expected)


def find_quantization_config(document: Mapping[str, Any]) -> Any:
    """The quantisation block of a config.json; None if it has none."""
    for keys in PLACES:
        block: Any = document
        for key in keys:
            block = block.get(key) if isinstance(block, Mapping) else None
        if isinstance(block, Mapping) and document.get("expert_dtype") is not None:
            # DeepSeek-V4 states it beside the block. Source: DeepseekV4Config of the reference.
            return {"expert_dtype": document["expert_dtype"], **block}
        is_mlx = isinstance(block, Mapping) and find_method(block) == "mlx"
        if is_mlx:
            return {"model_type": find_model_type(document), **block}  # which tells what its routers are
        if keys == ("quantization",):
            continue  # not MLX's
        if block is not None:
            return block
    return None


def unwrap_modelopt(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """A config of ModelOpt without the block `quantization` of its own file."""
    inner = config.get("quantization")
    return {**config, **inner} if isinstance(inner, Mapping) else config


def find_model_type(document: Mapping[str, Any]) -> Any:
    text_config = document.get("text_config")
    inner = text_config.get("model_type") if isinstance(text_config, Mapping) else None
    return inner or document.get("model_type")


def make_plan(config: object, document: Mapping[str, Any]) -> Plan:
    """The storage plan for this `quantization_config`.

    Raises: ParamcountError if it is not supported or the size is unknown.
    """
    if not isinstance(config, Mapping):
        raise ParamcountError(f"= {describe_value(config)}", expected="a JSON object")
    method = find_method(config)
    if method is None:
        raise ParamcountError("has no quant_method, so transformers cannot load it")
    methods = {COMPRESSED, MODELOPT, *(name for format in load_formats() for name in format.methods)}
    if not isinstance(method, str) or method not in methods:
        raise ParamcountError(f"has the quant_method {quote(str(method))}, which transformers does not support")
    dtype = find_dtype(document)
    if dtype is None:
        plan = make_method_plan(method, config, "BF16")
        plan = plan._replace(text=f"{plan.text}, BF16 assumed for the rest", exact=False)
    else:
        plan = make_method_plan(method, config, dtype)
    is_of_section = document.get("quantization_config") is None and "text_config" in document
    return limit_to_language(plan) if is_of_section else plan


def limit_to_language(plan: Plan) -> Plan:
    """The plan of a block in `text_config`, whose names of modules begin inside the language model."""
    groups = []
    for group in plan.groups:
        ignored = group.selection.ignored
        inner = [rf"re:.*\.{re.escape(name)}" for name in ignored if not name.startswith("re:")]
        groups.append(group._replace(selection=group.selection._replace(ignored=(*ignored, *inner))))
    return plan._replace(groups=tuple(groups), language_only=True)


def make_method_plan(method: str, config: Mapping[str, Any], dtype: str) -> Plan:
    """The plan of a known method. `dtype`: dtype of weights that are not quantised."""
    if method == COMPRESSED:
        from paramcount.formats.compressed_tensors import plan_compressed

        return plan_compressed(config, dtype)
    if method == MODELOPT:
        from paramcount.formats.modelopt import plan_modelopt

        return plan_modelopt(config, dtype)
    for format in load_formats():
        stated = format.read(method, config)
        is_known = stated is not None and stated.family and not stated.various
        plan = format.plan(stated, config, dtype) if stated is not None and is_known else None
        if plan is not None:
            return plan
    raise make_unknown_size_error(method)


def make_unknown_size_error(method: str) -> ParamcountError:
    return ParamcountError(f"uses {method} with options whose stored size paramcount cannot compute")


def find_dtype(document: Mapping[str, Any]) -> str | None:
    """The dtype of weights that are not quantised; None if unknown.

    Source: PreTrainedConfig.dtype, formerly `torch_dtype`.
    """
    text_config = document.get("text_config")
    for section in (document, text_config if isinstance(text_config, Mapping) else {}):
        value = section.get("dtype", section.get("torch_dtype"))
        if value is not None:
            name = value.removeprefix("torch.") if isinstance(value, str) else ""
            if name not in DTYPES:
                raise ParamcountError(f"dtype = {describe_value(value)}", choices=DTYPES)
            return DTYPES[name]
    return None


def read_names(config: Mapping[str, Any], *keys: str) -> tuple[str, ...]:
    """The module names in the first of these keys that has any."""
    for key in keys:
        value = config.get(key)
        if value is None:
            continue
        if not isinstance(value, (list, tuple)) or not all(isinstance(name, str) for name in value):
            raise ParamcountError(f"{key} = {describe_value(value)}", expected="a list of names")
        return tuple(name for name in value if name)
    return ()


def read_excluded(config: Mapping[str, Any]) -> tuple[str, ...]:
    """The modules that transformers' own methods exclude."""
    return read_names(config, "modules_to_not_convert", "ignored_layers")


def list_weights(config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The weights of each group of compressed-tensors; empty if a group has none."""
    groups = config.get("config_groups")
    blocks = groups.values() if isinstance(groups, Mapping) else ()
    weights = [block.get("weights") if isinstance(block, Mapping) else None for block in blocks]
    found = [block for block in weights if isinstance(block, Mapping)]
    return found if len(found) == len(weights) else []


def read_block(value: object) -> Block | None:
    """Outputs and inputs per scale from a config.json; None if missing or invalid."""
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        return None
    if any(type(n) is not int or not 1 <= n <= LARGEST_BLOCK for n in value):
        return None
    return value[0], value[1]


# ---- names of formats for --dtype


def find_weight_dtype(name: str) -> WeightDtype | None:
    if found := guess_format(name).find_dtype(name):
        return found
    return next((found for format in load_formats() if (found := format.find_dtype(name))), None)


def list_weight_dtypes() -> tuple[str, ...]:
    """The names of all formats, without group sizes and numbers of bits."""
    return tuple(name for format in load_formats() for name in format.dtypes)
