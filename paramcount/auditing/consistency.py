"""Checks whether the claims in a row can all be true, for models in and outside the zoo."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import paramcount.zoo as zoo
from paramcount.auditing.cells import CellClaim
from paramcount.auditing.headings import Heading
from paramcount.auditing.verdicts import find_bounds
from paramcount.output.numbers import format_count
from paramcount.views.compare import make_rows
from paramcount.zoo.catalog import map_own_paths
from paramcount.zoo.columns import FIELDS
from paramcount.zoo.packaged import read_packaged_rows

Range = tuple[Fraction, Fraction]  # from the first, up to but excluding the second
MOST_NAMED = 3
MINIMUM = 4  # parameters per layer × d_model²: the query, output and two MLP matrices


class Doubt(NamedTuple):
    """A contradiction between claims, or an unusual combination."""

    grade: str  # impossible: a contradiction; unlikely: true of no zoo model; unusual: true of few zoo models
    text: str


class ConsistencyRow(NamedTuple):
    """The claims of a row as ranges, or the facts of a zoo model."""

    ranges: Mapping[str, Range]
    has_experts: bool | None  # None if unknown
    id: str = ""

    def get_exact(self, name: str) -> int | None:
        """The value of a size; None unless the claim is exact."""
        if name not in self.ranges:
            return None
        least, most = self.ranges[name]
        return int(least) if most == least + 1 else None


def find_doubts(
    claims: Sequence[tuple[CellClaim, Heading]], has_experts: bool | None = None, id: str | None = None
) -> tuple[Doubt, ...]:
    """Contradictions between the claims in a row, and combinations that are rare in the zoo.

    Args:
        has_experts: whether the model has experts, used if the claims do not say
        id: the zoo model that the row is about, if it is in the zoo
    """
    claimed = claims_experts(claims)
    row = ConsistencyRow(dict(list_ranges(claims)), has_experts if claimed is None else claimed)
    odd_totals = [] if has_odd_total(id) else find_odd_totals(row)
    doubts = [*find_contradictions(row), *find_odd_sizes(row), *odd_totals, *find_odd_files(row, claims)]
    return tuple(doubts)


def list_ranges(claims: Sequence[tuple[CellClaim, Heading]]) -> Iterator[tuple[str, Range]]:
    """The range of each numeric claim, except for quantities that are claimed twice."""
    kinds = [claim.kind for claim, _ in claims if claim.kind != "bytes"]
    for claim, _ in claims:
        is_positive = claim.amount is not None and claim.amount.digits > 0
        if claim.amount and is_positive and claim.relation == "=" and kinds.count(claim.kind) == 1:
            yield claim.kind, find_bounds(claim.amount)


def claims_experts(claims: Sequence[tuple[CellClaim, Heading]]) -> bool | None:
    """Whether the model has experts according to the claims; None if they do not say.

    Tables with a column for active parameters repeat the total in the rows of dense models.
    """
    totals = [claim.amount.value for claim, _ in claims if claim.kind == "total" and claim.amount]
    for claim, _ in claims:
        if claim.kind == "active" and claim.amount and claim.amount.value in totals:
            continue
        if claim.kind == "n_routed_experts" and claim.relation != "none":
            return claim.amount is None or claim.amount.value > 1
        if claim.kind in ("active", "n_active_experts", "n_shared_experts", "d_expert") and claim.amount:
            return True
    return False if any(claim.kind == "n_routed_experts" for claim, _ in claims) else None


# ---- impossible claims


def find_contradictions(row: ConsistencyRow) -> Iterator[Doubt]:
    """Pairs of claims that cannot both be true."""
    total, active = row.ranges.get("total"), row.ranges.get("active")
    if total and active and active[0] >= total[1]:
        yield Doubt("impossible", "more active than total parameters")
    non_embedding = row.ranges.get("non_embedding")
    if total and non_embedding and non_embedding[0] >= total[1]:
        yield Doubt("impossible", "more non-embedding than total parameters")
    for part, whole, words, all_words in (
        ("n_active_experts", "n_routed_experts", "active experts", "experts"),
        ("n_kv_heads", "n_heads", "KV heads", "attention heads"),
    ):
        few, many = row.get_exact(part), row.get_exact(whole)
        if few and many and few > many:
            yield Doubt("impossible", f"{few:,} {words}, but only {many:,} {all_words}")
    heads, groups = row.get_exact("n_heads"), row.get_exact("n_kv_heads")
    if heads and groups and heads > groups and heads % groups:
        yield Doubt("impossible", f"{groups:,} KV heads do not divide {heads:,} heads")


# ---- claims that are rare or absent in the zoo


def find_odd_sizes(row: ConsistencyRow) -> Iterator[Doubt]:
    for describe in (describe_uneven_heads, describe_unequal_heads, describe_narrow_mlp):
        if text := describe(row):
            grade, models = find_similar_models(describe)
            yield Doubt(grade, f"{text}; {models}")


@lru_cache(maxsize=8)
def find_similar_models(describe: Callable[[ConsistencyRow], str]) -> tuple[str, str]:
    """The grade of an unusual combination of sizes, and how many zoo models share it."""
    n_models, ids = len(list_zoo_rows()), [row.id for row in list_zoo_rows() if describe(row)]
    if not ids:
        return "unlikely", f"not true of any of the {n_models} zoo models"
    names = ", ".join(ids[:MOST_NAMED]) + (", …" if len(ids) > MOST_NAMED else "")
    return "unusual", f"also true of {len(ids)} of the {n_models} zoo models ({names})"


def describe_uneven_heads(row: ConsistencyRow) -> str:
    """A text if the number of heads does not divide d_model and no head dimension is claimed."""
    model, heads = row.get_exact("d_model"), row.get_exact("n_heads")
    if not (model and heads and model % heads) or (row.get_exact("d_head") and not row.id):
        return ""
    return f"d_model = {model:,} is not divisible by heads = {heads:,}"


def describe_unequal_heads(row: ConsistencyRow) -> str:
    """A text if the heads together are larger or smaller than d_model."""
    model, heads, each = row.get_exact("d_model"), row.get_exact("n_heads"), row.get_exact("d_head")
    if not (model and heads and each) or heads * each == model:
        return ""
    return f"{heads:,} heads × {each:,} = {heads * each:,} differs from d_model = {model:,}"


def describe_narrow_mlp(row: ConsistencyRow) -> str:
    """A text if the MLP of a dense model is narrower than d_model."""
    model, inner = row.get_exact("d_model"), row.get_exact("d_ff")
    if not (model and inner and inner < model) or row.has_experts:
        return ""
    return f"d_ff = {inner:,} is smaller than d_model = {model:,}"


@lru_cache(maxsize=1024)
def has_odd_total(id: str | None) -> bool:
    """Whether the zoo's own total of a model looks inconsistent: ALBERT's layers share weights."""
    return any(any(find_odd_totals(row)) for row in list_zoo_rows() if row.id == id)


def find_odd_totals(row: ConsistencyRow) -> Iterator[Doubt]:
    """Totals that are inconsistent with the number of layers and d_model, in units of layers × d_model²."""
    total, layers, model = row.ranges.get("total"), row.get_exact("n_layers"), row.get_exact("d_model")
    if not (total and layers and model):
        return
    square = layers * model**2
    product = f"{layers:,} × {model:,}² = {format_count(square)}"
    if total[1] <= MINIMUM * square:
        product = f"{MINIMUM} × {layers:,} × {model:,}² = {format_count(MINIMUM * square)}"
        minimum = f"{product} parameters in the query, output and two MLP matrices"
        text = f"{layers:,} layers with d_model = {model:,} have at least {minimum}"
        claim = f"the claim is below {format_count(int(total[1]))}"
        yield Doubt("unlikely", f"{text}; {claim}, possible only if layers share weights")
    else:
        yield from compare_ratio(row, total, square, product)
    rows = row.get_exact("vocab_size")
    if rows and rows * model >= total[1]:
        embedding = f"the token embedding of {rows:,} × {model:,} = {format_count(rows * model)}"
        yield Doubt("unlikely", f"{embedding} alone exceeds the total, unless it is factorised")


def compare_ratio(row: ConsistencyRow, total: Range, square: int, product: str) -> Iterator[Doubt]:
    """A total per layer × d_model² that no zoo model of a similar d_model has; of a small one, the embedding is most
    of the total.
    """
    model = row.get_exact("d_model") or 1
    similar = [ratio for ratio in list_ratios() if model <= 2 * ratio.d_model and ratio.d_model <= 2 * model]
    alike = [ratio for ratio in similar if ratio.has_experts == bool(row.has_experts)]
    sizes = f"with d_model from {-(-model // 2):,} to {2 * model:,}"
    if similar and total[1] <= (least := min(similar)).value * square:
        text = f"fewer than {format_tenths(total[1] / square)} parameters per layer × d_model² ({product})"
        comparison = f"none of the {len(similar)} zoo models {sizes} has fewer than {format_tenths(least.value)}"
        yield Doubt("unlikely", f"{text}; {comparison} ({least.id})")
    elif alike and total[0] > (most := max(alike)).value * square:
        text = f"at least {format_tenths(total[0] / square)} parameters per layer × d_model² ({product})"
        kind = "mixtures of experts" if row.has_experts else "dense models"
        comparison = f"none of the {len(alike)} {kind} in the zoo {sizes} has more than {format_tenths(most.value)}"
        may_have_experts = row.has_experts is None and total[0] <= max(similar).value * square
        hint = "; a mixture of experts may have more" if may_have_experts else ""
        yield Doubt("unlikely", f"{text}; {comparison} ({most.id}){hint}")


class Ratio(NamedTuple):
    """The parameters of a zoo model per layer × d_model²."""

    value: Fraction
    id: str
    d_model: int
    has_experts: bool


@lru_cache(maxsize=1)
def list_ratios() -> tuple[Ratio, ...]:
    """The ratios of all zoo models with layers whose weights are their own."""
    ratios = []
    for row in list_zoo_rows():
        layers, model = row.get_exact("n_layers"), row.get_exact("d_model")
        if layers and model:
            value = row.ranges["total"][0] / (layers * model**2)
            ratios.append(Ratio(value, row.id, model, bool(row.has_experts)))
    return tuple(ratio for ratio in ratios if ratio.value >= MINIMUM)


def format_tenths(number: Fraction) -> str:
    return f"{float(number):,.1f}"


def find_odd_files(row: ConsistencyRow, claims: Sequence[tuple[CellClaim, Heading]]) -> Iterator[Doubt]:
    """File sizes that differ from the claimed total by a quarter or more; less may be due to other tensors or GiB."""
    total = row.ranges.get("total")
    for claim, heading in claims:
        if total and claim.kind == "bytes" and claim.amount and claim.relation == "=" and heading.width:
            least, most = (bound / heading.width for bound in find_bounds(claim.amount))
            if most * 5 <= total[0] * 4 or least * 4 > total[1] * 5:
                values = format_count(int(claim.amount.value / heading.width))
                yield Doubt("unlikely", f"{heading.label} corresponds to {values} values of {heading.width} bytes")


@lru_cache(maxsize=1)
def list_zoo_rows() -> tuple[ConsistencyRow, ...]:
    """The models of the zoo: the built-in ones from the table in the package, the user's own computed."""
    fields = [field for field in FIELDS if field.name == "id" or field.type == "integer"]
    names = [field.name for field in fields]
    rows = [dict(zip(names, row)) for row in read_packaged_rows(fields)]
    rows += make_rows(zoo.load_entry(id) for id in map_own_paths())
    return tuple(make_consistency_row(row) for row in rows if row["total"])  # a third-party estimate has none


def make_consistency_row(row: Mapping[str, Any]) -> ConsistencyRow:
    ranges = {
        name: (Fraction(value), Fraction(value + 1)) for name, value in row.items() if type(value) is int and value
    }
    return ConsistencyRow(ranges, "n_routed_experts" in ranges, str(row["id"]))
