"""GGUF files of the gguf package in the layout of llama.cpp's converter, compared with their model: intact, quantised,
damaged.
"""

from __future__ import annotations

import itertools
import os
from math import prod
from pathlib import Path

import pytest

import paramcount as pc
from paramcount.api import verify
from paramcount.checkpoints.checkpoint import Checkpoint, File, FileTensor
from paramcount.checkpoints.verify import Verification, verify_checkpoint
from paramcount.checkpoints.writers.gguf_tables import ROPE_FACTORS, WITHOUT_PADDING
from paramcount.loading import load
from tests.batches import in_batches
from tests.damaging import DAMAGES, DamagedCheckpoint, Finding, list_complaints, list_findings, sample_names
from tests.gguf_writing import LAYOUTS, ROBERTA, VARIED, Layout, Shapes, write_gguf
from tests.refusing import command_error

MANY = bool(os.environ.get("EXAMPLES"))
WIDE = LAYOUTS["llama, wide"]


@in_batches("name", sorted(LAYOUTS, key=lambda name: name not in VARIED), size=24)
def test_a_file_in_the_converter_s_layout_is_complete(name: str, tmp_path: Path) -> None:
    layout = LAYOUTS[name]
    found = verify(layout.config, write_gguf(tmp_path / "m.gguf", layout))
    assert (found.ok, list_complaints(found)) == (True, "")
    assert found.expected == found.found
    assert (found.format, found.shapes_checked, found.by_shape, found.tensors) == ("gguf", True, 0, len(layout.tensors))
    assert found.size.predicted == found.size.found == found.totals.bytes
    assert {
        line.pattern for line in found.lines if line.finding.what == "buffer"
    } >= layout.tensors.keys() & ROPE_FACTORS.keys()
    assert any("rows" in remark for remark in found.remarks) == (
        layout.architecture in WITHOUT_PADDING or layout.config["model_type"] in ROBERTA
    )


@pytest.mark.parametrize("types", ["F16", "BF16", "Q4_0", "Q8_0", "Q2_K", "Q4_K", "Q6_K", "IQ4_XS", "MXFP4"])
def test_a_quantised_file_is_the_same_model(types: str, tmp_path: Path) -> None:
    found = verify(WIDE.config, write_gguf(tmp_path / "m.gguf", WIDE, types=types))
    assert (found.ok, list_complaints(found)) == (True, "")
    assert found.expected == found.found
    assert sum(found.found.values()) == pc.count(WIDE.config).total
    assert found.size.predicted == found.size.found == found.totals.bytes
    assert found.scheme == (None if types in ("F16", "BF16") else f"GGUF, mostly {types}")


@pytest.mark.parametrize("name", ["llama, wide", "gemma2-gemma2", "gpt2-gpt2", "llama-llama-1"])
def test_only_an_exact_copy_of_a_tied_embedding_may_be_stored(name: str, tmp_path: Path) -> None:
    layout = LAYOUTS[name]
    assert "output.weight" not in layout.tensors
    stored = layout._replace(tensors=layout.tensors | {"output.weight": layout.tensors["token_embd.weight"]})
    copies = {"output.weight": "token_embd.weight"}
    for path, of, is_copy in (("a.gguf", copies, True), ("b.gguf", {}, False)):
        found = verify(layout.config, write_gguf(tmp_path / path, stored, types="Q4_K", copies=of))
        (line,) = [line for line in found.lines if line.pattern == "output.weight"]
        assert (found.ok, line.finding.what, line.finding.kind == "differs") == (is_copy, "tied duplicate", not is_copy)


def test_parts_that_the_converter_omits_are_noted(tmp_path: Path) -> None:
    layout = LAYOUTS["gemma3-gemma3"]
    found = verify(layout.config, write_gguf(tmp_path / "m.gguf", layout))
    assert found.remarks == (
        "not checked: vision, projector (in a separate mmproj file)",
        "token_embd.weight: 6 of 96 rows are padding that the converter drops",
    )


def test_a_file_of_another_architecture_is_a_one_line_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write_gguf(tmp_path / "m.gguf", WIDE._replace(architecture="qwen2"))
    assert command_error(capsys, "verify", "llama-3.1-8b", str(path)).endswith(
        "general.architecture = 'qwen2', but the model is llama (expected llama)"
    )


# ---- damage


def verify_tensors(layout: Layout, tensors: Shapes) -> Verification:
    """What verify reports for a file with these tensors."""
    file = "m.gguf"
    holds = {name: FileTensor(file, "F32", shape, 4 * prod(shape)) for name, shape in tensors.items()}
    path = Path(file)
    checkpoint = Checkpoint(
        path, "gguf", holds, (File(file, path, None),), metadata={"general.architecture": layout.architecture}
    )
    return verify_checkpoint(load(layout.config), checkpoint)


def is_damage(case: DamagedCheckpoint, layout: Layout) -> bool:
    """In GGUF, an outermost axis of 1 does not matter, and some tables may lack rows."""
    for said in case.says:
        if said.finding == "wrong shape" and said.held and said.declared:
            fewer = said.held[1:] == said.declared[1:] and said.held[0] < said.declared[0]
            cut = (said.name == "token_embd.weight" and layout.architecture in WITHOUT_PADDING) or layout.config[
                "model_type"
            ] in ROBERTA
            if said.held == (1, *said.declared) or (fewer and cut):
                return False
    return True


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", VARIED)
def test_every_kind_of_damage_to_a_tensor_is_reported(name: str, damage: str) -> None:
    layout = LAYOUTS[name]
    tensors = {tensor: ("F32", shape) for tensor, shape in layout.tensors.items() if tensor not in ROPE_FACTORS}
    if layout.architecture in WITHOUT_PADDING:
        tensors["token_embd.weight"] = ("F32", (96, 32))  # all rows, as declared
    chosen = list(tensors) if MANY else sample_names(list(tensors), 3)
    for case in itertools.chain.from_iterable(DAMAGES[damage](tensors, tensor) for tensor in chosen):
        if is_damage(case, layout):
            found = verify_tensors(layout, {tensor: shape for tensor, (_, shape) in case.tensors.items()})
            assert (found.ok, list_findings(found)) == (False, set(case.says))


def test_partly_separate_experts_are_not_read_as_stacked() -> None:
    layout = LAYOUTS["mixtral, experts one by one"]
    kept = {tensor: shape for tensor, shape in layout.tensors.items() if tensor != "blk.0.ffn_gate.3.weight"}
    assert list_findings(verify_tensors(layout, kept)) == {
        Finding("missing", "blk.0.ffn_gate.3.weight", (48, 32), None)
    }
