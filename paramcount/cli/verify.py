"""paramcount verify MODEL [CHECKPOINT]"""

from __future__ import annotations

import os
import sys

import click

from paramcount.cli.checkpoints import names_checkpoint, read_checkpoint
from paramcount.cli.options import (
    File,
    Messages,
    Output,
    collect_messages,
    download_option,
    emit,
    load_changed,
    model_argument,
    noted,
    output_options,
    set_option,
)
from paramcount.counting import SCHEMA_VERSION
from paramcount.errors import ParamcountError, make_printable
from paramcount.output.tables import Column, Table
from paramcount.zoo import Model, count_model
from paramcount.zoo.checks import Check, run_checks
from paramcount.zoo.names import is_path


@click.command("verify", epilog="Example: paramcount verify gpt2-small")
@model_argument
@click.argument("checkpoint", required=False, type=File())
@set_option
@download_option
@output_options
def command(name: str, checkpoint: str | None, changes: tuple[str, ...], download: bool, output: Output) -> None:
    """An entry's count against the reference's and every published figure; with CHECKPOINT, the model against files on disk.

    CHECKPOINT is a .safetensors or .gguf file, an index (model.safetensors.index.json, pytorch_model.bin.index.json), a directory of
    shards, or the saved JSON header of a safetensors file; where MODEL is a directory that holds one beside its config.json, that one.
    Only headers are read. Exit code 1 where something does not match or is not accounted for.

    Nothing was checked or published of a what-if: GPT-2's NumPy pass alone can run it.
    """
    model = load_changed(name, changes, download)
    messages = collect_messages([name], [model])
    if checkpoint is None and names_checkpoint(name, with_config=True):
        checkpoint = name
    if checkpoint is None:
        against_figures(model, output, messages)
    else:
        against_files(model, checkpoint, output, messages)


def against_files(model: Model, path: str, output: Output, messages: Messages) -> None:
    from paramcount.checkpoints import render_verification as telling_verified
    from paramcount.checkpoints.identify import find_zoo_models
    from paramcount.checkpoints.verify import build_verification, compare_tensors

    if path == "-":
        raise ParamcountError("standard input is no checkpoint, as headers are picked out of files", expected="the path of a checkpoint")
    if not is_path(path) and not os.path.lexists(path):
        raise ParamcountError("is no file here", where=make_printable(path), expected="the path of a checkpoint; `paramcount diff` compares two models")
    checkpoint = read_checkpoint(path)
    tensors = compare_tensors(model, checkpoint)
    found = build_verification(model, tensors)
    others = () if found.ok else find_zoo_models(checkpoint, tensors.content)
    emit(lambda chosen: noted(telling_verified.rows(found) if chosen == "csv" else telling_verified.table(found, others, chosen), model), output, messages)
    sys.exit(not found.ok)


def against_figures(model: Model, output: Output, messages: Messages) -> None:
    count = count_model(model)
    made = run_checks(model, count)
    if model.architecture == "gpt2":
        from paramcount.zoo.forward_pass_checks import check_forward_pass

        made += check_forward_pass(model.sizes, count)
    emit(lambda chosen: noted(table(f"{model.name}   {count.total:,} parameters", made, what_if=model.original is not None), model), output, messages)
    sys.exit(any(check.ok is False for check in made))


def table(title: str, made: list[Check], *, what_if: bool = False) -> Table:
    rows = [[check.what, check.text, check.expected, check.published, check.found, check.verdict, check.source, check.by or check.source] for check in made]
    columns = [
        Column("what", "what", right=False, show=lambda what: what.replace("_without_input_embedding", " − input embedding")),
        Column("text", "expected", only="people"),
        Column("expected", "expected", only="csv"),
        Column("published", "published", only="csv"),
        Column("found", "found"),
        Column("verdict", "verdict", right=False, style=lambda verdict: "red" if verdict == "differs" else ""),
        Column("source", "source", right=False, only="csv"),
        Column("by", "source", right=False, only="people"),
    ]
    data = {"schema_version": SCHEMA_VERSION, "checks": [check._asdict() | {"ok": check.ok} for check in made]}
    below = [f"{by}: {source}" for by, source in dict.fromkeys((check.by, check.source) for check in made) if by]
    if what_if:
        below.append(f"a what-if: nothing of it was checked or published, so there is nothing {'else ' if made else ''}to compare with")
    elif not made:
        below.append("unverified: there is no reference count and no published figure to compare with; to check files, pass a CHECKPOINT")
    return Table(columns, rows, data, above=[title], below=below, headings=bool(made), wraps=True)
