"""paramcount why MODEL [NUMBER | CHECKPOINT]... [MODEL ...]..."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from paramcount.cli.checkpoints import names_checkpoint, read_checkpoint
from paramcount.cli.options import Output, collect_messages, download_option, emit, load_changed, models_argument, output_options, set_option
from paramcount.counting.count import SCHEMA_VERSION
from paramcount.errors import ParamcountError, make_printable, quote
from paramcount.explaining.why import Account, Why, explain_figures
from paramcount.output.numbers import parse_figure
from paramcount.output.tables import Column, Table
from paramcount.zoo import Model, count_model
from paramcount.zoo.names import PATH_ENDS
from paramcount.zoo.what_if import changes_to_dict, describe_changes

if TYPE_CHECKING:
    from paramcount.checkpoints.why import CheckpointExplanation

FIGURE_LIKE = re.compile(r"\s*[~≈+]?\s*\d[^/]*")  # no name of a model begins so
MOST_SHOWN = 5  # explanations of one figure, none of them claimed; findings in a file
WHAT = {  # what a source counts, where its word says it shortly
    "active_without_input_embedding": "active without the input embedding",
    "active_non_embedding": "active without the tables",
    "non_embedding": "total without the tables",
    "checkpoint": "what the released files hold",
}


@click.command("why", epilog="Example: paramcount why gpt-oss-20b 3.6B")
@models_argument(metavar="MODEL [NUMBER|CHECKPOINT]...")
@set_option
@download_option
@output_options
def command(names: tuple[str, ...], changes: tuple[str, ...], download: bool, output: Output) -> None:
    """Why somebody else says a different number: a published figure, or a file's, as a count and named causes with nothing left over.

    NUMBER is met by rounding or cutting off where it is short (3.6B, ~1.04T) and exactly where it is whole (137022720). CHECKPOINT is a
    .safetensors or .gguf file, an index, a directory of shards or a saved header, as for `paramcount verify`. A model without either:
    every figure that its entry lists as published, or of a directory the files beside its config.json. Exit code 1 where a figure is
    not reproducible, or a file not accounted for.
    """
    asked = words(names)
    models = [load_changed(one.name, changes, download) for one in asked]
    answers = [explain_figures(model, one.figures) if one.figures or not one.files else () for model, one in zip(models, asked)]
    messages = collect_messages([one.name for one in asked], models, with_ids=True)
    files = [contents_in(model, one.files) for model, one in zip(models, asked)]
    found: list[Why | CheckpointExplanation] = [*chain(*answers), *chain(*files)]
    alone = len(asked) == 1 == len(asked[0].figures) + len(asked[0].files)
    emit(lambda chosen: one_answer(models[0], found[0]) if alone and chosen not in ("csv", "json") else table(models, answers, files), output, messages)
    sys.exit(not all(answer.ok for answer in found))


class Question(NamedTuple):
    """A model, with the figures and the files that stand behind it."""

    name: str
    figures: list[str]
    files: list[str]


def words(names: Sequence[str]) -> list[Question]:
    """Each model with what stands behind it.

    Raises: ParamcountError for a figure or a checkpoint before any model, and for what looks like a figure and is none.
    """
    asked: list[Question] = []
    for word in names:
        is_figure = FIGURE_LIKE.fullmatch(word) and not word.lower().endswith(PATH_ENDS)
        if is_figure:
            parse_figure(word)
        elif not names_checkpoint(word, with_config=bool(asked)):
            asked.append(Question(word, [], []))
            continue
        if not asked:
            raise ParamcountError(f"{quote(word)} stands before any model", expected=f"MODEL {'NUMBER' if is_figure else 'CHECKPOINT'}")
        (asked[-1].figures if is_figure else asked[-1].files).append(word)
    for one in asked:
        if not one.figures and not one.files and names_checkpoint(one.name, with_config=True):
            one.files.append(one.name)  # a folder that holds a checkpoint beside its config.json
    return asked


def contents_in(model: Model, paths: Sequence[str]) -> list[CheckpointExplanation]:
    """What files hold, by their paths."""
    if not paths:
        return []
    from paramcount.checkpoints.why import explain_checkpoint

    return [explain_checkpoint(model, read_checkpoint(path)) for path in paths]


def one_answer(model: Model, answer: Why | CheckpointExplanation) -> Table:
    return detail(model, answer) if isinstance(answer, Why) else content(model, answer)


def detail(model: Model, why: Why) -> Table:
    """One figure: the sum that it is, each term with its arithmetic; or what else can be said of it."""
    name, parameters = Column("name", "name", right=False), Column("parameters", "parameters")
    above, below = [f"{printed(why.published)}: {phrase(why)}", *describe_changes(model)], notes(why)
    if why.verdict == "not reproducible":
        rows: list[list[Any]] = [["published", why.value], [counted_as(why), why.value - why.left_over]]
        return Table([name, parameters], rows, None, above, below, headings=False)
    if why.verdict == "several":
        above[0] = f"{printed(why.published)}: {len(why.accounts)} explanations fit equally well, none is claimed"
        rows = [[account.value, equation(account)] for account in why.accounts]
        return Table([parameters, name], rows, None, above, below, headings=False, wraps=True)
    (account,) = why.accounts
    above[0] = " = ".join(dict.fromkeys((printed(why.published), *([f"{account.value:,}"] if account.causes else []), equation(account))))
    return summed(account, above, below)


def content(model: Model, found: CheckpointExplanation) -> Table:
    """What files hold: the sum that it is, each term with its arithmetic, and how their bytes come about."""
    from paramcount.checkpoints import render_verification as telling_verified

    account, checked = found.account, found.verification
    values = f"{account.value:,} values" if found.values is not None else f"{account.value:,} values according to the tensor names"
    above = [f"{make_printable(found.path)}: {values} = {equation(account)}", *describe_changes(model)]
    below = [found.summary, *telling_verified.lines(checked, MOST_SHOWN, "paramcount verify"), *found.byte_sums, *checked.remarks]
    below += [f"{cause}: number of values unknown, the index has names only" for cause in found.unknown]
    return summed(account, above, below)


def summed(account: Account, above: list[str], below: list[str]) -> Table:
    """An account as rows."""
    columns = [Column("name", "name", right=False), Column("parameters", "parameters"), Column("arithmetic", "arithmetic", right=False, style="dim")]
    rows = [[account.base, f"{account.count:,}", ""]]
    for cause in account.causes:
        alone = len(cause.items) == 1
        rows.append([cause.name, signed(cause.units), cause.items[0].arithmetic if alone else ""])
        rows += [[f"  {item.name}", signed(item.units), item.arithmetic] for item in cause.items if not alone]
    return Table(columns, rows, None, above, below, headings=False, wraps=True)


def signed(n: int) -> str:
    return f"{'−' if n < 0 else '+'}{abs(n):,}"


def table(models: Sequence[Model], answers: Sequence[Sequence[Why]], files: Sequence[Sequence[CheckpointExplanation]]) -> Table:
    """A row for each figure and each file; of one model alone also where it was published."""
    one = models[0] if len(models) == 1 else None
    ids = {source.ref: source.id for source in one.sources} if one else {}
    rows = [row for whys, held in zip(answers, files) for row in (*(figure(why, ids) for why in whys), *map(file, held))]
    columns = [
        Column("model", "model", right=False, only="csv" if one else ""),
        Column("published", "published", show=printed),
        Column("counts", "counts", right=False, only="csv"),
        Column("true", "true"),
        Column("value", "value", only="csv"),
        Column("left_over", "left over", only="csv"),
        Column("verdict", "verdict", right=False, only="csv"),
        Column("source", "source", right=False, only="csv"),
        Column("by", "source", right=False, only="people"),
        Column("why", "why", right=False),
    ]
    used = [i for i, column in enumerate(columns) if column.name != "by" or any(row[i] for row in rows)]
    above = [f"{one.name}   {count_model(one).total:,} parameters"] if one else []
    above += [f"{'' if one else f'{model.id}: '}{line}" for model in models for line in describe_changes(model)]
    below = [f"{id}: {ref}" for id, ref in dict.fromkeys((row[8], row[7]) for row in rows) if id and id != ref]
    below += [f"{model.id}: its entry lists no published figure" for model, *found in zip(models, answers, files) if not any(found)]
    data = {"schema_version": SCHEMA_VERSION, "figures": [why.to_dict() | changes_to_dict(model) for model, found in zip(models, answers) for why in found]}
    if any(files):
        data["files"] = [held.to_dict() | changes_to_dict(model) for model, found in zip(models, files) for held in found]
    return Table([columns[i] for i in used], [[row[i] for i in used] for row in rows], data, above, below, wraps=True)


def figure(why: Why, ids: Mapping[str, str]) -> list[Any]:
    """The row of a figure. `ids`: of the sources of its model's entry."""
    return [why.id, why.published, why.what, why.true, value(why), why.left_over, why.verdict, why.source, ids.get(str(why.source), ""), phrase(why)]


