"""paramcount trace MODEL"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from paramcount.cli.options import MODEL, CommandRequest, add_changes, define_command, option
from paramcount.cli.progress import progress_callback
from paramcount.cli.quantities import LENGTH
from paramcount.errors import ParamcountError, make_printable
from paramcount.output.files import write_atomically

if TYPE_CHECKING:
    from paramcount.execution.text import TextRun
    from paramcount.explaining.lessons import Lesson
    from paramcount.output.tables import Table
    from paramcount.tracing.trace import Trace
    from paramcount.zoo import Model


@define_command("trace", "gpt2-small --tokens 5 --pad 1024", MODEL)
@option("--tokens N", "Number of tokens (default: 5, or 1 with --decode).", type=LENGTH)
@option("--pad N", "Pad to N tokens.", type=LENGTH)
@option("--batch N", "Batch size.")
@option("--decode", "Decode the next token; requires --past.")
@option("--past N", "Number of tokens already in the cache; requires --decode.", type=LENGTH)
@option("--source N", "Encoder input length.", type=LENGTH)
@option("--full", "Show every layer; by default, identical layers are shown once.")
@option("--explain", "Explain below the table what each step does and why, with its paper.")
@option("--weights PATH", "Run the model with the weights at PATH (safetensors).")
@option("--text TEXT", "Input text for --weights.")
@option("--watch", "Show the residual stream layer by layer; requires --weights.")
@option("--plot FILE", "Plot the values of --watch to FILE; requires --weights.")
@option(
    "--tokenizer FILE", "Use this tokenizer.json; default: the one next to the weights (needs the [tokenizers] extra)."
)
@option("--top N", "Number of most likely next tokens to show with --weights (default: 5).", default=5)
def command(
    request: CommandRequest,
    decode: bool,
    full: bool,
    explain: bool,
    weights: str | None,
    text: str | None,
    watch: bool,
    plot: str | None,
    tokenizer: str | None,
    top: int,
    **lengths: Any,
) -> None:
    """Trace a forward pass: every operation in order, with the shapes of its inputs and output.

    Dimensions that must be equal in a product are marked: [5, ‹768›] · [‹768›, 64] = [5, 64].

    With --weights and --text, the model runs in NumPy in float32, and the most likely next tokens are shown. The models
    tiny-gpt2, tiny-mixtral and tiny-mamba have their weights with them: `paramcount trace tiny-gpt2 --text "dbca|"`.
    """
    from paramcount.tracing.render import build_table
    from paramcount.tracing.run import trace_model
    from paramcount.tracing.shapes import TraceOptions

    if lengths["past"] is not None and not decode:
        raise ParamcountError("--past requires --decode")
    if decode and lengths["past"] is None:
        raise ParamcountError("--decode requires --past N")
    if decode and lengths["pad"] is not None:
        raise ParamcountError("--decode cannot be combined with --pad, because decoding does not pad")
    model = request.load()
    run = None
    if text is not None and not weights:
        weights, tokenizer = find_files(str(request.names), tokenizer)
    if weights or text or watch or plot:
        given = [f"--{name}" for name in TraceOptions._fields if lengths[name] is not None]
        path = check_run_options(model, weights, text, watch, given)
        if plot:
            from paramcount.drawing.figures import check_plot

            check_plot(plot)
        from paramcount.execution.text import run_text

        with progress_callback("running layers") as report:
            run = run_text(model, path, text or "", tokenizer, top=top, keeps_maps=bool(plot), report=report)
        lengths["tokens"] = len(run.ids)
    elif lengths["tokens"] is None:
        lengths["tokens"] = 1 if decode else 5
    trace = trace_model(model, TraceOptions(**lengths))
    result = add_changes(build_table(trace, full=full), model)
    if explain:
        result = add_lessons(result, trace)
    if run:
        result = add_run(result, run, watch=watch)
    if run and plot:
        from paramcount.cli.plot_run import plot_run

        write_atomically(plot, plot_run(run, plot))
    request.emit(result, request.collect_messages([model], trace))


def add_lessons(table: Table, trace: Trace) -> Table:
    """The table with a lesson for each kind of step below it; in JSON, `lessons` beside the steps."""
    from paramcount.explaining.lessons import find_lesson
    from paramcount.tracing.fused import split_fused

    lessons: dict[str, tuple[str, Lesson]] = {}  # {key: the first step and its lesson}
    for step in split_fused(trace.steps):
        if lesson := find_lesson(step.operation, step.text, step.note):
            lessons.setdefault(lesson.key, (step.text, lesson))
    lines = [""]
    for name, lesson in lessons.values():
        paper = f" {lesson.paper}: {lesson.url}" if lesson.url else ""
        lines.append(f"{make_printable(name)}: {lesson.what} {lesson.why}{paper}")
    data = [{"step": name, **lesson._asdict()} for name, lesson in lessons.values()]
    return table._replace(below=[*table.below, *lines], data=table.data | {"lessons": data})


def find_files(name: str, tokenizer: str | None) -> tuple[str | None, str | None]:
    """The paths of the weights and of the tokenizer that come with a tiny model."""
    from paramcount.tiny import ALPHABET_FILE, find_folder

    folder = find_folder(name)
    return (None, tokenizer) if folder is None else (str(folder), tokenizer or str(ALPHABET_FILE))


def check_run_options(
    model: Model, weights: str | None, text: str | None, watch: bool, shape_options: Sequence[str]
) -> str:
    """The path of the weights. `shape_options`: options of the command line that set the shape, which the text already
    does.
    """
    if not weights:
        option = "--text" if text is not None else "--watch" if watch else "--plot"
        raise ParamcountError(f"{option} requires --weights PATH")
    if text is None:
        raise ParamcountError("--weights requires --text TEXT")
    if model.original is not None:
        raise ParamcountError("--weights cannot be combined with --set, because the sizes of the weights are fixed")
    if shape_options:
        raise ParamcountError(
            f"--text cannot be combined with {shape_options[0]}, because the text determines the number of tokens"
        )
    return weights


def add_run(trace: Table, run: TextRun, *, watch: bool) -> Table:
    """The trace with the input tokens above it and the most likely next tokens below. With `watch`, a table of the
    layers takes its place."""
    from paramcount.execution.render import build_layer_table, list_next_words
    from paramcount.execution.text import format_tokens

    data = trace.data | {"run": run.to_dict(watch=watch)}
    if watch:
        return build_layer_table(run)._replace(data=data)
    return trace._replace(
        above=[*trace.above, format_tokens(run)], below=[*trace.below, *list_next_words(run)], data=data
    )
