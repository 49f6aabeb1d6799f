"""The schema of a zoo entry: one model, one YAML file, every number with its source."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from paramcount.architectures import ARCHITECTURES, architecture
from paramcount.errors import (
    ParamcountError,
    describe_value,
    find_nearest,
    list_names,
    make_choice_error,
    make_printable,
)
from paramcount.formats.schema_errors import convert_validation_error
from paramcount.formats.strict_yaml import read_yaml
from paramcount.output.numbers import parse_figure
from paramcount.sizes import Flag, Positive, Sizes, Tower, inner_configs
from paramcount.sizes.rules import validate_sizes
from paramcount.sizes.setting_keys import check_setting_keys


def check_one_line(text: str) -> str:
    """The text. Raises: ParamcountError if it has line breaks or other control characters."""
    if not text.isprintable():
        raise ParamcountError(f"= {describe_value(text)}", expected="a string of printable characters")
    return text


def parse_day(value: object) -> datetime.date:
    """A date. Only YYYY-MM-DD is accepted: pydantic would read a number as seconds since 1970."""
    try:
        if isinstance(value, str) and DAY.fullmatch(value):
            return datetime.date.fromisoformat(value)
    except ValueError:  # 2024-02-30
        pass
    if type(value) is datetime.date:
        return value
    raise ParamcountError(f"= {describe_value(value)}", expected="a date such as 2024-07-23")


DAY = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
Day = Annotated[datetime.date, BeforeValidator(parse_day)]
Text = Annotated[str, Field(strict=True, min_length=1, max_length=2000), AfterValidator(check_one_line)]
Total = Annotated[int, Field(strict=True, ge=1, le=10**30)]
SourceKind = Literal[
    "config_json", "mirror", "paper", "model_card", "reference_default", "safetensors_index", "publisher", "secondary"
]
OLD_NAMES = {"active_without_input_table": "active_without_input_embedding"}  # accepted until 0.3
RELEASED_DTYPE = {"dtype": "bfloat16"}  # of the weights that a quantised release does not quantise
OPEN_PARTS = (Sizes, Tower)  # parts of a multimodal model whose class differs from model to model
FigureKind = Annotated[
    Literal[
        "total",
        "active",
        "non_embedding",
        "active_non_embedding",
        "active_without_input_embedding",
        "checkpoint",
        "unspecified",
    ],
    BeforeValidator(lambda what: OLD_NAMES.get(what, what) if isinstance(what, str) else what),
]


class Record(BaseModel):
    """A block of a zoo entry. Unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)  # built once, inside Entry


class Source(Record):
    """A source that the entry cites."""

    id: Text
    kind: SourceKind
    ref: Text
    accessed: Day


class Published(Record):
    """A published figure and what it counts. `value`: an integer, or the figure as printed ("7.61B"). `corrected`: the
    id of the source in which the publisher corrects a figure that was wrong."""

    what: FigureKind
    value: Total | Text
    exact: Flag
    source: Text
    corrected: Text | None = None


class Checked(Record):
    """The count of the reference implementation."""

    reference: Text
    total: Total


class Release(Record):
    """What the released files contain besides the parameters and buffers of the reference implementation."""

    legacy_buffers: Flag  # those that the architecture declares
    mtp: Flag  # the multi-token-prediction layers of the config
    # Tied tensors that are stored again: the LM head; the embedding and LM head of the MTP layers.
    copies: tuple[Literal["lm_head", "mtp"], ...]
    quantisation: Literal["fp8", "mxfp4"] | None


class Claim(Record):
    """A third-party estimate for a model whose sizes are unpublished."""

    what: Text
    value: Text
    by: Text
    source: Text


class Entry(Record):
    """A zoo entry: the validated config with its provenance. An estimate has claims instead of a config."""

    id: Text
    name: Text
    family: Text | None = None
    publisher: Text | None = None
    released: Day | None = None
    hf: Text | None = None
    aliases: tuple[Text, ...] = ()
    estimate: Flag = False
    architecture: Text | None = None
    reference: Text | None = None  # the class that is counted, if it is not the one that the architecture declares
    context_length: Positive | None = None
    config: Sizes | None = None
    settings: dict[str, Any] | None = None  # config.json keys that the forward pass needs and no size is read from
    checked: Checked | Literal["unverified"] = "unverified"
    release: Release | None = None
    # As in the published config.json, in `text_config` if it stands in that section. `release` states FP8 and MXFP4.
    quantization_config: dict[str, Any] | None = None
    claims: tuple[Claim, ...] = ()
    sources: tuple[Source, ...] = ()
    published: tuple[Published, ...] = ()
    notes: tuple[Text, ...] = ()