def file(found: CheckpointExplanation) -> list[Any]:
    """The row of files: what they hold is the figure."""
    account = found.account
    held = "–" if found.values is None else str(found.values)
    phrase = in_words(account)
    path, name = make_printable(found.path), make_printable(Path(found.path).name)
    return [found.id, held, "checkpoint", account.count, found.values, found.left_over, found.verdict, path, name, f"{phrase}, {found.summary}"]


def value(why: Why) -> int | None:
    """The one sum that a figure is."""
    return why.accounts[0].value if len(why.accounts) == 1 else None


def equation(account: Account) -> str:
    return f"{account.base} {account.count:,} {account.terms}".rstrip()


def phrase(why: Why) -> str:
    """The answer in a few words, the count itself left out."""
    if why.verdict == "not reproducible":
        left = abs(why.left_over)
        return f"Not reproducible, {f'{left:,}' if why.step == 1 else rough(left)} left over"
    found = [in_words(account) for account in why.accounts]
    if why.verdict == "several":
        more = f"; or {len(found) - MOST_SHOWN} others" if len(found) > MOST_SHOWN else ""
        return f"several fit, none is claimed: {'; or '.join(found[:MOST_SHOWN])}{more}"
    others = [*([f"{why.plainer.base}, truncated"] if why.plainer else []), *([f"{in_words(why.rounded)}, rounded"] if why.rounded else [])]
    return "; or ".join([f"{found[0]}, {why.verdict}", *others])


