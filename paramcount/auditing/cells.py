"""Parses the claims in a cell: "7.61B", "~1.8T (estimated)", "14.3B (2.7B active)", "28 (queries), 4 (keys/values)"."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from paramcount.auditing.headings import BINARY, COUNTS, DECIMAL, UNITS, Heading, split_words
from paramcount.errors import quote

LONGEST = 200
DASHES = "-‐‑‒–—−"
NUMBER = r"(?P<number>\d+(?:[.,_'’]\d+)*)(?:[eE](?P<power>[+-]?\d{1,2})(?![\w.]))?"
TOKEN = re.compile(rf"{NUMBER}|(?P<word>[^\W\d_]+)|(?P<symbol>\S)")
SEPARATORS = ",;:/()+&×|"  # of numbers
IGNORED_SYMBOLS = "~≈∼≃><≥≤=#.\"'“”"
GAPS = re.compile(r"(?<![\w.,])\d{1,3}(?:[ \u00a0\u2009\u202f]\d{3})+(?![\w.,]*\d)")  # 124 439 808
BARE_POINT = re.compile(r"(?<![\w.,])\.(?=\d)|^,(?=\d)")  # .124B, ,5B
LAST_POINT = re.compile(r"(?<=\d)\.(?=\s?[kmbgt]\b)", re.IGNORECASE)  # 124.M
GROUPED = re.compile(r"(?!0)\d{1,3}(?:([,_'’])\d{3})(?:\1\d{3})*(?:\.\d+)?")
DOTTED = re.compile(r"\d{1,3}(?:\.\d{3}){2,}")  # 1.557.611.200
# A number whose decimal mark is certain: 7,61 and 0,249 and 1.234,5 and 1.234.567, or with points and commas exchanged.
CERTAIN = (
    r"(?<![\d.,])(?:\d+{point}(?!\d{{3}}(?!\d))\d+|0{point}\d+"
    r"|\d{{1,3}}(?:{comma}\d{{3}})+{point}\d+|\d{{1,3}}(?:{comma}\d{{3}}){{2,}})(?![\d.,])"
)
DECIMAL_COMMA = re.compile(CERTAIN.format(point=",", comma=r"\."))
DECIMAL_POINT = re.compile(CERTAIN.format(point=r"\.", comma=","))
EXCHANGED = str.maketrans(",.", ".,")
MARKUP = re.compile(
    r"\*+|`+|__|~~|</?[a-zA-Z][^<>]*>|(?<=\S)\[\^?\w{1,8}\](?!\()|[†‡§]|\\(?=[^\w\s])|(?<=[^\W\d_])[¹²³]"
)
LINK = re.compile(r"\[([^\[\]]*)\]\([^()\s]*\)")
LARGEST = 10**30
NO_CLAIM = "no claim"

EMPTY = frozenset({"", *DASHES, "--", "---", "?", "/", ".", "…", "..."})
ABSENT = frozenset({"n/a", "na", "none", "null", "nil", "nan", "no", "dense"})
MIXTURE = frozenset({"mixture of experts", "mixture-of-experts", "moe", "yes", "true", "sparse", "sparse moe"})
YES = frozenset({"yes", "true", "y", "1", "✓", "✔", "✅", "tied"})
NO = frozenset({"no", "false", "n", "0", "✗", "✘", "❌", "x", "untied", "not tied"})

RELATIONS = {
    ">": ">", "≥": "≥", "<": "<", "≤": "≤", "over": ">", "above": ">", "beyond": ">", "exceeding": ">", "more": ">",
    "least": "≥", "under": "<", "below": "<", "less": "<", "fewer": "<", "up": "≤", "most": "≤",
}  # fmt: skip
COMPARING = frozenset({"more", "less", "fewer"})  # before "than"
HEDGES = frozenset({
    "estimated", "estimate", "est", "guessed", "guess", "approx", "approximately", "about", "around", "circa", "ca",
    "roughly", "rumored", "rumoured", "rumor", "rumour", "speculated", "reportedly", "reported", "likely", "nearly",
    "almost", "unofficial", "unconfirmed",
})  # fmt: skip
FILLERS = frozenset({
    "parameter", "parameters", "param", "params", "total", "overall", "model", "models", "token", "tokens", "head",
    "heads", "layer", "layers", "expert", "experts", "of", "per", "each", "a", "for", "in", "and", "with", "at", "more",
    "than", "less", "fewer", "to", "the", "is", "size", "weights", "dim", "dimensions", "context", "window", "length",
    "attention",
})  # fmt: skip
LABELS = {
    "active": "active", "activated": "active", "act": "active", "used": "active", "top": "active", "selected": "active",
    "chosen": "active", "routed": "routed", "shared": "shared", "q": "q", "query": "q", "queries": "q", "kv": "kv",
    "key": "kv", "keys": "kv", "value": "kv", "values": "kv", "k": "kv", "v": "kv", "nonembedding": "non",
    "embedding": "non",
}  # fmt: skip


class Amount(NamedTuple):
    """A number exactly as written: digits × unit / 10^decimals; negative after a minus sign."""

    digits: int
    decimals: int = 0
    unit: int = 1
    loose: bool = False  # whether K, M, … may also be powers of 1,024

    @property
    def value(self) -> Fraction:
        return Fraction(self.digits * self.unit, 10**self.decimals)

    @property
    def step(self) -> Fraction:
        """The unit of the last digit; 0 if exact."""
        return Fraction(0) if self.unit == 1 else Fraction(self.unit, 10**self.decimals)


class CellClaim(NamedTuple):
    """One claim in a cell."""

    kind: str
    amount: Amount | None  # None if the claim needs no number
    relation: str = "="  # = > ≥ < ≤ | to (a range up to `most`) | some (an unknown number of experts) | none | yes | no
    most: Amount | None = None


class LabelledNumber(NamedTuple):
    """A number in a cell with the words around it."""

    amount: Amount
    unit: str | None = None  # written after the number
    label: str = ""
    relation: str = "="
    before: str = ""  # text between the previous number and this one


class UnreadableClaim(Exception):
    """The reason why a cell cannot be read as a claim."""


def parse_claims(text: str, heading: Heading) -> tuple[CellClaim, ...]:
    """The claims in a cell of a column.

    >>> from paramcount.auditing.headings import parse_heading
    >>> claims = parse_claims("14.3B (2.7B active)", parse_heading("parameters"))
    >>> [(claim.kind, int(claim.amount.value)) for claim in claims]
    [('total', 14300000000), ('active', 2700000000)]
    >>> claims = parse_claims("28 (queries), 4 (keys/values)", parse_heading("heads"))
    >>> [(claim.kind, int(claim.amount.value)) for claim in claims]
    [('n_heads', 28), ('n_kv_heads', 4)]

    Raises: UnreadableClaim with the reason if the cell contains no claim or cannot be read.
    """
    kind = str(heading.kind)
    if len(text) > LONGEST:
        raise UnreadableClaim(f"more than {LONGEST} characters")
    plain = clean_text(text)
    words = plain.casefold()
    of_experts = kind in ("n_routed_experts", "n_active_experts", "n_shared_experts")
    if words in EMPTY or (words in ABSENT and not of_experts and kind != "tied"):
        raise UnreadableClaim(NO_CLAIM)
    if kind == "tied":
        if words not in YES and words not in NO:
            raise UnreadableClaim(f"{quote(words)} is not yes or no")
        return (CellClaim("tied", None, "yes" if words in YES else "no"),)
    if of_experts and words in ABSENT:
        return (CellClaim(kind, None, "none"),)
    if kind == "n_routed_experts" and words in MIXTURE:
        return (CellClaim(kind, None, "some"),)
    if not any(character.isdigit() for character in plain):
        raise UnreadableClaim("not a number")
    is_of_bytes = any(word in DECIMAL or word in BINARY for word in split_words(plain))
    if kind == "bytes" and not heading.dtype and heading.unit == 1 and not is_of_bytes:
        return parse_claims(text, heading._replace(kind="total"))  # a column named size with cells such as 7B
    return tuple(RULES.get(kind, make_claim)(kind, CellParser(plain, heading).parse()))


def has_decimal_commas(texts: Iterable[str]) -> bool:
    """Whether cells use decimal commas: at least one cell is certain to use one, and no cell a decimal point.

    >>> has_decimal_commas(["7,61B", "1,558B"]), has_decimal_commas(["1,558B"]), has_decimal_commas(["7,61B", "1.5B"])
    (True, False, False)
    """
    marks = [(bool(DECIMAL_COMMA.search(text)), bool(DECIMAL_POINT.search(text))) for text in texts]
    return any(comma for comma, _ in marks) and not any(point for _, point in marks)


@lru_cache(maxsize=4096)  # called several times per cell
def clean_text(text: str) -> str:
    """The text of a cell without markup, footnotes and surrounding spaces."""
    plain = LINK.sub(r"\1", text)
    return " ".join(MARKUP.sub(" ", plain).split())


class CellParser:
    """Reads the tokens of a cell from left to right."""

    def __init__(self, text: str, heading: Heading) -> None:
        self.heading = heading
        plain = LAST_POINT.sub("", BARE_POINT.sub(lambda point: f"0{point[0]}", text))
        self.text = GAPS.sub(lambda run: re.sub(r"\s", "", run[0]), plain)
        self.tokens = list(TOKEN.finditer(self.text))
        self.position = 0  # of the next token
        self.numbers: list[LabelledNumber] = []
        self.start_number()

    def start_number(self) -> None:
        """Forget everything read since the last number; it belongs to that number."""
        self.relation, self.label, self.between, self.is_negative = "=", "", "", False

    def parse(self) -> list[LabelledNumber]:
        """The numbers in the cell, each with its label and relation. Words for estimates are ignored."""
        while self.position < len(self.tokens):
            number, power, word, symbol = self.tokens[self.position].groups()
            self.position += 1
            if number:
                self.read_number(number, power)
            elif symbol:
                self.read_symbol(symbol)
            else:
                self.read_word(word.casefold())
        if not self.numbers:
            raise UnreadableClaim("not a number")
        return self.numbers

    def get_next(self, group: str) -> str:
        """The next token if it is of this group, else ""."""
        return self.tokens[self.position][group] or "" if self.position < len(self.tokens) else ""

    def is_joined_to_number(self) -> bool:
        current = self.tokens[self.position - 1]
        return self.get_next("number") != "" and self.tokens[self.position].start() == current.end()

    def read_number(self, number: str, power: str | None) -> None:
        unit = parse_unit(self.get_next("word"), self.heading)
        self.position += unit is not None
        amount = parse_amount(number, power, unit, self.heading)
        if self.is_negative:
            amount = amount._replace(digits=-amount.digits)
        self.numbers.append(LabelledNumber(amount, unit, self.label, self.relation, self.between))
        self.start_number()

    def read_symbol(self, symbol: str) -> None:
        if symbol == "=" and self.relation in "><":  # >= or <=
            self.relation = "≥" if self.relation == ">" else "≤"
        self.relation = RELATIONS.get(symbol, self.relation)
        is_last = self.position == len(self.tokens) or self.get_next("symbol") == ")"
        if symbol in DASHES and not self.numbers and self.may_be_minus_sign():
            if self.is_negative or not self.is_joined_to_number():
                raise UnreadableClaim("a dash before the number")
            self.is_negative = True
        elif symbol == "+" and self.numbers and is_last:
            self.numbers[-1] = self.numbers[-1]._replace(relation="≥")
        elif symbol in SEPARATORS or symbol in DASHES:
            self.between += symbol
        elif symbol not in IGNORED_SYMBOLS:
            raise UnreadableClaim(f"unrecognised {quote(symbol)}")

    def may_be_minus_sign(self) -> bool:
        """Whether the current dash may be a minus sign; after a letter it is not, as in "top-6"."""
        return not self.text[: self.tokens[self.position - 1].start()][-1:].isalnum()

    def read_word(self, word: str) -> None:
        if word == "x" and self.numbers and self.get_next("number"):
            raise UnreadableClaim("a number of experts times a size, not a parameter count")
        if word in HEDGES:
            return
        if word in RELATIONS and (word not in COMPARING or self.get_next("word").casefold() == "than"):
            self.relation = RELATIONS[word]
        elif word == "a" and self.is_joined_to_number():
            self.label, self.between = "active", self.between + "A"  # 30B-A3B
        elif word == "to" and self.numbers and not self.between:
            self.between = "–" if self.relation == "=" else ""
        elif word == "k" and self.numbers and self.follows_number():
            number = self.tokens[self.position - 2][0]
            raise UnreadableClaim(f"{quote(number + 'K')} is not a number of {self.heading.text}")
        elif word in LABELS:
            self.read_label(word)
        elif word == "non" or word in FILLERS:
            self.between += " of " if word == "of" and self.numbers else ""
        else:
            raise UnreadableClaim(f"unrecognised {quote(word)}")

    def follows_number(self) -> bool:
        """Whether the current token follows the token before it without a space."""
        before, current = self.tokens[self.position - 2 : self.position]
        return before.end() == current.start()

    def read_label(self, word: str) -> None:
        """Label the last number, or the next one after a comma and before a colon."""
        is_after_comma = self.between[-1:] in {",", ";"}
        if not self.numbers or word == "top" or is_after_comma or self.get_next("symbol") in {":", "="}:
            self.label, self.between = LABELS[word], self.between.rstrip("-")
        else:
            self.numbers[-1] = self.numbers[-1]._replace(label=LABELS[word])


def parse_unit(word: str, heading: Heading) -> str | None:
    """The unit after a number; None if the word is not a unit of this column."""
    unit = word.casefold()
    if heading.kind == "bytes":
        return unit if unit in DECIMAL or unit in BINARY or unit in UNITS else None
    if heading.kind in (*COUNTS, "context_length", "vocab_size", "d_model", "d_ff", "d_expert"):
        return unit if unit in UNITS else None
    return None


def parse_amount(number: str, power: str | None, unit: str | None, heading: Heading) -> Amount:
    digits, decimals = parse_digits(number.translate(EXCHANGED) if heading.decimal_comma else number)
    size = heading.unit if unit is None else (UNITS | DECIMAL | BINARY)[unit]
    if power:
        size *= 10 ** max(0, int(power))
        decimals += max(0, -int(power))
    while decimals and digits % 10 == 0 and size == 1:  # 32.0, as spreadsheets write it
        digits, decimals = digits // 10, decimals - 1
    if size == 1 and decimals:
        raise UnreadableClaim("not a whole number")
    if digits * size > LARGEST or decimals > 12:
        raise UnreadableClaim("too large or too precise for a count")
    loose = heading.kind not in COUNTS and size in (10**3, 10**6, 10**9, 10**12)
    if power and 10**decimals >= size:
        return Amount(digits * size // 10**decimals)
    if heading.kind in COUNTS and unit is None and size == 1:
        return parse_written_count(digits)
    return Amount(digits, decimals, size, loose)


def parse_written_count(digits: int) -> Amount:
    """A count without a unit: exact unless it ends in at least five zeros, which means that it is rounded."""
    zeros = len(str(digits)) - len(str(digits).rstrip("0")) if digits else 0
    if zeros < 5:
        return Amount(digits)
    unit = 10 ** min(12, 3 * ((len(str(digits)) - 1) // 3))
    decimals = max(0, len(str(unit)) - 1 - zeros)
    return Amount(digits * 10**decimals // unit, decimals, unit)


def parse_digits(number: str) -> tuple[int, int]:
    """All digits as one integer, and the number of decimals.

    >>> parse_digits("12,288"), parse_digits("7.61"), parse_digits("1,5"), parse_digits("0,249")
    ((12288, 0), (761, 2), (15, 1), (249, 3))
    >>> parse_digits("1.557.611.200")
    (1557611200, 0)
    """
    if DOTTED.fullmatch(number):
        number = number.replace(".", "")
    elif GROUPED.fullmatch(number):
        number = re.sub("[,_'’]", "", number)
    whole, _, decimals = number.replace(",", ".").partition(".")
    if not (whole + decimals).isascii() or not (whole + decimals).isdigit():
        raise UnreadableClaim(f"{quote(number)} is not a number")
    return int(whole + decimals), len(decimals)


# ---- from the numbers in a cell to claims


Numbers = Sequence[LabelledNumber]
Rule = Callable[[str, Numbers], Iterator[CellClaim]]  # from the quantity of a column and the numbers in a cell


def make_claim(kind: str, numbers: Numbers) -> Iterator[CellClaim]:
    """The claim of one number, or of two that form a range."""
    if len(numbers) == 1:
        yield CellClaim(kind, numbers[0].amount, numbers[0].relation)
        return
    if not is_range(numbers):
        raise UnreadableClaim(f"{len(numbers)} unlabelled numbers")
    low, high = numbers
    least = low.amount
    if low.unit is None and high.unit is not None:  # 7–13B
        least = Amount(low.amount.digits, 0, high.amount.unit, high.amount.loose)
    if least.value > high.amount.value:
        raise UnreadableClaim("the range ends below its start")
    yield CellClaim(kind, least, "to", high.amount)


def is_range(numbers: Numbers) -> bool:
    """Whether numbers are two without labels and with a dash between them."""
    return (
        is_unlabelled_pair(numbers)
        and numbers[1].before.strip() in {*DASHES}
        and all(number.relation == "=" for number in numbers)
    )


def is_unlabelled_pair(numbers: Numbers) -> bool:
    return len(numbers) == 2 and not any(number.label for number in numbers)


def build_rule(kinds: Mapping[str, str], label_pair: Callable[[Numbers], Numbers] | None = None) -> Rule:
    """A rule for cells with several numbers.

    Args:
        kinds: {label: claimed quantity}
        label_pair: adds labels to two unlabelled numbers if their meaning is clear
    """

    def make_claims(kind: str, numbers: Numbers) -> Iterator[CellClaim]:
        if label_pair and is_unlabelled_pair(numbers):
            numbers = label_pair(numbers)
        if is_unlabelled_pair(numbers):
            yield from make_claim(kind, numbers)
            return
        own_labels = ("", OWN_LABELS.get(kind))
        quantities = [kinds.get(number.label) or (kind if number.label in own_labels else "") for number in numbers]
        if not all(quantities) or len(set(quantities)) < len(quantities):
            is_single = len(numbers) == 1
            raise UnreadableClaim(
                f"a label that does not fit {kind}" if is_single else f"{len(numbers)} unlabelled numbers"
            )
        yield from (CellClaim(name, number.amount, number.relation) for name, number in zip(quantities, numbers))

    return make_claims


OWN_LABELS = {
    "n_kv_heads": "kv",
    "n_active_experts": "active",
    "n_shared_experts": "shared",
    "active": "active",
    "non_embedding": "non",
}


def label_kv_heads(numbers: Numbers) -> Numbers:
    """28/4: query heads and KV heads."""
    first, second = numbers
    has_kv_heads = second.before in ("/", ",", "(", " / ") and second.amount.value <= first.amount.value
    return (first, second._replace(label="kv")) if has_kv_heads else numbers


def label_active_experts(numbers: Numbers) -> Numbers:
    """128/8 or 2 of 8: routed and active experts."""
    routed, active = sorted(numbers, key=lambda number: number.amount.value, reverse=True)
    has_active = numbers[1].before in ("/", " of ", " / ")
    return (routed, active._replace(label="active")) if has_active else numbers


def claim_bytes(kind: str, numbers: Numbers) -> Iterator[CellClaim]:
    for number in numbers:
        if number.unit in UNITS and number.unit not in ("k", "m", "g", "t"):
            raise UnreadableClaim(f"{quote(number.unit)} is not a unit of bytes")
        if number.amount.unit == 1:
            raise UnreadableClaim("no unit (MB, GB, …)")
    yield from make_claim(kind, numbers)


HEADS = {"q": "n_heads", "kv": "n_kv_heads"}
EXPERTS = {"routed": "n_routed_experts", "active": "n_active_experts", "shared": "n_shared_experts"}
RULES: dict[str, Rule] = {
    "total": build_rule({"active": "active", "non": "non_embedding"}),
    "active": build_rule({}),
    "non_embedding": build_rule({}),
    "n_heads": build_rule(HEADS, label_kv_heads),
    "n_kv_heads": build_rule(HEADS),
    "n_routed_experts": build_rule(EXPERTS, label_active_experts),
    "n_active_experts": build_rule({"active": "n_active_experts", "shared": "n_shared_experts"}),
    "bytes": claim_bytes,
}
