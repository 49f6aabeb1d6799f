"""Checkpoints on the command line: whether an argument is the path of one, and reading with a progress bar."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paramcount.cli.progress import progress_callback
from paramcount.zoo.names import is_file_name

if TYPE_CHECKING:
    from paramcount.checkpoints.checkpoint import Checkpoint


def is_checkpoint_path(word: str, *, with_config: bool = False) -> bool:
    """Whether an argument is the path of a checkpoint. `with_config`: accept a folder that also contains a
    config.json."""
    if word == "-" or not is_file_name(word):
        return False
    from paramcount.checkpoints.opening.locate import is_checkpoint

    return is_checkpoint(word, with_config=with_config)


def read_checkpoint(path: str) -> Checkpoint:
    from paramcount.checkpoints.opening.locate import open_checkpoint

    with progress_callback() as report:
        return open_checkpoint(path, report)
