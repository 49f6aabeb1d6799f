"""Articles about models with a character in place of each frequent phrase, which compress to three quarters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

FIRST = 0xE000  # of the characters for private use, which no article has
MOST = 2500  # phrases
PIECE = re.compile(r"(?:<[^>]*>)+|[^<]+")
FOLDED = re.compile("[\ue000-\uf8ff]")


def find_phrases(articles: Iterable[str]) -> list[str]:
    """The tags and texts that save the most characters, each at least twice in the articles.

    >>> find_phrases(["<b>one</b>", "<b>two</b>"])
    ['</b>', '<b>']
    """
    uses = Counter(piece for article in articles for piece in PIECE.findall(article))
    savings = {piece: (len(piece) - 1) * n for piece, n in uses.items() if n > 1 and len(piece) > 1}
    return sorted(savings, key=lambda piece: (-savings[piece], piece))[:MOST]


def fold(article: str, phrases: Sequence[str]) -> str:
    """An article with a character for each phrase.

    >>> phrases = ["</b>", "<b>"]
    >>> len(fold("<b>one</b>", phrases)), unfold(fold("<b>one</b>", phrases), phrases)
    (5, '<b>one</b>')
    """
    characters = {phrase: chr(FIRST + i) for i, phrase in enumerate(phrases)}
    return "".join(characters.get(piece, piece) for piece in PIECE.findall(article))


def unfold(folded: str, phrases: Sequence[str]) -> str:
    """The article that `fold` was given. data.js does the same."""
    return FOLDED.sub(lambda match: phrases[ord(match[0]) - FIRST], folded)
