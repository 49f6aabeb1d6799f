"""Configurations of a budget: valid sizes with a model's proportions, nearest to a number of parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from paramcount.costs.devices import FITS, MARGIN_DIVISOR, Device
from paramcount.costs.memory import Memory, measure_memory
from paramcount.counting import SCHEMA_VERSION
from paramcount.counting.results import JsonResult, describe_result
from paramcount.errors import Argument, ParamcountError, describe_value
from paramcount.formats.weights.plain import DTYPES as PLAIN
from paramcount.huggingface.validity import Validator
from paramcount.sizes.values import to_json
from paramcount.sweeping.columns import Counter
from paramcount.sweeping.rows import count_rows
from paramcount.sweeping.shapes import (
    N_LAYERS,
    SweptShape,
    choose_vary,
    describe_rules,
    extend_lists,
    list_candidates,
    list_layer_lists,
    make_shape,
)
from paramcount.zoo import Model, count_model
from paramcount.zoo.what_if import change_sizes, resolve_path

DEFAULT_STEP = 128
DEFAULT_WITHIN = 0.05
DEFAULT_LIMIT = 10
OVERHEAD = 10**9  # bytes that a runtime is assumed to take, as `memory` assumes
COUNTS, CACHE = ("total", "active"), "kv_per_token"
MOST_MEASURED = 1000  # candidates whose memory is measured
# A candidate is not measured if this share of its estimated memory exceeds the limit. The estimate is nearly exact in a
# plain format; others keep the embedding in a higher precision, which weighs more in a small model.
SHARE_PLAIN, SHARE_QUANTISED = 0.98, 0.9


class ParameterBudget(NamedTuple):
    """What a configuration must meet."""

    total: int | None = None
    active: int | None = None
    within: float = DEFAULT_WITHIN  # of `total` and `active`
    memory: int | None = None  # bytes of a device on which it must fit
    dtype: str = "bf16"
    context: int | None = None
    overhead: int = OVERHEAD


class Candidate(NamedTuple):
    """A valid configuration that meets the budget."""

    model: Model
    sizes: Mapping[str, Any]  # {path: value} of the sizes that differ from the model's
    total: int
    active: int
    memory: int | None  # bytes of weights, KV cache and overhead; None if memory has no limit

    def __repr__(self) -> str:
        return describe_result(self, "total", "active", "sizes")

    def to_dict(self) -> dict[str, Any]:
        """Its sizes and counts as plain data."""
        sizes = {path: to_json(value) for path, value in self.sizes.items()}
        return {"sizes": sizes, "total": self.total, "active": self.active, "memory": self.memory}


@dataclass(frozen=True, repr=False)
class Sizing(JsonResult):
    """Configurations like a model within a budget, best first, and the rules that they follow."""

    html_table = "paramcount.sweeping.render:build_size_table"

    like: Model
    budget: ParameterBudget
    varied: tuple[str, ...]  # the sizes that no rule derives from others
    rules: tuple[str, ...]
    candidates: tuple[Candidate, ...]

    def __repr__(self) -> str:
        return f"Sizing({len(self.candidates)} configurations like {self.like.id})"

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data for JSON."""
        return {
            "schema_version": SCHEMA_VERSION,
            "id": self.like.id,
            **self.budget._asdict(),
            "rules": list(self.rules),
            "candidates": [candidate.to_dict() for candidate in self.candidates],
        }


def size_model(
    like: Model,
    budget: ParameterBudget,
    vary: Sequence[str] | None = None,
    step: int = DEFAULT_STEP,
    limit: int = DEFAULT_LIMIT,
) -> Sizing:
    """The valid configurations nearest to a budget, with the proportions of a model.

    With a budget of parameters, the nearest come first; with one of memory alone, the largest. `vary`: names of sizes.

    Raises: ParamcountError if no configuration meets the budget, with the nearest total, and for an invalid option.
    """
    check_budget(budget, step, limit)
    try:
        paths = find_paths(like, vary)
        shape = make_shape(like, paths, step)
        rules = describe_rules(shape)
    except ParamcountError as error:
        raise error.add_location(like.id) from None
    rows = count_candidates(like, shape, budget.memory is not None)
    table = sorted(rows, key=lambda row: rank(budget, row))
    found: list[Candidate] = []
    for row in list_likely(like, budget, [row for row in table if is_within(budget, row)]):
        if len(found) == limit:
            break
        candidate = make_candidate(like, budget, row)
        if candidate is not None:
            found.append(candidate)
    if not found:
        raise make_error(like, budget, table)
    return Sizing(like, budget, paths, (*rules, *describe_budget(budget)), tuple(found))


