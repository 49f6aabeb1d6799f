"""The trainable parameters of adapters: LoRA, rsLoRA, DoRA, IA³ and VeRA, as the peft library adds them.

Sources: arXiv:2106.09685 (LoRA), 2312.03732 (rsLoRA), 2402.09353 (DoRA), 2205.05638 (IA³), 2310.11454 (VeRA); what an
adapter of each layer consists of: peft 0.21 with transformers 5.23.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from paramcount.costs.adapters.sites import Site, list_all_tensors, list_layers, list_module_names
from paramcount.costs.adapters.targets import ALL_LINEAR, AdapterRequest, choose_sites, is_inside
from paramcount.costs.adapters.tensors import TrainedModule, TrainedTensor, list_trained_tensors
from paramcount.costs.devices import check_size
from paramcount.counting.results import JsonResult
from paramcount.counting.tensors import iterate_names
from paramcount.errors import ParamcountError, describe_value, find_nearest, quote
from paramcount.flow import TensorRow
from paramcount.formats.packing import Packing
from paramcount.formats.weights import compute_bytes
from paramcount.formats.weights.plain import DTYPES, LABELS
from paramcount.zoo import Model, count_model

Method = Literal["lora", "rslora", "dora", "ia3", "vera"]
Bias = Literal["none", "all", "adapted"]
NAMES = {"lora": "LoRA", "rslora": "rsLoRA", "dora": "DoRA", "ia3": "IA³", "vera": "VeRA"}
# The kinds of layers that a method applies to. Sources: the classes of peft.tuners.{lora,ia3,vera}.layer.
KINDS = {
    "lora": ("linear", "convolution", "embedding", "experts", "router", "parameter"),
    "rslora": ("linear", "convolution", "embedding", "experts", "router", "parameter"),
    "dora": ("linear", "convolution", "embedding"),
    "ia3": ("linear", "convolution"),
    "vera": ("linear",),
}


@dataclass(frozen=True, repr=False)
class Lora(JsonResult):
    """An adapter of a model."""

    json_fields = (
        "id", "name", "method", "r", "target_pattern", "exclude_pattern", "rank_pattern", "bias", "dtype", "base",
        "trainable", "total", "trainable_percent", "projection", "adapter_bytes", "targets", "target_parameters",
        "exclude_modules", "layers_pattern", "modules_to_save", "warnings", "notes", "layers_to_transform", "modules",
    )  # fmt: skip
    html_table = "paramcount.costs.adapters.render:build_adapter_table"

    id: str
    name: str
    method: str
    r: int | None  # rank; None for IA³, which has none
    targets: tuple[str, ...]
    target_pattern: str
    target_parameters: tuple[str, ...]
    exclude_modules: tuple[str, ...]
    exclude_pattern: str
    layers_to_transform: tuple[int, ...] | None  # None: all
    layers_pattern: tuple[str, ...]
    rank_pattern: dict[str, int]
    modules_to_save: tuple[str, ...]
    bias: str
    dtype: str  # of the adapter
    base: int  # parameters of the model without the adapter
    modules: tuple[TrainedModule, ...]
    projection: int  # values of the two frozen random matrices that VeRA shares between all layers
    adapter_bytes: int  # of a saved adapter: trainable parameters and projection
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    tensors: tuple[TrainedTensor, ...] = ()  # of LoRA and DoRA: what has gradients and a state of the optimiser

    @property
    def trainable(self) -> int:
        """Trainable parameters."""
        return sum(module.parameters for module in self.modules)

    @property
    def total(self) -> int:
        """Parameters of the model with the adapter, copies of saved modules included."""
        return self.base + sum(module.parameters for module in self.modules if module.kind != "bias")

    @property
    def trainable_percent(self) -> float:
        """100 × trainable / total, as `print_trainable_parameters` of peft has it."""
        return 100 * self.trainable / self.total


def measure_adapter(
    model: Model,
    *,
    r: object = 16,
    targets: object = None,
    target_pattern: object = None,
    target_parameters: object = (),
    exclude_modules: object = (),
    exclude_pattern: object = None,
    layers_to_transform: object = None,
    layers_pattern: object = (),
    rank_pattern: object = (),
    method: object = "lora",
    modules_to_save: object = (),
    bias: object = "none",
    dtype: object = "f32",
) -> Lora:
    """The adapter of a model.

    Raises: ParamcountError for unknown targets, methods and modules, and for layers that the method does not apply to.
    """
    method = check_word("method", method, get_args(Method))
    bias = check_word("bias", bias, get_args(Bias))
    rank = 1 if method == "ia3" else check_size("r", r)
    parameters = read_words("target_parameters", target_parameters)
    pattern = read_pattern("target_pattern", target_pattern)
    request = AdapterRequest(
        r=rank,
        targets=read_words("targets", (() if parameters or pattern else ALL_LINEAR) if targets is None else targets),
        target_pattern=pattern,
        target_parameters=parameters,
        exclude_modules=read_words("exclude_modules", exclude_modules),
        exclude_pattern=read_pattern("exclude_pattern", exclude_pattern),
        layers_to_transform=read_layers(layers_to_transform),
        layers_pattern=tuple(
            read_pattern("layers_pattern", word) for word in read_words("layers_pattern", layers_pattern)
        ),
        rank_pattern=dict(read_ranks(rank_pattern)),
        modules_to_save=read_words("modules_to_save", modules_to_save),
    )
    check_request(request, method)
    if bias != "none" and method == "ia3":
        raise ParamcountError(f"= {describe_value(bias)}", where="bias", expected='"none" for IA³')
    stored = check_word("dtype", dtype, DTYPES)
    is_low_rank = method in ("lora", "rslora", "dora")
    count = count_model(model)
    tensors = list(list_all_tensors(count))
    saved = find_saved(tensors, request.modules_to_save)
    choice = choose_sites(count, list_layers(count), request, is_lora=is_low_rank)
    modules = [make_adapter(site, method, rank) for site, rank in choice.ranks]
    projection = 0
    if method == "vera":  # its shared matrices are as large as the largest layer needs
        projection = rank * sum(max(site.sizes[side] for site, _ in choice.ranks) for side in (1, 2))
    taken = {module.name for module in saved}
    whole = (*saved, *find_biases(tensors, bias, choice.modules, taken))
    trained = merge_modules((*modules, *whole))
    values = sum(module.parameters for module in trained) + projection
    packing = Packing("plain", DTYPES[stored])
    return Lora(
        id=model.id,
        name=model.name,
        method=method,
        **request._asdict() | ({"r": None} if method == "ia3" else {}),
        bias=bias,
        dtype=LABELS[packing.dtype],
        base=count.total,
        modules=trained,
        projection=projection,
        adapter_bytes=compute_bytes((values,), packing),
        warnings=choice.warnings,
        notes=choice.notes,
        tensors=tuple(list_trained_tensors(choice.ranks, method, whole)) if is_low_rank else (),
    )


def merge_modules(modules: Iterable[TrainedModule]) -> tuple[TrainedModule, ...]:
    """The same with one row for layers of different kinds whose modules are alike."""
    merged: dict[TrainedModule, TrainedModule] = {}
    for module in modules:
        key = module._replace(copies=0, parameters=0)
        before = merged.get(key, key)
        copies, parameters = before.copies + module.copies, before.parameters + module.parameters
        merged[key] = module._replace(copies=copies, parameters=parameters)
    return tuple(merged.values())


def check_word(where: str, value: object, choices: Iterable[str]) -> str:
    """The value of an option that is one of some words, in any case."""
    word = value.lower() if isinstance(value, str) else ""
    choices = tuple(choices)
    if word not in choices:
        nearest = find_nearest(word, choices)
        raise ParamcountError(f"= {describe_value(value)}", where=where, choices=choices, nearest=nearest)
    return word


def read_words(where: str, value: object) -> tuple[str, ...]:
    """Names of modules: one, several separated by commas, or a sequence of them.

    >>> read_words("targets", "q_proj, v_proj"), read_words("targets", ["mlp"])
    (('q_proj', 'v_proj'), ('mlp',))
    """
    if isinstance(value, str):
        value = [word.strip() for word in value.split(",")]
    if not isinstance(value, Sequence | set | frozenset) or not all(isinstance(word, str) for word in value):
        raise ParamcountError(f"= {describe_value(value)}", where=where, expected="names of modules")
    words = sorted(value) if isinstance(value, set | frozenset) else value
    return tuple(dict.fromkeys(word for word in words if word))


def read_pattern(where: str, value: object) -> str:
    """A regular expression; empty if there is none."""
    if value is None:
        return ""
    expected = "a regular expression"
    if not isinstance(value, str) or not value:
        raise ParamcountError(f"= {describe_value(value)}", where=where, expected=expected)
    try:
        re.compile(value)
    except (re.error, RecursionError, OverflowError) as error:
        raise ParamcountError(f"= {describe_value(value)}: {error}", where=where, expected=expected) from None
    return value


def read_layers(value: object) -> tuple[int, ...] | None:
    """Indices of layers: one, several separated by commas, or a sequence of them; None for all.

    >>> read_layers("0, 2"), read_layers(3), read_layers([])
    ((0, 2), (3,), None)
    """
    items: list[object] = []
    if isinstance(value, str):
        items = [int(word) if word.strip().isdecimal() else word for word in value.split(",")]
    elif value is not None:
        items = list(value) if isinstance(value, Sequence | set | frozenset) else [value]
    layers = [item for item in items if isinstance(item, int) and not isinstance(item, bool) and item >= 0]
    if len(layers) < len(items):
        raise ParamcountError(
            f"= {describe_value(value)}", where="layers_to_transform", expected="indices of layers, from 0"
        )
    return tuple(dict.fromkeys(layers)) or None


def read_ranks(value: object) -> tuple[tuple[str, int], ...]:
    """Ranks by regular expressions for the ends of names: a mapping, or texts "NAME=RANK".

    >>> read_ranks({"k_proj": 4}), read_ranks(["down_proj=8"])
    ((('k_proj', 4),), (('down_proj', 8),))
    """
    where, expected = "rank_pattern", "a rank per name of modules, such as k_proj=4"
    pairs: list[tuple[object, object]] = []
    if isinstance(value, Mapping):
        pairs = list(value.items())
    elif isinstance(value, Sequence) and not isinstance(value, str):
        words = [word.rpartition("=") if isinstance(word, str) else ("", "", "") for word in value]
        pairs = [(name, int(rank) if rank.isdecimal() else "") for name, _, rank in words]
    if len(pairs) != len(value if isinstance(value, Sequence | Mapping) else "-") or not all(map(all, pairs)):
        raise ParamcountError(f"= {describe_value(value)}", where=where, expected=expected)
    return tuple((read_pattern(where, name), check_size(where, rank)) for name, rank in pairs)


def check_request(request: AdapterRequest, method: str) -> None:
    """Raises: ParamcountError for options that exclude each other, as in peft, and for those that a method lacks."""
    name = NAMES[method]
    if request.targets and request.target_pattern:
        raise ParamcountError("does not combine with targets", where="target_pattern")
    if not request.targets and not request.target_pattern and not request.target_parameters:
        raise ParamcountError("is empty", where="targets", expected='"all-linear", a group or names of modules')
    if request.exclude_modules and request.exclude_pattern:
        raise ParamcountError("does not combine with exclude_modules", where="exclude_pattern")
    if request.target_parameters and method not in ("lora", "rslora"):
        raise ParamcountError(f"{name} does not apply to parameters", where="target_parameters")
    if request.layers_to_transform is not None and (
        method == "ia3" or request.target_pattern or ALL_LINEAR in map(str.lower, request.targets)
    ):
        what = "IA³" if method == "ia3" else "target_pattern" if request.target_pattern else ALL_LINEAR
        raise ParamcountError(f"does not apply to {what}", where="layers_to_transform", expected="names as targets")
    if request.layers_pattern and request.layers_to_transform is None:
        raise ParamcountError("requires layers_to_transform", where="layers_pattern")
    if method == "vera" and (request.exclude_modules or request.exclude_pattern):
        where = "exclude_modules" if request.exclude_modules else "exclude_pattern"
        raise ParamcountError("does not apply to VeRA", where=where)
    if request.rank_pattern and method in ("ia3", "vera"):
        raise ParamcountError(f"does not apply to {name}", where="rank_pattern")


def make_adapter(site: Site, method: str, rank: int) -> TrainedModule:
    """What a method trains for a layer, in all copies."""
    is_line = site.kind == "convolution" and len(site.shape) == 3  # of Conv1d, which IA³ has no class for
    if site.kind not in KINDS[method] or (method == "ia3" and is_line):
        what = {"experts": "routed experts"}.get(site.kind, site.kind + "s")
        raise ParamcountError(f"{NAMES[method]} does not apply to {what}: {site.name}", where="targets")
    experts, outputs, inputs = site.sizes
    match method:
        case "ia3":  # one scale per output, or per input of the MLP's last matrix
            per_copy = inputs if site.is_down else outputs
        case "vera":
            per_copy = outputs + rank
        case _:  # A and B, and DoRA's magnitude per output
            per_copy = rank * experts * (inputs + outputs) + (outputs if method == "dora" else 0)
    kept_rank = None if method == "ia3" else rank
    return TrainedModule(
        site.name, site.component, "adapter", site.shape, site.copies, kept_rank, site.copies * per_copy
    )


def find_owners(tensors: Iterable[TensorRow]) -> dict[str, str]:
    """{tensor: its module}. A bias beside the decoder of an encoder's LM head is the decoder's in the reference."""
    owners = {tensor.name: tensor.name.rpartition(".")[0] for tensor in tensors}
    for tensor in tensors:
        beside = tensor.name.removesuffix(".decoder.weight") + ".bias"
        if tensor.component == "lm_head" and beside in owners:
            owners[beside] = owners[tensor.name]
    return owners


def find_saved(tensors: Sequence[TensorRow], modules: Sequence[str]) -> list[TrainedModule]:
    """The modules that are trained as a whole, weights and biases; tied weights become one copy per module.

    Raises: ParamcountError if a name matches no module.
    """
    found: dict[tuple[str, object], list[TensorRow]] = {}
    matched = set()
    owners = find_owners(tensors)
    for tensor in tensors:
        module = owners[tensor.name]
        words = [word for word in modules if module and is_inside(module, [word])]
        if words and tensor.tied_to != tensor.name:
            found.setdefault((module, tensor.repeats), []).append(tensor)
            matched.update(words)
    for word in modules:
        if word not in matched:
            names = list_module_names(tensors)
            raise ParamcountError(
                f"no module is named {quote(word)}",
                where="modules_to_save",
                choices=names,
                nearest=find_nearest(word, names),
            )
    return [
        TrainedModule(
            module,
            group[0].component,
            "saved",
            group[0].shape,
            group[0].copies,
            None,
            sum(tensor.elements for tensor in group),
        )
        for (module, _), group in found.items()
    ]


def find_biases(
    tensors: Sequence[TensorRow], bias: str, adapted: Container[str], saved: Container[str]
) -> Iterator[TrainedModule]:
    """The biases of the model that are trained as they are. `adapted`: full names of modules with an adapter."""
    owners = find_owners(tensors)
    for tensor in tensors if bias != "none" else ():
        module = owners[tensor.name]
        is_bias = tensor.name.endswith(".bias") and tensor.is_counted
        if not is_bias or module in saved:
            continue
        copies = tensor.copies
        if bias == "adapted":
            copies = sum(name in adapted for name in iterate_names(module, tensor.repeats))
        if copies:
            per_copy = tensor.parameters // tensor.copies
            yield TrainedModule(tensor.name, tensor.component, "bias", tensor.shape, copies, None, copies * per_copy)
