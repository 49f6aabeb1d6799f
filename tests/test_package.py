"""The package as a whole: what imports what, what each import loads, and names that stay."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc

ROOT = Path(pc.__file__).parent

# From the ground floor up; what stands on one floor may import only what stands below.
FLOORS = [
    ["errors", "commands", "tokenizer_child"],
    ["factoring", "flow", "schemas", "sweeps", "figures", "files", "headers", "spans", "hub_urls", "strict_json", "tables", "terminal"],
    ["gguf_files", "latex_tables", "piecewise_json", "polynomials", "schema_errors", "strict_yaml", "text_tables", "tokenizer_files"],
    ["safetensors_files", "sizes"],
    ["rules", "values"],
    ["config_keys"],
    ["parts"],
    ["architectures", "formulas"],
    ["aliases", "zoo"],
    ["reading"],
    ["config_json"],
    ["config_files"],
    ["names"],
    ["summing"],
    ["stored"],
    ["quantisation"],
    ["counting"],
    ["changing"],
    ["arithmetic", "breakdown", "checking", "comparing", "gpt2_numpy"],
    ["gpt2_checks", "gpt2_text", "overview", "differing", "scanning"],
    ["checkpoints"],
    ["explaining", "tracing"],
    ["auditing", "drawing"],
    ["cli"],
    ["__main__"],
]
FLOOR = {name: i for i, names in enumerate(FLOORS) for name in names}


@pytest.fixture(scope="module")
def program() -> Any:
    """tests/typed_program.py, which `.ci/run` type-checks against the installed wheel."""
    spec = importlib.util.spec_from_file_location("typed_program", Path(__file__).parent / "typed_program.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def modules() -> list[str]:
    return [info.name for info in pkgutil.walk_packages([str(ROOT)], "paramcount.")]


def imported(path: Path) -> set[str]:
    """What a file imports when it is itself imported; type checking and functions left out."""
    found: set[str] = set()
    nodes = list(ast.parse(path.read_text(encoding="utf-8")).body)
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"paramcount.{alias.name}" for alias in node.names} if node.module == "paramcount" else {node.module}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, (ast.If, ast.Try)) and "TYPE_CHECKING" not in ast.dump(node):
            nodes += node.body
    return found


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_down_only(path: Path) -> None:
    own = path.relative_to(ROOT).parts[0].removesuffix(".py")
    for name in imported(path):
        target = name.split(".")[1] if name.startswith("paramcount.") else None
        if target and target != own and target != "__version__":
            assert FLOOR[target] < FLOOR[own], f"{own} imports {target}"


def modules_after(code: str) -> list[str]:
    """What a fresh interpreter has loaded after running some code."""
    script = f"{code}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1].split()


def loaded_by(code: str) -> set[str]:
    return {name.partition(".")[0] for name in modules_after(code)}


def command(line: list[str]) -> str:
    return f"from paramcount.cli import main\ntry:\n    main({line!r})\nexcept SystemExit: pass"


def test_the_formulas_load_nothing_heavy() -> None:
    assert loaded_by("import paramcount.formulas") & {"numpy", "pandas", "pydantic", "yaml", "click", "tabulate", "sympy"} == set()


def test_importing_the_package_loads_nothing_of_it() -> None:
    assert loaded_by("import paramcount") & {"numpy", "pandas", "pydantic", "yaml", "click", "tabulate"} == set()


@pytest.mark.parametrize(
    "line", [["gpt2-small"], ["deepseek-v3", "--json"], ["compare", "llama", "--csv"], ["list"], ["verify", "mixtral-8x7b"], ["why", "deepseek-v3"]]
)
def test_the_commands_load_neither_numpy_nor_pandas(line: list[str]) -> None:
    assert loaded_by(command(line)) & {"numpy", "pandas", "sympy", "torch", "transformers", "matplotlib"} == set()


def test_showing_one_model_loads_one_architecture() -> None:
    loaded = modules_after(command(["gpt2-small"]))
    assert [name for name in loaded if name.startswith("paramcount.architectures.")] == ["paramcount.architectures.gpt2"]


def test_the_public_names_answer_twice_and_after_importing_every_submodule() -> None:
    for name in modules():
        importlib.import_module(name)
    for _ in range(2):
        assert pc.count("gpt2-small").total == 124439808
        assert pc.load("gpt2-small").id == "gpt2-small"
        assert list(pc.compare(["gpt2-small"])["id"]) == ["gpt2-small"]
        assert issubclass(pc.ParamcountError, ValueError)
    for name in pc.__all__:
        assert getattr(pc, name) is getattr(pc, name)
        assert name in dir(pc)


def test_no_module_bears_the_name_of_a_public_function() -> None:
    import paramcount.formulas

    functions = {name for module in (pc, paramcount.formulas) for name in dir(module) if callable(getattr(module, name)) and not name.startswith("_")}
    assert {name.rpartition(".")[2] for name in modules() if "cli" not in name} & functions == set()


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'cuont'"):
        pc.cuont  # noqa: B018


def test_every_module_says_what_it_is_for_and_is_short() -> None:
    for path in ROOT.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert ast.get_docstring(ast.parse(text)), path
        assert text.count("\n") <= 400, path


# ---- types


def test_the_program_that_is_type_checked_runs(program: Any, tmp_path: Path) -> None:
    answers = program.main(tmp_path)
    assert (answers["total"], answers["layer"], answers["stored"], answers["verified"]) == (124_439_808, 7_087_872, 50257 * 768, False)
    assert (answers["deeper"], answers["difference"]) == (124_439_808 + 12 * 7_087_872, 354_823_168 - 124_439_808)


def test_the_package_says_that_it_is_typed() -> None:
    assert (ROOT / "py.typed").is_file()


def test_type_checkers_see_every_public_name() -> None:
    tree = ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    seen = {alias.name: f"{node.module}" for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == {name: f"paramcount.{module}" for name, module in pc._PUBLIC.items()}
    assert {*seen, "__version__"} == set(pc.__all__)


def test_public_functions_are_annotated_in_full() -> None:
    for function in (getattr(pc, name) for name in pc.__all__ if name[0].islower()):
        signature = inspect.signature(function)
        annotations = [signature.return_annotation, *(parameter.annotation for parameter in signature.parameters.values())]
        assert inspect.Signature.empty not in annotations, function
        assert "Any" not in annotations, function
