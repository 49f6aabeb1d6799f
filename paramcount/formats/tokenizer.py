"""Tokens of a text, from a tokenizer.json and the tokenizers library in a subprocess.

The subprocess costs 0.1 s: 0.04 s to start Python, most of the rest to import tokenizers. It is necessary because a
tokenizer.json of a few hundred bytes can make the library abort the process or search for minutes. For example, six
`Replace` rules of 100 characters grow one letter to a terabyte, and no Python exception reports the failed allocation.
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

from paramcount.errors import ParamcountError, make_extra_error, make_printable, quote
from paramcount.formats.files import read_text

WHAT = "a tokenizer.json"
ALPHABET_END = ".txt"
LARGEST_ALPHABET = 1 << 16  # bytes
LARGEST_FILE = 64 << 20  # bytes
LARGEST_TEXT = 4 << 20  # characters
TIMEOUT = 60  # seconds
MEMORY_LIMIT = 2 << 30  # bytes of address space of the subprocess
SCRIPT = Path(__file__).with_name("tokenizer_process.py")


class Tokenized(NamedTuple):
    """The tokens of a text."""

    ids: tuple[int, ...]
    tokens: tuple[str, ...]  # as text: " capital"
    vocabulary: Mapping[int, str]  # {id: token as text}


def tokenize_text(path: Path, text: str, *, most: int) -> Tokenized:
    """The tokens of a text, special tokens included. `most`: maximum number of tokens.

    A text file is an alphabet, whose n-th character is token n; it needs no library.

    Raises: ParamcountError if the library is missing, the file is invalid, or there are no tokens or too many.
    """
    if path.suffix == ALPHABET_END:
        return _split_characters(path, text, most)
    if find_spec("tokenizers") is None:
        raise make_extra_error("tokenizing a text", "tokenizers")
    if not text:
        raise ParamcountError("is empty", where="text", expected="at least one token")
    if len(text) > LARGEST_TEXT:
        raise ParamcountError(f"has {len(text):,} characters", where="text", expected=f"at most {LARGEST_TEXT:,}")
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise ParamcountError("contains bytes that are not text", where="text", expected="UTF-8")
    place = make_printable(path)
    answer = _run_tokenizer({"tokenizer": read_text(path, WHAT, LARGEST_FILE), "text": text, "most": most}, place)
    if "error" in answer:
        raise ParamcountError(
            f"the tokenizers library rejects it: {make_printable(answer['error'], 200)}", where=place, expected=WHAT
        )
    n = answer.get("n", len(answer.get("ids", ())))
    if not 1 <= n <= most:
        raise ParamcountError(f"{n:,} tokens" if n else "has no tokens", where="text", expected=f"1 to {most:,} tokens")
    decode = decode_token if answer["byte_level"] else str
    vocabulary = {id: decode(token) for token, id in answer["vocabulary"].items()}
    return Tokenized(tuple(answer["ids"]), tuple(map(decode, answer["tokens"])), vocabulary)


def _split_characters(path: Path, text: str, most: int) -> Tokenized:
    """The characters of a text and their places in an alphabet."""
    alphabet = read_text(path, "an alphabet", LARGEST_ALPHABET).strip("\n")
    places = {character: id for id, character in enumerate(alphabet)}
    if not 1 <= len(text) <= most:
        n = f"{len(text):,} tokens" if text else "has no tokens"
        raise ParamcountError(n, where="text", expected=f"1 to {most:,} tokens")
    for character in text:
        if character not in places:
            expected = f"characters of {make_printable(alphabet, 80)}"
            raise ParamcountError(f"has the character {quote(character)}", where="text", expected=expected)
    return Tokenized(tuple(places[c] for c in text), tuple(text), dict(enumerate(alphabet)))


def _run_tokenizer(request: dict[str, Any], place: str) -> dict[str, Any]:
    environment = {**os.environ, "TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1"}
    # -P: import nothing from this directory or the current one
    command = [sys.executable, "-P", str(SCRIPT), str(MEMORY_LIMIT)]
    try:
        process = subprocess.run(  # noqa: S603 a file of this package
            command, input=json.dumps(request).encode(), capture_output=True, timeout=TIMEOUT, env=environment
        )
        answer: dict[str, Any] = json.loads(process.stdout)
    except subprocess.TimeoutExpired:
        raise ParamcountError(
            f"the tokenizers library took longer than {TIMEOUT} seconds", where=place, expected=WHAT
        ) from None
    except json.JSONDecodeError:
        lines = process.stderr.decode("utf-8", "replace").strip().splitlines() or [f"exit code {process.returncode}"]
        reason = lines[-1 if lines[0].startswith("Traceback") else 0]
        raise ParamcountError(
            f"the tokenizers library crashed: {make_printable(reason, 100)}", where=place, expected=WHAT
        ) from None
    except OSError as error:
        raise ParamcountError(f"cannot start a subprocess: {error.strerror}", where="tokenizers") from None
    return answer


def _map_bytes() -> dict[str, int]:
    """{character: byte} of byte-level tokens, which write each byte as a printable character.

    Source: openai/gpt-2, src/encoder.py, bytes_to_unicode.
    """
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    other = [byte for byte in range(0x100) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(0x100 + i): byte for i, byte in enumerate(other)}


BYTES = _map_bytes()


def decode_token(token: str) -> str:
    r"""A byte-level token as text. Bytes of incomplete characters are escaped.

    >>> decode_token("Ġcapital"), decode_token("Ċ"), decode_token("ðŁĺ")
    (' capital', '\n', '\\xf0\\x9f\\x98')
    """
    if not all(c in BYTES for c in token):
        return token  # an added token is stored as plain text
    return bytes(BYTES[c] for c in token).decode("utf-8", "backslashreplace")
