"""The classes that engines run, from their wheels and from the installed transformers.

`.oracle/bin/python -m tests.refresh_engine_classes VLLM.whl SGLANG.whl` writes paramcount/costs/engines/classes.json.
No code of the engines is run.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import paramcount
from paramcount.architectures import read_index
from paramcount.costs.engines.support import read_classes

TARGET = Path(paramcount.__file__).parent / "costs/engines/classes.json"
REGISTRY = "vllm/model_executor/models/registry.py"
DRAFTS, UNTIL = "_SPECULATIVE_DECODING_MODELS", "_PREVIOUSLY_SUPPORTED_MODELS"
OUTSIDE = (DRAFTS, UNTIL, "_OOT_SUPPORTED_MODELS")


def read_tables(source: str) -> dict[str, dict[str, ast.expr]]:
    """{table of vLLM's registry: {class: its value}}."""
    tables = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict) and isinstance(node.targets[0], ast.Name):
            pairs = zip(node.value.keys, node.value.values)
            rows = {key.value: value for key, value in pairs if isinstance(key, ast.Constant)}
            tables[node.targets[0].id] = {str(name): value for name, value in rows.items()}
    return tables


def list_entry_classes(source: str) -> Iterator[str]:
    """The classes that a module of SGLang registers."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "EntryClass" for t in node.targets):
            elements = node.value.elts if isinstance(node.value, ast.List | ast.Tuple) else [node.value]
            yield from (element.id for element in elements if isinstance(element, ast.Name))


def list_wrapped() -> tuple[list[str], list[str]]:
    """The counted classes of transformers whose attention can be replaced: as they say, and as their code shows."""
    import transformers  # type: ignore[import-not-found, unused-ignore]

    takes, sets = [], []
    for name in {*read_index("references").values(), *read_index("classes")}:
        cls: Any = getattr(transformers, name, None)
        if hasattr(cls, "is_backend_compatible"):
            if cls.is_backend_compatible():
                takes.append(name)
            elif cls._can_set_attn_implementation():
                sets.append(name)
    return takes, sets


def format_names(names: Iterable[str]) -> str:
    return "\n".join(textwrap.wrap(", ".join(f'"{name}"' for name in sorted(set(names))), 118))


def main(vllm: str, sglang: str) -> None:
    with ZipFile(vllm) as wheel:
        tables = read_tables(wheel.read(REGISTRY).decode())
    own = {name for table, rows in tables.items() if table not in OUTSIDE for name in rows}
    until = {name: ast.literal_eval(value) for name, value in tables[UNTIL].items()}
    with ZipFile(sglang) as wheel:
        paths = [name for name in wheel.namelist() if re.fullmatch(r"sglang/srt/models/\w+\.py", name)]
        entries = {entry for path in paths for entry in list_entry_classes(wheel.read(path).decode())}
    takes, sets = list_wrapped()
    versions = [Path(path).name.split("-")[1] for path in (vllm, sglang)]
    lists = {
        "vllm": own,
        "vllm_until": [f"{name}<={version}" for name, version in until.items()],
        "sglang": entries,
        "takes_attention": {*takes} - (own & entries),
        "sets_attention": {*sets} - own,
        "sglang_windows": read_classes("sglang_windows"),  # by hand: is_hybrid_swa_model of SGLang's model_config.py
    }
    source = (
        f"vLLM {versions[0]}, {REGISTRY}; SGLang {versions[1]}, srt/models; classes of transformers that paramcount "
    )
    source += "counts and these do not implement. Written by python -m tests.refresh_engine_classes."
    parts = [f'"{name}": [\n{format_names(names)}\n]' for name, names in lists.items()]
    TARGET.write_text("{\n" + ",\n".join([f'"source": "{source}"', *parts]) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
