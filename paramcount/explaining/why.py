"""Explains why a published figure differs from the count, as a sum of named causes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

from paramcount.counting.count import Count
from paramcount.counting.quantisation.scales import get_scales
from paramcount.counting.results import JsonResult, to_plain
from paramcount.errors import ParamcountError, describe_value, locate_errors
from paramcount.explaining.causes import (
    Cause,
    CauseCandidate,
    are_compatible,
    find_base_class,
    find_candidates,
    select_active,
)
from paramcount.output.numbers import COUNT_UNITS, Figure, format_scaled, match_figure, parse_figure
from paramcount.zoo import Model, count_model
from paramcount.zoo.entries import Published

MOST_CAUSES = 3  # in one explanation; starting from `active` instead of `total` is one of them
LARGEST = 10**30
EXPECTED = "a number such as 7B, 7.61B or ~1.04T, or a positive integer"
UNSTATED = (None, "unspecified")  # the source does not say what it counts
COUNT_PHRASES = {  # {name of a count: how a sentence names it}
    "total": "all parameters",
    "active": "active parameters",
    "language_model": "the parameters of the language model",
    "active_without_input_embedding": "active parameters without the input embedding",
    "active_non_embedding": "active parameters without embeddings and LM head",
    "non_embedding": "parameters without embeddings and LM head",
    "checkpoint": "the values in the released files",
}
FITS = ("exact", "rounded", "truncated")


@dataclass(frozen=True)
class Account:
    """A count plus causes whose sum matches a figure."""

    base: str  # total | active
    count: int  # the value of the base count
    causes: tuple[Cause, ...]
    value: int  # the sum of the count and the causes
    fit: str  # how the value matches the figure: exact | rounded | truncated
    also: tuple[tuple[Cause, ...], ...] = ()  # other causes with the same sum

    @property
    def terms(self) -> str:
        """The causes as terms: "minus one embedding matrix (input or LM head) 579,133,440"."""
        return ", or ".join(format_causes(causes) for causes in (self.causes, *self.also))


def format_causes(causes: Iterable[Cause]) -> str:
    """Causes as terms: "plus tied LM head counted twice 617,558,016 minus biases 7,077,888"."""
    terms = []
    for cause in causes:
        note = f" ({cause.note})" if cause.note else ""
        terms.append(f"{'plus' if cause.units > 0 else 'minus'} {cause.name} {abs(cause.units):,}{note}")
    return " ".join(terms)


@dataclass(frozen=True, repr=False)
class Why(JsonResult):
    """A published figure and the sums that explain it."""

    shown = ("id", "published", "verdict")
    html_table = "paramcount.explaining.render_why:build_figure_table"

    id: str
    published: str  # as published
    value: int  # the figure as a number
    step: int  # the unit of its last digit; 1 if it is exact
    what: str | None  # the count that its source names; None if unknown
    source: str | None
    base: str  # the count to which it refers: total | active | reference_total
    true: int  # the value of that count
    accounts: tuple[Account, ...]  # one if it is explained; several that fit equally well; none if not reproducible
    plainer: Account | None  # if `accounts` have causes: a count without causes that matches when truncated
    rounded: Account | None  # if the stated active count matches only when truncated: a sum that matches when rounded
    left_over: int  # unexplained: the figure minus the count that its source names, or minus `true`; 0 if explained
    correction: str | None = None  # where the publisher corrects the figure, if it was wrong

    @property
    def verdict(self) -> str:
        """exact, rounded, truncated, several, corrected by the publisher, or not reproducible."""
        if not self.accounts and self.correction:
            return "corrected"
        return self.accounts[0].fit if len(self.accounts) == 1 else "several" if self.accounts else "not reproducible"

    @property
    def ok(self) -> bool:
        """Whether the figure is explained."""
        return bool(self.accounts or self.correction)

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain data for JSON."""
        return {name: to_plain(value) for name, value in self.__dict__.items()} | {"verdict": self.verdict}


def render_terms(account: Account) -> str:
    """A sum without the value of the base count: "total minus buffers 12,582,912"."""
    return f"{account.base} {account.terms}".rstrip()


def render_equation(account: Account) -> str:
    """A sum with all values: "total 124,439,808 plus buffers 12,582,912"."""
    return f"{account.base} {account.count:,} {account.terms}".rstrip()


def explain_figures(model: Model, numbers: Iterable[str | int] = ()) -> tuple[Why, ...]:
    """An explanation of each figure; by default, of each figure that the zoo entry lists as published."""
    count = count_model(model)
    questions = [(number, find_published(model, number)) for number in numbers]
    figures = questions or [(figure.value, (figure,)) for figure in model.published]
    return tuple(explain_figure(model, count, number, published) for number, published in figures)


def find_published(model: Model, number: str | int) -> tuple[Published, ...]:
    """The published figures in the zoo entry with this value.

    Raises: ParamcountError if the text is not a parameter count.
    """
    figure = parse_figure(number)
    if not 1 <= figure.value <= LARGEST:
        raise ParamcountError(f"{describe_value(number)} is not a parameter count", expected=EXPECTED)
    return tuple(published for published in model.published if parse_figure(published.value) == figure)