def parse_entry(document: Mapping[str, Any], default_id: str = "") -> Entry:
    """A zoo entry from its fields. `architecture` and `config` are required, provenance is not.

    Raises: ParamcountError for an invalid entry, naming the field.
    """
    fields = dict(document)
    if default_id and "id" not in fields:
        fields["id"] = default_id
    fields.setdefault("name", fields.get("id"))
    if fields.get("estimate") is not True:
        for name in ("architecture", "config"):
            if fields.get(name) is None:
                raise ParamcountError(
                    "is missing", where=name, expected="architecture and config, or estimate: true and claims"
                )
        try:
            sizes_class = architecture(fields["architecture"])
        except ParamcountError as error:
            raise error.add_block("architecture") from None
        if not isinstance(fields["config"], Mapping):
            found = f"= {describe_value(fields['config'])}"
            raise ParamcountError(found, where="config", expected="a mapping of sizes")
        try:
            fields["config"] = parse_sizes(sizes_class, fields["config"])
        except ParamcountError as error:
            raise error.add_block("config") from None
    elif fields.get("config") is not None:
        raise ParamcountError("is set in an estimate", where="config", expected="claims only")
    try:
        entry = Entry.model_validate(fields)
    except ValidationError as error:
        raise convert_validation_error(error, Entry) from None
    check_citations(entry)
    check_quantization_config(entry)
    if entry.reference is not None:
        check_reference(entry.config, entry.reference)
    if entry.config is not None and entry.settings:
        check_setting_keys(entry.config, entry.settings)
    for i, figure in enumerate(entry.published):
        try:
            parse_figure(figure.value)
        except ParamcountError as error:
            raise error.add_location(f"published.{i}.value") from None
    return entry


def list_storage_keys(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config.json keys that a `quantization_config` of an entry stands for."""
    block = {"quantization_config": config.get("text_config", config)}
    return RELEASED_DTYPE | ({"text_config": block} if "text_config" in config else block)


def check_quantization_config(entry: Entry) -> None:
    """Raises: ParamcountError if paramcount cannot read how the released weights are quantised."""
    if entry.quantization_config is None:
        return
    from paramcount.counting.quantisation.storage import find_plan

    if entry.config is None:
        raise ParamcountError("is set in an estimate", where="quantization_config", expected="claims only")
    if entry.release is not None and entry.release.quantisation is not None:
        raise ParamcountError("is set twice", where="quantization_config", expected="it or release.quantisation")
    try:
        find_plan(None, list_storage_keys(entry.quantization_config))
    except ParamcountError as error:
        raise error.add_block("quantization_config") from None


def check_reference(sizes: Sizes | None, reference: str) -> None:
    """Raises: ParamcountError if the architecture of these sizes has no class of this name."""
    from paramcount.architectures.classes import list_equivalent_classes

    if sizes is None:
        raise ParamcountError("is set in an estimate", where="reference", expected="claims only")
    if reference not in (classes := list_equivalent_classes(type(sizes))):
        raise make_choice_error(reference, classes, where="reference")


def parse_sizes(sizes_class: type[Sizes], config: Mapping[str, Any]) -> Sizes:
    """The sizes in a `config` block.

    The block of a language model or vision encoder that differs from model to model names its `architecture` first.
    """
    values = dict(config)
    for field, inner in inner_configs(sizes_class).items():
        if inner in OPEN_PARTS and isinstance(values.get(field), Mapping):
            block = dict(values[field])
            try:
                values[field] = parse_sizes(find_named_part(inner, block.pop("architecture", None)), block)
            except ParamcountError as error:
                raise error.add_block(field) from None
    return validate_sizes(sizes_class, values)


def find_named_part(kind: type[Sizes], name: object) -> type[Sizes]:
    """The class of a part; errors name the field."""
    from paramcount.architectures.encoders import ENCODERS, find_part

    if name is None:
        example = "qwen2" if kind is Sizes else next(iter(ENCODERS))
        raise ParamcountError("is missing", where="architecture", expected=f"a model type such as {example}")
    try:
        return find_part(kind, name)
    except ParamcountError as error:
        raise error.add_block("architecture") from None


def dump_sizes(sizes: Sizes) -> dict[str, Any]:
    """The `config` block of these sizes: what `parse_sizes` reads."""
    values = sizes.to_dict(with_defaults=False)
    for field, inner in inner_configs(type(sizes)).items():
        part = getattr(sizes, field)
        if isinstance(part, Sizes):
            named = {"architecture": name_part(inner, type(part))} if inner in OPEN_PARTS else {}
            values[field] = named | dump_sizes(part)
    return values


def name_part(kind: type[Sizes], part: type[Sizes]) -> str:
    """The first model type of a class, as `find_part` takes it."""
    from paramcount.architectures.encoders import ENCODERS

    names = ARCHITECTURES if kind is Sizes else ENCODERS
    where = f"{part.__module__.rpartition('.')[2]}.{part.__name__}"
    return next(name for name, place in names.items() if place == where)


def check_citations(entry: Entry) -> None:
    """Raises: ParamcountError if two sources have the same id, or if a figure cites a source that does not exist."""
    ids: set[str] = set()
    for i, source in enumerate(entry.sources):
        if source.id in ids:
            found = f"= {describe_value(source.id)} is used twice"
            raise ParamcountError(found, where=f"sources.{i}.id", expected="unique ids")
        ids.add(source.id)
    blocks: dict[str, tuple[Published | Claim, ...]] = {"published": entry.published, "claims": entry.claims}
    cited = [(f"{block}.{i}.source", item.source) for block, items in blocks.items() for i, item in enumerate(items)]
    cited += [
        (f"published.{i}.corrected", figure.corrected) for i, figure in enumerate(entry.published) if figure.corrected
    ]
    for where, id in cited:
        if id not in ids:
            raise ParamcountError(
                f"= {describe_value(id)}",
                where=where,
                expected=list_names(sorted(ids), id) or "the id of a source",
                nearest=find_nearest(id, ids),
            )


def read_entry(path: Path) -> Entry:
    """A zoo entry from a YAML file; `id` defaults to the file name."""
    document = read_yaml(path)
    try:
        return parse_entry(document, path.stem)
    except ParamcountError as error:
        raise error.add_location(make_printable(path)) from None
