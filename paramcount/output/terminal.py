"""Terminal output: display width, wrapping, colours and ASCII fallbacks."""

from __future__ import annotations

import codecs
import textwrap

FALLBACK = "paramcount.ascii"  # the name of the error handler below
FIRST_SPECIAL = "\u0300"  # all characters before it take one column
FILLER = "\ue000"  # represents the second column of a wide character during wrapping
STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}

# Replacements of characters that the encoding of stdout or stderr lacks; all others become "?".
ASCII = {
    "−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "‒": "-", "─": "-", "×": "x", "·": ".", "…": "...", "→": "->",
    "≠": "!=", "≈": "~", "∼": "~", "≃": "~", "≡": "==", "≤": "<=", "≥": ">=", "√": "sqrt ", "Σ": "sum ", "‖": "||",
    "÷": "/", "∞": "inf",
    "½": "1/2", "ᵀ": "^T", "α": "alpha", "β": "beta", "ε": "eps", "λ": "lambda", "Λ": "Lambda", "µ": "u",
    "π": "pi", "σ": "sigma", "ö": "o",
    "‹": "<", "›": ">", "‘": "'", "’": "'", "“": '"', "”": '"',
    "␣": "_", "§": "S.", "†": "+", "‡": "++", "✓": "yes", "✔": "yes", "✅": "yes", "✗": "no", "✘": "no", "❌": "no",
    "\u00a0": " ",
    **{digit: f"^{i}" for i, digit in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")}, "ⁿ": "^n", "ˣ": "^x", "⁻": "^-",
    **{digit: str(i) for i, digit in enumerate("₀₁₂₃₄₅₆₇₈₉")},
}  # fmt: skip


def measure_text(text: str) -> int:
    """Display width of text in terminal columns: 2 per wide character, 0 per combining one.

    >>> measure_text("Qwen"), measure_text("通义千问"), measure_text("e\\u0301")
    (4, 8, 1)
    """
    if max(text, default="") < FIRST_SPECIAL:
        return len(text)
    import unicodedata

    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def get_terminal_width() -> int:
    """The terminal's width in columns; 80 without a terminal."""
    import shutil

    return shutil.get_terminal_size((80, 24)).columns


def pad(text: str, width: int, *, right: bool) -> str:
    blanks = " " * (width - measure_text(text))
    return blanks + text if right else text + blanks


def wrap(text: str, width: int, *, indent: str = "") -> list[str]:
    """Text wrapped to at most `width` columns. `indent`: prefix of all lines but the first."""
    if max(text, default="") >= FIRST_SPECIAL:
        import unicodedata

        text = "".join(c + FILLER * (unicodedata.east_asian_width(c) in "WF") for c in text)
    lines = textwrap.wrap(text, width, subsequent_indent=indent, break_on_hyphens=False)
    return [line.replace(FILLER, "") for line in lines]


def paint(text: str, style: str) -> str:
    """Text in one of STYLES, without styling the whitespace around it; unchanged if the style is empty.

    >>> paint("  total ", "bold")
    '  \\x1b[1mtotal\\x1b[0m '
    """
    bare = text.strip()
    return text.replace(bare, f"\x1b[{STYLES[style]}m{bare}\x1b[0m", 1) if style and bare else text


def replace_unencodable(error: UnicodeError) -> tuple[str, int]:
    """Encoding error handler that replaces missing characters with ASCII."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(ASCII.get(c, "?") for c in error.object[error.start : error.end]), error.end


codecs.register_error(FALLBACK, replace_unencodable)
