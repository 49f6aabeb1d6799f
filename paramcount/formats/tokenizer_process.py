"""The subprocess of `tokenizer.py`: reads a request as JSON from stdin and writes the tokens as JSON to stdout.

A hostile tokenizer.json can make the tokenizers library use all memory, search for minutes or abort the process, which
no exception reports. This process limits its memory, and only it dies.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def tokenize(request: dict[str, Any]) -> dict[str, Any]:
    """{ids, tokens, vocabulary: {token: id}, byte_level}, {n} if there are more than `most` tokens, or {error}."""
    try:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_str(request["tokenizer"])
        tokenizer.no_padding()
        tokenizer.no_truncation()  # encode the whole text or fail
        if getattr(tokenizer.model, "dropout", None):
            tokenizer.model.dropout = None  # random merges, meant for training
        encoding = tokenizer.encode(request["text"])
        if len(encoding.ids) > request["most"]:
            return {"n": len(encoding.ids)}
        byte_level = type(tokenizer.decoder).__name__ == "ByteLevel"
        vocabulary = tokenizer.get_vocab()
        return {"ids": encoding.ids, "tokens": encoding.tokens, "vocabulary": vocabulary, "byte_level": byte_level}
    except BaseException as error:  # the library's panics do not derive from Exception
        return {"error": str(error)[:2000]}


def limit_memory(memory: int) -> None:
    """Limit the address space to `memory` bytes and disable core dumps, if the system supports it."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    except (ImportError, OSError, ValueError):
        pass


if __name__ == "__main__":
    limit_memory(int(sys.argv[1]))
    sys.stdout.write(json.dumps(tokenize(json.load(sys.stdin))))
