"""Trainable parameters and estimates of logged fine-tuning runs, as paramcount has them."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import paramcount as pc
from paramcount.costs.training.estimators import list_zero_lines
from tests.logged import GIB, LoggedFigure, load_logged

SHORT = 8  # tokens, for figures that do not depend on activations


@cache
def train(model: str, arguments: str) -> pc.Training:
    return pc.training(load_logged(model), **{"context": SHORT, **json.loads(arguments)})


@cache
def adapt(model: str, arguments: str) -> pc.Lora:
    return pc.lora(load_logged(model), **json.loads(arguments))


def count_figure(_: str, row: LoggedFigure) -> float:
    """What paramcount says for the figure: parameters or GiB."""
    given: dict[str, Any] = dict(row.arguments)
    if row.figure in ("trainable", "total"):  # "trainable params: … || all params: …"
        return int(getattr(adapt(row.model, json.dumps(given["lora"], sort_keys=True)), row.figure))
    line = given.pop("line", None)
    if "total_params" in given:  # estimate_zero2_model_states_mem_needs_all_cold and its like
        estimates = list_zero_lines(given["total_params"], given["largest_params"], given["gpus"])
    else:
        estimates = train(row.model, json.dumps(given, sort_keys=True)).estimates
    (estimate,) = (estimate for estimate in estimates if estimate.options == line)
    size: int = {"zero_cpu_gib": estimate.cpu_bytes, "zero_gpu_gib": estimate.gpu_bytes}[row.figure] or 0
    return size / GIB
