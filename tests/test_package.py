"""The package as a whole: what imports what, what each import loads, and names that stay."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import pkgutil
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
from tests.batches import in_batches
from tests.sources import read_tree

ROOT = Path(pc.__file__).parent

# From the ground up: a package or a module of the root imports only from levels below its own.
LEVELS = [
    ["errors", "lazy", "version"],
    ["flow", "formats", "output", "schemas", "symbolic", "tiny"],
    ["gpt2", "sizes"],
    ["counting", "parts"],
    ["declare", "formulas"],
    ["architectures"],
    ["huggingface", "zoo"],
    ["checkpoints", "explaining", "tracing", "views"],
    ["auditing", "costs", "drawing", "execution", "loading"],
    ["database", "explore", "sweeping"],
    ["api", "cli"],
    ["__init__", "__main__"],
]
LEVEL = {name: i for i, names in enumerate(LEVELS) for name in names}


@pytest.fixture(scope="module")
def program() -> Any:
    """tests/typed_program.py, which `.ci/run` type-checks against the installed wheel."""
    spec = importlib.util.spec_from_file_location("typed_program", Path(__file__).parent / "typed_program.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def list_modules() -> list[str]:
    return [info.name for info in pkgutil.walk_packages([str(ROOT)], "paramcount.")]


def list_imports(path: Path) -> Iterator[str]:
    """The packages and root modules that a file imports anywhere in it: at the top, inside functions, for type
    checking, by name.
    """
    for node in ast.walk(read_tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module == "paramcount":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("paramcount."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("paramcount."))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "import_module":
            module = ast.unparse(node.args[0]).strip("f'\"")
            if module.startswith("paramcount."):
                yield module.split(".")[1]


@in_batches("path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)), size=60)
def test_imports_point_down_only(path: Path) -> None:
    own = path.relative_to(ROOT).parts[0].removesuffix(".py")
    for target in list_imports(path):
        assert target == own or LEVEL[target] < LEVEL[own], f"{own} imports {target}"


def test_the_levels_are_the_packages_that_there_are() -> None:
    assert {
        path.name.removesuffix(".py") for path in ROOT.iterdir() if path.name not in ("docs", "py.typed", "__pycache__")
    } == set(LEVEL)


def list_loaded_modules(code: str) -> list[str]:
    """What a fresh interpreter has loaded after running some code."""
    script = f"{code}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1].split()


def list_loaded_packages(code: str) -> set[str]:
    return {name.partition(".")[0] for name in list_loaded_modules(code)}


def command_code(line: list[str]) -> str:
    return f"from paramcount.cli import main\ntry:\n    main({line!r})\nexcept SystemExit: pass"


def test_a_weight_format_is_loaded_when_it_is_used() -> None:
    formats = "paramcount.formats.weights."
    loaded = list_loaded_modules(command_code(["gpt2-small"]))  # shows weights in BF16, FP8 and INT4
    assert {name for name in loaded if name.startswith(formats)} == {
        formats + name for name in ("plain", "fp8", "int4")
    }
    assert not [name for name in list_loaded_modules("import paramcount.formulas") if "quantization" in name]


@pytest.mark.parametrize("module", ["paramcount", "paramcount.formulas"])
def test_an_import_loads_nothing_heavy(module: str) -> None:
    heavy = {"numpy", "pandas", "pydantic", "yaml", "click", "tabulate", "sympy"}
    assert list_loaded_packages(f"import {module}") & heavy == set()


@pytest.mark.parametrize(
    "line",
    [
        "gpt2-small",
        "deepseek-v3 --json",
        "compare llama --csv",
        "list",
        "verify mixtral-8x7b",
        "why deepseek-v3",
        "sql 'SELECT count(*) FROM models'",
    ],
)
def test_the_commands_load_neither_numpy_nor_pandas(line: str) -> None:
    heavy = {"numpy", "pandas", "sympy", "torch", "transformers", "matplotlib"}
    assert list_loaded_packages(command_code(shlex.split(line))) & heavy == set()


def test_showing_one_model_loads_one_architecture() -> None:
    loaded = list_loaded_modules(command_code(["gpt2-small"]))
    assert [name for name in loaded if name.startswith("paramcount.architectures.")] == [
        "paramcount.architectures.gpt2"
    ]


def test_the_public_names_answer_twice_and_after_importing_every_submodule() -> None:
    for name in list_modules():
        importlib.import_module(name)
    for _ in range(2):
        assert pc.count("gpt2-small").total == 124439808
        assert pc.load("gpt2-small").id == "gpt2-small"
        assert list(pc.compare(["gpt2-small"])["id"]) == ["gpt2-small"]
        assert issubclass(pc.ParamcountError, ValueError)
    for name in pc.__all__:
        assert getattr(pc, name) is getattr(pc, name)
        assert name in dir(pc)


def test_the_only_package_that_bears_the_name_of_a_public_function_can_be_called_like_it() -> None:
    assert {info.name for info in pkgutil.iter_modules([str(ROOT)])} & set(pc.__all__) == {"zoo"}
    code = "import paramcount as pc\nall = pc.zoo(estimates=True)\nprint(len(list(pc.zoo.list_ids())) == len(all), "
    code += "len(pc.zoo()) == sum(~all['estimate']) < len(all))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True True\n"


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'cuont'"):
        pc.cuont  # noqa: B018


def test_every_module_says_what_it_is_for() -> None:
    for path in ROOT.rglob("*.py"):
        assert path.read_text(encoding="utf-8").startswith('"""'), path


def test_every_package_states_its_contract() -> None:
    for path in ROOT.rglob("__init__.py"):
        assert len((ast.get_docstring(read_tree(path)) or "").split()) >= 12, path


# ---- types


def test_the_program_that_is_type_checked_runs(program: Any, tmp_path: Path) -> None:
    answers = program.main(tmp_path)
    assert (answers["total"], answers["layer"], answers["stored"], answers["verified"]) == (
        124_439_808,
        7_087_872,
        50257 * 768,
        False,
    )
    assert (answers["deeper"], answers["difference"]) == (124_439_808 + 12 * 7_087_872, 354_823_168 - 124_439_808)
    assert answers["shorter"] == 124_439_808 - 11 * 7_087_872
    assert answers["figure"] == 124_439_808 - 50_257 * 768
    assert (answers["saved"], answers["id"], answers["stacked"]) == (True, "gpt2-small", True)


def test_the_package_says_that_it_is_typed() -> None:
    assert (ROOT / "py.typed").is_file()


def test_type_checkers_see_every_public_name() -> None:
    tree = ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    assert {alias.name for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names} | {
        "__version__"
    } == set(pc.__all__)


def test_public_functions_are_annotated_in_full() -> None:
    for function in (getattr(pc, name) for name in pc.__all__ if name[0].islower()):
        signature = inspect.signature(function)
        annotations = [
            signature.return_annotation,
            *(parameter.annotation for parameter in signature.parameters.values()),
        ]
        assert inspect.Signature.empty not in annotations, function
        assert "Any" not in annotations, function


def test_every_directory_listing_is_closed() -> None:
    """pyproject.toml ignores the warning about open ones, because pytest does not close all of its own."""
    lines = [line.strip() for path in ROOT.rglob("*.py") for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line for line in lines if "scandir(" in line and not line.startswith("with ")] == []


def test_a_class_name_means_one_thing_in_the_package() -> None:
    places: dict[str, list[str]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(read_tree(path)):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
