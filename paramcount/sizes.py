"""Sizes of an architecture: every field is required; beside it the config.json key it is read from and what an absent key means."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from paramcount.errors import ParamcountError, near, shown

if TYPE_CHECKING:
    from paramcount.flow import Data

LARGEST = 2**31
Positive = Annotated[int, Field(strict=True, ge=1, le=LARGEST)]
Natural = Annotated[int, Field(strict=True, ge=0, le=LARGEST)]
Flag = Annotated[bool, Field(strict=True)]
Word = Annotated[str, Field(strict=True, min_length=1, max_length=40)]
Indices = Annotated[tuple[Natural, ...], Field(max_length=10_000)]
Words = Annotated[tuple[Word, ...], Field(max_length=10_000)]

REQUIRED: Any = object()


class Key(NamedTuple):
    """Where a field stands in a config.json."""

    names: tuple[str, ...]  # the first one present counts
    absent: Any  # the reference's default, or a function of (config.json, sizes read so far)
    null_is_absent: bool


def hf(*names: str, absent: Any = REQUIRED, null_is_absent: bool = False) -> Any:
    """A field with its config.json keys. `absent` serves config.json alone: in a zoo entry every field is written out."""
    return Field(json_schema_extra={"hf": Key(names, absent, null_is_absent)})  # type: ignore[dict-item]


class Sizes(BaseModel):
    """The config of one architecture. A subclass adds the fields and `forward`, the forward pass in shapes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    reference: ClassVar[str] = ""  # the reference implementation's class, or who published the modelling code
    section: ClassVar[str | None] = None  # the part of a composite config.json these fields are read from

    def forward(c, tokens: Data) -> Data:
        raise NotImplementedError

    def mtp(c, tokens: Data, x: Data) -> Data | None:
        """Multi-token-prediction layers on the last hidden state, beside the model; None where there are none."""
        return None

    def legacy_buffers(c) -> tuple[tuple[str, tuple[int, ...], int], ...]:
        """What older released files hold besides, as far as no operation reads it: (name, shape, how many)."""
        return ()

    def check(c) -> None:
        """Raises where the sizes contradict each other in a way that only this architecture forbids."""


def divides(c: Sizes, small: str, large: str) -> None:
    a, b = getattr(c, small), getattr(c, large)
    if b % a:
        divisors = [d for d in range(1, min(b, 4096) + 1) if b % d == 0]
        raise ParamcountError(f"{small} = {a} does not divide {large} = {b}", accepted=", ".join(map(str, divisors[:24])))


def at_most(c: Sizes, small: str, large: str) -> None:
    if getattr(c, small) > getattr(c, large):
        raise ParamcountError(f"{small} = {getattr(c, small)} is more than {large} = {getattr(c, large)}", accepted=f"at most {getattr(c, large)}")


def heads_fill(c: Any) -> None:
    """For architectures whose reference cuts d_model into heads and nothing else."""
    if c.n_heads * c.d_head != c.d_model:
        raise ParamcountError(f"n_heads × d_head = {c.n_heads} × {c.d_head} = {c.n_heads * c.d_head} is not d_model = {c.d_model}", accepted="their product")


def below(c: Sizes, indices: str, limit: str) -> None:
    """Layer indices, in order, each once and inside the model."""
    found, n = getattr(c, indices), getattr(c, limit)
    if list(found) != sorted(set(found)) or (found and found[-1] >= n):
        raise ParamcountError(f"{indices} = {list(found)[:8]} for {limit} = {n}", accepted=f"layer indices in rising order, each once, below {n}")


def one_of_each(c: Sizes, words: str, limit: str, known: tuple[str, ...]) -> None:
    """One word a layer, all of them known."""
    found, n = getattr(c, words), getattr(c, limit)
    for word in found:
        if word not in known:
            raise ParamcountError(f"{words} holds {shown(word)}", accepted=", ".join(known), nearest=near(word, known))
    if len(found) != n:
        raise ParamcountError(f"{words} names {len(found)} layers, {limit} = {n}", accepted="one word a layer")


# Rules that hold wherever both fields exist.
RULES: tuple[tuple[Callable[[Sizes, str, str], None], str, str], ...] = (
    (divides, "n_kv_heads", "n_heads"),
    (at_most, "n_active_experts", "n_routed_experts"),
    (at_most, "n_dense_layers", "n_layers"),
    (below, "dense_layers", "n_layers"),
    (below, "cross_attention_layers", "n_layers"),
)


