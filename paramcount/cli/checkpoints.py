"""Checkpoints on the command line: which words name one, and a progress bar while headers are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paramcount.cli.progress import progress_callback
from paramcount.zoo.names import is_file_name

if TYPE_CHECKING:
    from paramcount.checkpoints.checkpoint import Checkpoint


def is_checkpoint_path(word: str, *, with_config: bool = False) -> bool:
    """Whether a word is the path of a checkpoint. With `with_config`, so is a folder that also contains a
    config.json."""
    if word == "-" or not is_file_name(word):
        return False
    from paramcount.checkpoints.opening.locate import is_checkpoint

    return is_checkpoint(word, with_config=with_config)


def read_checkpoint(path: str) -> Checkpoint:
    """The checkpoint at a path."""
    from paramcount.checkpoints.opening.locate import open_checkpoint

    with progress_callback() as report:
        return open_checkpoint(path, report)
