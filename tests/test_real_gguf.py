"""Released GGUF files, as llama.cpp tells of them when it loads one: how many tensors there are of each type, and the
size of all.

tests/data/gguf_dumps.json has what its logs print, as public files quote them, and the tensors names and shapes by
hand, from the configs of the models and llama.cpp's gguf-py/gguf/constants.py. Of types that change from layer to layer
a log says how many tensors have each, not which: here the first layers have the wider one.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from math import prod
from pathlib import Path
from typing import Any

import pytest

from paramcount.checkpoints.checkpoint import Checkpoint, File, FileTensor
from paramcount.checkpoints.verify import verify_checkpoint
from paramcount.formats.weights.gguf import BLOCKS
from paramcount.loading import load
from tests.patterns import expand_pattern

DUMPS: dict[str, dict[str, Any]] = {
    dump["of"]: dump
    for dump in json.loads((Path(__file__).parent / "data" / "gguf_dumps.json").read_text(encoding="utf-8"))
}
SIZE = re.compile(r"size = ([\d.]+) ([GM])iB \(([\d.]+) BPW\)")
PATH = Path("model.gguf")


def parse_dump(dump: dict[str, Any]) -> dict[str, FileTensor]:
    held: dict[str, FileTensor] = {}
    for pattern, (shape, dtype) in dump["tensors"].items():
        values, size, _ = BLOCKS[dtype]
        held |= {
            name: FileTensor(PATH.name, dtype, tuple(shape), prod(shape) // values * size, 0)
            for name in expand_pattern(pattern)
        }
    return held


@pytest.mark.parametrize("name", DUMPS)
def test_llama_cpp_s_log_of_a_release_matches_its_model(name: str) -> None:
    dump = DUMPS[name]
    held = parse_dump(dump)
    assert Counter(tensor.dtype for tensor in held.values()) == dump["types"]
    size = sum(tensor.size or 0 for tensor in held.values())
    checkpoint = Checkpoint(
        PATH, "gguf", held, (File(PATH.name, PATH, size),), metadata={"general.architecture": dump["architecture"]}
    )
    found = verify_checkpoint(load(dump["model"]), checkpoint)
    assert (found.ok, found.faults, found.by_shape) == (True, (), 0)
    assert found.found == found.expected
    assert (found.size.found, found.size.predicted) == (size, size)
    said, unit, bits = SIZE.search(dump["says"]).groups()  # type: ignore[union-attr]
    assert f"{size / {'G': 2**30, 'M': 2**20}[unit]:.2f}" == said
    assert found.totals.bits is not None
    assert f"{float(found.totals.bits):.2f}" == bits


def test_logs_cover_the_usual_layouts() -> None:
    assert {dump["architecture"] for dump in DUMPS.values()} == {
        "llama",
        "qwen2",
        "qwen3moe",
        "gpt-oss",
        "gemma3",
        "phi3",
        "deepseek2",
    }
