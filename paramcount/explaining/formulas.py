"""Counts as polynomials in named sizes: of a model, whose flags are known, or of an architecture, whose flags have to be given."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from types import SimpleNamespace
from typing import Any

from paramcount import zoo
from paramcount.architectures import ARCHITECTURES, architecture
from paramcount.counting.count import COMPONENTS, PARTS, build_count
from paramcount.counting.sum_weights import STRUCTURE_ERRORS, Sums, sum_weights
from paramcount.errors import ParamcountError, describe_value, find_nearest, list_names, make_printable
from paramcount.explaining import architecture as bare
from paramcount.explaining.pieces import to_polynomial, walk_model
from paramcount.sizes import Sizes
from paramcount.symbolic.polynomials import Polynomial
from paramcount.zoo import Model
from paramcount.zoo.names import find_id
from paramcount.zoo.what_if import change_sizes, flatten_changes

# What of a count is a number of parameters or of bytes, besides its components, details and parts.
COUNTS = (
    "total", "active", "active_min", "non_embedding", "active_non_embedding", "active_without_input_embedding",
    "active_without_input_table", "language_model",
    "buffers", "legacy_buffers", "mtp", "mtp_buffers", "mtp_copies", "bytes_fp32", "bytes_bf16",
)  # fmt: skip


def architecture_formula(name: str, of: str, structure: Mapping[str, object]) -> Polynomial:
    """A count of an architecture, whose flags have to be given."""
    cls = architecture(name)
    try:
        known = bare.given(cls, dict(flatten_changes(structure)))
        sums = bare.sums(cls, known)
    except ParamcountError as error:
        raise error.add_location(make_printable(name, 60)) from None
    return picked(sums, bare.Open(cls, known), cls, of)


def names_architecture(spec: object) -> str | None:
    """The architecture that a word or a mapping names; None where it is a model."""
    if isinstance(spec, Mapping) and set(spec) == {"architecture"}:
        name: str = spec["architecture"]
        return name
    if not isinstance(spec, str) or spec not in ARCHITECTURES:
        return None
    try:
        names = zoo.list_names(find_id(spec))
    except ParamcountError:
        return spec
    return None if spec in names or spec in [name.rpartition("/")[2] for name in names] else spec


def with_architectures(error: ParamcountError, name: object) -> ParamcountError:
    """The error of an unknown model that might be an architecture, with the nearest of those too."""
    nearest = find_nearest(name, ARCHITECTURES) if isinstance(name, str) else ()
    if not nearest:
        return error
    expected = f"{error.expected}, or an architecture"
    return error.replace(expected=expected, nearest=dict.fromkeys((*error.nearest, *nearest)))


def model_formula(model: Model, of: str, structure: Mapping[str, object]) -> Polynomial:
    """A count of a model. Sizes in `structure` replace its own and stay numbers."""
    wanted = dict(flatten_changes(structure))
    if wanted:
        model = change_sizes(model, wanted)
    found = walk_model(model.sizes, model.reading.head, frozenset(path for path, value in wanted.items() if type(value) is int))
    return picked(sum_weights(found.c, model.reading.head), found.c, type(model.sizes), of, model.sizes)


def picked(sums: Sums, c: Any, cls: type[Sizes], of: str, sizes: Sizes | None = None) -> Polynomial:
    """One of the numbers of a count."""
    if not isinstance(of, str):
        raise ParamcountError(f"= {describe_value(of)}", where="of", expected="a text: total, active, qkv, qkv.q, …")
    if of == "legacy_buffers":
        return legacy(c, cls, sizes)
    count = build_count(sums, NO_LEGACY, "", True)  # type: ignore[arg-type]
    if of in COUNTS:
        return to_polynomial(getattr(count, of))
    if of in COMPONENTS or of in count.details:
        return to_polynomial(count.components[of] if of in COMPONENTS else count.details[of])
    if of in count.parts:
        return to_polynomial(count.parts[of])
    inside = [n for name, n in count.details.items() if name.startswith(f"{of}.")]  # of "vision.mlp"
    if not inside:
        known = (*COUNTS, *COMPONENTS, *count.details, *count.parts)
        raise ParamcountError(
            f"= {describe_value(of)}", where="of", expected=list_names((*COUNTS, *COMPONENTS, *PARTS[:-1]), of), nearest=find_nearest(of, known)
        )
    return to_polynomial(sum(inside))


NO_LEGACY = SimpleNamespace(legacy_buffers=tuple)


def legacy(c: Any, cls: type[Sizes], sizes: Sizes | None) -> Polynomial:
    """What older released files hold besides. Where that takes more than + and ×, it is a number, which an architecture has not."""
    try:
        rows = cls.legacy_buffers(c)
    except STRUCTURE_ERRORS:
        if sizes is None:
            raise ParamcountError("= legacy_buffers is more than + and × of sizes", where="of", expected="a model in place of its architecture") from None
        rows = sizes.legacy_buffers()
    return to_polynomial(sum(prod(shape) * copies for _, shape, copies in rows))
