"""An adapter as PEFT saved it: its adapter_config.json as the options of `measure_adapter`, and a line that sums it up.

Source: github huggingface/peft, src/peft/tuners/{lora,ia3,vera}/config.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paramcount.costs.adapters.adapters import NAMES, Lora, measure_adapter
from paramcount.errors import ParamcountError, describe_value, join_words, make_choice_error, make_printable
from paramcount.output.numbers import format_count
from paramcount.zoo import Model

FILE = "adapter_config.json"
TYPES = ("LORA", "IA3", "VERA")
BIASES = {"none": "none", "all": "all", "lora_only": "adapted", "vera_only": "adapted"}
# Options that add or share other parameters than those of the usual adapter.
UNSUPPORTED = (
    "lora_bias", "layer_replication", "trainable_token_indices", "use_bdlora", "arrow_config", "use_qalora",
    "megatron_config", "monteclora_config",
)  # fmt: skip
# The last matrices of MLPs, which IA³ scales at their inputs; another layer among feedforward_modules is refused.
LAST = {"down_proj", "fc2", "wo", "w2", "dense_4h_to_h", "fc_out", "c_proj", "mlp.c_proj", "wo_mlp", "output.dense"}
# What the options of `lora` are where nobody gives them.
DEFAULTS: Mapping[str, object] = {"r": 16, "method": "lora", "bias": "none", "dtype": "f32"}


def read_options(config: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `measure_adapter` that an adapter_config.json states.

    >>> config = {"peft_type": "LORA", "r": 8, "target_modules": ["q_proj", "v_proj"], "use_dora": True}
    >>> read_options(config)
    {'method': 'dora', 'targets': ['q_proj', 'v_proj'], 'r': 8}
    """
    kind = config.get("peft_type")
    if not isinstance(kind, str) or kind not in TYPES:
        raise make_choice_error(kind, TYPES, where="peft_type")
    for key in UNSUPPORTED:
        if config.get(key):
            raise ParamcountError(f"= {describe_value(config[key])} is not supported", where=key, expected="null")
    method = "dora" if config.get("use_dora") else "rslora" if config.get("use_rslora") else str(kind).lower()
    options: dict[str, Any] = {"method": method, **read_targets(config)}
    scaled = config.get("feedforward_modules") or []
    if kind == "IA3" and (not isinstance(scaled, list) or any(name not in LAST for name in map(str, scaled))):
        where, expected = "feedforward_modules", "the last matrix of the MLP alone"
        raise ParamcountError(f"= {describe_value(scaled)} is not supported", where=where, expected=expected)
    if kind != "IA3":
        options["r"] = config.get("r")
        if config.get("bias") not in (None, "none"):
            bias = config["bias"]
            if not isinstance(bias, str) or bias not in BIASES:
                raise make_choice_error(bias, BIASES, where="bias")
            options["bias"] = BIASES[bias]
    for key in ("layers_to_transform", "layers_pattern", "rank_pattern", "modules_to_save", "target_parameters"):
        if config.get(key):
            options[key] = config[key]
    return options


def read_targets(config: Mapping[str, Any]) -> dict[str, Any]:
    """The modules: a list of names, or a string, which is a regular expression unless it is "all-linear"."""
    targets, excluded = config.get("target_modules"), config.get("exclude_modules")
    if not targets and not config.get("target_parameters"):
        problem = f"= {describe_value(targets)}"
        raise ParamcountError(problem, where="target_modules", expected="the names of modules, as peft saves them")
    found: dict[str, Any] = {}
    if isinstance(targets, str) and targets.lower() != "all-linear":
        found["target_pattern"] = targets
    elif targets:
        found["targets"] = targets
    if isinstance(excluded, str):
        found["exclude_pattern"] = excluded
    elif excluded:
        found["exclude_modules"] = excluded
    return found


def measure_saved_adapter(model: Model) -> Lora:
    """The adapter that a model was read with.

    Raises: ParamcountError that names the file if its adapter is of another kind, or does not fit the model.
    """
    try:
        return measure_adapter(model, **read_options(model.adapter or {}))
    except ParamcountError as error:
        raise error.add_location(FILE) from None


def choose_options(model: Model, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of an adapter: those that its adapter_config.json states, else those that are given.

    Raises: ParamcountError if a model has an adapter_config.json and options are given too.
    """
    if model.adapter is None:
        return dict(options)
    for key, value in options.items():
        if value and value != DEFAULTS.get(key):
            raise ParamcountError(f"does not combine with {FILE}, which states it", where=key)
    try:
        return read_options(model.adapter)
    except ParamcountError as error:
        raise error.add_location(FILE) from None


def describe_saved_adapter(model: Model) -> tuple[str, dict[str, dict[str, Any]]]:
    """(what an adapter adds, as a line; the same as data). An adapter that is not counted is named with the reason."""
    try:
        adapter = measure_saved_adapter(model)
    except ParamcountError as error:
        data: dict[str, Any] = {"method": None, "r": None, "trainable": None, "problem": str(error)}
        return f"adapter: not counted ({make_printable(error)})", {"adapter": data}
    names = adapter.targets or adapter.target_parameters or (adapter.target_pattern,)
    rank = f" of rank {adapter.r}" if adapter.r else ""
    where = make_printable(join_words(names, "and"), 80)
    share = f"{adapter.trainable_percent:.3g}%"
    added = f"adds {adapter.trainable:,} trainable parameters ({format_count(adapter.trainable)}, {share})"
    data = {"method": adapter.method, "r": adapter.r, "trainable": adapter.trainable, "problem": ""}
    return f"adapter: {NAMES[adapter.method]}{rank} on {where} {added}", {"adapter": data}
