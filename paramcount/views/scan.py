"""The count of every config.json below a directory, with the unreadable files and the skipped directories."""

from __future__ import annotations

import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from paramcount.errors import ConfigWarning, ParamcountError, join_place, make_printable, make_strict_error
from paramcount.huggingface.forms import FILE_NAMES
from paramcount.huggingface.locate import is_known_form
from paramcount.views.compare import Row, make_rows
from paramcount.zoo import Model

TERMINAL_COLUMNS = "id,total,active,bytes_bf16,architecture"
EXPECTED = "a directory with config.json files below it"
CONFIGS_AT_ONCE = 64  # that one process takes
NUMBER = re.compile(r"(?<![\w.])\d+(?:[,.]\d+)*(?![\w.]*\w)")  # on its own: wav2vec2 and layers.3 are names
# A directory of sentence-transformers: the list of its modules, and those whose config.json is no model's.
MODULES = "modules.json"
MODULE_FOLDER = re.compile(r"\d+_(?:Pooling|Dense|Normalize|LayerNorm|Dropout)")
SKIPPED = {  # {name of a directory that is not searched: why}
    ".git": "contains Git's own files",
    ".no_exist": "contains the Hugging Face cache's records of missing files",
}


class Problem(NamedTuple):
    """What is wrong with a path, relative to the directory."""

    path: str
    problem: str

    def locate_config(self) -> Problem:
        """The same problem with the path of the config.json in the directory; a file of another name has its own."""
        if self.path.endswith(FILE_NAMES):
            return self
        return self._replace(path="config.json" if self.path == "." else f"{self.path}/config.json")


class Scan(NamedTuple):
    """The results of a scan. The id of a row is its path relative to the directory."""

    rows: list[Row]
    errors: list[Problem]  # configs that cannot be counted
    unreadable: list[Problem]  # directories that cannot be read
    skipped: list[Problem]  # directories that were not searched
    warnings: list[Problem]  # of configs that were counted
    reasons: Counter[str]  # of errors, with N for numbers

    def to_dict(self) -> dict[str, Any]:
        """The errors, their reasons, the unreadable and skipped directories and the warnings as plain data for JSON."""
        warnings = [problem.locate_config() for problem in self.warnings]
        return {
            "errors": [problem._asdict() for problem in self.errors],
            "unreadable": [problem._asdict() for problem in self.unreadable],
            "skipped": [problem._asdict() for problem in self.skipped],
            "reasons": [{"reason": reason, "configs": n} for reason, n in self.reasons.most_common()],
            "warnings": [join_place(path, problem) for path, problem in warnings],
        }


class Outcome(NamedTuple):
    """The count of one config: its row and warnings, or its error."""

    rows: list[Row]
    warnings: list[Problem]
    error: Problem | None = None
    reason: str = ""  # the error without what was expected, for a statistic


Load = Callable[[Path], Model]
Progress = Callable[[Iterable[Outcome], int], Iterable[Outcome]]


def scan_folder(
    folder: Path,
    load: Load,
    progress: Progress = lambda outcomes, n: outcomes,
    *,
    strict: bool = False,
    jobs: int = 1,
) -> Scan:
    """The counts of every config.json below a directory. A config that cannot be counted does not stop the scan.

    Args:
        folder: The directory.
        load: Returns the model of a config.json. For several processes, a function of a module.
        progress: Wraps the outcomes, whose number it takes too, for example in a progress bar.
        strict: Treat warnings as errors.
        jobs: The number of processes. The results and their order do not depend on it.

    Raises: ParamcountError if there is no config.json.
    """
    scan = Scan([], [], [], [], [], Counter())
    configs = find_configs(folder, scan)
    if not configs:
        raise make_empty_error(folder, scan)
    count = partial(count_config, folder, load, strict)
    for outcome in progress(count_configs(count, configs, jobs), len(configs)):
        scan.rows.extend(outcome.rows)
        scan.warnings.extend(outcome.warnings)
        if outcome.error:
            scan.errors.append(outcome.error)
            scan.reasons[outcome.reason] += 1
    return scan