def explain_figure(model: Model, count: Count, number: str | int, published: tuple[Published, ...]) -> Why:
    """The explanation of a figure. `published`: the same figure in the zoo entry, once per source."""
    figure = parse_figure(number)
    entry = min(published, key=lambda entry: rank_fit(get_stated_count(entry.what, count), figure), default=None)
    what = entry.what if entry else None
    stated = get_stated_count(what, count)
    counts = list_base_counts(count, what)
    files = what in (*UNSTATED, "checkpoint")
    candidates = {base: find_causes(model, count, base, files=files) for base in counts}

    def find_sums(is_match: Callable[[int], bool]) -> list[Sum]:
        return find_shortest_sums(counts, candidates, is_match)

    as_stated = find_sums(lambda value: value == stated) if rank_fit(stated, figure) < len(FITS) else []
    # Sources define "active" differently, so also look for a rounded match if the stated count only matches truncated.
    is_truncated = what == "active" and bool(as_stated) and match_figure(as_stated[0].value, figure) == "truncated"
    rounding = []
    if not as_stated or is_truncated:
        rounding = find_sums(lambda value: match_figure(value, figure) in FITS[:2])
    sums = as_stated or rounding or find_sums(lambda value: match_figure(value, figure) is not None)
    plainer = None
    if not as_stated and sums and sums[0].causes:
        plain = (Account(base, n, (), n, "truncated") for base, n in counts.items() if match_figure(n, figure))
        plainer = next(plain, None)
    accounts = make_accounts(counts, sums, figure)
    rounded = next(iter(make_accounts(counts, rounding, figure)), None) if as_stated else None
    base = accounts[0].base if accounts else min(counts, key=lambda base: abs(counts[base] - figure.value))
    unexplained = 0 if accounts else figure.value - (counts[base] if stated is None else stated)
    refs = {source.id: source.ref for source in model.sources} if entry else {}
    source, correction = (refs[id] if id else None for id in (entry.source, entry.corrected)) if entry else (None, None)
    text = f"{number:,}" if isinstance(number, int) else number.strip()
    return Why(
        model.id, text, *figure, what, source, base, counts[base], accounts, plainer, rounded, unexplained, correction
    )


def list_base_counts(count: Count, what: str | None) -> dict[str, int]:
    """The counts to which a figure may refer, given what its source names: {name: value}."""
    if what in UNSTATED and count.reference_total != count.total:
        return {"total": count.total, "reference_total": count.reference_total}
    if count.active == count.total:
        return {"total": count.total}
    if what in UNSTATED:
        return {"total": count.total, "active": count.active}
    return {"active": count.active} if str(what).startswith("active") else {"total": count.total}


def get_stated_count(what: str | None, count: Count) -> int | None:
    """The value of the count that a source names; None if the source names none."""
    n: int | None = None if what is None or what in UNSTATED else getattr(count, what)
    return n


def rank_fit(value: int | None, figure: Figure) -> int:
    fit = None if value is None else match_figure(value, figure)
    return FITS.index(fit) if fit else len(FITS)


def find_causes(model: Model, count: Count, base: str, *, files: bool) -> list[CauseCandidate]:
    """Possible causes of a difference from this count. Values that only files contain never explain active counts."""
    if base == "reference_total":  # other causes explain a difference from the release
        return []
    if base == "active":
        return find_candidates([select_active(tensor) for tensor in count.tensors], files=False)
    is_whole = model.reading.head and model.reading.scope == "model"
    classes = find_base_class(count.tensors, model.sizes) if is_whole else ()
    scheme = get_scales(model.release.quantisation if model.release else None, model.reading.unread)
    with locate_errors(f"{model.id}: quantization_config"):  # errors of modules that it selects by name
        return [*find_candidates(count.tensors, scheme, files=files), *classes]


class Sum(NamedTuple):
    """A count with causes, before it is formatted as an account."""

    base: str
    causes: tuple[CauseCandidate, ...]
    value: int


def find_shortest_sums(
    counts: Mapping[str, int],
    candidates: Mapping[str, Sequence[CauseCandidate]],
    is_match: Callable[[int], bool],
) -> list[Sum]:
    for n in range(MOST_CAUSES + 1):
        matches = [
            candidate
            for base in counts
            for candidate in make_sums(base, counts[base], candidates[base], n - (base == "active"))
            if is_match(candidate.value) and are_compatible(candidate.causes)
        ]
        if matches:
            return matches
    return []


def make_sums(base: str, count: int, candidates: Sequence[CauseCandidate], n: int) -> Iterator[Sum]:
    units = [(candidate.units, candidate) for candidate in candidates]
    for group in combinations(units, n) if n >= 0 else ():
        yield Sum(base, tuple(candidate for _, candidate in group), count + sum(n for n, _ in group))


def make_accounts(counts: Mapping[str, int], sums: Iterable[Sum], figure: Figure) -> tuple[Account, ...]:
    """One account per value, starting with the nearest to the figure."""
    by_value: dict[tuple[str, int], list[tuple[Cause, ...]]] = {}
    for base, candidates, value in sums:
        by_value.setdefault((base, value), []).append(tuple(candidate.cause for candidate in candidates))
    accounts = []
    for (base, value), (first, *others) in by_value.items():
        fit = str(match_figure(value, figure))
        accounts.append(Account(base, counts[base], first, value, fit, tuple(others)))
    return tuple(sorted(accounts, key=lambda account: abs(account.value - figure.value)))


def describe_difference(why: Why) -> str:
    """How far an unexplained figure is from the count that it was compared with."""
    n = abs(why.left_over)
    difference = f"{n:,}" if why.step == 1 else format_scaled(n, COUNT_UNITS, digits=2)
    return f"unexplained, {difference} {'less' if why.left_over < 0 else 'more'} than {name_base(why)}"


def name_base(why: Why) -> str:
    """The name of the count that an unexplained figure was compared with."""
    return why.base if why.value - why.left_over == why.true else COUNT_PHRASES.get(str(why.what), str(why.what))
