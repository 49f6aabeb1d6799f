"""Why somebody else says a different number: a published figure as a count and named causes with nothing left over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

from paramcount.counting.count import Count
from paramcount.counting.quantisation.scales import get_scheme
from paramcount.errors import ParamcountError, describe_value
from paramcount.explaining.causes import Candidate, Cause, candidates, stand_together, visited
from paramcount.output.numbers import Figure, match_figure, parse_figure
from paramcount.zoo import Model, count_model
from paramcount.zoo.entries import Published

MOST_CAUSES = 3  # at once; `active` instead of `total` is one of them
LARGEST = 10**30
ACCEPTED = "7B, 124M, 7.61B, ~1.04T or a whole number from 1"
OPEN = (None, "unspecified")  # the source does not say what it counts
FITS = ("exact", "rounded", "truncated")


@dataclass(frozen=True)
class Account:
    """A count and causes that sum to what a figure says."""

    base: str  # total | active
    count: int  # of the base
    causes: tuple[Cause, ...]
    value: int  # count plus the units of the causes
    fit: str  # how the value becomes the figure: exact | rounded | truncated
    also: tuple[tuple[Cause, ...], ...] = ()  # other causes of the same sum

    @property
    def terms(self) -> str:
        """What follows the count, in words: "− one table 579,133,440 (input embedding or output head, equally large)"."""
        return ", or ".join(terms(causes) for causes in (self.causes, *self.also))


def terms(causes: Iterable[Cause]) -> str:
    return " ".join(f"{'+' if cause.units > 0 else '−'} {cause.name} {abs(cause.units):,}{f' ({cause.note})' if cause.note else ''}" for cause in causes)


@dataclass(frozen=True)
class Why:
    """A published figure and what it counts."""

    id: str
    published: str  # as printed
    value: int  # what it says
    step: int  # the unit of its last digit; 1 where it is exact
    what: str | None  # what its source says it counts; None where nobody says
    source: str | None
    base: str  # the count that is meant: total | active
    true: int  # that count
    accounts: tuple[Account, ...]  # one: the explanation; several: equally good, none of them claimed; none: not reproducible
    plainer: Account | None  # where those need causes: a count that becomes the figure by being cut off, without any
    rounded: Account | None  # where the active count that the source states is cut off: a sum that rounds to the figure
    left_over: int  # where nothing explains it: what it has beside the count that its source names, else `true`; negative: what it lacks

    @property
    def verdict(self) -> str:
        """exact, rounded, truncated, several or not reproducible."""
        return self.accounts[0].fit if len(self.accounts) == 1 else "several" if self.accounts else "not reproducible"

    @property
    def ok(self) -> bool:
        """Whether something explains it."""
        return bool(self.accounts)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data for JSON."""
        return {name: plain(value) for name, value in self.__dict__.items()} | {"verdict": self.verdict}


def plain(value: Any) -> Any:
    if isinstance(value, tuple) and not hasattr(value, "_asdict"):
        return [plain(inner) for inner in value]
    fields = value._asdict() if hasattr(value, "_asdict") else getattr(value, "__dict__", None)
    return {name: plain(inner) for name, inner in fields.items()} if fields is not None else value


def explain_figures(model: Model, numbers: Iterable[str | int] = ()) -> tuple[Why, ...]:
    """The same of a loaded model, with any number of figures."""
    count = count_model(model)
    asked = [about(model, number) for number in numbers] or [(figure.value, (figure,)) for figure in model.published]
    return tuple(answer(model, count, number, said) for number, said in asked)


def about(model: Model, number: str | int) -> tuple[str | int, tuple[Published, ...]]:
    """A figure, and where the entry lists the same.

    Raises: ParamcountError for what is no figure.
    """
    figure = parse_figure(number)
    if not 1 <= figure.value <= LARGEST:
        raise ParamcountError(f"{describe_value(number)} is not a figure", expected=ACCEPTED)
    return number, tuple(said for said in model.published if parse_figure(said.value) == figure)


