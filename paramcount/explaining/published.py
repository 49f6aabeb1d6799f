"""Why somebody else says a different number: a published figure as a count and named causes with nothing left over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

from paramcount.counting import Count, counted
from paramcount.errors import ParamcountError, shown
from paramcount.explaining.causes import Candidate, Cause, candidates, stand_together, visited
from paramcount.figures import Figure, fits, parse
from paramcount.names import load
from paramcount.scales import scheme_of
from paramcount.zoo import Model, Published

MOST_CAUSES = 3  # at once; `active` instead of `total` is one of them
LARGEST = 10**30
ACCEPTED = "7B, 124M, 7.61B, ~1.04T or a whole number from 1"
# What a source can say it counts and mean one number by. Conventions differ in `active`, so that it says only which count is meant.
DEFINITE = ("total", "non_embedding", "active_non_embedding", "active_without_input_table", "checkpoint")
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
    left_over: int  # where nothing explains it: what it lacks (negative) or has beside the count that its source names, else `true`

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
        return plain(self) | {"verdict": self.verdict}


def plain(value: Any) -> Any:
    if isinstance(value, tuple) and not hasattr(value, "_asdict"):
        return [plain(inner) for inner in value]
    fields = value._asdict() if hasattr(value, "_asdict") else getattr(value, "__dict__", None)
    return {name: plain(inner) for name, inner in fields.items()} if fields is not None else value


def why(model: object, number: str | int | None = None, *, download: bool = False) -> tuple[Why, ...]:
    """What published figures count: one answer for `number`, or without it one for each figure that the model's entry lists.

    `model`: as for `paramcount.count`. `number`: as printed ("3.6B", "~1.04T"), which is met by rounding or cutting off; a whole
    number (137022720 or "137,022,720") has to be met exactly.

    >>> (answer,) = why("gpt-oss-20b", "3.6B")
    >>> answer.base, answer.true, answer.verdict
    ('active', 4187440704, 'rounded')
    >>> [(cause.name, cause.units) for cause in answer.accounts[0].causes]
    [('one table', -579133440)]
    >>> why("gpt2-small", "117M")[0].left_over
    -7439808

    Units: parameters; of what files hold besides, values. Raises: ParamcountError where the model is unknown or an estimate, where
    the number is none, or where there is none and the entry lists none.
    """
    loaded = load(model, download=download)
    return explained(loaded, () if number is None else (number,))


def explained(model: Model, numbers: Iterable[str | int] = ()) -> tuple[Why, ...]:
    """The same of a loaded model, with any number of figures."""
    count = counted(model)
    asked = [about(model, number) for number in numbers] or [(figure.value, (figure,)) for figure in model.published]
    if not asked:
        raise ParamcountError("lists no published figure", where=model.id, accepted=f"a number: {ACCEPTED}")
    return tuple(answer(model, count, number, said) for number, said in asked)


def about(model: Model, number: str | int) -> tuple[str | int, tuple[Published, ...]]:
    """A figure, and where the entry lists the same.

    Raises: ParamcountError for what is no figure.
    """
    figure = parse(number)
    if not 1 <= figure.value <= LARGEST:
        raise ParamcountError(f"{shown(number)} is not a figure", accepted=ACCEPTED)
    return number, tuple(said for said in model.published if parse(said.value) == figure)


def answer(model: Model, count: Count, number: str | int, said: tuple[Published, ...]) -> Why:
    """What a figure counts. `said`: where the entry lists it."""
    figure = parse(number)
    listed = min(said, key=lambda published: quality(meaning(published.what, count), figure), default=None)
    what = listed.what if listed else None
    meant = meaning(what, count)
    bases = ["total", "active"] if what in (None, "unspecified") else ["active"] if str(what).startswith("active") else ["total"]
    if count.active == count.total:
        bases = ["total"]
    sums = Sums(count, {base: causes_of(model, count, base, files=what in (None, "unspecified", "checkpoint")) for base in bases})
    found = sums.fewest(lambda value: value == meant) if what in DEFINITE and quality(meant, figure) < len(FITS) else []
    found = found or sums.fewest(lambda value: fits(value, figure) in FITS[:2]) or sums.fewest(lambda value: fits(value, figure) is not None)
    accounts = merged(count, found, figure)
    base = accounts[0].base if accounts else min(bases, key=lambda base: abs(sums.of(base) - figure.value))
    left_over = 0 if accounts else figure.value - (sums.of(base) if meant is None else meant)
    printed = f"{number:,}" if isinstance(number, int) else number.strip()
    source = next((source.ref for source in model.sources if listed and source.id == listed.source), None)
    return Why(model.id, printed, *figure, what, source, base, sums.of(base), accounts, left_over)


def meaning(what: str | None, count: Count) -> int | None:
    """The number that somebody means who says that this is counted."""
    found: int | None = getattr(count, what) if what not in (None, "unspecified") else None
    return found


def quality(value: int | None, figure: Figure) -> int:
    """How well a number fits a figure, the best first."""
    fit = None if value is None else fits(value, figure)
    return FITS.index(fit) if fit else len(FITS)


def causes_of(model: Model, count: Count, base: str, *, files: bool) -> list[Candidate]:
    """What may explain a difference from this count. To what one token uses, nothing belongs that only files hold."""
    if base == "active":
        return candidates([visited(tensor) for tensor in count.tensors], files=False)
    return candidates(count.tensors, scheme_of(model), files=files)


class Sum(NamedTuple):
    base: str
    causes: tuple[Candidate, ...]
    value: int


class Sums(NamedTuple):
    """Each count that may be meant, with what may explain a difference from it."""

    count: Count
    causes: dict[str, list[Candidate]]

    def of(self, base: str) -> int:
        n: int = getattr(self.count, base)
        return n

    def fewest(self, fit: Callable[[int], bool]) -> list[Sum]:
        """All that fit with as few causes as any."""
        for n in range(MOST_CAUSES + 1):
            if found := [sum_ for base in self.causes for sum_ in self.with_causes(base, n) if fit(sum_.value) and stand_together(sum_.causes)]:
                return found
        return []

    def with_causes(self, base: str, n: int) -> Iterator[Sum]:
        n -= base == "active"
        pairs = [(candidate, candidate.units) for candidate in self.causes[base]]
        for chosen in combinations(pairs, n) if n >= 0 else ():
            yield Sum(base, tuple(candidate for candidate, _ in chosen), self.of(base) + sum(units for _, units in chosen))


def merged(count: Count, found: Iterable[Sum], figure: Figure) -> tuple[Account, ...]:
    """One account for each value, the nearest to the figure first."""
    alike: dict[tuple[str, int], list[tuple[Cause, ...]]] = {}
    for base, causes, value in found:
        alike.setdefault((base, value), []).append(tuple(candidate.cause for candidate in causes))
    made = [
        Account(base, getattr(count, base), first, value, str(fits(value, figure)), tuple(others))
        for (base, value), (first, *others) in alike.items()
    ]
    return tuple(sorted(made, key=lambda account: abs(account.value - figure.value)))
