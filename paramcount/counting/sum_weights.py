"""What the weights of a declaration sum to, for each part and component. Structures that recur are summed once, in symbols."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterator, Mapping
from math import prod
from types import MethodType, SimpleNamespace
from typing import Any, NamedTuple

from paramcount.errors import ParamcountError
from paramcount.flow import Data, Repeat, Size, given, list_weights
from paramcount.flow.walk import count_copies
from paramcount.sizes import Sizes, inner_configs

OFTEN = 2  # a structure seen so many times is worth its polynomials
IN_VAIN = -1  # it has none: it depends on sizes
UNWALKED = (ParamcountError, TypeError, AttributeError)  # what a walk over symbols raises where the structure depends on one
MOST_KEPT = 2000
BESIDE = ("buffer", "mtp", "mtp_buffer", "mtp_copy")

Sum = tuple[Size, Size]  # parameters, and those of them that one token uses


class Sums(NamedTuple):
    """The weights of one declaration."""

    found: Mapping[tuple[str, str], Sum]  # {(part, component): its sum}
    beside: Mapping[str, Size]  # every name of BESIDE
    tied: bool
    spare: Size = 0  # active parameters that a token may do without, where the number of experts it visits varies


def list_flows(sizes: Sizes, head: bool = True) -> Iterator[tuple[Data, str]]:
    """The model's own flow, then that of its MTP layers, each with the part its weights belong to unless they say otherwise.
    `head`: with the language model's head."""
    tokens = given("tokens", "tokens")
    yield sizes.task_forward(tokens) if head else sizes.body(tokens), "decoder"
    beside = sizes.mtp(tokens)
    if beside is not None:
        yield beside, "mtp"


def sum_weights(sizes: Sizes, head: bool) -> Sums:
    """The sums of a walk over the declaration, in the arithmetic of its sizes."""
    found: dict[tuple[str, str], list[Size]] = {}
    beside: dict[str, Size] = dict.fromkeys(BESIDE, 0)
    tied = False
    repeats: tuple[Repeat, ...] | None = None
    spare: Size = 0
    for out, flow_part in list_flows(sizes, head):
        for record in list_weights(out, flow_part):
            weight = record.weight
            if record.repeats is not repeats:  # weights of one body share their repeats
                repeats = record.repeats
                copies, active, least = count_copies(repeats)
            if record.part == "mtp":
                beside["mtp_copy" if record.tied_to else "mtp" if weight.role == "parameter" else "mtp_buffer"] += prod(weight.shape) * copies
            elif weight.role != "parameter":
                beside[weight.role] += prod(weight.shape) * copies
            elif record.tied_to is not None:
                tied = tied or weight.component == "lm_head"
            else:
                if active is not least:
                    spare += prod(weight.shape) * (active - least)
                for component, elements in record.shares:
                    add_share(found, record.part, component, elements, copies, active)
    return Sums({key: (total, active) for key, (total, active) in found.items()}, beside, tied, spare)


def add_share(found: dict[tuple[str, str], list[Size]], part: str, name: str, n: Size, times: Size, visited: Size) -> None:
    sums = found.setdefault((part, name), [0, 0])
    sums[0] += n * times
    sums[1] += n * visited


def cached_sums(sizes: Sizes, head: bool = True) -> Sums:
    """The sums of one config: walked, or worked out from the polynomials of its structure where that has come often."""
    for counted in (False, True):  # where the structure depends on how many there are of something, those are no symbols
        key = (head, counted, get_structure(sizes, counted))
        seen = _structures.get(key, 0)
        if isinstance(seen, int) and 0 <= seen < OFTEN:
            if len(_structures) >= MOST_KEPT:
                _structures.clear()
            _structures[key] = seen + 1
            return sum_weights(sizes, head)
        if seen == OFTEN:
            seen = _structures[key] = derive_polynomials(sizes, head, counted) or IN_VAIN
        if isinstance(seen, Polynomials):
            return seen.at(sizes)
    return sum_weights(sizes, head)


def get_structure(sizes: Sizes, counted: bool) -> Hashable:
    """What two configs of an architecture must share to be the same polynomials: everything that is no symbol."""
    inner = inner_configs(type(sizes))
    return (
        type(sizes),
        *(
            get_structure(value, counted) if name in inner and value is not None else ... if is_symbolic(name, value, counted) else value
            for name, value in sizes.__dict__.items()
        ),
    )


def is_symbolic(name: str, value: object, counted: bool) -> bool:
    return type(value) is int and not (counted and name.startswith("n_"))


class Polynomials(NamedTuple):
    """The sums of a structure in named sizes."""

    places: list[tuple[tuple[str, str], int, int]]  # (part and component, where `values` has its total, and what is active of it)
    values: Callable[[Sizes], tuple[int, ...]]  # those, then BESIDE, then what is spare
    tied: bool

    def at(self, sizes: Sizes) -> Sums:
        values = self.values(sizes)
        *beside, spare = values[-len(BESIDE) - 1 :]
        return Sums({key: (values[i], values[j]) for key, i, j in self.places}, dict(zip(BESIDE, beside)), self.tied, spare)


_structures: dict[Hashable, int | Polynomials] = {}


def derive_polynomials(sizes: Sizes, head: bool, counted: bool) -> Polynomials | None:
    """The polynomials of a structure; None where it depends on a size's value."""
    try:
        found, beside, tied, spare = sum_weights(make_symbolic(sizes, counted), head)
    except UNWALKED:
        return None
    written: list[str] = []
    places = []
    for key, (total, active) in found.items():
        written.append(expression(total))
        if total != active:
            written.append(expression(active))
        places.append((key, len(written) - (1 if total == active else 2), len(written) - 1))
    written += [expression(n) for n in (*(beside[name] for name in BESIDE), spare)]
    code = f"lambda c: ({', '.join(written)})"  # of whole numbers and the names of fields, and nothing else
    return Polynomials(places, eval(code, {"__builtins__": {}}), tied)  # noqa: S307


def expression(polynomial: Size) -> str:
    """A polynomial as Python computes it fastest: 2*c.n_layers*c.d_model+c.d_model."""
    if type(polynomial) is int:
        return str(polynomial)
    terms = ["*".join([str(n), *(f"c.{name}" for name, power in factors for _ in range(power))]) for factors, n in polynomial.terms.items()]
    return "+".join(terms) or "0"


def make_symbolic(sizes: Sizes, counted: bool, prefix: str = "", *, kept: Container[str] = ()) -> Any:
    """The same attributes with symbols for numbers; what is no number is structure and stays. `counted`: how many there are stays too.
    `kept`: numbers that stay, those of inner configs with the config's name before them: "vision.n_layers"."""
    from paramcount.symbolic.polynomials import make_symbols

    found: dict[str, Any] = {}
    inner = inner_configs(type(sizes))
    for name, number in sizes.__dict__.items():
        if name in inner and number is not None:
            found[name] = make_symbolic(number, counted, f"{prefix}{name}.", kept=kept)
        else:
            found[name] = make_symbols(prefix + name)[0] if is_symbolic(name, number, counted) and prefix + name not in kept else number
    same = SimpleNamespace(**found)
    for method in ("task_forward", "forward", "body", "mtp"):
        setattr(same, method, MethodType(getattr(type(sizes), method), same))
    return same
