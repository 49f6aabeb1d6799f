"""Models around a language model of any architecture, which config.json itself names."""

from __future__ import annotations

from typing import Any

from paramcount.flow import Data, block
from paramcount.parts.vision import insert


def with_language(
    c: Any,
    tokens: Data,
    *others: Data,
    head: bool,
    moved: tuple[str, str] | None = None,
    prefix: str = "language_model.",
) -> Data:
    """Token ids to what the `language` of c makes of them, with the vectors of images or sounds in the places held for them.
    `head`: to logits. `moved`: the beginning of its names and the one that they are stored with, instead of `prefix` before all."""
    language = c.language
    body = language.forward if head else language.body
    return block(insert(tokens, *others), "" if moved else prefix, body, root=True, moved=moved)
