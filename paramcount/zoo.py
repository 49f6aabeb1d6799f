"""The zoo: one model, one YAML file, every number with its source."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping, Set
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, SerializeAsAny, ValidationError

from paramcount.architectures import architecture
from paramcount.errors import ParamcountError, near, printable, quoted, shown
from paramcount.figures import parse
from paramcount.rules import validated
from paramcount.schema_errors import from_pydantic
from paramcount.sizes import Flag, Origin, Positive, Sizes
from paramcount.strict_yaml import load_file

HERE = Path(__file__).parent
CONFIGS = HERE / "configs" if (HERE / "configs").is_dir() else HERE.parent / "configs"  # in the wheel, or beside a checkout


def one_line(text: str) -> str:
    if not text.isprintable():
        raise ParamcountError(f"= {shown(text)}", accepted="a text of printable characters")
    return text


def day(value: object) -> datetime.date:
    """A date, written out: a number would be read as seconds since 1970."""
    try:
        if isinstance(value, str) and DAY.fullmatch(value):
            return datetime.date.fromisoformat(value)
    except ValueError:  # 2024-02-30
        pass
    if type(value) is datetime.date:
        return value
    raise ParamcountError(f"= {shown(value)}", accepted="a date such as 2024-07-23")


DAY = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
Day = Annotated[datetime.date, BeforeValidator(day)]
Text = Annotated[str, Field(strict=True, min_length=1, max_length=2000), AfterValidator(one_line)]
Total = Annotated[int, Field(strict=True, ge=1, le=10**30)]
SourceKind = Literal["config_json", "mirror", "paper", "model_card", "reference_default", "safetensors_index", "publisher", "secondary"]
Counted = Literal["total", "active", "non_embedding", "active_non_embedding", "active_without_input_table", "checkpoint", "unspecified"]
SIZES_IN_WORDS = ("small", "medium", "large", "xl")
ID = re.compile(r"[a-z0-9][a-z0-9.\-]{0,99}")


class Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)  # built once, inside Model


class Source(Entry):
    """Where a fact comes from."""

    id: Text
    kind: SourceKind
    ref: Text
    accessed: Day


class Published(Entry):
    """A figure somebody published, and what it counts. `value`: a whole number, or as printed ("7.61B")."""

    what: Counted
    value: Total | Text
    exact: Flag
    source: Text


class Checked(Entry):
    """The reference's own count."""

    reference: Text
    total: Total


class Release(Entry):
    """What the released files hold besides the reference's parameters and buffers."""

    legacy_buffers: Flag  # those that the architecture declares
    mtp: Flag  # the multi-token-prediction layers of the config
    copies: tuple[Literal["lm_head", "mtp"], ...]  # tied tensors stored again: the head, the MTP layers' table and head
    quantisation: Literal["fp8", "mxfp4"] | None


class Claim(Entry):
    """What somebody says of a model whose sizes nobody published."""

    what: Text
    value: Text
    by: Text
    source: Text


class Reading(NamedTuple):
    """What became of a config.json: which class was counted, and each key."""

    reference: str  # the class
    head: bool = True  # whether it has the language model's head
    scope: str = "model"  # model | language_model
    not_counted: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()  # the result may not be what was meant
    notes: tuple[str, ...] = ()  # harmless
    origin: Mapping[str, Origin] = {}  # of each field
    document: Mapping[str, Any] = {}  # the parsed config.json
    used: Set[str] = frozenset()  # its keys that a size was read or derived from, or that were checked
    unread: Mapping[str, Any] = {}
    untraced: tuple[str, ...] = ()  # what the config says of the flow that no field knows, nor any weight depends on


