"""paramcount why MODEL [NUMBER | CHECKPOINT]... [MODEL ...]"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from paramcount.cli.checkpoints import is_checkpoint_path, read_checkpoint
from paramcount.cli.options import CommandRequest, apply_changes, define_command, make_models_argument, option
from paramcount.counting.count import SCHEMA_VERSION
from paramcount.errors import ParamcountError, make_printable, quote
from paramcount.explaining.render_why import (
    Row,
    build_account_table,
    build_figure_table,
    format_figure,
    summarise,
)
from paramcount.explaining.why import Why, explain_figures, render_equation, render_terms
from paramcount.output.numbers import parse_figure
from paramcount.output.tables import Column, Table, number_sources
from paramcount.zoo import Model, count_model
from paramcount.zoo.names import PATH_ENDS
from paramcount.zoo.what_if import changes_to_dict, describe_changes

if TYPE_CHECKING:
    from paramcount.auditing.why_checkpoint import CheckpointExplanation

FIGURE_LIKE = re.compile(r"\s*[~≈+]?\s*\d[^/]*")  # no model name begins like this
MAX_PROBLEMS = 5  # of one checkpoint


@define_command("why", "gpt-oss-20b 3.6B", make_models_argument("MODEL [NUMBER|CHECKPOINT]... [MODEL ...]"))
@option("--trainable NUMBER", "Find the rank and targets of an adapter with NUMBER parameters.")
def command(request: CommandRequest, trainable: str | None) -> None:
    """Explain what a published number counts or a checkpoint contains.

    The answer is a count plus or minus named parts, with nothing left unexplained. A short NUMBER (3.6B, ~1.04T) may be
    rounded or truncated; a full one (137022720) must match exactly. CHECKPOINT is a .safetensors or .gguf file, an
    index, a directory of shards or a saved header. With neither, explain all published figures in the zoo entry, or the
    checkpoint next to the config.json. Several models can be given, each followed by its figures. The exit code is 1 if
    a figure cannot be explained or a checkpoint is incomplete.

    --trainable explains the "trainable params" that peft prints: all ranks and targets of LoRA and DoRA with as many,
    the simplest first."""
    questions = parse_arguments(request.names)
    if trainable is not None:
        explain_trainable(request, questions, trainable)
    models = [load_question_model(i, question, request) for i, question in enumerate(questions)]
    answers: list[Sequence[Why]] = []
    contents: list[Sequence[CheckpointExplanation]] = []
    for model, question in zip(models, questions):
        needs_figures = question.figures or not question.files
        answers.append(explain_figures(model, question.figures) if needs_figures else ())
        files: list[CheckpointExplanation] = []
        if question.files:
            from paramcount.auditing.why_checkpoint import explain_checkpoint

            files = [explain_checkpoint(model, read_checkpoint(path)) for path in question.files]
        contents.append(files)
    request = request._replace(names=tuple(question.name for question in questions))
    messages = request.collect_messages(models)
    for question, *results_of_one in zip(questions, answers, contents):
        if not any(results_of_one):
            name = make_printable(question.name)
            note = f"{name}: no published figure is known; to explain one, run `paramcount why {name} NUMBER`"
            messages = messages._replace(notes=(*messages.notes, note))
    results: list[Why | CheckpointExplanation] = [*chain(*answers), *chain(*contents)]
    is_single = len(questions) == 1 == len(questions[0].figures) + len(questions[0].files)

    def make_table(format: str) -> Table:
        if format not in ("csv", "json") and is_single:
            (model,), (answer,) = models, results
            return (
                build_figure_table(answer, describe_changes(model))
                if isinstance(answer, Why)
                else build_contents_table(model, answer)
            )
        if format not in ("csv", "json") and not results:
            columns = [Column("model", "model", right=False), Column("total", "total")]
            rows = [[model.name, count_model(model).total] for model in models]
            return Table(columns, rows, None, [line for model in models for line in describe_changes(model)])
        return build_table(models, answers, contents)

    request.emit(make_table, messages)
    sys.exit(not all(result.ok for result in results))


def explain_trainable(request: CommandRequest, questions: Sequence[Question], trainable: str) -> NoReturn:
    """Print the adapters of each model with so many trainable parameters; the exit code is 1 if one has none."""
    from paramcount.costs.adapters.render import build_search_table
    from paramcount.costs.adapters.search import find_adapters

    if any(question.figures or question.files for question in questions):
        raise ParamcountError("--trainable cannot be combined with other figures or checkpoints")
    request = request._replace(names=tuple(question.name for question in questions))
    models = [load_question_model(i, question, request) for i, question in enumerate(questions)]
    searches = [find_adapters(model, trainable) for model in models]
    request.emit(build_search_table(*searches), request.collect_messages(models))
    sys.exit(not all(search.ok for search in searches))


class Question(NamedTuple):
    """A model with the figures and files to explain."""

    name: str
    figures: list[str]
    files: list[str]


def parse_arguments(words: Sequence[str]) -> list[Question]:
    """Each model with the figures and files that follow it.

    Raises: ParamcountError for a figure or checkpoint before the first model, and for a malformed figure.
    """
    questions: list[Question] = []
    for word in words:
        is_figure = FIGURE_LIKE.fullmatch(word) and not word.lower().endswith(PATH_ENDS)
        if is_figure:
            parse_figure(word)
        elif not is_checkpoint_path(word, with_config=bool(questions)):
            questions.append(Question(word, [], []))
            continue
        if not questions:
            expected = f"MODEL {'NUMBER' if is_figure else 'CHECKPOINT'}"
            raise ParamcountError(f"missing MODEL before {quote(word)}", expected=expected)
        (questions[-1].figures if is_figure else questions[-1].files).append(word)
    for question in questions:
        if not question.figures and not question.files and is_checkpoint_path(question.name, with_config=True):
            question.files.append(question.name)  # a folder with a config.json and a checkpoint
    return questions


def load_question_model(i: int, question: Question, request: CommandRequest) -> Model:
    """The model of the question with index `i`.

    Raises: ParamcountError; for a word after a model, it says that a figure or a checkpoint may stand there too.
    """
    from paramcount.loading import load

    try:
        model = load(question.name, download=request.download, base=request.base)
    except ParamcountError as error:
        if i == 0 or error.where or question.figures or question.files:
            raise
        found = f"{quote(question.name)} is not a number, a checkpoint or a model"
        expected = "a number such as 3.6B, the path of a checkpoint, or a name from `paramcount list`"
        raise error.replace(found=found, expected=expected) from None
    return apply_changes(model, request.changes)


# ---- one answer


def build_contents_table(model: Model, contents: CheckpointExplanation) -> Table:
    """The values in a checkpoint as a sum, each term with its arithmetic, and how its bytes add up."""
    from paramcount.checkpoints import render_verification

    account, verification = contents.display_account, contents.verification
    values = f"{account.value:,} values"
    if contents.values is None:
        values = f"{values} according to the tensor names"
    above = [f"{make_printable(contents.path)}: {values} = {render_equation(account)}", *describe_changes(model)]
    problems = render_verification.list_problems(verification, MAX_PROBLEMS, "run `paramcount verify`")
    below = [contents.summary, *problems, *contents.byte_sums, *verification.notes]
    below += [f"{cause}: number of values unknown, the index has names only" for cause in contents.unknown]
    return build_account_table(account, above, below)


# ---- several answers


def build_table(
    models: Sequence[Model],
    answers: Sequence[Sequence[Why]],
    contents: Sequence[Sequence[CheckpointExplanation]],
) -> Table:
    """One row per figure and per checkpoint. For a single model, also the source of each figure."""
    single = models[0] if len(models) == 1 else None
    cited = (why.source for figures in answers for why in figures if why.source) if single else ()
    numbers = number_sources(cited)
    rows: list[Row] = []
    for figures, files in zip(answers, contents):
        rows += [make_figure_row(why, numbers) for why in figures]
        rows += map(make_file_row, files)
    columns = [
        Column("model", "model", right=False, only="csv" if single else ""),
        Column("published", "published", show=format_figure),
        Column("counts", "counts", right=False, only="csv"),
        Column("true", "computed"),
        Column("value", "value", only="csv"),
        Column("left_over", "unexplained", only="csv"),
        Column("verdict", "verdict", right=False, only="csv"),
        Column("source", "source", right=False, only="csv"),
        Column("by", "ref", right=False, only="text"),
        Column("why", "why", right=False),
    ]
    visible = [i for i, column in enumerate(columns) if column.name != "by" or any(row[i] for row in rows)]
    above = [f"{single.name}   {count_model(single).total:,} parameters"] if single else []
    above += [f"{'' if single else f'{model.id}: '}{line}" for model in models for line in describe_changes(model)]
    below = [f"{number} {source}" for source, number in numbers.items()]
    below += [f"{row[8]}: {row[7]}" for row in rows if row[8] not in ("", row[7], *numbers.values())]
    data: dict[str, object] = {"schema_version": SCHEMA_VERSION}
    changes = [changes_to_dict(model) for model in models]
    data["figures"] = [why.to_dict() | change for change, figures in zip(changes, answers) for why in figures]
    if any(contents):
        data["files"] = [file.to_dict() | change for change, files in zip(changes, contents) for file in files]
    cells = [[row[i] for i in visible] for row in rows]
    return Table([columns[i] for i in visible], cells, data, above, below, wraps=True)


def make_figure_row(why: Why, numbers: Mapping[str, str]) -> Row:
    """The row of a figure. `numbers`: {source: its number in brackets}."""
    value = why.accounts[0].value if len(why.accounts) == 1 else None
    figures = [why.published, why.what, why.true, value, why.left_over]
    return [why.id, *figures, why.verdict, why.source, numbers.get(str(why.source), ""), summarise(why)]


def make_file_row(contents: CheckpointExplanation) -> Row:
    """The row of a checkpoint; its number of values is the figure."""
    account, path = contents.account, contents.path
    values = "–" if contents.values is None else str(contents.values)
    figures = [values, "checkpoint", account.count, contents.values, contents.left_over]
    sources = [make_printable(path), make_printable(Path(path).name)]
    return [contents.id, *figures, contents.verdict, *sources, f"{render_terms(account)}, {contents.summary}"]
