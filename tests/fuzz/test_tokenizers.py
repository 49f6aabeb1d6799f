"""tokenizer.json files with pieces of them exchanged: tokens, or refused in one line, whatever the library does."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from paramcount.formats.tokenizer import tokenize_text
from tests.fuzz.frame import EXAMPLES, fuzz, spoil_text
from tests.fuzz.values import SCRAPS
from tests.refusing import read_or_none

pytest.importorskip("tokenizers")
pytestmark = pytest.mark.fuzz

WORDS = {"the": 0, "cat": 1, "\u0120": 2, "t": 3, "h": 4, "e": 5, "th": 6}
VALID = [
    json.dumps(
        {
            "version": "1.0",
            "added_tokens": [],
            "pre_tokenizer": {"type": "Whitespace"},
            "model": {"type": "WordLevel", "vocab": WORDS, "unk_token": "the"},
        }
    ),
    json.dumps(
        {
            "version": "1.0",
            "decoder": {"type": "ByteLevel"},
            "model": {"type": "BPE", "vocab": WORDS, "merges": ["t h", "th e"], "dropout": 0.5},
        },
        indent=1,
    ),
]
TEXTS = ["the cat", "", "\0", "\ud800", "\u202e😀", "the " * 30, "e"]


def test_a_corrupted_tokenizer_gives_tokens_or_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"

    def spoil(rng: random.Random) -> tuple[str, str]:
        return spoil_text(rng, VALID, SCRAPS), rng.choice(TEXTS)

    def verdict_of(given: tuple[str, str]) -> str:
        path.write_text(given[0], encoding="utf-8", errors="replace")
        found = read_or_none(lambda text: tokenize_text(path, text, most=20), given[1])
        if found is None:
            return "refused"
        assert 1 <= len(found.ids) == len(found.tokens) <= 20
        return "read"

    assert "refused" in fuzz(spoil, verdict_of, max(1, EXAMPLES // 40))  # each in a process of its own
