"""Tokens of a text, from a tokenizer.json and the tokenizers library in a subprocess.

The subprocess costs 0.1 s (0.04 s of it Python's start, most of the rest importing tokenizers). It is needed because a
tokenizer.json of a few hundred bytes can make the library abort the process or search for minutes: six successive `Replace`
rules of 100 characters grow one letter to a terabyte, and no Python exception reports the failed allocation.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from paramcount.errors import ParamcountError, make_printable
from paramcount.formats.files import read_text

WHAT = "a tokenizer.json"
LARGEST_FILE = 64 << 20  # bytes
LARGEST_TEXT = 4 << 20  # characters
PATIENCE = 60  # seconds
MOST_MEMORY = 2 << 30  # bytes of address space of the subprocess
CHILD = Path(__file__).with_name("tokenizer_process.py")


class Tokenized(NamedTuple):
    """The tokens of a text."""

    ids: tuple[int, ...]
    tokens: tuple[str, ...]  # as text: " capital"
    vocabulary: Mapping[int, str]  # {id: token as text} of the whole vocabulary


def tokenize_text(path: Path, text: str, *, most: int) -> Tokenized:
    """The tokens of a text, special tokens included. `most`: maximum number of tokens.

    Raises: ParamcountError if the library is missing, the file is invalid, or there are no tokens or too many.
    """
    if find_spec("tokenizers") is None:
        raise ParamcountError(
            "a text needs the tokenizers library, which is not installed",
            expected="pip install 'paramcount[tokenizers]'",
        )
    if not text:
        raise ParamcountError("is empty", where="text", expected="a text of at least one token")
    if len(text) > LARGEST_TEXT:
        raise ParamcountError(f"has {len(text):,} characters", where="text", expected=f"at most {LARGEST_TEXT:,}")
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise ParamcountError("holds bytes that are no text", where="text", expected="UTF-8")
    found = _run_tokenizer(
        {"tokenizer": read_text(path, WHAT, LARGEST_FILE), "text": text, "most": most}, make_printable(path)
    )
    if "error" in found:
        raise ParamcountError(
            f"the tokenizers library refuses it: {make_printable(found['error'], 200)}",
            where=make_printable(path),
            expected=WHAT,
        )
    n = found.get("n", len(found.get("ids", ())))
    if not 1 <= n <= most:
        raise ParamcountError(
            f"{n:,} tokens" if n else "gives no tokens", where="text", expected=f"1 to {most:,} tokens"
        )
    show = decode_token if found["byte_level"] else str
    vocabulary = {id: show(token) for token, id in found["vocabulary"].items()}
    return Tokenized(tuple(found["ids"]), tuple(map(show, found["tokens"])), vocabulary)


def _run_tokenizer(asked: dict[str, Any], place: str) -> dict[str, Any]:
    """The JSON answer of the subprocess."""
    quietly = {**os.environ, "TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1"}
    command = [
        sys.executable,
        "-P",
        str(CHILD),
        str(MOST_MEMORY),
    ]  # -P: import nothing from this directory or the current one
    try:
        ran = subprocess.run(  # noqa: S603 a file of this package
            command, input=json.dumps(asked).encode(), capture_output=True, timeout=PATIENCE, env=quietly
        )
        found: dict[str, Any] = json.loads(ran.stdout)
    except subprocess.TimeoutExpired:
        raise ParamcountError(
            f"the tokenizers library takes longer than {PATIENCE} seconds with it", where=place, expected=WHAT
        ) from None
    except json.JSONDecodeError:
        lines = ran.stderr.decode("utf-8", "replace").strip().splitlines() or [f"exit code {ran.returncode}"]
        said = lines[-1 if lines[0].startswith("Traceback") else 0]
        raise ParamcountError(
            f"the tokenizers library does not survive it: {make_printable(said, 100)}", where=place, expected=WHAT
        ) from None
    except OSError as error:
        raise ParamcountError(f"a process of its own cannot be started: {error.strerror}", where="tokenizers") from None
    return found


def _map_bytes() -> dict[str, int]:
    """{character: the byte it stands for} in byte-level tokens, which write each byte as a printable character.

    Source: openai/gpt-2, src/encoder.py, bytes_to_unicode.
    """
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    other = [byte for byte in range(0x100) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(0x100 + i): byte for i, byte in enumerate(other)}


BYTES = _map_bytes()


def decode_token(token: str) -> str:
    r"""A byte-level token as text; incomplete characters as escaped bytes.

    >>> decode_token("Ġcapital"), decode_token("Ċ"), decode_token("ðŁĺ")
    (' capital', '\n', '\\xf0\\x9f\\x98')
    """
    if not all(c in BYTES for c in token):
        return token  # an added token is stored as plain text
    return bytes(BYTES[c] for c in token).decode("utf-8", "backslashreplace")
