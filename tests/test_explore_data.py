"""The page about the whole zoo has the data of every built-in model as the code exports them today."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
from paramcount.explore.models import export_models
from paramcount.explore.page import ZOO, compress, expand
from paramcount.zoo import CONFIGS, load_entry
from tests.refresh_page import list_models
from tests.test_explore import read_all_data

SHARED = (
    "models",
    "structures",
    "parts",
    "expressions",
    "packings",
    "drawings",
    "words",
    "lessons",
)  # by several models
SAMPLE = ("gpt2-small", "deepseek-v3", "mamba-2.8b", "whisper-small", "t5-small", "qwen2-vl-7b")
COMMAND = "python -m tests.refresh_page"


@cache
def read_zoo_data() -> dict[str, Any]:
    return expand(ZOO.read_bytes())


def settle(model: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """A model with its structures and its drawing in place of their positions, as data.js reads them."""
    drawing = None if model["drawing"] is None else data["drawings"][model["drawing"]]
    words = {} if drawing is None else {
        "sentences": [n if n is None else data["words"][n] for n in drawing["sentences"]],
        "texts": [[*numbers, data["words"][n]] for *numbers, n in drawing["texts"]],
        "signs": [[*numbers, data["words"][n]] for *numbers, n in drawing["signs"]],
    }  # fmt: skip
    variants = [variant | {"structure": settle_structure(variant["structure"], data)} for variant in model["variants"]]
    return model | {
        "structure": settle_structure(model["structure"], data),
        "variants": variants,
        "drawing": drawing and drawing | words,
    }


def settle_structure(position: int, data: dict[str, Any]) -> dict[str, Any]:
    structure: dict[str, Any] = data["structures"][position]
    flow = structure["flow"]
    return (
        structure
        | {"tensors": [settle_part(n, data) for n in structure["tensors"]]}
        | {name: find(structure[name], data["expressions"]) for name in ("counts", "caches", "sharing", "checks")}
        | {
            "flow": flow
            and flow
            | {
                "steps": [settle_part(n, data) for n in flow["steps"]],
                "flops": find(flow["flops"], data["expressions"]),
            }
        }
    )


def settle_part(position: int, data: dict[str, Any]) -> dict[str, Any]:
    part: dict[str, Any] = data["parts"][position]
    packings = data["packings"]
    packed = {"packings": find(part["packings"], packings)} if part.get("packings") else {}
    if shared := part.get("shared"):  # ["apply", function, …]
        packed["shared"] = [shared[0], packings[shared[1]], *shared[2:]]
    return part | packed


def find(positions: Any, values: Sequence[Any]) -> Any:
    """The values at some positions, which may be in a list or a table."""
    if isinstance(positions, list):
        return [find(n, values) for n in positions]
    if isinstance(positions, dict):
        return {name: find(n, values) for name, n in positions.items()}
    return positions if positions is None else values[positions]


def check_models(ids: Sequence[str]) -> None:
    zoo = read_zoo_data()
    known = {model["id"]: model for model in zoo["models"]}
    today = expand(compress(export_models(map(load_entry, ids))))
    for model in today["models"]:
        assert settle(known[model["id"]], zoo) == settle(model, today), f"{model['id']}: run {COMMAND}"
    assert {key: zoo["lessons"].get(key) for key in today["lessons"]} == today["lessons"], f"run {COMMAND}"
    assert drop_shared(zoo) == drop_shared(today), f"run {COMMAND}"


def drop_shared(data: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name not in SHARED}


def test_the_data_of_the_page_are_as_the_code_exports_them() -> None:
    assert [model["id"] for model in read_zoo_data()["models"]] == [model.id for model in list_models()], (
        f"run {COMMAND}"
    )
    check_models(SAMPLE)


@pytest.mark.exhaustive
@pytest.mark.parametrize("start", range(60))
def test_the_data_of_every_model_are_as_the_code_exports_them(start: int) -> None:
    check_models([model.id for model in list_models()[start::60]])


def test_the_data_take_less_than_three_megabytes() -> None:
    assert ZOO.stat().st_size < 3_000_000


def test_the_page_about_the_zoo_computes_nothing() -> None:
    code = "import sys, paramcount as pc; pc.explore_page(); print('paramcount.explore.models' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_models_of_the_user_are_added(own_zoo: Path) -> None:
    (own_zoo / "llama").mkdir(parents=True)
    text = (CONFIGS / "llama" / "llama-3.1-8b.yaml").read_text(encoding="utf-8")
    (own_zoo / "llama" / "mine.yaml").write_text(text.replace("id: llama-3.1-8b", "id: mine"), encoding="utf-8")
    built_in, own = read_all_data(pc.explore_page())
    assert len(built_in["models"]) == len(read_zoo_data()["models"])
    assert [(model["id"], model["own"], model["total"]) for model in own["models"]] == [("mine", True, 8_030_261_248)]
