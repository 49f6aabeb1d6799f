"""The components and parts that parameters are counted by."""

from __future__ import annotations

from functools import cache

from paramcount.flow import TensorRow
from paramcount.flow.walk import ENCODERS

COMPONENTS = (
    "embedding", "other_embedding", "position", "qkv", "output_projection", "mlp", "router", "experts",
    "shared_experts", "mixer", "norm", "lm_head", "other", "vision", "audio", "projector",
)  # fmt: skip
PARTS = ("decoder", "encoder", "cross_attention", "vision", "audio", "projector", "mtp")
TABLES = ("embedding", "other_embedding", "position", "lm_head")
TOWERS = ENCODERS


@cache
def locate_component(part: str, name: str) -> tuple[str, str]:
    """(component, detail) of a weight; both are equal if the component has no details."""
    row = TensorRow("", (), name, part)
    return row.main_component, row.detail
