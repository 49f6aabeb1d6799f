"""The examples in README.md and in the guides of paramcount/docs, and what they really print.

`python -m tests.refresh_docs` runs all of them and rewrites the documents with the real output; read the diff before
you commit it. tests/test_readme.py fails when a document shows something else. Three kinds of text are checked:

- a ```console block: commands after "$ ", each followed by what it prints in 80 columns (`| head -N` keeps the first
  N lines, `| tail -N` the last);
- a ```python block that begins with >>>: a doctest;
- what follows `<!-- shows: SOURCE -->`, up to the next empty line or the end of the code block. SOURCE is a command, a
  file of the repository (`from TEXT` starts at that text), "model types" for the summary of the mappings,
  "gpus" for a table of paramcount/costs/gpus.yaml, "weight formats" for what can be done with each, "recommended
  GPUs" for what publishers recommend next to `plan`, "logged figures" for those of engines' logs that are met, or
  "real configs" for those that are refused.

Commands run in a directory with the first JSON block of the README as config.json, the first CSV block of the guide on
commands as claims.csv, and a model.safetensors with GPT-2's tensors.
"""

from __future__ import annotations

import doctest
import io
import os
import re
import shlex
import tempfile
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from paramcount.cli import main
from paramcount.cli.commands import COMMANDS
from paramcount.costs.gpus import list_gpus
from paramcount.costs.render_flops import format_amount
from paramcount.database.tables import find_table
from paramcount.formats.weights import list_abilities
from tests.headers import write_file
from tests.logged import make_table as make_logged_table
from tests.mapping_states import load_mappings, summarise_mappings
from tests.real_configs import make_table as make_config_table
from tests.recommended import make_table as make_recommendation_table
from tests.test_checkpoint_alone import MASKS, reference_tensors

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "paramcount" / "docs"
README = ROOT / "README.md"
REFERENCE = DOCS / "commands.md"
DOCUMENTS = (README, *sorted(DOCS.glob("*.md")))
IMAGES = DOCS / "images"

CONSOLE = re.compile(r"(?<=^```console\n)(.*?)(?=^```$)", re.DOTALL | re.MULTILINE)
PYTHON = re.compile(r"(?<=^```python\n)(>>> .*?)(?=^```$)", re.DOTALL | re.MULTILINE)
SHOWN = re.compile(
    r"(?<=<!-- shows: )(?P<source>[^\n]+)(?P<middle> -->\n)(?P<text>```\w*\n.*?^```$|.*?)(?P<end>\n\n|\n?\Z)",
    re.DOTALL | re.MULTILINE,
)


def list_commands(text: str) -> list[tuple[str, str]]:
    """Each command of the console blocks, with the output that the document shows."""
    runs = [run for block in CONSOLE.findall(text) for run in re.split(r"^\$ ", block, flags=re.MULTILINE) if run]
    return [(command, output) for command, _, output in (run.partition("\n") for run in runs)]


def run_command(line: str) -> str:
    """What a command line prints: stdout, then stderr."""
    command, _, part = line.partition(" | ")
    program, *args = shlex.split(command)
    assert program == "paramcount", line
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    columns = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "80"
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main(args)
    except SystemExit:
        pass
    finally:
        os.environ.pop("COLUMNS")
        if columns is not None:
            os.environ["COLUMNS"] = columns
    printed = ""
    for stream in (out, err):
        stream.seek(0)
        printed += stream.read()
    lines = printed.splitlines(keepends=True)
    first = int(part.removeprefix("head -")) if part.startswith("head -") else None
    last = int(part.removeprefix("tail -")) if part.startswith("tail -") else len(lines)
    return "".join(lines[:first][-last:])


def run_python(example: str) -> str:
    """A doctest with the output that it really has."""

    class Recorder(doctest.DocTestRunner):
        def report_success(self, out: object, test: doctest.DocTest, example: doctest.Example, got: str) -> None:
            outputs[example.lineno] = got

        report_failure = report_success

        def report_unexpected_exception(self, out: Any, test: Any, example: doctest.Example, exc_info: Any) -> None:
            raise AssertionError(f"{example.source}raised {exc_info[1]!r}")

    outputs: dict[int, str] = {}
    test = doctest.DocTestParser().get_doctest(example, {}, "example", None, None)
    Recorder().run(test, out=lambda text: None)
    lines = example.splitlines(keepends=True)
    new = ""
    for one in test.examples:
        new += "".join(lines[one.lineno : one.lineno + one.source.count("\n")]) + outputs.get(one.lineno, "")
    return new