def count_configs(count: Callable[[Path], Outcome], paths: list[Path], jobs: int) -> Iterator[Outcome]:
    """The outcome of each config, in order, counted by so many processes."""
    if jobs == 1:
        yield from map(count, paths)
        return
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    size = max(1, min(CONFIGS_AT_ONCE, len(paths) // (4 * jobs)))
    silent = partial(warnings.simplefilter, "ignore", ConfigWarning)  # a process returns its warnings
    with ProcessPoolExecutor(min(jobs, len(paths)), initializer=silent) as pool:
        try:
            yield from pool.map(count, paths, chunksize=size)
        except BrokenProcessPool:
            raise ParamcountError("a process was killed, perhaps for lack of memory", expected="fewer --jobs") from None
        except GeneratorExit:
            pool.shutdown(cancel_futures=True)
            raise


def count_config(folder: Path, load: Load, strict: bool, path: Path) -> Outcome:
    """The count of one config.json below a directory."""
    name = make_printable((path.parent if path.name == "config.json" else path).relative_to(folder))
    try:
        is_module_list = os.path.isfile(path.parent / MODULES)
        model = load(path.parent if is_module_list else path)  # then the modules beside the model count too
        if model.warnings and strict:
            raise make_strict_error(model.warnings)
        rows = [row | {"id": name} for row in make_rows([model])]
    except ParamcountError as error:
        field = error.where.removeprefix(make_printable(path)).removeprefix(": ")
        error = error.replace(where=field)
        reason = NUMBER.sub("N", str(error.replace(expected="", nearest=())))
        return Outcome([], [], Problem(name, str(error)), reason)
    return Outcome(rows, [Problem(name, text) for text in model.warnings])


def find_configs(folder: Path, scan: Scan) -> list[Path]:
    """Every config.json below a directory, and every file of another form, each once, in order. Symbolic links to
    directories are not followed. What is skipped or unreadable is recorded.

    Raises: ParamcountError if the directory itself cannot be read.
    """
    configs = []
    pending = [str(folder)]
    while pending:
        directory = pending.pop()
        try:
            with os.scandir(directory) as scanner:
                entries = sorted(scanner, key=lambda entry: entry.name, reverse=True)
        except OSError as error:
            problem = f"cannot be read: {error.strerror or type(error).__name__}"
            if directory == str(folder):
                raise ParamcountError(problem, where=make_printable(folder), expected=EXPECTED) from None
            scan.unreadable.append(Problem(make_printable(Path(directory).relative_to(folder)), problem))
            continue
        has_modules = any(entry.name == MODULES for entry in entries)
        for entry in entries:
            reason = find_skip_reason(entry)
            if reason:
                scan.skipped.append(Problem(make_printable(Path(entry.path).relative_to(folder)), reason))
            elif entry.is_dir(follow_symlinks=False):
                if not (has_modules and MODULE_FOLDER.fullmatch(entry.name)):
                    pending.append(entry.path)
            elif entry.name == "config.json" or (entry.name in FILE_NAMES and is_known_form(Path(entry.path))):
                configs.append(Path(entry.path))
    scan.skipped.sort()
    return configs


def find_skip_reason(entry: os.DirEntry[str]) -> str:
    """Why a directory is not searched; empty if it is, and for files."""
    if entry.is_dir(follow_symlinks=False):
        return SKIPPED.get(entry.name, "")
    if entry.is_symlink() and os.path.isdir(entry.path):
        return "is a symbolic link to a directory"
    return ""


def make_empty_error(folder: Path, scan: Scan) -> ParamcountError:
    """The error for a directory without any config.json that can be read."""
    problem = "contains no config.json, and neither do its subdirectories"
    if scan.unreadable:
        first, n = scan.unreadable[0], len(scan.unreadable)
        noun = "directory" if n == 1 else "directories"
        problem = f"contains no readable config.json; {n:,} {noun} cannot be read, for example {first.path}"
    elif scan.skipped:
        first = scan.skipped[0]
        more = len(scan.skipped) - 1
        problem = f"contains no config.json; skipped: {first.path} {first.problem}"
        problem += f", and {more:,} more" if more else ""
    return ParamcountError(
        problem, where=make_printable(folder), expected="a directory with models, for example a Hugging Face cache"
    )
