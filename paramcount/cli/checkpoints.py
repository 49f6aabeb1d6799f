"""Checkpoints on the command line: which words name one, and reading its headers where somebody may be waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paramcount.cli.progress import watching
from paramcount.zoo.names import is_file_name

if TYPE_CHECKING:
    from paramcount.checkpoints.checkpoint import Checkpoint


def names_checkpoint(word: str, *, with_config: bool = False) -> bool:
    """Whether a word is the path of a checkpoint. `with_config`: so is that of a folder with one beside its config.json."""
    if word == "-" or not is_file_name(word):
        return False
    from paramcount.checkpoints.opening.locate import is_checkpoint

    return is_checkpoint(word, with_config=with_config)


def read_checkpoint(path: str) -> Checkpoint:
    """The checkpoint that a path names."""
    from paramcount.checkpoints.opening.locate import open_checkpoint

    with watching() as watch:
        return open_checkpoint(path, watch)
