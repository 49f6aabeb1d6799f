"""Compares claims with the zoo. Verdicts are right, rounded, wrong and not checkable."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import gcd
from typing import NamedTuple

from paramcount.auditing.cells import Amount, CellClaim
from paramcount.auditing.facts import Truth, count_bytes, list_noted_contexts, list_truths
from paramcount.auditing.headings import Heading
from paramcount.errors import ParamcountError
from paramcount.explaining.why import explain_figures, render_equation
from paramcount.output.numbers import Figure, describe_verdict, format_bytes, match_figure
from paramcount.zoo import Model

VERDICTS = ("right", "rounded", "wrong", "not checkable")
VERDICTS_OF_FIT = {"exact": ("right", ""), "rounded": ("rounded", ""), "truncated": ("rounded", "truncated")}
PADDING = 1024  # maximum number of padding rows in a token embedding
BINARY_OF = {10**3: 2**10, 10**6: 2**20, 10**9: 2**30, 10**12: 2**40}
THOUSANDS = {2**10: "K = 1,024", 2**20: "M = 2²⁰", 2**30: "G = 2³⁰", 2**40: "T = 2⁴⁰"}


class Judgement(NamedTuple):
    """The verdict on a claim."""

    verdict: str  # one of VERDICTS
    true: int | None = None  # None if unknown
    note: str = ""


def judge(claim: CellClaim, heading: Heading, model: Model, is_own: bool = True) -> Judgement:
    """The verdict on a claim about a zoo model.

    Args:
        is_own: whether the zoo entry describes this release, not another release with the same sizes
    """
    if model.estimate:
        return Judgement("not checkable", note="a third-party estimate; its sizes are unpublished")
    if claim.kind != "bytes":
        truth = list_truths(model.id)[claim.kind]
    elif heading.width is not None:
        truth = count_bytes(model.id, heading.width)
    elif heading.dtype:
        truth = Truth(None, f"{heading.dtype.upper()} files also contain scales")
    else:
        truth = Truth(None, "the heading does not name a number format")
    if truth.value is None:
        return Judgement("not checkable", note=truth.why)
    judgement = compare_claim(claim, truth)
    if judgement.verdict != "wrong" or claim.relation != "=":
        return judgement
    return RULES[claim.kind](claim, judgement, model, is_own) if claim.kind in RULES else judgement


def compare_claim(claim: CellClaim, truth: Truth) -> Judgement:
    true = truth.value
    assert true is not None  # noqa: S101 - checked by the caller
    if claim.amount is None:
        return compare_word(claim, true)
    if claim.amount.digits < 0:
        return Judgement("wrong", true, "a negative number")
    if claim.relation != "=":
        if not any(is_satisfied(claim, value) for value, _ in ((true, ""), *truth.others)):
            return Judgement("wrong", true)
        is_range = claim.relation == "to"
        reason = "a range that includes the correct value" if is_range else "a bound that the correct value satisfies"
        return Judgement("not checkable", true, reason)
    for value, words in ((true, ""), *truth.others):
        if fit := match_amount(value, claim.amount):
            verdict, note = fit
            return Judgement(verdict, true, "; ".join(filter(None, (note, words))))
    return Judgement("wrong", true)


def compare_word(claim: CellClaim, true: int) -> Judgement:
    """The verdict on a claim without a number: none, some, yes or no."""
    if claim.relation in ("yes", "no"):
        return Judgement("right" if (claim.relation == "yes") == bool(true) else "wrong", true)
    if claim.relation == "some":
        return Judgement("right", true, "a mixture of experts") if true else Judgement("wrong", true, "a dense model")
    if true:  # N/A: none or unknown
        return Judgement("not checkable", true, "may mean none or unknown")
    return Judgement("right", true)


def is_satisfied(claim: CellClaim, true: int) -> bool:
    """Whether a value satisfies a claimed bound or range, including values that round to its ends."""
    assert claim.amount is not None  # noqa: S101 - checked by the caller
    (least, _), (_, most) = find_bounds(claim.amount), find_bounds(claim.most or claim.amount)
    if claim.relation in "><" and not claim.amount.step:
        return true > claim.amount.value if claim.relation == ">" else true < claim.amount.value
    return (claim.relation in "<≤" or true >= least) and (claim.relation in ">≥" or true < most)


def find_bounds(amount: Amount) -> tuple[Fraction, Fraction]:
    """The smallest number that rounds or truncates to this amount, and the smallest number above that is too large."""
    value, step = amount.value, amount.step
    return (value - step / 2, value + step) if step else (value, value + 1)


def match_amount(true: int, amount: Amount) -> tuple[str, str] | None:
    """The verdict if a number matches an amount, with a note; None if it does not. If loose, K may mean 1,024."""
    units = [amount.unit, *([BINARY_OF[amount.unit]] if amount.loose else [])]
    fits = [(match_unit(true, amount, unit), unit) for unit in units]
    for best, (verdict, note) in VERDICTS_OF_FIT.items():
        for fit, unit in fits:
            if fit != best:
                continue
            if unit == amount.unit:
                return verdict, note
            return "rounded", "; ".join(filter(None, (note, THOUSANDS[unit])))
    return None


def match_unit(true: int, amount: Amount, unit: int) -> str | None:
    """How a number matches the digits of an amount: exact, rounded, truncated, or None."""
    shared = gcd(unit, 10**amount.decimals)
    scale, step = 10**amount.decimals // shared, unit // shared
    return match_figure(true * scale, Figure(amount.digits * step, step))


def judge_context(claim: CellClaim, judgement: Judgement, model: Model, is_own: bool) -> Judgement:
    """The verdict on a different context length: wrong unless the entry is another release or the sources differ."""
    amount, true = claim.amount, judgement.true
    if amount is None or true is None:
        return judgement
    if not is_own:
        return Judgement("not checkable", true, f"the zoo entry is {model.id}, another release with the same sizes")
    for length, note in list_noted_contexts(model):
        if match_amount(length, amount):
            return Judgement("not checkable", true, f"the sources disagree: {note.rstrip('.')}")
    return judgement._replace(note=f"= {true // 1024} × 1,024") if amount.value * 1024 == true * 1000 else judgement


def judge_vocabulary(claim: CellClaim, judgement: Judgement, model: Model, is_own: bool) -> Judgement:
    """The verdict on a different vocabulary size: not checkable if the tokenizer, without padding, may have it."""
    true = judgement.true
    if claim.amount and true and 0 < true - claim.amount.value < PADDING:
        return Judgement("not checkable", true, f"{true:,} rows with padding; the tokenizer may have fewer tokens")
    return judgement


RULES = {"context_length": judge_context, "vocab_size": judge_vocabulary}


def explain_claim(amount: Amount, true: int, model: Model) -> str:
    """A possible origin of a wrong number of parameters: a sum with causes, coarser rounding, or a publication."""
    letter = {1: "", 10**3: "K", 10**6: "M", 10**9: "B", 10**12: "T"}.get(amount.unit)
    if letter is None or amount.digits <= 0:
        return ""
    integer, decimals = divmod(amount.digits, 10**amount.decimals)
    number = f"{integer}.{decimals:0{amount.decimals}}" if amount.decimals else f"{integer}"
    figure = f"{number}{letter}" if amount.decimals or letter else integer
    try:
        (answer,) = explain_figures(model, [figure])
    except ParamcountError:
        return ""
    if len(answer.accounts) == 1:
        (account,) = answer.accounts
        return f"= {render_equation(account)}" + ("" if account.fit == "exact" else f", {account.fit}")
    notes = [f"also published in {answer.source}"] if answer.source else []
    ends_in_zero = letter and amount.digits % 10 == 0 and not amount.decimals
    if ends_in_zero and match_figure(true, Figure(amount.digits * amount.unit, 10 * amount.unit)) == "rounded":
        notes.insert(0, f"rounded to the nearest 10 {letter}")
    return "; ".join(notes)


def format_true(kind: str, true: int) -> str:
    """A correct value as text."""
    if kind == "bytes":
        return format_bytes(true)
    if kind == "tied":
        return ("no", "yes")[true]
    return "none" if true == 0 and kind.endswith("experts") else f"{true:,}"


def find_worst(verdicts: Iterable[str]) -> str:
    """The worst of several verdicts; "not checkable" only if none can be checked."""
    distinct = set(verdicts)
    return next((verdict for verdict in ("wrong", "rounded", "right") if verdict in distinct), "not checkable")


def count_verdict(n: int, verdict: str) -> str:
    """A number of verdicts as text.

    >>> count_verdict(1, "rounded"), count_verdict(1200, "right")
    ('1 matches when rounded', '1,200 right')
    """
    return f"{n:,} {'match when rounded' if verdict == 'rounded' and n > 1 else describe_verdict(verdict)}"


def count_verdicts(verdicts: Iterable[str]) -> dict[str, int]:
    """{verdict: number}, with all of VERDICTS."""
    counts = dict.fromkeys(VERDICTS, 0)
    for verdict in verdicts:
        counts[verdict] += 1
    return counts