def show(source: str, text: str) -> str:
    """What belongs below `<!-- shows: SOURCE -->`, in a code block if `text` is one."""
    if source.startswith("paramcount "):
        return run_command(source).rstrip("\n")
    if source in TABLES:
        return TABLES[source]()
    if source.startswith("columns of "):
        fields = find_table(source.removeprefix("columns of ")).fields
        lines = ["| column | type | unit | meaning |", "|---|---|---|---|"]
        return "\n".join([*lines, *(f"| `{f.name}` | {f.type} | {f.unit} | {f.meaning} |" for f in fields)])
    path, _, start = source.partition(" from ")
    content = (ROOT / path).read_text(encoding="utf-8")
    return f"{text.partition(chr(10))[0]}\n{content[content.index(start) :]}```"


def make_gpu_table() -> str:
    """One row per accelerator, in Markdown."""
    bases = {"runtime": "reported", "Metal": "macOS", "operating system": "shared", "maker": "maker"}
    lines = ["| GPU | GB | basis | TB/s | dense TFLOPs per second |", "|---|---|---|---|---|"]
    for gpu in list_gpus():
        rates = ", ".join(
            f"{name.upper()} {format_amount(rate / 10**12)}{'*' if name in gpu.derived else ''}"
            for name, rate in gpu.flops.items()
        )
        basis = f"as {gpu.memory_like}" if gpu.memory_like else bases[gpu.memory_basis]
        sizes = f"{format_amount(gpu.memory_bytes / 10**9)} | {basis} | {format_amount(gpu.bandwidth / 10**12)}"
        lines.append(f"| {gpu.name} | {sizes} | {rates or '—'} |")
    return "\n".join(lines)


def make_format_table() -> str:
    """What can be done with each weight format, in Markdown."""
    lines = ["| format | plan | verify | run |", "|---|---|---|---|"]
    for name, *flags in list_abilities():
        lines.append(f"| {name} | {' | '.join('yes' if flag else '—' for flag in flags)} |")
    return "\n".join(lines)


TABLES: dict[str, Callable[[], str]] = {
    "gpus": make_gpu_table,
    "logged figures": make_logged_table,
    "model types": lambda: summarise_mappings(load_mappings()),
    "real configs": make_config_table,
    "recommended GPUs": make_recommendation_table,
    "weight formats": make_format_table,
}


def prepare_directory(folder: Path) -> None:
    """Write the files that the examples read."""
    for document, language, name in ((README, "json", "config.json"), (REFERENCE, "csv", "claims.csv")):
        (block,) = re.findall(rf"```{language}\n(.*?)```", document.read_text(encoding="utf-8"), re.DOTALL)[:1]
        (folder / name).write_text(block, encoding="utf-8")
    write_file(folder / "model.safetensors", reference_tensors("gpt2-small", "F32") | MASKS)


def refresh(text: str) -> str:
    """A document with the real output of all its examples. Runs in the current directory."""

    def rewrite_block(match: re.Match[str]) -> str:
        found = list_commands(f"```console\n{match[0]}```\n")
        return "".join(f"$ {command}\n{run_command(command)}" for command, _ in found)

    def rewrite_quotation(match: re.Match[str]) -> str:
        return match["source"] + match["middle"] + show(match["source"], match["text"]) + match["end"]

    text = CONSOLE.sub(rewrite_block, text)
    text = PYTHON.sub(lambda match: run_python(match[0]), text)
    return SHOWN.sub(rewrite_quotation, text)


def list_pictures() -> list[str]:
    """The names of the pictures that the documents show."""
    texts = [path.read_text(encoding="utf-8") for path in DOCUMENTS]
    return sorted({name for text in texts for name in re.findall(r"images/([\w.-]+\.svg)", text)})


def list_animations() -> list[str]:
    """The names of the animations that the documents show. A command writes each of them."""
    texts = [path.read_text(encoding="utf-8") for path in DOCUMENTS]
    return sorted({name for text in texts for name in re.findall(r"images/([\w.-]+\.webp)", text)})


def missing_commands(text: str) -> str:
    """A section with the help of each command that the guide on commands does not have yet."""
    documented = {command for command, _ in list_commands(text)}
    missing = [name for name in COMMANDS if f"paramcount {name} --help" not in documented]
    return "".join(f"\n## {name}\n\n```console\n$ paramcount {name} --help\n```\n" for name in missing)


def rewrite_documents() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "my-model"
        folder.mkdir()
        prepare_directory(folder)
        os.environ["PARAMCOUNT_CONFIGS"] = str(Path(scratch) / "own")  # not the entries of who runs this
        with chdir(folder):
            for path in DOCUMENTS:
                text = path.read_text(encoding="utf-8")
                if path == REFERENCE:
                    text += missing_commands(text)
                path.write_text(refresh(text), encoding="utf-8")
        for name in list_pictures():
            (IMAGES / name).write_bytes((folder / name).read_bytes())
        for name in list_animations():
            run_command(f"paramcount draw gpt2-small --animate {IMAGES / name}")


if __name__ == "__main__":
    rewrite_documents()
