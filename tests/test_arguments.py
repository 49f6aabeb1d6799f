"""A message from Python names arguments, and the same message on the command line names options."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import paramcount as pc
from tests.refusing import Refuse
from tests.sources import read_tree

ROOT = Path(pc.__file__).parent
CASES: dict[str, tuple[Callable[[], object], list[str], str, str]] = {  # what raises, the command, and what both name
    "an unknown GPU": (
        lambda: pc.memory("gpt2-small", gpu="x"),
        ["memory", "gpt2-small", "--gpu", "x"],
        "gpu = 'x' (expected a name from `paramcount docs gpus`, or memory with a size)",
        "--gpu 'x' (expected a name from `paramcount docs gpus`, or --memory with a size)",
    ),
    "a revision": (
        lambda: pc.count("https://huggingface.co/a/b/tree/v1"),
        ["https://huggingface.co/a/b/tree/v1"],
        "(expected download=True, or https://huggingface.co/a/b for the main revision)",
        "(expected --download, or https://huggingface.co/a/b for the main revision)",
    ),
}
# Modules that only commands call, and their options.
OF_COMMANDS = {
    "database/export.py": {"--table"},
    "execution/text.py": {"--tokenizer"},
    "explore/site/write.py": {"--url"},
    "sizes/values.py": {"--set"},
    "sweeping/render.py": {"--csv", "--invalid"},
    "sweeping/saving.py": {"--save"},
    "sweeping/selecting.py": {"--sort", "--where"},
    "tracing/render.py": {"--full"},
    "views/scan.py": {"--jobs"},
    "zoo/adding.py": {"--family", "--id", "--replace", "--source"},
    "zoo/model.py": {"--estimates"},  # of a whole command
}


@pytest.mark.parametrize("case", CASES)
def test_an_error_names_arguments_in_python_and_options_on_the_command_line(case: str, refuse: Refuse) -> None:
    function, command, argument, option = CASES[case]
    with pytest.raises(pc.ParamcountError) as caught:
        function()
    assert argument in str(caught.value)
    assert "--" not in str(caught.value)
    message = refuse(*command)
    assert option in message
    assert "=True" not in message


def find_options(node: ast.AST) -> Iterator[str]:
    """The options in the texts of an error."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            yield from re.findall(r"--[a-z][a-z-]*", inner.value)


def test_only_errors_of_commands_name_options() -> None:
    found: dict[str, set[str]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if name.startswith("cli/"):
            continue
        for node in ast.walk(read_tree(path)):
            is_error = isinstance(node, ast.Call) and ast.unparse(node.func) in ("ParamcountError", "make_extra_error")
            if is_error and (options := set(find_options(node))):
                found.setdefault(name, set()).update(options)
    for name in OF_COMMANDS:
        found.setdefault(name, set())
    assert {name: options - OF_COMMANDS.get(name, set()) for name, options in found.items()} == {
        name: set() for name in OF_COMMANDS
    }