def find_paths(like: Model, vary: Sequence[str] | None) -> tuple[str, ...]:
    """The paths of the sizes that vary.

    Raises: ParamcountError for a name that the model does not have.
    """
    if vary is None:
        return choose_vary(like)
    if isinstance(vary, str) or not vary:
        raise ParamcountError(
            f"= {describe_value(vary)}", where="vary", expected='sizes such as ["d_model", "n_layers"]'
        )
    return tuple(dict.fromkeys(resolve_path(like.sizes, name) for name in vary))


class Row(NamedTuple):
    """A valid candidate before its memory is measured."""

    total: int
    active: int
    kv_per_token: int  # bytes in BF16
    sizes: Mapping[str, Any]


def count_candidates(like: Model, shape: SweptShape, with_cache: bool) -> Iterator[Row]:
    """The valid candidates with their counts, computed on arrays: one table per list of layer types.

    `with_cache`: with the KV cache per token, otherwise it is 0.
    """
    import numpy as np

    candidates = list_candidates(shape)
    path = shape.prefix + N_LAYERS
    has_lists = shape.varies(N_LAYERS) and bool(list_layer_lists(shape))
    groups: dict[int | None, list[dict[str, int]]] = {}
    for candidate in candidates:
        groups.setdefault(candidate[path] if has_lists else None, []).append(candidate)
    for n_layers, group in groups.items():
        lists = {} if n_layers is None else extend_lists(shape, n_layers)
        names = tuple(group[0])
        values = {name: np.array([candidate[name] for candidate in group], dtype="int64") for name in names}
        counter = Counter(like.sizes, like.reading, lists, names, (*COUNTS, *([CACHE] if with_cache else [])))
        is_valid, columns = count_rows(Validator(like.sizes, lists, names), counter, values)
        valid = [candidate for candidate, passes in zip(group, is_valid.tolist()) if passes]
        zeros = np.zeros(len(valid), dtype="int64")
        counts = zip(*(columns.get(name, zeros).tolist() for name in (*COUNTS, CACHE)))
        for candidate, (total, active, kv_per_token) in zip(valid, counts):
            yield Row(total, active, kv_per_token, {**candidate, **lists})


def rank(budget: ParameterBudget, row: Row) -> int:
    """The sort key: the sum of the relative distances from the targets, times both; or the largest first."""
    if budget.total is not None and budget.active is not None:
        return abs(row.total - budget.total) * budget.active + abs(row.active - budget.active) * budget.total
    if budget.total is not None:
        return abs(row.total - budget.total)
    return -row.total if budget.active is None else abs(row.active - budget.active)


def is_within(budget: ParameterBudget, row: Row) -> bool:
    """Whether the counts are within the tolerance of the budget."""
    targets = ((budget.total, row.total), (budget.active, row.active))
    limit = Fraction(str(budget.within))
    return all(abs(count - target) <= limit * target for target, count in targets if target is not None)


def make_candidate(like: Model, budget: ParameterBudget, row: Row) -> Candidate | None:
    """A candidate as a model, counted once more by itself; None if it needs too much memory."""
    model = change_sizes(like, row.sizes)
    count = count_model(model)
    if (count.total, count.active) != (row.total, row.active):
        raise AssertionError(f"{row.sizes}: {row.total} on arrays, {count.total} alone")
    if budget.memory is None:
        return Candidate(model, row.sizes, row.total, row.active, None)
    memory = find_memory(model, budget)
    device = make_device(budget)
    if device.judge(memory.total_bytes, device.assume_overhead(memory.padding_bytes)) != FITS:
        return None
    return Candidate(model, row.sizes, row.total, row.active, memory.total_bytes + budget.overhead)


