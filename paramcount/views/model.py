"""One model: total, components, arithmetic, and the figures that the total does not include."""

from __future__ import annotations

from paramcount.counting.arithmetic import format_arithmetic
from paramcount.counting.count import SCHEMA_VERSION, Count
from paramcount.counting.tensors import sum_unreachable
from paramcount.errors import ParamcountError, join_words
from paramcount.output.numbers import format_bytes, format_count, format_share
from paramcount.output.tables import Column, Table
from paramcount.zoo import Model
from paramcount.zoo.checks import summarize_checks

PARTS_OF_THEIR_OWN = ("vision", "audio", "projector", "mtp")  # which the component "other" does not include
MOST_MODULES = 5  # named for the component "other"
RELEASE_ITEMS = {  # {item of `count.release`: its name in text}; {scales}: "FP8 scales"
    "legacy_buffers": "legacy buffers",
    "mtp": "MTP",
    "mtp_buffers": "MTP buffers",
    "mtp_copies": "duplicate embedding and LM head (MTP)",
    "scales": "{scales}",
    "mtp_scales": "MTP {scales}",
}


def build_model_table(model: Model, count: Count, *, has_data: bool = True) -> Table:
    """The overview of a model: one row per component that has parameters or is tied, notes below. `has_data`: whether
    it is for JSON, too."""
    arithmetic = format_arithmetic(count)
    rows = []
    for name, n in count.components.items():
        if n or name in arithmetic:
            share = format_share(n, count.total)
            rows.append([name, n, count.active_components[name], share, arithmetic.get(name, "")])
    columns = [
        Column("component", "component", right=False),
        Column("parameters", "parameters"),
        Column("active", "active", only="csv"),
        Column("share", "share", only="text"),
        Column("arithmetic", "arithmetic", right=False, only="text", style="dim"),
    ]
    evidence = summarize_checks(model, count)
    unit = "parameters of the language model" if count.scope == "language_model" else "parameters"
    title = f"{model.name}   {count.total:,} {unit} ({format_count(count.total)})"
    above = [title if model.original else f"{title}   {evidence}"]
    data = {}
    if has_data:
        data = count.to_dict() | {"name": model.name, "proof": evidence, "sources": list_sources(model)}
    return Table(columns, rows, data, above=above, below=describe_count(count), headings=False, wraps=True)


def list_sources(model: Model) -> list[dict[str, str | None]]:
    """The sources of a model, each with its address; None if it cites none."""
    from paramcount.zoo.links import link_source

    return [
        {"id": source.id, "kind": source.kind, "ref": source.ref, "url": link_source(source.ref)}
        | {"accessed": source.accessed.isoformat()}
        for source in model.sources
    ]


def describe_count(count: Count) -> list[str]:
    """The lines below a model's table: active parameters, bytes, and everything that the total does not include."""
    lines = describe_other(count)
    if count.active != count.total:
        lines.append(describe_active(count))
    sizes = [f"FP32 {format_bytes(count.bytes_fp32)}", *describe_storage(count)]
    lines.append(" · ".join([f"non-embedding {count.non_embedding:,}", *sizes]))
    extras = [f"{name} {n:,}" for name, n in (("buffers", count.buffers), ("MTP", count.mtp)) if n]
    extras += ["MTP (size unknown)"] if count.mtp is None else []
    extras += count.not_counted
    if extras:
        lines.append(f"not included in the total: {' · '.join(extras)}")
    if len(items := {name: n for name, n in count.release.items() if n}) > 1:
        scales = f"{str(count.quantisation).upper()} scales"
        terms = [f"{RELEASE_ITEMS.get(name, name).format(scales=scales)} {n:,}" for name, n in items.items()]
        lines.append(f"released files: {count.checkpoint:,} = {' + '.join(terms)}")
    for reason, n in sum_unreachable(count.sizes, count.head).items():
        lines.append(f"not included in the total: unreachable {n:,} ({reason})")
    if count.language_model != count.total:
        lines.append(f"language model only {count.language_model:,}")
    return lines


def describe_other(count: Count) -> list[str]:
    """The names of the modules in the component `other`, which its own name does not tell."""
    tensors = [tensor for tensor in count.tensors if tensor.component == "other" and tensor.is_counted]
    names = list(dict.fromkeys(name_module(tensor.name) for tensor in tensors if tensor.part not in PARTS_OF_THEIR_OWN))
    if not names:
        return []
    shown = (
        names if len(names) <= MOST_MODULES else [*names[: MOST_MODULES - 1], f"{len(names) - MOST_MODULES + 1} more"]
    )
    return [f"other: {join_words(shown, 'and')}"]


def name_module(tensor: str) -> str:
    """The last name in the path of a tensor.

    >>> name_module("model.layers.{layer}.self_attn.sinks"), name_module("bert.pooler.dense.weight")
    ('sinks', 'pooler.dense')
    >>> name_module("predictor.proj.0.bias")
    'proj.0'
    """
    path = tensor.removesuffix(".weight").removesuffix(".bias").split(".")
    names = [name for name in path if not name.startswith("{")]
    is_vague = names[-1].isdecimal() or names[-1].startswith(("dense", "linear"))
    return ".".join(names[-2:] if is_vague else names[-1:])


def describe_active(count: Count) -> str:
    repeats = (repeat for tensor in count.tensors for repeat in (*tensor.repeats, tensor.stacked) if repeat)
    groups = dict.fromkeys(f"{repeat.active} of {repeat.count}" for repeat in repeats if repeat.axis == "expert")
    varies = count.active_min != count.active
    most, least = ("up to ", f" · minimum {count.active_min:,}") if varies else ("", "")
    experts = f"{most}{' and '.join(groups)} experts per token"
    without = f"without input embedding {count.active_without_input_embedding:,}"
    return f"active {count.active:,} ({format_count(count.active)}): {experts}{least} · {without}"


def describe_storage(count: Count) -> list[str]:
    storage = count.storage
    if storage is None:
        return []
    scheme = f"{storage.scheme}, with MTP" if storage.mtp else storage.scheme
    size = format_bytes(storage.bytes)
    return [f"as stored ({scheme}) {size if storage.exact else f'about {size}'}"]


def build_estimates_table(model: Model) -> Table:
    """Third-party estimates of a model with unpublished sizes. Raises: ParamcountError if the entry lists none."""
    if not model.claims:
        raise ParamcountError("has no third-party estimates", where=model.id)
    refs = {source.id: source.ref for source in model.sources}
    rows = [[claim.what, claim.value, claim.by, refs[claim.source]] for claim in model.claims]
    columns = [
        Column(name, label, right=False, only="csv" if name == "source" else "")
        for name, label in (("what", "what"), ("claim", "estimate"), ("by", "by"), ("source", "source"))
    ]
    entry = model.entry.model_dump(mode="json", exclude_none=True) if model.entry else {}
    above = [f"{model.name}   third-party estimates; its sizes are unpublished"]
    return Table(columns, rows, {"schema_version": SCHEMA_VERSION, **entry}, above=above, wraps=True)
