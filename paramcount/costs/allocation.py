"""What is to be cached, and what an engine allocates for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from paramcount.costs.caches import CacheGroup
from paramcount.costs.dtypes import KVDtype, parse_kv_dtype
from paramcount.errors import ParamcountError, describe_value, make_choice_error

BF16, F32 = parse_kv_dtype("bf16"), parse_kv_dtype("f32")
Option: TypeAlias = "int | bool | str"


class Request(NamedTuple):
    """What is cached."""

    context: int  # tokens per sequence, prompt and answer
    batch: int  # sequences
    kv_dtype: KVDtype
    source: int | None = None  # encoder input length
    tp: int = 1  # GPUs that share the heads; the allocation is that of one of them
    state_dtype: KVDtype | None = None  # of recurrent states and convolutions; None: the engine's rule
    config_state_dtype: KVDtype | None = None  # of recurrent states, if the config names one
    options: Mapping[str, Option] = {}  # of the engine, those with a default left out


class Allocation(NamedTuple):
    """Bytes of all sequences together, on one GPU."""

    kv_bytes: int
    state_bytes: int
    notes: tuple[str, ...] = ()  # the engine's rules that apply
    unit_bytes: int = 1  # what the engine allocates is a multiple of it
    shared_bytes: int = 0  # what does not belong to a sequence, in `kv_bytes` or `state_bytes`

    @property
    def total_bytes(self) -> int:
        return self.kv_bytes + self.state_bytes


class Engine(NamedTuple):
    """How an inference engine allocates."""

    allocate: Callable[[Sequence[CacheGroup], Request], Allocation]
    choose_state_dtype: Callable[[CacheGroup, Request], KVDtype]  # of a state, if the user names none
    options: Mapping[str, Option] = {}  # {name: default}; a text has the choices of `choices`
    choices: Mapping[str, Sequence[str]] = {}
    utilization: float = 1.0  # the share of a device's memory that it uses by default

    def describe_state_dtype(self, groups: Sequence[CacheGroup], request: Request) -> str:
        """Such as "FP32, convolutions BF16"; "" without states."""
        states = [group for group in groups if group.is_state]
        convolutions, others = (
            list(dict.fromkeys(choose_dtype(self.choose_state_dtype, group, request).label for group in kind))
            for kind in ([g for g in states if g.is_convolution], [g for g in states if not g.is_convolution])
        )
        if not others or convolutions in ([], others):
            return ", ".join(others or convolutions)
        return f"{', '.join(others)}, convolutions {', '.join(convolutions)}"

    def count_tokens(self, groups: Sequence[CacheGroup], request: Request, available_bytes: int) -> int:
        """Tokens that fit in so many bytes, in sequences of the context of the request."""
        one = self.allocate(groups, request._replace(batch=1))
        units = (one.total_bytes - one.shared_bytes) // one.unit_bytes
        return max(0, available_bytes // one.unit_bytes) * request.context // units if units else 0


def choose_dtype(rule: Callable[[CacheGroup, Request], KVDtype], state: CacheGroup, request: Request) -> KVDtype:
    """The dtype that the user names for states, or that of the engine's rule."""
    return request.state_dtype or rule(state, request)


def count_state_bytes(
    rule: Callable[[CacheGroup, Request], KVDtype], groups: Sequence[CacheGroup], request: Request
) -> int:
    """Bytes of the states of one sequence."""
    states = [group for group in groups if group.is_state]
    return sum(g.layers * g.count_bytes(choose_dtype(rule, g, request), request.tp) for g in states)


def check_options(engine: str, rules: Engine, options: Mapping[str, object]) -> dict[str, Option]:
    """The options of an engine that the user gives.

    Raises: ParamcountError for an unknown option and for a wrong value.
    """
    found: dict[str, Option] = {}
    for name, value in options.items():
        if not rules.options:
            raise ParamcountError(f"{engine} has no option {describe_value(name)}", where="engine_options")
        if name not in rules.options:
            raise make_choice_error(name, rules.options, where=f"option of {engine}")
        default = rules.options[name]
        if isinstance(default, bool):
            is_valid, expected = isinstance(value, bool), "true or false"
        elif isinstance(default, int):
            least = 0 if default == 0 else 1
            is_valid = type(value) is int and least <= value <= 10**9
            expected = f"an integer from {least} to 1,000,000,000"
        elif value not in rules.choices[name]:
            raise make_choice_error(value, rules.choices[name], where=name)
        else:
            is_valid, expected = True, ""
        if not is_valid:
            raise ParamcountError(f"= {describe_value(value)}", where=name, expected=expected)
        found[name] = value  # type: ignore[assignment]
    return found