def answer(model: Model, count: Count, number: str | int, said: tuple[Published, ...]) -> Why:
    """What a figure counts. `said`: where the entry lists it."""
    figure = parse_figure(number)
    listed = min(said, key=lambda published: quality(meaning(published.what, count), figure), default=None)
    what = listed.what if listed else None
    meant = meaning(what, count)
    counts = bases(count, what)
    causes = {base: causes_of(model, count, base, files=what in (*OPEN, "checkpoint")) for base in counts}
    stated = fewest(counts, causes, lambda value: value == meant) if quality(meant, figure) < len(FITS) else []
    cut_off = what == "active" and bool(stated) and match_figure(stated[0].value, figure) == "truncated"  # conventions differ in `active`
    rounding = fewest(counts, causes, lambda value: match_figure(value, figure) in FITS[:2]) if not stated or cut_off else []
    found = stated or rounding or fewest(counts, causes, lambda value: match_figure(value, figure) is not None)
    plainer = None
    if not stated:
        plainer = next((Account(base, n, (), n, "truncated") for base, n in counts.items() if found and found[0].causes and match_figure(n, figure)), None)
    accounts = merged(counts, found, figure)
    rounded = next(iter(merged(counts, rounding, figure)), None) if stated else None
    base = accounts[0].base if accounts else min(counts, key=lambda base: abs(counts[base] - figure.value))
    left_over = 0 if accounts else figure.value - (counts[base] if meant is None else meant)
    source = next((source.ref for source in model.sources if listed and source.id == listed.source), None)
    printed = f"{number:,}" if isinstance(number, int) else number.strip()
    return Why(model.id, printed, *figure, what, source, base, counts[base], accounts, plainer, rounded, left_over)


def bases(count: Count, what: str | None) -> dict[str, int]:
    """The counts that may be meant."""
    if count.active == count.total:
        return {"total": count.total}
    meant = ("total", "active") if what in OPEN else ("active",) if str(what).startswith("active") else ("total",)
    return {base: getattr(count, base) for base in meant}


def meaning(what: str | None, count: Count) -> int | None:
    """The number that somebody means who says that this is counted."""
    found: int | None = getattr(count, what) if what not in OPEN and what is not None else None
    return found


def quality(value: int | None, figure: Figure) -> int:
    """How well a number fits a figure, the best first."""
    fit = None if value is None else match_figure(value, figure)
    return FITS.index(fit) if fit else len(FITS)


def causes_of(model: Model, count: Count, base: str, *, files: bool) -> list[Candidate]:
    """What may explain a difference from this count. To what one token uses, nothing belongs that only files hold."""
    if base == "active":
        return candidates([visited(tensor) for tensor in count.tensors], files=False)
    return candidates(count.tensors, get_scheme(model.release.quantisation if model.release else None, model.reading.unread), files=files)


class Sum(NamedTuple):
    """A count and causes that may be an account."""

    base: str
    causes: tuple[Candidate, ...]
    value: int


def fewest(counts: Mapping[str, int], causes: Mapping[str, Sequence[Candidate]], fit: Callable[[int], bool]) -> list[Sum]:
    """All sums that fit with as few causes as any."""
    for n in range(MOST_CAUSES + 1):
        made = (found for base in counts for found in sums(base, counts[base], causes[base], n - (base == "active")))
        if fitting := [found for found in made if fit(found.value) and stand_together(found.causes)]:
            return fitting
    return []


def sums(base: str, count: int, causes: Sequence[Candidate], n: int) -> Iterator[Sum]:
    """A count with every n of its causes."""
    pairs = [(cause.units, cause) for cause in causes]
    for chosen in combinations(pairs, n) if n >= 0 else ():
        yield Sum(base, tuple(cause for _, cause in chosen), count + sum(units for units, _ in chosen))


def merged(counts: Mapping[str, int], found: Iterable[Sum], figure: Figure) -> tuple[Account, ...]:
    """One account for each value, the nearest to the figure first."""
    alike: dict[tuple[str, int], list[tuple[Cause, ...]]] = {}
    for base, causes, value in found:
        alike.setdefault((base, value), []).append(tuple(candidate.cause for candidate in causes))
    made = [Account(base, counts[base], first, value, str(match_figure(value, figure)), tuple(others)) for (base, value), (first, *others) in alike.items()]
    return tuple(sorted(made, key=lambda account: abs(account.value - figure.value)))
