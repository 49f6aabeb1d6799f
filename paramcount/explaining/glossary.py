"""The meaning of each size in words, as glossary.json has it, and its config.json key."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from paramcount.sizes import Sizes, get_key

GLOSSARY = json.loads(Path(__file__).with_name("glossary.json").read_text(encoding="utf-8"))
MEANINGS: Mapping[str, str] = GLOSSARY["sizes"]

FLAGS: Mapping[str, str] = GLOSSARY["flags"]  # sizes, flags and lists that are named after a feature


def describe_size(sizes: Sizes, path: str) -> tuple[str, str]:
    """The meaning of a size and its config.json key, or keys; "" if unknown or derived.

    >>> from paramcount.loading import load
    >>> describe_size(load("gpt2-small").sizes, "d_model")
    ('hidden size', 'hidden_size or n_embd')
    >>> describe_size(load("llama-3.2-11b-vision").sizes, "vision.d_ff")
    ('MLP hidden size', 'vision_config.intermediate_size')
    """
    name, _, rest = path.partition(".")
    if rest:
        return describe_size(getattr(sizes, name), rest)
    section = f"{sizes.section}." if sizes.section else ""
    spellings = get_key(type(sizes), name).spellings(name)
    keys = [key.removeprefix("/") if key[0] == "/" else section + key for key in spellings]
    return MEANINGS.get(name) or FLAGS.get(name, ""), " or ".join(keys)
