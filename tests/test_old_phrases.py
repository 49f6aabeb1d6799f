"""Phrases that paramcount no longer uses: none in its source, which has all help and messages, and in no document."""

from __future__ import annotations

import re
from pathlib import Path

import paramcount as pc

PACKAGE = Path(pc.__file__).parent
ROOT = PACKAGE.parent
PHRASES = (ROOT / "tests" / "data" / "old_phrases.txt").read_text(encoding="utf-8").splitlines()
KEPT = {
    # The value "not accounted for" of `verdict` in the JSON and CSV of `why MODEL CHECKPOINT`, which programs compare
    # with. Its text is "1 problem" or "some values are unexplained".
    ("auditing/why_checkpoint.py", "accounted for"),
    # code, comments and lists of sizes
    ("costs/engines/llama_cpp/cells.py", "equal ones"),
    ("costs/fit.py", "overhead included"),
    ("costs/training/fit.py", "overhead included"),
    ("flow/operations/positions.py", "equal ones"),
    ("parts/ecapa.py", "equal ones"),
}


def find_old_phrases(text: str) -> list[str]:
    """The phrases of a text in any case and across lines, those of a string in several pieces too."""
    words = " ".join(re.sub(r'"\s+[fr]*"', "", text).split()).casefold()
    return [phrase for phrase in PHRASES if phrase.casefold() in words]


def test_an_old_phrase_is_found_across_lines_and_in_any_case() -> None:
    for text in ("A Table of\n  tokens", '("a table "\n    f"of tokens")'):
        assert find_old_phrases(text) == ["table of tokens"]


def test_no_text_of_the_package_has_an_old_phrase() -> None:
    paths = [path for ending in ("py", "md", "yaml") for path in PACKAGE.rglob(f"*.{ending}")]
    found = {
        (path.relative_to(PACKAGE).as_posix(), phrase)
        for path in paths
        for phrase in find_old_phrases(path.read_text(encoding="utf-8"))
    }
    assert found == KEPT
    for path in (ROOT / "README.md", ROOT / "CHANGELOG.md"):
        assert find_old_phrases(path.read_text(encoding="utf-8")) == []
