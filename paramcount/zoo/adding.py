"""Make a zoo entry of a config.json, and write it into a folder of entries."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from paramcount.errors import ParamcountError, make_printable, quote
from paramcount.formats.schema_errors import convert_validation_error
from paramcount.output.files import write_atomically
from paramcount.sizes.setting_keys import select_entry_settings
from paramcount.zoo import catalog
from paramcount.zoo.entries import Entry, Record, Release, Source
from paramcount.zoo.model import Model
from paramcount.zoo.names import RESERVED, index_built_in_spellings, index_spellings, normalize_name
from paramcount.zoo.writing import format_entry

R = TypeVar("R", bound=Record)
FAMILY = "own"  # of entries that were added without one


def make_entry(
    model: Model,
    id: str,
    *,
    source: str,
    name: str = "",
    family: str = FAMILY,
    publisher: str | None = None,
    hf: str | None = None,
) -> Entry:
    """The zoo entry of a model that was read from a config.json. It is unverified and has no published figures.

    Args:
        model: From `load`; every part of it must be counted.
        id: Lower-case letters, digits, dots and hyphens; not the id of a built-in model.
        source: Where the config.json comes from: a URL, a repository or a file.
        name: The display name; the id by default.
        family: The name of the folder.
        publisher: Who published the model.
        hf: The Hugging Face id.

    Raises: ParamcountError if the id or family is invalid or taken, or if the model cannot be an entry.
    """
    check_id(id)
    if not catalog.ID.fullmatch(family):
        raise ParamcountError(f"= {quote(family)}", where="--family", expected=catalog.ID_CHARACTERS)
    reading = model.reading
    if model.entry is not None:
        raise ParamcountError("is a zoo entry already", where=model.id, expected="a config.json")
    if model.original is not None or not reading.document:
        raise ParamcountError("was not read from a config.json", where=model.id, expected="a config.json")
    if reading.scope != "model":
        missing = ", ".join(reading.not_counted)
        raise ParamcountError(f"is counted without {missing}", where=model.id, expected="a model that is counted whole")
    settings = select_entry_settings(model.sizes, reading.document)
    try:
        origin = build_record(Source, id="config", kind="config_json", ref=source, accessed=datetime.date.today())
    except ParamcountError as error:
        raise error.replace(where="--source") from None
    return build_unverified(
        model,
        id,
        origin,
        name=name or id,
        family=family,
        publisher=publisher,
        hf=hf,
        context_length=model.context_length,
        settings=settings or None,
        release=None if reading.document.get("quantization_config") else UNCHANGED,
    )


def build_unverified(model: Model, id: str, source: Source, **fields: Any) -> Entry:
    """An entry with the sizes of a model and these fields, which nobody has checked against anything.

    Raises: ParamcountError for an invalid field.
    """
    usual: dict[str, Any] = {
        "name": id,
        "family": FAMILY,
        "architecture": model.architecture,
        "reference": None if model.reading.head else model.reading.reference,
        "config": model.sizes,
        "release": UNCHANGED,
    }
    return build_record(Entry, id=id, sources=(source,), **usual | fields)


def build_record(kind: type[R], /, **fields: Any) -> R:
    """A block of an entry.

    Raises: ParamcountError for an invalid field.
    """
    try:
        return kind(**fields)
    except ValidationError as error:
        raise convert_validation_error(error, kind) from None


UNCHANGED = Release(legacy_buffers=False, mtp=False, copies=(), quantisation=None)


def check_id(id: str) -> None:
    """Raises: ParamcountError if a new entry cannot have this id."""
    if not catalog.ID.fullmatch(id):
        raise ParamcountError(f"= {quote(id)}", where="--id", expected=catalog.ID_CHARACTERS)
    if id in RESERVED:
        raise ParamcountError(f"= {id} is a command", where="--id", expected="another id")
    if id in catalog.list_families():
        raise ParamcountError(f"= {id} is a family", where="--id", expected="another id")
    if taken := index_built_in_spellings().get(normalize_name(id)):
        raise ParamcountError(f"= {id} names the built-in model {taken}", where="--id", expected="another id")


def write_entry(entry: Entry, folder: Path, *, replace: bool = False) -> Path:
    """Write an entry to FOLDER/<family>/<id>.yaml and return the path.

    Raises: ParamcountError if the file exists, unless `replace`, or if it cannot be written.
    """
    path = folder / str(entry.family) / f"{entry.id}.yaml"
    if path.exists() and not replace:
        raise ParamcountError("exists already", where=make_printable(path), expected="another --id, or --replace")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ParamcountError(f"cannot be created: {error.strerror}", where=make_printable(path.parent)) from None
    write_atomically(str(path), format_entry(entry), option="entry")
    catalog.clear_caches()
    index_spellings.cache_clear()
    return path
