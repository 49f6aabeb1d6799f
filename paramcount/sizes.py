"""Sizes of an architecture: every field is required; beside it the config.json key it is read from and what an absent key means."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from paramcount.errors import ParamcountError, near, shown

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from paramcount.flow import Data

LARGEST = 2**31
MOST_NAMED = 10_000  # layers, where they are named one by one
Positive = Annotated[int, Field(strict=True, ge=1, le=LARGEST)]
Natural = Annotated[int, Field(strict=True, ge=0, le=LARGEST)]
Flag = Annotated[bool, Field(strict=True)]
Word = Annotated[str, Field(strict=True, min_length=1, max_length=40)]
Indices = Annotated[tuple[Natural, ...], Field(max_length=10_000)]
Words = Annotated[tuple[Word, ...], Field(max_length=10_000)]

REQUIRED: Any = object()


# The config.json key that most architectures read a field from. Where one differs, its own file says so.
USUAL = {
    "vocab_size": "vocab_size",
    "d_model": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "n_kv_heads": "num_key_value_heads",
    "d_head": "head_dim",
    "d_ff": "intermediate_size",
    "d_expert": "moe_intermediate_size",
    "n_active_experts": "num_experts_per_tok",
    "n_routed_experts": "n_routed_experts",
    "n_shared_experts": "n_shared_experts",
    "n_dense_layers": "first_k_dense_replace",
    "n_positions": "n_positions",
    "d_q_lora": "q_lora_rank",
    "d_kv_lora": "kv_lora_rank",
    "d_nope": "qk_nope_head_dim",
    "d_rope": "qk_rope_head_dim",
    "d_v": "v_head_dim",
    "window": "sliding_window",
    "layer_types": "layer_types",
    "cross_attention_layers": "cross_attention_layers",
    "attention_bias": "attention_bias",
    "qkv_bias": "qkv_bias",
    "mlp_bias": "mlp_bias",
    "tie_word_embeddings": "tie_word_embeddings",
}

Absent = Callable[[Mapping[str, Any], Mapping[str, Any]], Any]  # (config.json, sizes read so far) to a size


class Key(NamedTuple):
    """Where a field stands in a config.json."""

    names: tuple[str, ...] | None  # the first one present counts; empty: the one of USUAL; None: it has no key
    absent: Any  # the reference's default, or an Absent
    null_is_absent: bool

    def spellings(self, field: str) -> tuple[str, ...]:
        return () if self.names is None else self.names or (USUAL[field],)


def hf(*names: str, absent: Any = REQUIRED, null_is_absent: bool = False) -> Any:
    """A field and the config.json keys it is read from. `absent` serves config.json alone: in a zoo entry every field is written out."""
    return Field(json_schema_extra={"hf": Key(names, absent, null_is_absent)})  # type: ignore[dict-item]


def derived(absent: Absent) -> Any:
    """A field that no key of config.json gives: the reference works it out."""
    return Field(json_schema_extra={"hf": Key(None, absent, False)})  # type: ignore[dict-item]


def key_of(architecture: type[Sizes], field: str) -> Key:
    """Where a field of an architecture stands in a config.json."""
    key: Key = architecture.model_fields[field].json_schema_extra["hf"]  # type: ignore[index,assignment]
    return key


def equal_to(field: str) -> Absent:
    return lambda js, c: c[field]


def d_model_per_head(js: Mapping[str, Any], c: Mapping[str, Any]) -> int:
    """The width of a head where the heads share d_model."""
    d_head: int = c["d_model"] // c["n_heads"]
    return d_head


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
        accepted = ", ".join(map(str, divisors[:24])) + (f", … {b}" if divisors[:24][-1] < b else "")
        raise ParamcountError(f"= {a} does not divide {large} = {b}", where=small, accepted=accepted)


def at_most(c: Sizes, small: str, large: str) -> None:
    if getattr(c, small) > getattr(c, large):
        raise ParamcountError(f"= {getattr(c, small)} is more than {large} = {getattr(c, large)}", where=small, accepted=f"at most {getattr(c, large)}")


def heads_fill(c: Any) -> None:
    """For architectures whose reference cuts d_model into heads and nothing else."""
    if c.n_heads * c.d_head != c.d_model:
        product = f"{c.n_heads} × {c.d_head} = {c.n_heads * c.d_head}"
        raise ParamcountError(f"= {product} is not d_model = {c.d_model}", where="n_heads × d_head", accepted=f"{c.d_model}")


def below(c: Sizes, indices: str, limit: str) -> None:
    """Layer indices, in order, each once and inside the model."""
    found, n = getattr(c, indices), getattr(c, limit)
    if n > MOST_NAMED:
        raise ParamcountError(f"= {n} beside {indices}", where=limit, accepted=f"at most {MOST_NAMED:,} layers where they are named one by one")
    if list(found) != sorted(set(found)) or (found and found[-1] >= n):
        listed = ", ".join([*map(str, found[:8]), *(["…"] if len(found) > 8 else [])])
        raise ParamcountError(f"= [{listed}] for {limit} = {n}", where=indices, accepted=f"layer indices in rising order, each once, below {n}")


def one_of_each(c: Sizes, words: str, limit: str, known: tuple[str, ...]) -> None:
    """One word a layer, all of them known."""
    found, n = getattr(c, words), getattr(c, limit)
    for i, word in enumerate(found):
        if word not in known:
            raise ParamcountError(f"= {shown(word)}", where=f"{words}.{i}", accepted=", ".join(known), nearest=near(word, known))
    if len(found) != n:
        raise ParamcountError(f"names {len(found)} layers, {limit} = {n}", where=words, accepted="one word a layer")


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
    consistent(sizes)
    return sizes


def consistent(sizes: Sizes) -> None:
    """Raises where sizes contradict each other, those of an inner config too."""
    fields = type(sizes).model_fields
    for rule, small, large in RULES:
        if small in fields and large in fields:
            rule(sizes, small, large)
    sizes.check()
    for name in fields:
        if isinstance(inner := getattr(sizes, name), Sizes):
            try:
                consistent(inner)
            except ParamcountError as error:
                raise error.inside(name) from None


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
        key = key_of(architecture, field)
        names = key.spellings(field)
        name = next((k for k in names if k in config and not (key.null_is_absent and config[k] is None)), None)
        if name is not None:
            values[field], origin[field] = config[name], name
            unread.discard(name)
        elif key.absent is REQUIRED:
            raise ParamcountError("is missing", where=names[0], accepted=" or ".join(names))
        elif callable(key.absent):
            values[field], origin[field] = key.absent(config, values), "derived"
        else:
            values[field], origin[field] = key.absent, "default"
    return values, origin, unread


def from_pydantic(error: ValidationError, schema: type[BaseModel]) -> ParamcountError:
    """The first thing a schema refused, as one line. An unknown field comes first: it is often the missing one, misspelt."""
    errors = sorted(error.errors(include_url=False), key=lambda e: e["type"] != "extra_forbidden")
    first = errors[0]
    steps, known = _place(first, schema)
    where = ".".join(steps)
    if first["type"] == "extra_forbidden":
        return ParamcountError("is not a field", where=where, accepted=", ".join(known), nearest=near(steps[-1], known))
    if first["type"] == "missing":
        return ParamcountError("is missing", where=where, accepted="every field written out")
    if first["type"] == "invalid_key":
        return ParamcountError("is not a field", where=where, accepted="names of fields")
    alike = [e for e in errors if _place(e, schema)[0] == steps]  # a field of several types has an error for each of them
    return ParamcountError(f"= {shown(first['input'])}", where=where, accepted=" or ".join(dict.fromkeys(map(_accepted, alike))))


def _place(error: ErrorDetails, schema: type[BaseModel]) -> tuple[list[str], list[str]]:
    """The steps to a value as a file has them, without the names pydantic gives to alternatives, and the fields known there."""
    steps: list[str] = []
    block, known = schema, list(schema.model_fields)
    for step in error["loc"]:
        known = list(block.model_fields)
        if isinstance(step, int) or step in block.model_fields or (step == error["loc"][-1] and error["type"] in ("extra_forbidden", "invalid_key")):
            steps.append(str(step))
        if step in block.model_fields:
            annotation = block.model_fields[str(step)].annotation
            types = (annotation, *getattr(annotation, "__args__", ()))
            block = next((t for t in types if isinstance(t, type) and issubclass(t, BaseModel)), block)
    return steps, known


def _accepted(error: ErrorDetails) -> str:
    limits = error.get("ctx", {})
    match error["type"]:
        case "value_error" if isinstance(limits["error"], ParamcountError):
            return limits["error"].accepted
        case "greater_than_equal":
            return f"a whole number from {limits['ge']}"
        case "less_than_equal":
            return f"a whole number up to {limits['le']:,}"
        case "int_type":
            return "a whole number"
        case "bool_type":
            return "true or false"
        case "string_type":
            return "a text"
        case "string_unicode":
            return "a text in Unicode"
        case "string_too_short" | "string_too_long":
            return f"a text of {limits.get('min_length', 'at most')} {limits.get('max_length', 'or more')} characters"
        case "too_long":
            return f"a list of at most {limits['max_length']:,}"
        case "model_type" | "dict_type":
            return "a mapping"
        case "tuple_type":
            return "a list"
        case "literal_error":
            return str(limits["expected"])
        case _:
            return error["msg"].removeprefix("Input should be ")


def scattered_dense_layers(js: Mapping[str, Any], c: Mapping[str, Any]) -> tuple[int, ...]:
    """Qwen's two keys for which layers have no experts."""
    only, step = js.get("mlp_only_layers") or (), js.get("decoder_sparse_step", 1)
    return tuple(i for i in range(c["n_layers"]) if i in only or (i + 1) % step)
