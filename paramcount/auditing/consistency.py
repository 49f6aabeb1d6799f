"""Whether the claims of a row can be true together, whatever the model: no zoo entry of it is needed."""

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

Range = tuple[Fraction, Fraction]  # from the first, and less than the second
MOST_NAMED = 3


class Doubt(NamedTuple):
    """What does not go together."""

    grade: str  # impossible: a contradiction, whatever the model; unlikely: so in no model of the zoo; unusual: so in few
    text: str


class Row(NamedTuple):
    """What a row claims, as ranges; of a model of the zoo, what is true."""

    ranges: Mapping[str, Range]
    mixture: bool | None  # whether it has experts; None where nobody says
    id: str = ""

    def exact(self, name: str) -> int | None:
        """A size that is claimed exactly."""
        if name not in self.ranges:
            return None
        least, most = self.ranges[name]
        return int(least) if most == least + 1 else None


def find_doubts(claims: Sequence[tuple[Claim, Heading]], of_experts: bool | None = None) -> tuple[Doubt, ...]:
    """What the claims of a row make impossible, or unlike every model of the zoo. `of_experts`: whether the model is known to have experts,
    where the claims do not say."""
    said = mixture(claims)
    row = Row(dict(ranges(claims)), of_experts if said is None else said)
    found = [*contradictions(row), *shapes(row), *budgets(row), *files(row, claims)]
    return tuple(found)


def ranges(claims: Sequence[tuple[Claim, Heading]]) -> Iterator[tuple[str, Range]]:
    """What each claim leaves open, of those that say a number. Of two in the same column none is taken."""
    kinds = [claim.kind for claim, _ in claims if claim.kind != "bytes"]
    for claim, _ in claims:
        if claim.amount is not None and claim.relation == "=" and kinds.count(claim.kind) == 1 and claim.amount.digits > 0:
            yield claim.kind, find_bounds(claim.amount)


def mixture(claims: Sequence[tuple[Claim, Heading]]) -> bool | None:
    """Whether the row says that there are experts."""
    for claim, _ in claims:
        if claim.kind == "n_routed_experts" and claim.relation != "none":
            return claim.amount is None or claim.amount.value > 1
        if claim.kind in ("active", "n_active_experts", "n_shared_experts", "d_expert") and claim.amount:
            return True
    return False if any(claim.kind == "n_routed_experts" for claim, _ in claims) else None


# ---- what no model can do


def contradictions(row: Row) -> Iterator[Doubt]:
    """Claims of which one must be wrong."""
    total, active = row.ranges.get("total"), row.ranges.get("active")
    if total and active and active[0] >= total[1]:
        yield Doubt("impossible", "more active than total parameters")
    whole = row.ranges.get("non_embedding")
    if total and whole and whole[0] >= total[1]:
        yield Doubt("impossible", "more non-embedding than total parameters")
    for part, of, words in (("n_active_experts", "n_routed_experts", "active experts"), ("n_kv_heads", "n_heads", "KV heads")):
        few, many = row.exact(part), row.exact(of)
        if few and many and few > many:
            yield Doubt("impossible", f"{few:,} {words}, but only {many:,} in total")
    heads, groups = row.exact("n_heads"), row.exact("n_kv_heads")
    if heads and groups and heads > groups and heads % groups:
        yield Doubt("impossible", f"{groups:,} KV heads do not divide {heads:,} heads")


# ---- what models rarely do, or never: the zoo says which


def shapes(row: Row) -> Iterator[Doubt]:
    """Widths that do not go into each other."""
    for test in (uneven, unfilled, narrow):
        if text := test(row):
            alike = like(test)
            yield Doubt("unusual" if alike else "unlikely", f"{text}; the same holds for {counted(alike)}")


@lru_cache(maxsize=8)
def like(test: Callable[[Row], str]) -> tuple[str, ...]:
    """The models of the zoo that are so."""
    return tuple(row.id for row in zoo_rows() if test(row))


def uneven(row: Row) -> str:
    """Only where no width of a head is claimed: else that says it."""
    model, heads = row.exact("d_model"), row.exact("n_heads")
    if not (model and heads and model % heads) or (row.exact("d_head") and not row.id):
        return ""
    return f"d_model = {model:,} is not a multiple of {heads:,} heads"


def unfilled(row: Row) -> str:
    model, heads, each = row.exact("d_model"), row.exact("n_heads"), row.exact("d_head")
    if not (model and heads and each) or heads * each == model:
        return ""
    return f"{heads:,} heads × {each:,} = {heads * each:,} differs from d_model = {model:,}"