def make_device(budget: ParameterBudget) -> Device:
    """The device that the model must fit."""
    return Device("", budget.memory or 0, budget.overhead)


def find_memory(model: Model, budget: ParameterBudget) -> Memory:
    """The memory of a model at inference, in the format and with the context of the budget."""
    return measure_memory(model, dtype=budget.dtype, context=budget.context)


def list_likely(like: Model, budget: ParameterBudget, table: Sequence[Row]) -> Sequence[Row]:
    """The candidates that may fit the memory, in the same order: at most MOST_MEASURED if memory has a limit."""
    if budget.memory is None:
        return table
    memory = find_memory(like, budget)
    per_parameter = Fraction(memory.loaded_bytes, count_model(like).total)
    device = make_device(budget)
    limit = device.usable_bytes - device.margin_bytes
    share = Fraction(str(SHARE_PLAIN if budget.dtype.lower() in PLAIN else SHARE_QUANTISED))
    likely = [row for row in table if share * (per_parameter * row.total + row.kv_per_token * memory.context) <= limit]
    return likely[:MOST_MEASURED]


def check_budget(budget: ParameterBudget, step: int, limit: int) -> None:
    """Raises: ParamcountError for a budget without a limit, and for a number out of range."""
    if budget.total is None and budget.active is None and budget.memory is None:
        raise ParamcountError("no budget", expected="total, active or memory")
    numbers = {"total": budget.total, "active": budget.active, "memory": budget.memory, "context": budget.context}
    for name, value in {**numbers, "multiple_of": step, "limit": limit}.items():
        if value is not None and (type(value) is not int or value < 1):
            raise ParamcountError(f"= {describe_value(value)}", where=name, expected="a positive integer")
    if not isinstance(budget.within, (int, float)) or not 0 <= budget.within < 1:
        raise ParamcountError(
            f"= {describe_value(budget.within)}", where="within", expected="a share from 0 to below 1"
        )


def describe_budget(budget: ParameterBudget) -> tuple[str, ...]:
    """The budget as rules, one line each."""
    rules = [
        f"{name} is within {100 * budget.within:.4g}% of {target:,}"
        for name, target in (("total", budget.total), ("active", budget.active))
        if target is not None
    ]
    if budget.memory is not None:
        context = "the default context" if budget.context is None else f"{budget.context:,} tokens"
        rules.append(
            f"weights in {budget.dtype}, KV cache of {context} and {budget.overhead:,} bytes of overhead (assumed) "
            f"leave {make_device(budget).margin_bytes:,} of {budget.memory:,} bytes free ({100 // MARGIN_DIVISOR}%)"
        )
    return tuple(rules)


def make_error(like: Model, budget: ParameterBudget, table: Sequence[Row]) -> ParamcountError:
    """The error if no configuration meets the budget."""
    if not table:
        return ParamcountError(
            "has no valid configuration by these rules", where=like.id, expected="other sizes in " + Argument("vary")
        )
    within = [row for row in table if is_within(budget, row)]
    has_counts = budget.total is not None or budget.active is not None
    share = f"within {100 * budget.within:.4g}% of the budget"
    if budget.memory is not None and within:
        smallest = min(within, key=lambda row: row.total)
        # the least memory of which a tenth is left
        memory = find_memory(change_sizes(like, smallest.sizes), budget)
        taken = memory.total_bytes + memory.padding_bytes + budget.overhead
        needed = -(-taken * MARGIN_DIVISOR // (MARGIN_DIVISOR - 1))
        found = f"no configuration like {like.id} {f'{share} ' if has_counts else ''}fits {budget.memory:,} bytes"
        expected = f"more memory: the smallest, of {smallest.total:,} parameters, needs {needed:,} bytes"
        return ParamcountError(found, expected=expected)
    return ParamcountError(
        f"no configuration like {like.id} is {share}",
        expected=f"more sizes to vary, or a larger tolerance; the nearest has {table[0].total:,}",
    )
