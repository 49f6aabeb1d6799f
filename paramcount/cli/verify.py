"""paramcount verify MODEL [CHECKPOINT]"""

from __future__ import annotations

import os
import sys

import click

from paramcount.cli.checkpoints import is_checkpoint_path, read_checkpoint
from paramcount.cli.options import MODEL, CommandRequest, FilePath, Messages, add_changes, define_command
from paramcount.counting import SCHEMA_VERSION
from paramcount.errors import ParamcountError, make_printable
from paramcount.output.numbers import describe_verdict
from paramcount.output.tables import Column, Table, number_sources
from paramcount.zoo import Model, count_model
from paramcount.zoo.checks import Check, run_checks
from paramcount.zoo.names import is_path

FORWARD_PASS_CHECKS = {  # {name of a check: its heading}
    "NumPy pass: tensors": "NumPy tensors",
    "NumPy pass: sum": "NumPy values",
    "NumPy pass: reads": "NumPy tensors read",
    "NumPy pass: shapes": "NumPy output shapes",
    "NumPy pass: causal": "causality violations",
}


@define_command("verify", "gpt2-small", MODEL)
@click.argument("checkpoint", required=False, type=FilePath())
def command(request: CommandRequest, checkpoint: str | None) -> None:
    """Check a model against its reference, published figures or a checkpoint.

    CHECKPOINT is a .safetensors or .gguf file, an index (model.safetensors.index.json, pytorch_model.bin.index.json), a
    directory of shards, or the saved JSON header of a safetensors file. If MODEL is a directory with a config.json and
    a checkpoint, CHECKPOINT is optional. Only headers are read. The exit code is 1 if something does not match.

    GPT-2 is also compared with a forward pass in NumPy. With --set, published figures are not checked.
    """
    model = request.load()
    messages = request.collect_messages([model])
    if checkpoint is None and is_checkpoint_path(str(request.names), with_config=True):
        checkpoint = str(request.names)
    if checkpoint is None:
        check_figures(request, model)
    else:
        check_files(request, model, checkpoint, messages)


def check_files(request: CommandRequest, model: Model, path: str, messages: Messages) -> None:
    """Check a model against a checkpoint. The exit code is 1 if they differ."""
    from paramcount.checkpoints import render_verification
    from paramcount.checkpoints.identify import find_zoo_models
    from paramcount.checkpoints.verify import verify_checkpoint

    if path == "-":
        raise ParamcountError("a checkpoint cannot be read from standard input", expected="the path of a checkpoint")
    if not is_path(path) and not os.path.lexists(path):
        expected = "the path of a checkpoint; `paramcount diff` compares two models"
        raise ParamcountError("no such file or directory", where=make_printable(path), expected=expected)
    checkpoint = read_checkpoint(path)
    result = verify_checkpoint(model, checkpoint)
    zoo_matches = () if result.ok else find_zoo_models(checkpoint, result.content)

    def make_table(format: str) -> Table:
        if format == "csv":
            return add_changes(render_verification.build_rows(result), model)
        return add_changes(render_verification.build_table(result, zoo_matches, format), model)

    request.emit(make_table, messages)
    sys.exit(not result.ok)


def check_figures(request: CommandRequest, model: Model) -> None:
    """Check a model against its reference and published figures. The exit code is 1 if one differs."""
    count = count_model(model)
    results = run_checks(model, count)
    if model.architecture == "gpt2":
        from paramcount.zoo.forward_pass_checks import check_forward_pass

        results += check_forward_pass(model.sizes, count)
    title = f"{model.name}   {count.total:,} parameters"
    request.emit_model(build_table(title, results, is_what_if=model.original is not None), model)
    sys.exit(any(check.ok is False for check in results))


def build_table(title: str, results: list[Check], *, is_what_if: bool = False) -> Table:
    columns = [
        Column("what", "what", right=False, show=name_count),
        Column("text", "expected", only="text"),
        Column("expected", "expected", only="csv"),
        Column("published", "published", only="csv"),
        Column("found", "found"),
        Column("by", "ref", right=False, only="text"),
        Column(
            "verdict",
            "verdict",
            right=False,
            show=describe_verdict,
            style=lambda verdict: "red" if verdict == "differs" else "",
        ),
        Column("source", "source", right=False, only="csv"),
    ]
    numbers = number_sources(check.source for check in results)
    rows = []
    for check in results:
        figures = [check.text, check.expected, check.published, check.found]
        rows.append([check.what, *figures, numbers[check.source], check.verdict, check.source])
    data = {"schema_version": SCHEMA_VERSION, "checks": [check._asdict() | {"ok": check.ok} for check in results]}
    below = [f"{number} {source}" for source, number in numbers.items()]
    if is_what_if:
        below.append("published figures are not checked with --set")
    elif not results:
        below.append("unverified: no reference count and no published figure; to check files, pass a CHECKPOINT")
    return Table(columns, rows, data, above=[title], below=below, headings=bool(results), wraps=True, narrowest=7)


def name_count(what: str) -> str:
    return FORWARD_PASS_CHECKS.get(what) or what.replace("_without_input_embedding", " − input embedding")