class Model(Entry):
    """A zoo entry: the validated config with its provenance. Of an estimate, claims and no config. What was read from a config.json
    has no provenance but its `reading`."""

    id: Text
    name: Text
    family: Text | None = None
    publisher: Text | None = None
    released: Day | None = None
    hf: Text | None = None
    aliases: tuple[Text, ...] = ()
    estimate: Flag = False
    architecture: Text | None = None
    context_length: Positive | None = None
    config: SerializeAsAny[Sizes] | None = None
    checked: Checked | Literal["unverified"] = "unverified"
    release: Release | None = None
    claims: tuple[Claim, ...] = ()
    sources: tuple[Source, ...] = ()
    published: tuple[Published, ...] = ()
    notes: tuple[Text, ...] = ()
    _reading: Reading | None = PrivateAttr(default=None)
    _original: Model | None = PrivateAttr(default=None)
    _changes: Mapping[str, tuple[Any, Any]] = PrivateAttr(default={})

    @property
    def original(self) -> Model | None:
        """The model that this one is with some sizes changed; None where it is as it was found."""
        return self._original

    @property
    def changes(self) -> Mapping[str, tuple[Any, Any]]:
        """{size: (in the original, now)} of what was set, also where both are equal; a size of an inner config has a dot in its name."""
        return self._changes

    @property
    def reading(self) -> Reading:
        """What became of the config.json; of a zoo entry, that all of its reference was counted."""
        return self._reading or Reading(self.sizes.reference.partition(" ")[0])

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may be wrong with the config.json that the model was read from."""
        return self._reading.warnings if self._reading else ()

    @property
    def sizes(self) -> Sizes:
        """The config, which an estimate has not.

        Raises: ParamcountError for an estimate.
        """
        if self.config is None:
            raise ParamcountError(
                "is an estimate: claims and no sizes, so there is nothing to count",
                where=self.id,
                accepted=f"paramcount {self.id} --estimates shows the claims",
            )
        return self.config


def from_mapping(document: Mapping[str, Any], default_id: str = "") -> Model:
    """A zoo entry from its fields. `architecture` and `config` are required, provenance is not.

    Raises: ParamcountError naming the field, what was found, what is accepted and the nearest.
    """
    fields = dict(document)
    if default_id and "id" not in fields:
        fields["id"] = default_id
    fields.setdefault("name", fields.get("id"))
    if fields.get("estimate") is not True:
        for name in ("architecture", "config"):
            if fields.get(name) is None:
                raise ParamcountError("is missing", where=name, accepted="architecture and config, or estimate: true and claims")
        try:
            found = architecture(fields["architecture"])
        except ParamcountError as error:
            raise error.inside("architecture") from None
        if not isinstance(fields["config"], Mapping):
            raise ParamcountError(f"= {shown(fields['config'])}", where="config", accepted="a mapping of sizes")
        try:
            fields["config"] = validated(found, dict(fields["config"]))
        except ParamcountError as error:
            raise error.inside("config") from None
    elif fields.get("config") is not None:
        raise ParamcountError("stands in an estimate", where="config", accepted="claims")
    try:
        model = Model.model_validate(fields)
    except ValidationError as error:
        raise from_pydantic(error, Model) from None
    known: set[str] = set()
    for i, source in enumerate(model.sources):
        if source.id in known:
            raise ParamcountError(f"= {shown(source.id)} a second time", where=f"sources.{i}.id", accepted="every id once")
        known.add(source.id)
    cited: dict[str, tuple[Published | Claim, ...]] = {"published": model.published, "claims": model.claims}
    for place, items in cited.items():
        for i, item in enumerate(items):
            if item.source not in known:
                accepted = ", ".join(sorted(known)) or "an id of sources"
                raise ParamcountError(f"= {shown(item.source)}", where=f"{place}.{i}.source", accepted=accepted, nearest=near(item.source, known))
    for i, figure in enumerate(model.published):
        try:
            parse(figure.value)
        except ParamcountError as error:
            raise error.at(f"published.{i}.value") from None
    return model


def from_file(path: Path) -> Model:
    """A zoo entry from a YAML file; without an `id` the file's name is it."""
    document = load_file(path)
    try:
        return from_mapping(document, path.stem)
    except ParamcountError as error:
        raise error.at(printable(path)) from None


@cache
def _load(id: str, path: Path) -> Model:
    model = from_file(path)
    if (model.id, model.family) != (id, path.parent.name):
        raise ParamcountError(f"id {model.id} of family {model.family} stands in {path.parent.name}/{path.name}", accepted="configs/<family>/<id>.yaml")
    return model


def path_of(id: str) -> Path | None:
    """The file of a zoo id; None where there is none. Nothing outside configs/ is ever looked at."""
    if not ID.fullmatch(id):
        return None
    return next((folder / f"{id}.yaml" for folder in families().values() if (folder / f"{id}.yaml").is_file()), None)


@lru_cache(maxsize=1)
def families() -> dict[str, Path]:
    """{family: its folder}

    Raises: ParamcountError if the installation lacks the zoo.
    """
    try:
        found = {folder.name: folder for folder in sorted(CONFIGS.iterdir()) if folder.is_dir()}
    except OSError as error:
        raise ParamcountError(f"the zoo cannot be read: {error.strerror}", where=printable(CONFIGS), accepted="a complete installation of paramcount") from None
    if not found:
        raise ParamcountError("the zoo is empty", where=printable(CONFIGS), accepted="a complete installation of paramcount")
    return found


def ids(family: str | None = None) -> Iterator[str]:
    """The ids of a family, or all, smallest number first: gpt2, qwen2.5-7b, qwen2.5-14b."""
    for name, folder in families().items():
        if family in (None, name):
            yield from sorted((path.stem for path in folder.glob("*.yaml")), key=natural)


def natural(text: str) -> list[tuple[bool, float, str]]:
    """A sort key that reads numbers as numbers and sizes in words as sizes: 9b before 14b, 500m before 1b, medium before large."""
    pieces = re.findall(r"\d+(?:\.\d+)?|\D+", text)
    key = []
    for i, piece in enumerate(pieces):
        if piece[0].isdigit():
            following = pieces[i + 1][:1] if i + 1 < len(pieces) else ""
            last = i + 1 >= len(pieces) or not pieces[i + 1][1:2].isalpha()
            key.append((False, float(piece) * {"m": 1e6, "b": 1e9}.get(following if last else "", 1), ""))
        else:
            key.append((True, float(SIZES_IN_WORDS.index(piece[1:])) if piece[1:] in SIZES_IN_WORDS else 0.0, piece))
    return key


def entry(id: str) -> Model:
    """A zoo entry by its id.

    Raises: ParamcountError where there is none, or its file is wrong.
    """
    path = path_of(id)
    if path is None:
        raise ParamcountError(f"no model {quoted(id)} in the zoo")
    return _load(id, path)


def names_of(id: str) -> list[str]:
    """What an entry is called: id, name, Hugging Face id, aliases. Read from the head of its file alone, as every file is looked at."""
    path = path_of(id)
    head = load_file(path, until="architecture") if path else {}
    aliases = head.get("aliases")
    return [name for name in (id, head.get("name"), head.get("hf"), *(aliases if isinstance(aliases, list) else [])) if isinstance(name, str)]
