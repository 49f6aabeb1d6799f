"""paramcount validate [PATH]..."""

from __future__ import annotations

import sys

import click

from paramcount.cli.options import CommandRequest, FilePath, define_command
from paramcount.counting.count import SCHEMA_VERSION
from paramcount.errors import ParamcountError
from paramcount.output.tables import Column, Table


@define_command("validate", "configs/")
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=FilePath())
def command(request: CommandRequest, paths: tuple[str, ...]) -> None:
    """Check zoo entries: fields, sizes, sources, names, and published figures against the count.

    PATH is a YAML file or a directory of them; without PATH, the entries that you added. A published figure that
    differs from the count is a warning, because publishers make mistakes. The exit code is 1 if an entry has an error.
    """
    from paramcount.zoo.catalog import get_user_folder
    from paramcount.zoo.validating import find_entries, validate_entries

    folder = get_user_folder()
    if not paths and not folder.is_dir():
        raise ParamcountError("you have no entries yet", expected="a PATH, or an entry from `paramcount add`")
    found = find_entries(paths or [str(folder)])
    results = list(validate_entries(found, root=None if paths else folder))
    bad = [result for result in results if result.errors]
    data = {"schema_version": SCHEMA_VERSION, "ok": not bad, "entries": [result._asdict() for result in results]}
    rows = [
        [result.path, kind, message]
        for result in results
        for kind, messages in (("error", result.errors), ("warning", result.warnings))
        for message in messages
    ]
    columns = [Column(name, name, right=False) for name in ("entry", "severity", "message")]
    plural = "entry" if len(results) == 1 else "entries"
    verdict = f"{len(results):,} {plural}: " + (f"{len(bad):,} with errors" if bad else "no errors")
    request.emit(Table(columns, rows, data, below=[verdict], headings=bool(rows), wraps=True))
    sys.exit(bool(bad))
