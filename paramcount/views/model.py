"""One model at a glance: its total with the proof, a row per component, what stands beside."""

from __future__ import annotations

from paramcount.counting.arithmetic import format_arithmetic
from paramcount.counting.count import SCHEMA_VERSION, Count
from paramcount.counting.tensors import sum_unreachable
from paramcount.errors import ParamcountError
from paramcount.output.numbers import format_bytes, format_count
from paramcount.output.tables import Column, Table
from paramcount.zoo import Model
from paramcount.zoo.checks import summarize_checks


def table(model: Model, count: Count) -> Table:
    """The overview: components that are all zero are left out, but for a tied head."""
    written = format_arithmetic(count)
    rows = [
        [name, n, count.active_components[name], share(n, count.total), written.get(name, "")] for name, n in count.components.items() if n or name in written
    ]
    columns = [
        Column("component", "component", right=False),
        Column("parameters", "parameters"),
        Column("active", "active", only="csv"),
        Column("share", "share", only="people"),
        Column("arithmetic", "arithmetic", right=False, only="people", style="dim"),
    ]
    proven = summarize_checks(model, count)
    what = "parameters of the language model" if count.scope == "language_model" else "parameters"
    above = [f"{model.name}   {count.total:,} {what} ({format_count(count.total)}){'' if model.original else f'   {proven}'}"]
    data = count.to_dict() | {"name": model.name, "proof": proven}
    return Table(columns, rows, data, above=above, below=beside(count), headings=False, wraps=True)


def share(n: int, total: int) -> str:
    """A share in per cent with one decimal; nothing of nothing.

    >>> share(1, 3), share(2, 3), share(0, 3), share(0, 0)
    ('33.3%', '66.7%', '', '')
    """
    if not n:
        return ""
    tenths = (2000 * n + total) // (2 * total)  # rounded in integers
    return f"{tenths // 10}.{tenths % 10}%"


def beside(count: Count) -> list[str]:
    """What stands beside the total, below the table."""
    lines = []
    if count.active != count.total:
        experts = dict.fromkeys((r.active, r.count) for t in count.tensors for r in (*t.repeats, *([t.stacked] if t.stacked else [])) if r.axis == "expert")
        visited = " and ".join(f"{active} of {n}" for active, n in experts)
        least = f", at least {count.active_min:,}" if count.active_min != count.active else ""
        active = f"active {count.active:,} ({format_count(count.active)}{least}): {visited} experts a token"
        lines.append(f"{active} · without the input embedding {count.active_without_input_embedding:,}")
    lines.append(f"non-embedding {count.non_embedding:,} · FP32 {format_bytes(count.bytes_fp32)} · BF16 {format_bytes(count.bytes_bf16)}{stored(count)}")
    others = [f"{name} {n:,}" for name, n in (("buffers", count.buffers), ("MTP", count.mtp)) if n]
    if others:
        lines.append(f"beside the total: {' · '.join(others)}")
    scales = f"{str(count.quantisation).upper()} scales"
    items = {name.replace("_", " ").replace("mtp", "MTP").replace("scales", scales): n for name, n in count.release.items() if n}
    if len(items) > 1:
        lines.append(f"released files {count.checkpoint:,} = {' + '.join(f'{name} {n:,}' for name, n in items.items())}")
    lines += [f"unreachable {n:,}, not in the total: {reason}" for reason, n in sum_unreachable(count.sizes, count.head).items()]
    if count.not_counted:
        lines.append(f"not counted: {', '.join(count.not_counted)}")
    if count.language_model != count.total:
        lines.append(f"language model alone {count.language_model:,}")
    return lines


def stored(count: Count) -> str:
    """The bytes of a quantised model, beside those of other formats."""
    found = count.storage
    if found is None:
        return ""
    about, mtp = "" if found.exact else "about ", ", with MTP" if found.mtp else ""
    return f" · as stored ({found.scheme}{mtp}) {about}{format_bytes(found.bytes)}"


def claims(model: Model) -> Table:
    """What others say of a model whose sizes nobody published."""
    if not model.claims:
        raise ParamcountError("has no claims", where=model.id)
    refs = {source.id: source.ref for source in model.sources}
    rows = [[claim.what, claim.value, claim.by, refs[claim.source]] for claim in model.claims]
    columns = [Column(name, name, right=False, only="csv" if name == "source" else "") for name in ("what", "claim", "by", "source")]
    data = {"schema_version": SCHEMA_VERSION, **(model.entry.model_dump(mode="json", exclude_none=True) if model.entry else {})}
    return Table(columns, rows, data, above=[f"{model.name}   estimate: nobody published its sizes; these are claims, never counts"], wraps=True)
