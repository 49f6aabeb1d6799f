"""Terminal output: display width, wrapping, colours and ASCII fallbacks."""

from __future__ import annotations

import codecs
import textwrap
import unicodedata

FALLBACK = "paramcount.ascii"  # the name of the error handler below
FILLER = "\ue000"  # stands for the second column of a wide character while lines are broken
STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}

# What a character becomes if the encoding of stdout or stderr does not have it; any other becomes "?".
ASCII = {
    "−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "‒": "-", "─": "-", "×": "x", "·": ".", "…": "...", "→": "->", "\u00a0": " ",
    "≠": "!=", "≈": "~", "∼": "~", "≃": "~", "≡": "==", "≤": "<=", "≥": ">=", "√": "sqrt ", "Σ": "sum ", "‖": "||", "½": "1/2", "ᵀ": "^T",
    "‹": "<", "›": ">", "‘": "'", "’": "'", "“": '"', "”": '"', "␣": "_", "§": "S.", "†": "+", "‡": "++",
    "✓": "yes", "✔": "yes", "✅": "yes", "✗": "no", "✘": "no", "❌": "no",
    **{digit: f"^{i}" for i, digit in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")}, **{digit: str(i) for i, digit in enumerate("₀₁₂₃₄₅₆₇₈₉")},
}  # fmt: skip


def text_width(text: str) -> int:
    """Display width of text in terminal columns: 2 per wide character, 0 per combining one.

    >>> text_width("Qwen"), text_width("通义千问"), text_width("e\\u0301")
    (4, 8, 1)
    """
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def pad(text: str, width: int, *, right: bool) -> str:
    """Text padded to a width."""
    blanks = " " * (width - text_width(text))
    return blanks + text if right else text + blanks


def wrap(text: str, width: int, *, indent: str = "") -> list[str]:
    """Text wrapped to lines of at most `width` columns. `indent`: prefix of all lines but the first."""
    filled = text if text.isascii() else "".join(c + FILLER * (unicodedata.east_asian_width(c) in "WF") for c in text)
    return [
        line.replace(FILLER, "")
        for line in textwrap.wrap(filled, width, subsequent_indent=indent, break_on_hyphens=False)
    ]


def paint(text: str, style: str) -> str:
    """Text in one of STYLES, excluding the whitespace around it; unchanged without a style.

    >>> paint("  total ", "bold")
    '  \\x1b[1mtotal\\x1b[0m '
    """
    bare = text.strip()
    return text.replace(bare, f"\x1b[{STYLES[style]}m{bare}\x1b[0m", 1) if style and bare else text


def replace_unencodable(error: UnicodeError) -> tuple[str, int]:
    """Error handler for encoding: replaces missing characters by ASCII."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(ASCII.get(c, "?") for c in error.object[error.start : error.end]), error.end


codecs.register_error(FALLBACK, replace_unencodable)
