"""The trainable parameters of adapters: LoRA, rsLoRA, DoRA, IA³ and VeRA, as the peft library adds them.

Sources: arXiv:2106.09685 (LoRA), 2312.03732 (rsLoRA), 2402.09353 (DoRA), 2205.05638 (IA³), 2310.11454 (VeRA); what an
adapter of each layer consists of: peft 0.21 with transformers 5.23.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

from paramcount.costs.adapter_sites import Site, leave_out, list_all_tensors, list_layers, list_module_names
from paramcount.costs.adapter_targets import ALL_LINEAR, choose_sites
from paramcount.costs.devices import check_size
from paramcount.costs.dtypes import PLAIN, PLAIN_LABELS
from paramcount.counting import SCHEMA_VERSION, Tensor
from paramcount.counting.quantisation.packing import Packing, compute_bytes
from paramcount.errors import ParamcountError, describe_value, find_nearest, quote
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


class TrainedModule(NamedTuple):
    """Modules of one name pattern with an adapter, or trained as a whole."""

    name: str  # "{layer}" stands for an index
    component: str
    kind: str  # adapter | saved | bias
    shape: tuple[int, ...]  # of the module's weight; of stacked experts with their number first
    copies: int  # number of such modules
    rank: int | None  # None of IA³, and of what is trained as a whole
    parameters: int  # trainable ones of all copies


@dataclass(frozen=True)
class Lora:
    """An adapter of a model."""

    id: str
    name: str
    method: str
    r: int | None  # rank; None for IA³, which has none
    targets: tuple[str, ...]
    target_parameters: tuple[str, ...]
    modules_to_save: tuple[str, ...]
    bias: str
    dtype: str  # of the adapter
    base: int  # parameters of the model without the adapter
    modules: tuple[TrainedModule, ...]
    projection: int  # values of the two frozen random matrices that VeRA shares between all layers
    adapter_bytes: int  # of a saved adapter: trainable parameters and projection
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

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

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain data for JSON."""
        names = ("id", "name", "method", "r", "bias", "dtype", "base", "trainable", "total", "trainable_percent",
                 "projection", "adapter_bytes")  # fmt: skip
        lists = ("targets", "target_parameters", "modules_to_save", "warnings", "notes")
        return {
            "schema_version": SCHEMA_VERSION,
            **{name: getattr(self, name) for name in names},
            **{name: list(getattr(self, name)) for name in lists},
            "modules": [{**module._asdict(), "shape": list(module.shape)} for module in self.modules],
        }

    def _repr_html_(self) -> str:
        """The trained modules as a table, for notebooks."""
        from paramcount.costs.render_adapters import build_adapter_table
        from paramcount.output.markup_tables import render_html_fragment

        return render_html_fragment(build_adapter_table(self))


