"""Validation errors of a schema as one line: where, what is wrong, what was expected, the nearest name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import ValidationError

from paramcount.errors import (
    FieldName,
    ParamcountError,
    Text,
    describe_integer,
    describe_value,
    find_nearest,
    join_words,
    list_names,
)

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


EXPECTED = {
    "int_type": "an integer", "bool_type": "true or false", "string_type": "a string",
    "string_unicode": "a Unicode string", "model_type": "a mapping", "dict_type": "a mapping", "tuple_type": "a list",
}  # fmt: skip


def convert_validation_error(error: ValidationError, schema: type) -> ParamcountError:
    """The first validation error as one line. Unknown fields come first: they are often a misspelt missing field."""
    errors = sorted(error.errors(include_url=False), key=lambda e: e["type"] != "extra_forbidden")
    first = errors[0]
    steps, fields = _locate(first, schema)
    n_items = next((i for i, step in enumerate(reversed(steps)) if not step.isdecimal()), 0)
    names, items = steps[: len(steps) - n_items], steps[len(steps) - n_items :]
    where: Text = ".".join(items)
    if names:
        where = FieldName(".".join(names)) + "".join(f".{item}" for item in items)
    if first["type"] == "extra_forbidden":
        expected, nearest = list_names(fields, steps[-1]), find_nearest(steps[-1], fields)
        return ParamcountError("unknown field", where=where, expected=expected, nearest=nearest)
    if first["type"] == "missing":
        return ParamcountError("is missing", where=where, expected="a value for every field")
    if first["type"] == "invalid_key":
        return ParamcountError("is not the name of a field", where=where, expected="a string")
    # A field of several types has one error for each of them.
    alternatives = [e for e in errors if _locate(e, schema)[0] == steps]
    expected = join_words(dict.fromkeys(map(_describe_expected, alternatives)))
    return ParamcountError(f"= {describe_value(first['input'])}", where=where, expected=expected)


class HasAnnotation(Protocol):
    """A field of a schema."""

    @property
    def annotation(self) -> Any: ...


def get_fields(schema: object) -> Mapping[str, HasAnnotation]:
    """The fields of a block that a file may have: a model of pydantic, or sizes; none of another type."""
    found: Mapping[str, HasAnnotation] = getattr(schema, "model_fields", None) or getattr(schema, "fields", {})
    return found


def _locate(error: ErrorDetails, schema: type) -> tuple[list[str], list[str]]:
    """The path to a value in the file, without pydantic's names for alternatives, and the valid fields there."""
    steps: list[str] = []
    block = get_fields(schema)
    fields = list(block)
    for step in error["loc"]:
        fields = list(block)
        is_invalid_name = step == error["loc"][-1] and error["type"] in ("extra_forbidden", "invalid_key")
        if isinstance(step, int) or step in block or is_invalid_name:
            steps.append(str(step))
        if step in block:
            annotation = block[str(step)].annotation
            types = (annotation, *getattr(annotation, "__args__", ()))
            block = next(filter(None, map(get_fields, types)), block)
    return steps, fields


def _describe_expected(error: ErrorDetails) -> str:
    if error["type"] in EXPECTED:
        return EXPECTED[error["type"]]
    limits = error.get("ctx", {})
    match error["type"]:
        case "value_error" if isinstance(limits["error"], ParamcountError):
            return limits["error"].expected
        case "greater_than_equal":
            return describe_integer(limits["ge"])
        case "less_than_equal":
            return f"an integer of at most {limits['le']:,}"
        case "string_too_short":
            least = limits["min_length"]
            return f"a string of at least {least} characters" if least > 1 else "a non-empty string"
        case "string_too_long":
            return f"a string of at most {limits['max_length']} characters"
        case "too_long":
            return f"a list of at most {limits['max_length']:,} items"
        case "literal_error":
            return str(limits["expected"])
        case _:
            return error["msg"].removeprefix("Input should be ")