def narrow(row: Row) -> str:
    model, inner = row.exact("d_model"), row.exact("d_ff")
    return f"d_ff = {inner:,} is smaller than d_model = {model:,}" if model and inner and inner < model and not row.mixture else ""


def counted(ids: Sequence[str]) -> str:
    every = len(zoo_rows())
    if not ids:
        return f"none of the zoo's {every} models"
    named = ", ".join(ids[:MOST_NAMED])
    return f"{len(ids)} of the zoo's {every} models ({named}{', …' if len(ids) > MOST_NAMED else ''})"


def budgets(row: Row) -> Iterator[Doubt]:
    """Whether so many layers of that width come to the claimed parameters: a square of the width for each matrix of a layer."""
    total, layers, model = row.ranges.get("total"), row.exact("n_layers"), row.exact("d_model")
    if not (total and layers and model):
        return
    square, every = layers * model**2, len(zoo_rows())
    (least, thinnest), (most, thickest), (most_of_all, _) = extremes(bool(row.mixture))
    product = f"{layers:,} × {model:,}² = {format_count(square)}"
    if total[1] <= 4 * square:
        held = f"4 × {layers:,} × {model:,}² = {format_count(4 * square)} in query, output and two MLP matrices"
        text = f"{layers:,} layers with d_model = {model:,} have at least {held}; the claim is below {format_count(int(total[1]))}"
        yield Doubt("unlikely", f"{text}, possible only if layers share weights")
    elif total[1] <= least * square:
        text = f"less than {tenths(total[1] / square)} parameters per layer × d_model² ({product})"
        yield Doubt("unlikely", f"{text}; none of the zoo's {every} models has less than {tenths(least)} ({thinnest})")
    elif total[0] > most * square:
        text = f"at least {tenths(total[0] / square)} parameters per layer × d_model² ({product})"
        kind = "mixtures of experts" if row.mixture else "dense models"
        more = "" if row.mixture is not None or total[0] > most_of_all * square else "; a mixture of experts may have more"
        yield Doubt("unlikely", f"{text}; none of the zoo's {kind} has more than {tenths(most)} ({thickest}){more}")
    rows = row.exact("vocab_size")
    if rows and rows * model >= total[1]:
        yield Doubt("unlikely", f"the token embedding of {rows:,} × {model:,} = {format_count(rows * model)} alone exceeds the total, unless it is factorised")


@lru_cache(maxsize=2)
def extremes(mixture: bool) -> tuple[tuple[Fraction, str], tuple[Fraction, str], tuple[Fraction, str]]:
    """Of parameters per layer × d_model²: the least of all models, the most of those with or without experts, the most of all."""
    found = [(per_square(row), row.id, bool(row.mixture)) for row in zoo_rows() if row.exact("n_layers") and row.exact("d_model")]
    alike = [ratio for ratio in found if ratio[2] == mixture]
    return min(found)[:2], max(alike)[:2], max(found)[:2]


def tenths(number: Fraction) -> str:
    return f"{float(number):,.1f}"


def per_square(row: Row) -> Fraction:
    return row.ranges["total"][0] / ((row.exact("n_layers") or 1) * (row.exact("d_model") or 1) ** 2)


def files(row: Row, claims: Sequence[tuple[Claim, Heading]]) -> Iterator[Doubt]:
    """Sizes of files that are of other numbers of parameters. More may lie in a file, and GB may be GiB; not by a quarter."""
    total = row.ranges.get("total")
    for claim, heading in claims:
        if total and claim.kind == "bytes" and claim.amount and claim.relation == "=" and heading.width:
            least, most = (bound / heading.width for bound in find_bounds(claim.amount))
            if most * 5 <= total[0] * 4 or least * 4 > total[1] * 5:
                values = format_count(int(claim.amount.value / heading.width))
                yield Doubt("unlikely", f"{heading.label}: corresponds to {values} values of {heading.width} bytes")


@lru_cache(maxsize=1)
def zoo_rows() -> tuple[Row, ...]:
    """The models of the zoo, as rows of exact claims."""
    models = [model for model in map(zoo.load_entry, zoo.list_ids()) if not model.estimate]
    return tuple(truly(row) for row in make_rows(models))


def truly(row: Mapping[str, object]) -> Row:
    """A row of a comparison."""
    sizes = {name: value for name, value in row.items() if type(value) is int and value}
    return Row({name: (Fraction(value), Fraction(value + 1)) for name, value in sizes.items()}, bool(sizes.get("n_routed_experts")), str(row["id"]))
