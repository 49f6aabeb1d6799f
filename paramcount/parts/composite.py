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
    """Token ids to the output of the `language` model of c.

    Vectors of images or sounds replace the embeddings of their placeholder tokens. `head`: to logits. `moved`: (prefix
    in the model, prefix in the file), instead of `prefix` before all names.
    """
    language = c.language
    body = language.forward if head else language.body
    return block(insert(tokens, *others), "" if moved else prefix, body, root=True, moved=moved)
