"""paramcount diff A [B]"""

from __future__ import annotations

from paramcount.cli.options import CommandRequest, apply_changes, define_command, make_models_argument
from paramcount.counting.count import SCHEMA_VERSION
from paramcount.errors import ParamcountError
from paramcount.explaining.glossary import FLAGS
from paramcount.loading import load
from paramcount.output.tables import Column, Table
from paramcount.sizes.values import format_size
from paramcount.views.diff import ComponentDifference, Difference, SizeDifference, diff_models
from paramcount.views.forward_settings import format_setting
from paramcount.zoo import Model
from paramcount.zoo.columns import format_signed_or_dash
from paramcount.zoo.what_if import changes_to_dict, describe_changes, format_sum

LONGEST = 160  # characters of arithmetic: about three lines of a terminal
Row = list[object]
COLUMNS = (
    Column("kind", "kind", right=False, only="csv"),
    Column("name", "name", right=False),
    Column("a", "a", only="csv"),
    Column("b", "b", only="csv"),
    Column("difference", "difference", show=lambda value: "" if value is None else format_signed_or_dash(value)),
    Column("active_difference", "active difference", only="csv"),
    Column("how", "how", right=False, only="text", style="dim"),
)


@define_command("diff", "llama-2-7b llama-3.1-8b", make_models_argument("A [B]"))
def command(request: CommandRequest) -> None:
    """Show which sizes, settings and components differ between two models.

    A and B are models as for `paramcount show`. Each difference is B minus A; they are sorted by size and add up to the
    difference of the totals. With one model and --set, compare the model with its changed version; with two models,
    --set changes both."""
    names = request.names
    if len(names) > 2 or (len(names) == 1 and not request.changes):
        problem = f"diff compares two models, not {len(names)}"
        raise ParamcountError(problem, expected="two models, or one with --set SIZE=VALUE")
    models = [load(name, download=request.download, base=request.base) for name in names]
    changed_models = [apply_changes(model, request.changes) for model in models]
    a = models[0] if len(models) == 1 else changed_models[0]
    b = changed_models[-1]
    request.emit(build_table(a, b), request.collect_messages(changed_models))


def build_table(a: Model, b: Model) -> Table:
    """A table of the sizes, the settings, the components and the total that differ."""
    diff = diff_models(a, b)
    rows = [make_size_row(size) for size in diff.sizes]
    rows += [make_setting_row(setting) for setting in diff.settings]
    for part in diff.components:
        differences = [part.difference, part.active_difference]
        rows.append(["component", part.component, part.a, part.b, *differences, render_arithmetic(part)])
    arithmetic = f"{diff.total_b:,} − {diff.total_a:,}"
    rows.append(["total", "total", diff.total_a, diff.total_b, diff.difference, diff.active_difference, arithmetic])
    if b.original is a:
        above, changes = [f"{a.name}   {describe_changes(b)[0]}"], changes_to_dict(b)
    else:
        above = [f"{a.name} → {b.name}   {format_sum(diff.total_a, diff.total_b)}"]
        above += [f"{model.name}: {line}" for model in (a, b) for line in describe_changes(model)]
        changes = {f"{name}_a": value for name, value in changes_to_dict(a).items()}
        changes |= {f"{name}_b": value for name, value in changes_to_dict(b).items()}
    data = {"schema_version": SCHEMA_VERSION, **diff.to_dict(), **changes}
    below = list_footnotes(diff)
    return Table(COLUMNS, rows, data, above=above, below=below, headings=False, wraps=True, bold=("total",))


def make_size_row(size: SizeDifference) -> Row:
    """The row of a size; a dash if one of the models does not have it."""
    texts = ("–" if size.only == "b" else format_size(size.a), "–" if size.only == "a" else format_size(size.b))
    values: Row = []
    for text, value in zip(texts, (size.a, size.b)):
        if text == "–":
            values.append(None)
        else:
            values.append(value if type(value) in (int, bool, str) else text)
    meaning = FLAGS.get(size.name.rpartition(".")[2])
    text = " → ".join(texts) + (f" ({meaning})" if meaning else "")
    return ["size", size.name, *values, None, None, text]


def make_setting_row(setting: SizeDifference) -> Row:
    """The row of a setting of the forward pass; a dash if one of the models has no operation with it."""
    texts = [format_setting(values) if values else "–" for values in (setting.a, setting.b)]
    values = [
        values[0] if values and len(values) == 1 else None if text == "–" else text
        for values, text in zip((setting.a, setting.b), texts)
    ]
    return ["setting", setting.name, *values, None, None, " → ".join(texts)]


def render_arithmetic(part: ComponentDifference) -> str:
    """B's arithmetic minus A's; if that is too long or has no formula, B's value minus A's."""
    texts = (part.arithmetic_a, part.arithmetic_b)
    a, b = (f"0 ({text})" if text.startswith("tied") else text or "0" for text in texts)
    text = f"{b} − {add_brackets(a)}"
    return text if len(text) <= LONGEST and " tensors" not in text else f"{part.b:,} − {part.a:,}"


def add_brackets(arithmetic: str) -> str:
    """A sum in brackets; a product without."""
    depth = 0
    for piece in arithmetic.split(" "):
        if piece == "+" and not depth:
            return f"({arithmetic})"
        depth += piece.count("(") - piece.count(")")
    return arithmetic


def list_footnotes(diff: Difference) -> list[str]:
    """The lines below the table: no difference, active parameters, what the total does not include, and totals of the
    reference implementation."""
    lines = []
    if not diff.components:
        lines.append("the parameter counts are the same" if diff.sizes or diff.settings else "no differences")
    active = [part for part in diff.components if part.active_difference != part.difference]
    if active:
        others = [part for part in diff.components if part not in active and part.difference]
        phrases = [f"{part.component} {format_signed_or_dash(part.active_difference)}" for part in active]
        phrases += ["all other components as above"] if others else []
        lines.append(f"active {format_sum(diff.active_a, diff.active_b)}: {', '.join(phrases)}")
    for name, a, b, _ in diff.beside:
        known = a is not None and b is not None
        text = format_sum(a, b) if known else " → ".join("unknown" if n is None else f"{n:,}" for n in (a, b))
        lines.append(f"not included in the total: {name.replace('mtp', 'MTP')} {text}")
    return [*lines, *diff.release_differences]