def measure_adapter(
    model: Model,
    *,
    r: object = 16,
    targets: object = None,
    target_parameters: object = (),
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
    words = read_words("targets", (() if parameters else ALL_LINEAR) if targets is None else targets)
    saved_words = read_words("modules_to_save", modules_to_save)
    if not words and not parameters:
        raise ParamcountError("is empty", where="targets", expected='"all-linear", a group or names of modules')
    if parameters and method not in ("lora", "rslora"):
        raise ParamcountError(f"{NAMES[method]} does not apply to parameters", where="target_parameters")
    if bias != "none" and method == "ia3":
        raise ParamcountError(f"= {describe_value(bias)}", where="bias", expected='"none" for IA³')
    stored = check_word("dtype", dtype, PLAIN)
    count = count_model(model)
    tensors = list(list_all_tensors(count))
    saved = find_saved(tensors, saved_words)
    taken = {module.name for module in saved}
    every = list_layers(count)
    layers = leave_out(every, partial(is_inside, modules=saved_words))
    for word in words:
        if any(site.matches(word) for site in every.sites) and not any(site.matches(word) for site in layers.sites):
            raise ParamcountError(f"{word} is one of modules_to_save", where="targets")
    choice = choose_sites(count, layers, words, parameters, is_lora=method in ("lora", "rslora", "dora"))
    chosen = choice.ranks
    modules = [make_adapter(site, method, rank * factor) for site, factor in chosen.items()]
    projection = count_projection(list(chosen), rank) if method == "vera" else 0
    trained = merge_modules((*modules, *saved, *find_biases(tensors, bias, chosen, taken)))
    values = sum(module.parameters for module in trained) + projection
    packing = Packing("plain", PLAIN[stored])
    return Lora(
        id=model.id,
        name=model.name,
        method=method,
        r=None if method == "ia3" else rank,
        targets=words,
        target_parameters=parameters,
        modules_to_save=saved_words,
        bias=bias,
        dtype=PLAIN_LABELS[packing.dtype],
        base=count.total,
        modules=trained,
        projection=projection,
        adapter_bytes=compute_bytes((values,), packing),
        warnings=choice.warnings,
        notes=choice.notes,
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
    """The value of an option that is one of some words, in any case.

    Raises: ParamcountError for any other value, with the nearest word.
    """
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


def make_adapter(site: Site, method: str, rank: int) -> TrainedModule:
    """What a method trains for a layer, in all copies.

    Raises: ParamcountError if the method does not apply to the layer.
    """
    is_line = site.kind == "convolution" and len(site.shape) == 3  # of Conv1d, which IA³ has no class for
    if site.kind not in KINDS[method] or (method == "ia3" and is_line):
        what = {"experts": "routed experts"}.get(site.kind, site.kind + "s")
        raise ParamcountError(f"{NAMES[method]} does not apply to {what}: {site.name}", where="targets")
    match method:
        case "ia3":  # one scale per output, or per input of the MLP's last matrix
            per_copy = site.inputs if site.is_down else site.outputs
        case "vera":
            per_copy = site.outputs + rank
        case _:  # A and B, and DoRA's magnitude per output
            per_copy = rank * site.experts * (site.inputs + site.outputs) + (site.outputs if method == "dora" else 0)
    kept_rank = None if method == "ia3" else rank
    return TrainedModule(
        site.name, site.component, "adapter", site.shape, site.copies, kept_rank, site.copies * per_copy
    )


def count_projection(sites: Sequence[Site], rank: int) -> int:
    """Values of VeRA's shared matrices, which are as large as the largest layer needs."""
    return rank * (max(site.inputs for site in sites) + max(site.outputs for site in sites))


def is_inside(name: str, modules: Sequence[str]) -> bool:
    """Whether a module is one of these or inside one. As in peft, the end of a name suffices.

    >>> is_inside("model.layers.{layer}.mlp.up_proj", ["mlp"]), is_inside("lm_head", ["embed_tokens"])
    (True, False)
    """
    parts = name.split(".")
    return any(".".join(parts[:n]).endswith(module) for n in range(1, len(parts) + 1) for module in modules)


def find_owners(tensors: Iterable[Tensor]) -> dict[str, str]:
    """{tensor: its module}. A bias beside the decoder of an encoder's LM head is the decoder's in the reference."""
    owners = {tensor.name: tensor.name.rpartition(".")[0] for tensor in tensors}
    for tensor in tensors:
        beside = tensor.name.removesuffix(".decoder.weight") + ".bias"
        if tensor.component == "lm_head" and beside in owners:
            owners[beside] = owners[tensor.name]
    return owners


def find_saved(tensors: Sequence[Tensor], modules: Sequence[str]) -> list[TrainedModule]:
    """The modules that are trained as a whole, weights and biases; tied weights become one copy per module.

    Raises: ParamcountError if a name matches no module.
    """
    found: dict[tuple[str, object], list[Tensor]] = {}
    matched = set()
    owners = find_owners(tensors)
    for tensor in tensors:
        module = owners[tensor.name]
        words = [word for word in modules if module and is_inside(module, [word])]
        if words and tensor.role == "parameter" and tensor.part != "mtp" and tensor.tied_to != tensor.name:
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


def find_biases(tensors: Sequence[Tensor], bias: str, adapted: Iterable[Site], saved: set[str]) -> list[TrainedModule]:
    """The biases of the model that are trained as they are."""
    if bias == "none":
        return []
    names, owners = {site.module for site in adapted}, find_owners(tensors)
    return [
        TrainedModule(tensor.name, tensor.component, "bias", tensor.shape, tensor.copies, None, tensor.parameters)
        for tensor in tensors
        if tensor.name.endswith(".bias") and tensor.parameters and tensor.part != "mtp"
        if (module := owners[tensor.name]) not in saved and (bias == "all" or module in names)
    ]
