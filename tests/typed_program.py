"""A program that uses the package as any other would: run by a test, and checked by `mypy --strict` against the
installed wheel.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import pandas

import paramcount as pc


class GPT2:
    """An object like a config of transformers."""

    model_type = "gpt2"

    def to_dict(self) -> dict[str, Any]:
        return {"model_type": self.model_type}


def write_config(folder: Path) -> Path:
    path = folder / "config.json"
    path.write_text('{"model_type": "gpt2"}', encoding="utf-8")
    return path


def main(folder: Path) -> dict[str, int | str | bool | None]:
    """What each part of the API answers. `folder`: for the header of a checkpoint."""
    header = folder / "header.json"
    header.write_text(
        '{"wte.weight": {"dtype": "F32", "shape": [50257, 768], "data_offsets": [0, 154389504]}}', encoding="utf-8"
    )
    model: pc.Model = pc.load("gpt2-small")
    same: list[pc.ModelLike] = ["gpt2-small", model, {"model_type": "gpt2"}, write_config(folder), GPT2()]
    count: pc.Count = pc.count(model)
    deeper: pc.Model = pc.what_if("gpt2-small", n_layers=24)
    tensors: list[pc.TensorRow] = list(count.tensors)
    explanation: pc.Explanation = pc.explain("gpt2-small", layer=0)
    difference: pc.Difference = pc.diff("gpt2-small", "gpt2-medium")
    audit: pc.Audit = pc.audit([{"model": "gpt2-small", "params": "124M"}])
    verification: pc.Verification = pc.verify({"model_type": "gpt2"}, header)
    stored: pc.StoredCount = pc.stored_in(header)
    drawing: pc.Drawing = pc.draw("gpt2-small", layer=0)
    why = pc.why("gpt2-small", "124M")
    trace = pc.trace("gpt2-small", tokens=3)
    adapter: pc.Lora = pc.lora("gpt2-small", r=8, targets=["c_attn"], method="dora")
    training: pc.Training = pc.training("gpt2-small", zero=2, dp=4)
    models: int = len(pc.zoo())
    layers: int = int(pc.query("SELECT n_layers FROM models WHERE id = 'gpt2-small'")["n_layers"][0])
    rows: int = len(pc.compare(["gpt2-small", "gpt2-medium"]))
    sweep: pc.Sweep = pc.sweep("gpt2-small", {"n_layers": range(1, 4), "d_ff": "4 * d_model"})
    sizing: pc.Sizing = pc.size("gpt2-small", total=200_000_000, limit=1)
    table = pc.count_frame(pandas.DataFrame({"n_layers": [1, 2]}), "gpt2", columns=["total"])
    drawing.save(folder / "layer.svg")
    shorter: int = pc.count("gpt2-small", strict=True, set={"n_layers": 1}).total
    stacked: object = tensors[0].to_dict()["stacked"]
    ids: dict[pc.Count, str] = {count: count.id}
    figure: int = count.active_without_input_embedding
    try:
        pc.count("no-such-model")
    except pc.ParamcountError as error:
        message: str = str(error)
    return {
        "total": count.total,
        "same": {pc.count(each).total for each in same} == {count.total},
        "deeper": pc.count(deeper).total,
        "tensors": len(tensors),
        "layer": explanation.total,
        "difference": difference.total_b - difference.total_a,
        "right": audit.ok,
        "verified": verification.ok,
        "stored": stored.total,
        "drawing": drawing.title,
        "fits": why[0].verdict,
        "steps": len(trace.steps),
        "trainable": adapter.trainable,
        "gradients": training.gradients_bytes,
        "rows": rows,
        "sized": sizing.candidates[0].total,
        "counted": int(table["total"].sum()),
        "swept": sum(len(frame) for frame in sweep),
        "models": models > rows,
        "layers": layers,
        "formula": str(pc.formula("gpt2-small").difference("n_positions")),
        "shorter": shorter,
        "stacked": stacked is None,
        "saved": (folder / "layer.svg").is_file(),
        "id": ids[pc.count("gpt2-small")],
        "figure": figure,
        "message": message,
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        sys.stdout.write(f"{main(Path(scratch))['total']:,}\n")
