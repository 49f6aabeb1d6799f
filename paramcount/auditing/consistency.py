"""Whether the claims in a row can all be true, for any model in or outside the zoo."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from paramcount import zoo
from paramcount.auditing.cells import Claim
from paramcount.auditing.headings import Heading
from paramcount.auditing.verdicts import find_bounds
from paramcount.output.numbers import format_count
from paramcount.views.compare import make_rows

Range = tuple[Fraction, Fraction]  # at least the first, less than the second
MOST_NAMED = 3


class Doubt(NamedTuple):
    """Claims that contradict each other or are unusual together."""

    grade: str  # impossible: a contradiction; unlikely: true of no zoo model; unusual: true of few zoo models
    text: str


class Row(NamedTuple):
    """The claims of a row as ranges, or the facts of a zoo model."""

    ranges: Mapping[str, Range]
    mixture: bool | None  # whether it has experts; None if unknown
    id: str = ""

    def exact(self, name: str) -> int | None:
        """A size if it is claimed exactly."""
        if name not in self.ranges:
            return None
        least, most = self.ranges[name]
        return int(least) if most == least + 1 else None


def find_doubts(claims: Sequence[tuple[Claim, Heading]], of_experts: bool | None = None) -> tuple[Doubt, ...]:
    """Contradictions in the claims of a row, and combinations that are rare in the zoo. `of_experts`: whether the model has experts, if the
    claims do not say."""
    has_experts = find_mixture(claims)
    row = Row(dict(list_ranges(claims)), of_experts if has_experts is None else has_experts)
    found = [*find_contradictions(row), *find_odd_sizes(row), *find_odd_totals(row), *find_odd_files(row, claims)]
    return tuple(found)


def list_ranges(claims: Sequence[tuple[Claim, Heading]]) -> Iterator[tuple[str, Range]]:
    """The range of each claim with a number. Quantities that are claimed twice are ignored."""
    kinds = [claim.kind for claim, _ in claims if claim.kind != "bytes"]
    for claim, _ in claims:
        if (
            claim.amount is not None
            and claim.relation == "="
            and kinds.count(claim.kind) == 1
            and claim.amount.digits > 0
        ):
            yield claim.kind, find_bounds(claim.amount)


def find_mixture(claims: Sequence[tuple[Claim, Heading]]) -> bool | None:
    """Whether the claims say that the model has experts; None if they do not say."""
    for claim, _ in claims:
        if claim.kind == "n_routed_experts" and claim.relation != "none":
            return claim.amount is None or claim.amount.value > 1
        if claim.kind in ("active", "n_active_experts", "n_shared_experts", "d_expert") and claim.amount:
            return True
    return False if any(claim.kind == "n_routed_experts" for claim, _ in claims) else None


# ---- impossible claims


def find_contradictions(row: Row) -> Iterator[Doubt]:
    """Pairs of claims of which one must be wrong."""
    total, active = row.ranges.get("total"), row.ranges.get("active")
    if total and active and active[0] >= total[1]:
        yield Doubt("impossible", "more active than total parameters")
    whole = row.ranges.get("non_embedding")
    if total and whole and whole[0] >= total[1]:
        yield Doubt("impossible", "more non-embedding than total parameters")
    for part, of, words in (
        ("n_active_experts", "n_routed_experts", "active experts"),
        ("n_kv_heads", "n_heads", "KV heads"),
    ):
        few, many = row.exact(part), row.exact(of)
        if few and many and few > many:
            yield Doubt("impossible", f"{few:,} {words}, but only {many:,} in total")
    heads, groups = row.exact("n_heads"), row.exact("n_kv_heads")
    if heads and groups and heads > groups and heads % groups:
        yield Doubt("impossible", f"{groups:,} KV heads do not divide {heads:,} heads")


# ---- claims that are rare or absent in the zoo


def find_odd_sizes(row: Row) -> Iterator[Doubt]:
    """Combinations of sizes that few zoo models have."""
    for test in (describe_uneven_heads, describe_unequal_heads, describe_narrow_mlp):
        if text := test(row):
            alike = list_similar_models(test)
            yield Doubt("unusual" if alike else "unlikely", f"{text}; the same holds for {describe_models(alike)}")


@lru_cache(maxsize=8)
def list_similar_models(test: Callable[[Row], str]) -> tuple[str, ...]:
    """Ids of the zoo models for which a test gives a text."""
    return tuple(row.id for row in list_zoo_rows() if test(row))


def describe_uneven_heads(row: Row) -> str:
    """A text if heads do not divide d_model and no head dimension is claimed."""
    model, heads = row.exact("d_model"), row.exact("n_heads")
    if not (model and heads and model % heads) or (row.exact("d_head") and not row.id):
        return ""
    return f"d_model = {model:,} is not a multiple of {heads:,} heads"


def describe_unequal_heads(row: Row) -> str:
    model, heads, each = row.exact("d_model"), row.exact("n_heads"), row.exact("d_head")
    if not (model and heads and each) or heads * each == model:
        return ""
    return f"{heads:,} heads × {each:,} = {heads * each:,} differs from d_model = {model:,}"


def describe_narrow_mlp(row: Row) -> str:
    model, inner = row.exact("d_model"), row.exact("d_ff")
    return (
        f"d_ff = {inner:,} is smaller than d_model = {model:,}"
        if model and inner and inner < model and not row.mixture
        else ""
    )


def describe_models(ids: Sequence[str]) -> str:
    every = len(list_zoo_rows())
    if not ids:
        return f"none of the zoo's {every} models"
    named = ", ".join(ids[:MOST_NAMED])
    return f"{len(ids)} of the zoo's {every} models ({named}{', …' if len(ids) > MOST_NAMED else ''})"


def find_odd_totals(row: Row) -> Iterator[Doubt]:
    """Totals that do not fit the number of layers and d_model, measured in parameters per layer × d_model²."""
    total, layers, model = row.ranges.get("total"), row.exact("n_layers"), row.exact("d_model")
    if not (total and layers and model):
        return
    square, every = layers * model**2, len(list_zoo_rows())
    (least, thinnest), (most, thickest), (most_of_all, _) = find_extremes(bool(row.mixture))
    product = f"{layers:,} × {model:,}² = {format_count(square)}"
    if total[1] <= 4 * square:
        minimum = f"4 × {layers:,} × {model:,}² = {format_count(4 * square)} in query, output and two MLP matrices"
        text = f"{layers:,} layers with d_model = {model:,} have at least {minimum}; the claim is below {format_count(int(total[1]))}"
        yield Doubt("unlikely", f"{text}, possible only if layers share weights")
    elif total[1] <= least * square:
        text = f"less than {format_tenths(total[1] / square)} parameters per layer × d_model² ({product})"
        yield Doubt(
            "unlikely", f"{text}; none of the zoo's {every} models has less than {format_tenths(least)} ({thinnest})"
        )
    elif total[0] > most * square:
        text = f"at least {format_tenths(total[0] / square)} parameters per layer × d_model² ({product})"
        kind = "mixtures of experts" if row.mixture else "dense models"
        more = (
            "" if row.mixture is not None or total[0] > most_of_all * square else "; a mixture of experts may have more"
        )
        yield Doubt(
            "unlikely", f"{text}; none of the zoo's {kind} has more than {format_tenths(most)} ({thickest}){more}"
        )
    rows = row.exact("vocab_size")
    if rows and rows * model >= total[1]:
        yield Doubt(
            "unlikely",
            f"the token embedding of {rows:,} × {model:,} = {format_count(rows * model)} alone exceeds the total, unless it is factorised",
        )


@lru_cache(maxsize=2)
def find_extremes(mixture: bool) -> tuple[tuple[Fraction, str], tuple[Fraction, str], tuple[Fraction, str]]:
    """Parameters per layer × d_model² in the zoo: the minimum, the maximum with or without experts, and the overall maximum."""
    found = [
        (divide_by_square(row), row.id, bool(row.mixture))
        for row in list_zoo_rows()
        if row.exact("n_layers") and row.exact("d_model")
    ]
    alike = [ratio for ratio in found if ratio[2] == mixture]
    return min(found)[:2], max(alike)[:2], max(found)[:2]


def format_tenths(number: Fraction) -> str:
    return f"{float(number):,.1f}"


def divide_by_square(row: Row) -> Fraction:
    return row.ranges["total"][0] / ((row.exact("n_layers") or 1) * (row.exact("d_model") or 1) ** 2)


def find_odd_files(row: Row, claims: Sequence[tuple[Claim, Heading]]) -> Iterator[Doubt]:
    """File sizes that differ from the claimed parameters by a quarter or more; less may be other tensors, or GiB."""
    total = row.ranges.get("total")
    for claim, heading in claims:
        if total and claim.kind == "bytes" and claim.amount and claim.relation == "=" and heading.width:
            least, most = (bound / heading.width for bound in find_bounds(claim.amount))
            if most * 5 <= total[0] * 4 or least * 4 > total[1] * 5:
                values = format_count(int(claim.amount.value / heading.width))
                yield Doubt("unlikely", f"{heading.label}: corresponds to {values} values of {heading.width} bytes")


@lru_cache(maxsize=1)
def list_zoo_rows() -> tuple[Row, ...]:
    """All zoo models with published sizes, as rows of exact values."""
    models = [model for model in map(zoo.load_entry, zoo.list_ids()) if not model.estimate]
    return tuple(build_row(row) for row in make_rows(models))


def build_row(row: Mapping[str, object]) -> Row:
    """A zoo model from its row of a comparison table."""
    sizes = {name: value for name, value in row.items() if type(value) is int and value}
    return Row(
        {name: (Fraction(value), Fraction(value + 1)) for name, value in sizes.items()},
        bool(sizes.get("n_routed_experts")),
        str(row["id"]),
    )
