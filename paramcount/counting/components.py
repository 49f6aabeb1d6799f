"""The components and parts that parameters are counted by."""

from __future__ import annotations

from functools import cache

COMPONENTS = (
    "embedding", "other_embedding", "position", "qkv", "output_projection", "mlp", "router", "experts",
    "shared_experts", "mixer", "norm", "lm_head", "other", "vision", "audio", "projector",
)  # fmt: skip
PARTS = ("decoder", "encoder", "cross_attention", "vision", "audio", "projector", "mtp")
TABLES = ("embedding", "other_embedding", "position", "lm_head")
TOWERS = ("vision", "audio", "projector")  # parts that are one component each in the overview


def qualify_component(part: str, name: str) -> str:
    """A weight's component: vision, audio and projector are one component each, with details such as "vision.mlp"."""
    return f"{part}.{name}" if part in TOWERS and part != name else name


@cache
def locate_component(part: str, name: str) -> tuple[str, str]:
    """(component, detail) of a weight; both are equal if the component has no details."""
    name = qualify_component(part, name)
    return name.partition(".")[0], name
