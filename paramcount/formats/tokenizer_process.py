"""A program of its own that reads a text with the tokenizers library: JSON in, JSON out. `tokenizer_files.py` runs it.

A tokenizer.json can make that library use all memory, search for minutes, and abort the process, which no exception reports.
Here the memory is bounded, and what dies is nobody else.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def tokenize(asked: dict[str, Any]) -> dict[str, Any]:
    """{ids, tokens, vocabulary: {token: id}, byte_level} of a text, or {n} where its tokens are more than `most`, or {error}."""
    try:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_str(asked["tokenizer"])
        tokenizer.no_padding()
        tokenizer.no_truncation()  # all of the text or none
        if getattr(tokenizer.model, "dropout", None):
            tokenizer.model.dropout = None  # splits words at random while a model is trained
        found = tokenizer.encode(asked["text"])
        if len(found.ids) > asked["most"]:
            return {"n": len(found.ids)}
        byte_level = type(tokenizer.decoder).__name__ == "ByteLevel"
        return {"ids": found.ids, "tokens": found.tokens, "vocabulary": tokenizer.get_vocab(), "byte_level": byte_level}
    except BaseException as error:  # the library's panics are no Exception
        return {"error": str(error)[:2000]}


def limit_memory(memory: int) -> None:
    """Let this process have so many bytes of memory and leave no core behind, where the system knows how."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    except (ImportError, OSError, ValueError):
        pass


if __name__ == "__main__":
    limit_memory(int(sys.argv[1]))
    sys.stdout.write(json.dumps(tokenize(json.load(sys.stdin))))
