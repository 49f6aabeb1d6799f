"""The column that a name refers to, wherever a user types one: --columns, --sort, --where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from paramcount.costs.columns import RESOURCES, find_resource
from paramcount.counting import Count
from paramcount.errors import ParamcountError, quote
from paramcount.output.tables import format_value
from paramcount.sizes import Sizes
from paramcount.views.compare import CHANGE_COLUMNS, COLUMNS, KNOWN
from paramcount.zoo import Model
from paramcount.zoo.aliases import find_column, find_spoken, fold_heading
from paramcount.zoo.columns import FURTHER_FIELDS, LANGUAGE_PARTS, FieldType, TableField
from paramcount.zoo.what_if import get_size


class FieldSelection(NamedTuple):
    """The columns that a user named, for a table of models."""

    columns: str | None  # their names, separated by commas
    sort: str | None  # the name of one, with - in front for descending
    further: dict[str, TableField]  # {name: column} of those that not every table has


def select_fields(
    models: Sequence[Model], columns: str | None, sort: str | None, others: Iterable[TableField] = ()
) -> FieldSelection:
    """The columns that a user named; `others` are named elsewhere.

    Raises: ParamcountError for an unknown name.
    """
    chosen = [find_field(name.strip(), models) for name in (columns or "").split(",") if name.strip()]
    if columns is not None and not chosen:
        raise ParamcountError(f"= {quote(columns)}", where="columns", expected="names such as total,active")
    key = find_field(sort.removeprefix("-"), models) if sort is not None else None
    fields = [*chosen, *([key] if key else []), *others]
    return FieldSelection(
        ",".join(field.name for field in chosen) or None,
        f"{'-' if sort and sort.startswith('-') else ''}{key.name}" if key else None,
        {field.name: field for field in fields if field.name not in KNOWN},
    )


def find_field(name: str, models: Sequence[Model]) -> TableField:
    """The column that a name refers to: a column or its heading, a size of one of the models or its config.json key, a
    resource, or a weight format, whose column is the bytes of the weights.

    >>> [find_field(name, []).name for name in ("KV heads", "hidden_size", "kv_per_token", "q4_k_m")]
    ['n_kv_heads', 'd_model', 'kv_per_token', 'q4_k_m']

    Raises: ParamcountError for any other name, with the nearest ones.
    """
    has_changes = any(model.original for model in models)
    known = (*COLUMNS, *(CHANGE_COLUMNS if has_changes else ()))
    if name.lower() in known:
        return KNOWN[name.lower()]
    others = (*FURTHER_FIELDS, *RESOURCES)
    by_heading = {fold_heading(text): field for field in others for text in (field.name, field.heading) if text}
    spellings = (fold_heading(name), *find_spoken(name, by_heading))
    found = next((by_heading[spelling] for spelling in spellings if spelling in by_heading), None)
    try:
        return found or KNOWN[find_column(name, known)]
    except ParamcountError as error:
        found = (find_resource(name) or make_size_field(name, models)) if name.strip() else None
        if found is None:
            raise error from None
        return found


def make_size_field(name: str, models: Sequence[Model]) -> TableField | None:
    """The column of a size that some of the models have; None if none has it. Names and keys differ per architecture:
    each model is asked for its own."""
    paths: dict[tuple[type, ...], str] = {}
    types: set[type] = set()
    for model in models:
        if model.config is None:
            continue
        architecture = list_types(model.config)
        if architecture not in paths:
            paths[architecture] = find_path(name, model.config)
        if paths[architecture]:
            types.add(type(get_size(model.config, paths[architecture])))
    named = {path if path == name else strip_part(path) for path in paths.values() if path}
    if not named:
        return None
    type_: FieldType = "flag" if bool in types and int not in types else "integer"

    def compute(model: Model, count: Count | None) -> int | None:
        if model.config is None:
            return None
        path = paths.get(list_types(model.config))
        value = get_size(model.config, path) if path else None if type_ == "flag" else 0
        return value if type(value) in (int, bool) else None

    show = format_value if type_ == "flag" else (lambda value: format_value(value or None))
    (path, *others) = sorted(named)
    label = name if others else path  # architectures that use the name for different sizes
    return TableField(label, type_, "", "A size of the architecture; 0 if it has none.", compute, show=show)


def find_path(name: str, sizes: Sizes) -> str:
    """The path of a size by its path or key, also without that of the language model; "" if there is none."""
    from paramcount.zoo.what_if import find_aliases, list_paths

    aliases = [name] if name in list_paths(sizes) else find_aliases(name, sizes)
    if len(aliases) == 1:
        return aliases[0]
    for part in LANGUAGE_PARTS:
        if isinstance(language := getattr(sizes, part, None), Sizes) and (path := find_path(name, language)):
            return f"{part}.{path}"
    return ""


def strip_part(path: str) -> str:
    """A path without that of the language model.

    >>> strip_part("language.d_kv_lora"), strip_part("vision.d_model")
    ('d_kv_lora', 'vision.d_model')
    """
    part, dot, inner = path.partition(".")
    return strip_part(inner) if dot and part in LANGUAGE_PARTS else path


def list_types(sizes: Sizes) -> tuple[type, ...]:
    """The architecture of a model and those of its language model, which differ from model to model."""
    inner = (getattr(sizes, part, None) for part in LANGUAGE_PARTS)
    return (type(sizes), *(kind for part in inner if isinstance(part, Sizes) for kind in list_types(part)))