def in_words(account: Account) -> str:
    """An account without its numbers."""
    return f"{account.base} {account.terms}".rstrip()


def counted_as(why: Why) -> str:
    """The name of the count that a figure that nothing explains was held against."""
    return why.base if why.value - why.left_over == why.true else WHAT.get(str(why.what), str(why.what))


def rough(n: int) -> str:
    """A number in two digits, or in three before the point.

    >>> rough(7_439_808), rough(852_282_624), rough(999_700_000), rough(3416)
    ('7.4 M', '852 M', '1.0 B', '3.4 K')
    """
    for unit, size in (("T", 10**12), ("B", 10**9), ("M", 10**6), ("K", 10**3)):
        if n >= size - size // 2000:
            tenths = (20 * n + size) // (2 * size)
            return f"{tenths // 10}.{tenths % 10} {unit}" if tenths < 100 else f"{(2 * n + size) // (2 * size)} {unit}"
    return str(n)


def printed(figure: str) -> str:
    """A figure as people write it, digits in groups, the unit apart.

    >>> printed("~1.04T"), printed("137022720")
    ('1.04 T', '137,022,720')
    """
    text = figure.strip("~≈ ").upper()
    return f"{int(text):,}" if text.isdecimal() else re.sub(r"\s*([KMBGT])$", r" \1", text)


def notes(why: Why) -> list[str]:
    """How the sum becomes the figure, what else would, and what the source says."""
    lines = [why.verdict] if len(why.accounts) == 1 else []
    if why.plainer:
        lines.append(f"cut off instead of rounded, {equation(why.plainer)} is {printed(why.published)} too")
    if why.rounded:
        lines.append(f"rounded instead, {equation(why.rounded)} = {why.rounded.value:,} is {printed(why.published)} too")
    if why.what:
        words = "does not say what it counts" if why.what == "unspecified" else f"counts {WHAT.get(why.what, why.what)}"
        lines.append(f"the source {words}: {why.source}")
    return lines