def validated(architecture: type[Sizes], config: object) -> Sizes:
    """The sizes of a zoo entry's `config` block.

    Raises: ParamcountError that names the field, what was found, what is accepted and the nearest field.
    """
    try:
        sizes = architecture.model_validate(config)
    except ValidationError as error:
        raise from_pydantic(error, architecture) from None
    for rule, small, large in RULES:
        if small in architecture.model_fields and large in architecture.model_fields:
            rule(sizes, small, large)
    sizes.check()
    return sizes


def read(architecture: type[Sizes], document: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str], set[str]]:
    """config.json to field values, with the key, `derived` or `default` each came from, and the keys left unread."""
    config = document.get(architecture.section, {}) if architecture.section else document
    values: dict[str, Any] = {}
    origin: dict[str, str] = {}
    unread = set(config)
    for field, info in architecture.model_fields.items():
        inner = info.annotation
        if isinstance(inner, type) and issubclass(inner, Sizes):
            values[field], origin[field] = read(inner, document)[0], inner.section or ""
            continue
        assert isinstance(info.json_schema_extra, dict)
        key: Key = info.json_schema_extra["hf"]  # type: ignore[assignment]
        name = next((k for k in key.names if k in config and not (key.null_is_absent and config[k] is None)), None)
        if name is not None:
            values[field], origin[field] = config[name], name
            unread.discard(name)
        elif key.absent is REQUIRED:
            raise ParamcountError(f"{key.names[0]} is missing", accepted=" or ".join(key.names))
        elif callable(key.absent):
            values[field], origin[field] = key.absent(config, values), "derived"
        else:
            values[field], origin[field] = key.absent, "default"
    return values, origin, unread


def from_pydantic(error: ValidationError, schema: type[BaseModel]) -> ParamcountError:
    """The first thing a schema refused, as one line. An unknown field comes first: it is often the missing one, misspelt."""
    found = sorted(error.errors(include_url=False), key=lambda e: e["type"] != "extra_forbidden")[0]
    where = ".".join(str(step) for step in found["loc"])
    parent: Any = schema
    for step in found["loc"][:-1]:
        annotation = parent.model_fields[step].annotation if hasattr(parent, "model_fields") and step in parent.model_fields else None
        arguments = getattr(annotation, "__args__", ())
        parent = next((a for a in (annotation, *arguments) if isinstance(a, type) and hasattr(a, "model_fields")), parent)
    known, last, limits = list(parent.model_fields), str(found["loc"][-1]) if found["loc"] else "", found.get("ctx", {})
    value = shown(found["input"])
    match found["type"]:
        case "extra_forbidden":
            return ParamcountError("is not a field", where=where, accepted=", ".join(known), nearest=near(last, known))
        case "missing":
            return ParamcountError("is missing", where=where)
        case "greater_than_equal":
            return ParamcountError(value, where=where, accepted=f"a whole number from {limits['ge']}")
        case "less_than_equal":
            return ParamcountError(value, where=where, accepted=f"a whole number up to {limits['le']:,}")
        case "int_type" | "int_parsing" | "int_from_float" | "int_parsing_size":
            return ParamcountError(value, where=where, accepted="a whole number")
        case "bool_type" | "bool_parsing":
            return ParamcountError(value, where=where, accepted="true or false")
        case "string_type":
            return ParamcountError(value, where=where, accepted="a text")
        case "model_type" | "dict_type" | "model_attributes_type":
            return ParamcountError(value, where=where, accepted="a mapping")
        case "tuple_type" | "list_type":
            return ParamcountError(value, where=where, accepted="a list")
        case "literal_error":
            return ParamcountError(value, where=where, accepted=str(limits["expected"]))
        case _:
            message = found["msg"].removeprefix("Value error, ")
            return ParamcountError(f"{value}: {message[:1].lower()}{message[1:]}", where=where)


def scattered_dense_layers(js: Mapping[str, Any], n_layers: int) -> tuple[int, ...]:
    """Qwen's two keys for which layers have no experts."""
    only, step = js.get("mlp_only_layers") or (), js.get("decoder_sparse_step", 1)
    return tuple(i for i in range(n_layers) if i in only or (i + 1) % step)
