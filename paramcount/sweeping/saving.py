"""A sized configuration as a zoo entry in YAML."""

from __future__ import annotations

import datetime
from pathlib import Path

from paramcount.errors import ParamcountError, make_printable
from paramcount.output.files import write_atomically
from paramcount.sizes.setting_keys import select_entry_settings
from paramcount.sweeping.size import Candidate, Sizing
from paramcount.version import __version__
from paramcount.zoo import Model
from paramcount.zoo.adding import build_unverified, check_id
from paramcount.zoo.entries import Entry, Source
from paramcount.zoo.writing import format_entry

EXTENSION = ".yaml"


def save_candidate(sizing: Sizing, candidate: Candidate, path: str) -> None:
    """Write a candidate as a complete entry whose id is the name of the file.

    Raises: ParamcountError if that name cannot be an id, or if the file cannot be written.
    """
    write_atomically(path, format_entry(make_candidate_entry(sizing, candidate, check_path(path))), option="--save")


def check_path(path: str) -> str:
    """The id of an entry in a file.

    Raises: ParamcountError if the file is not YAML, or its name cannot be an id.
    """
    file = Path(path)
    if file.suffix.lower() != EXTENSION:
        raise ParamcountError(f"{make_printable(path, 60)} is not a YAML file", where="--save", expected="FILE.yaml")
    try:
        check_id(file.stem)
    except ParamcountError as error:
        raise error.replace(where="--save: id") from None
    return file.stem


def make_candidate_entry(sizing: Sizing, candidate: Candidate, id: str) -> Entry:
    """The entry of a candidate, unverified, whose notes state the rules that it follows."""
    like = sizing.like
    origin = f"paramcount {__version__}, sized like {like.id}"
    return build_unverified(
        like,
        id,
        Source(id="config", kind="publisher", ref=origin, accessed=datetime.date.today()),
        context_length=like.context_length,
        config=candidate.model.sizes,
        settings=find_settings(like) or None,
        notes=(f"{candidate.total:,} parameters by these rules:", *sizing.rules),
    )


def find_settings(model: Model) -> dict[str, object]:
    """The settings of a model's zoo entry or config.json."""
    original = model.original or model
    if original.entry:
        return dict(original.entry.settings or {})
    return select_entry_settings(original.sizes, original.reading.document)
