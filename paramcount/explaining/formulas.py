"""Counts as polynomials in named sizes, for a model or for an architecture with the given flags."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import prod

import paramcount.zoo as zoo
from paramcount.architectures import ARCHITECTURES, architecture
from paramcount.counting.components import COMPONENTS, PARTS
from paramcount.counting.count import build_count
from paramcount.counting.sum_weights import STRUCTURE_ERRORS, Sums, list_numbers, sum_weights
from paramcount.errors import ParamcountError, describe_value, find_nearest, list_names, locate_errors, make_printable
from paramcount.explaining.architecture import check_structure, make_open_sizes, sum_architecture
from paramcount.explaining.pieces import walk_model
from paramcount.sizes import Sizes
from paramcount.sizes.values import flatten
from paramcount.symbolic.polynomials import Condition, Polynomial, decide_by, to_polynomial
from paramcount.zoo import Model, count_model
from paramcount.zoo.names import find_id
from paramcount.zoo.what_if import change_sizes

# The integer attributes of a count, in addition to its components, details and parts.
COUNTS = (
    "total", "active", "active_min", "non_embedding", "active_non_embedding", "active_without_input_embedding",
    "active_without_input_table", "language_model",
    "buffers", "legacy_buffers", "mtp", "mtp_buffers", "mtp_copies", "bytes_fp32", "bytes_bf16",
)  # fmt: skip


def build_architecture_formula(name: str, of: str, structure: Mapping[str, object]) -> Polynomial:
    """A count of an architecture as a polynomial.

    Raises: ParamcountError if a flag that the count depends on is missing.
    """
    cls = architecture(name)
    with locate_errors(make_printable(name, 60)):
        values = check_structure(cls, dict(flatten(structure)))
        sums, conditions = sum_architecture(cls, values)
    formula = select_count(sums, make_open_sizes(cls, values, {}), cls, of)
    return Polynomial(formula.terms, conditions)


def find_architecture(spec: object) -> str | None:
    """The name of the architecture that a string or mapping refers to; None if it refers to a model."""
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


def add_architectures(error: ParamcountError, name: object) -> ParamcountError:
    """The error for an unknown model, extended by the nearest architectures."""
    nearest = find_nearest(name, ARCHITECTURES) if isinstance(name, str) else ()
    if not nearest:
        return error
    expected = f"{error.expected}; or the name of an architecture"
    return error.replace(expected=expected, nearest=dict.fromkeys((*error.nearest, *nearest)))


def build_model_formula(model: Model, of: str, structure: Mapping[str, object]) -> Polynomial:
    """A count of a model as a polynomial. Sizes in `structure` replace the sizes of the model and stay numbers."""
    changes = dict(flatten(structure))
    if changes:
        model = change_sizes(model, changes)
    if of == "mtp" and count_model(model).mtp is None:
        raise ParamcountError("the size of the MTP layers is unknown", where=model.id)
    fixed = frozenset(path for path, value in changes.items() if type(value) is int)
    c, sums, conditions = sum_symbols(model.sizes, model.reading.head, fixed)
    return Polynomial(select_count(sums, c, type(model.sizes), of, model.sizes).terms, conditions)


@lru_cache(maxsize=8)  # each count of a model needs the same
def sum_symbols(sizes: Sizes, head: bool, fixed: frozenset[str]) -> tuple[Sizes, Sums, tuple[Condition, ...]]:
    """A stand-in for sizes with symbols except for those in `fixed`, its sums, and the conditions for them."""
    c = walk_model(sizes, head, fixed).c
    with decide_by(list_numbers(sizes)) as decisions:
        sums = sum_weights(c, head)
    return c, sums, decisions.conditions


def select_count(sums: Sums, c: Sizes, cls: type[Sizes], of: str, sizes: Sizes | None = None) -> Polynomial:
    if not isinstance(of, str):
        raise ParamcountError(f"= {describe_value(of)}", where="of", expected="a string: total, active, qkv, qkv.q, …")
    if of == "legacy_buffers":
        return sum_legacy_buffers(c, cls, sizes)
    count = build_count(sums, None, "", True)
    if of in COUNTS:
        return to_polynomial(getattr(count, of))
    if of in COMPONENTS or of in count.details:
        return to_polynomial(count.components[of] if of in COMPONENTS else count.details[of])
    if of in count.parts:
        return to_polynomial(count.parts[of])
    details = [n for name, n in count.details.items() if name.startswith(f"{of}.")]  # such as "vision.mlp"
    if not details:
        names = (*COUNTS, *COMPONENTS, *count.details, *count.parts)
        raise ParamcountError(
            f"= {describe_value(of)}",
            where="of",
            expected=list_names((*COUNTS, *COMPONENTS, *PARTS[:-1]), of),
            nearest=find_nearest(of, names),
        )
    return to_polynomial(sum(details))


def sum_legacy_buffers(c: Sizes, cls: type[Sizes], sizes: Sizes | None) -> Polynomial:
    """The buffers that only older files contain; a plain number if their shapes are not polynomials in the sizes."""
    try:
        rows = cls.legacy_buffers(c)
    except STRUCTURE_ERRORS:
        if sizes is None:
            problem = "= legacy_buffers is not a polynomial in the sizes"
            raise ParamcountError(problem, where="of", expected="a model instead of an architecture") from None
        rows = sizes.legacy_buffers()
    return to_polynomial(sum(prod(shape) * copies for _, shape, copies in rows))
