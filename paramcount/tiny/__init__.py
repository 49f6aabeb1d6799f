"""Three tiny trained models that sort letters: "dbca|" is continued with "abcd.".

They are data: a folder for each with the config.json and the weights that transformers would read, and one file with
their alphabet, whose n-th character is token n. `tests/train_tiny_models.py` trains them.

>>> encode("ba|")
[1, 0, 26]
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from paramcount.errors import ParamcountError, quote

__all__ = ["ALPHABET", "ALPHABET_FILE", "END", "LONGEST", "NAMES", "SEPARATOR", "decode", "encode", "find_folder"]

FOLDER: Final = Path(__file__).parent
ALPHABET_FILE: Final = FOLDER / "alphabet.txt"
ALPHABET: Final = ALPHABET_FILE.read_text(encoding="utf-8").strip("\n")
SEPARATOR: Final = "|"  # between the letters and the answer
END: Final = "."  # of the answer
LONGEST: Final = 10  # letters that they were trained to sort
NAMES: Final = ("tiny-gpt2", "tiny-mixtral", "tiny-mamba")


def find_folder(name: object) -> Path | None:
    """The folder with the config.json and the weights of a tiny model; None if it is no name of one."""
    return FOLDER / name if isinstance(name, str) and name in NAMES else None


def encode(text: str) -> list[int]:
    """The token ids of a text.

    Raises: ParamcountError for a character that is not in the alphabet.
    """
    for character in text:
        if character not in ALPHABET:
            raise ParamcountError(
                f"has the character {quote(character)}", where="text", expected=f"characters of {ALPHABET}"
            )
    return [ALPHABET.index(character) for character in text]


def decode(ids: Iterable[int]) -> str:
    """The text of token ids."""
    return "".join(ALPHABET[id] for id in ids)
