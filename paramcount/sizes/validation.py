"""Validation of sizes where they are read: a pydantic model for each architecture, made when it is first needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NotRequired, TypeVar

from pydantic import ConfigDict, GetCoreSchemaHandler, SerializationInfo, TypeAdapter, ValidationError
from pydantic_core import CoreSchema, core_schema
from typing_extensions import TypedDict

from paramcount.formats.schema_errors import convert_validation_error
from paramcount.sizes.fields import Sizes

S = TypeVar("S", bound=Sizes)


@cache
def make_validator(architecture: type[Sizes]) -> TypeAdapter[Mapping[str, Any]]:
    return TypeAdapter(make_schema(architecture))


@cache
def make_schema(architecture: type[Sizes]) -> Any:
    """The fields of an architecture with their types and limits. Unknown fields are errors."""
    fields: dict[str, Any] = {
        name: field.annotation if field.is_required else NotRequired[field.annotation]
        for name, field in architecture.fields.items()
    }
    make: Any = TypedDict  # mypy knows no fields that are made at run time
    schema = make(architecture.__name__, fields)
    schema.__pydantic_config__ = ConfigDict(extra="forbid")
    return schema


def parse_fields(architecture: type[S], values: object) -> S:
    """The sizes with these values. Their consistency is not checked.

    Raises: ParamcountError that names the field, what was found, what is expected and the nearest field.
    """
    if isinstance(values, architecture):
        return values
    try:
        return architecture(**make_validator(architecture).validate_python(values))
    except ValidationError as error:
        raise convert_validation_error(error, architecture) from None


def make_part_schema(kind: type[Sizes], handler: GetCoreSchemaHandler) -> CoreSchema:
    """The schema of a field that is a part: sizes of its class, or a mapping of them."""

    def validate(value: object, validate_mapping: Callable[[object], Mapping[str, Any]]) -> Sizes:
        return value if isinstance(value, kind) else kind(**validate_mapping(value))

    serialization = core_schema.plain_serializer_function_ser_schema(dump_part, info_arg=True)
    return core_schema.no_info_wrap_validator_function(
        validate, handler.generate_schema(make_schema(kind)), serialization=serialization
    )


def dump_part(sizes: Sizes, info: SerializationInfo) -> dict[str, Any]:
    return drop_none(sizes.to_dict()) if info.exclude_none else sizes.to_dict()


def drop_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: drop_none(value) if isinstance(value, Mapping) else value
        for name, value in values.items()
        if value is not None
    }
