"""Integer polynomials: the ring laws against SymPy, what they print, what they refuse, and every architecture run on
symbols.
"""

from __future__ import annotations

import itertools
import operator
import pickle
from collections.abc import Callable
from copy import copy, deepcopy
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import paramcount
import paramcount.zoo as zoo
from paramcount import flow
from paramcount.counting.count import count_sizes
from paramcount.counting.sum_weights import list_flows
from paramcount.errors import ParamcountError
from paramcount.flow import sum_parameters
from paramcount.symbolic.polynomials import Polynomial, decide_by, has_same_terms, make_symbols
from tests.batches import in_batches
from tests.printed import evaluate_latex, evaluate_text
from tests.refusing import error_of
from tests.structures import ZOO, pick_structures, states_size
from tests.symbolic import make_symbolic, replace_sizes


@cache
def load_sympy() -> Any:
    """The second opinion, which takes long to import."""
    return pytest.importorskip("sympy")


NAMES = ("d_model", "n_heads", "vocab_size")
ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}

Values = st.fixed_dictionaries({name: st.integers(-(10**6), 10**6) for name in NAMES})


def run_quickly(test: Callable[..., None]) -> Callable[..., None]:
    return settings(max_examples=40, deadline=None)(test)


class Both:
    """One expression in both algebras."""

    def __init__(self, ours: Any, theirs: Any) -> None:
        self.ours, self.theirs = ours, theirs

    def __repr__(self) -> str:
        return repr(self.theirs)


def make_leaf(name: str) -> Both:
    return Both(make_symbols(name)[0], load_sympy().Symbol(name))


def combine_pair(pair: tuple[Both, Both], sign: str) -> Both:
    a, b = pair
    return Both(ARITHMETIC[sign](a.ours, b.ours), ARITHMETIC[sign](a.theirs, b.theirs))


LEAVES = st.one_of(
    st.sampled_from(NAMES).map(make_leaf), st.integers(-9, 9).map(lambda n: Both(n, load_sympy().Integer(n)))
)
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: st.builds(combine_pair, st.tuples(inner, inner), st.sampled_from(sorted(ARITHMETIC))),
    max_leaves=7,
)


def sympy_terms(theirs: Any) -> dict[tuple[tuple[str, int], ...], int]:
    """SymPy's expansion in the shape of Polynomial.terms."""
    sympy = load_sympy()
    expanded = sympy.Poly(sympy.expand(theirs), *(sympy.Symbol(name) for name in NAMES))
    return {
        tuple((name, power) for name, power in zip(NAMES, powers, strict=True) if power): int(c)
        for powers, c in expanded.terms()
        if c
    }


def to_polynomial(value: Any) -> Polynomial:
    return value if isinstance(value, Polynomial) else Polynomial({(): value})


@given(both=EXPRESSIONS)
@run_quickly
def test_every_expression_expands_to_the_terms_that_sympy_finds(both: Both) -> None:
    assert to_polynomial(both.ours).terms == sympy_terms(both.theirs)


@given(both=EXPRESSIONS, values=Values)
@run_quickly
def test_every_expression_evaluates_to_what_sympy_substitutes_and_so_does_its_printed_form(
    both: Both, values: dict[str, int]
) -> None:
    ours = to_polynomial(both.ours)
    found = ours.evaluate(**{name: values[name] for name in ours.names})
    assert type(found) is int
    assert found == evaluate_text(str(ours), values) == int(both.theirs.subs(values))


@given(a=EXPRESSIONS, b=EXPRESSIONS)
@run_quickly
def test_equal_polynomials_hash_alike_and_others_differ_by_a_number_or_cannot_be_compared(a: Both, b: Both) -> None:
    x, y = to_polynomial(a.ours), to_polynomial(b.ours)
    difference = load_sympy().expand(a.theirs - b.theirs)
    assert has_same_terms(x, y) == (difference == 0)
    if difference.free_symbols:
        with pytest.raises(ParamcountError, match="depends on their values"):
            assert x == y
        return
    assert (x == y) == (difference == 0)
    assert (x != y) is not (x == y)
    if x == y:
        assert hash(x) == hash(y)


def test_arithmetic_leaves_its_operands_as_they_were() -> None:
    x, y = make_symbols("d_model n_heads")
    for a, b in itertools.product((x, x * y - 3), (x, y + 7)):
        before = dict(a.terms), dict(b.terms)
        for combine in ARITHMETIC.values():
            combine(a, b)
        assert (a.terms, b.terms) == before


def test_coefficients_have_no_limit() -> None:
    (d,) = make_symbols("d_model")
    assert (10**40 * d * d).evaluate(d_model=10**20) == 10**80


# ---- what is printed


def test_a_polynomial_prints_the_common_factor_first_then_the_bracket() -> None:
    n, d, h, k, w = make_symbols("n_layers d_model n_heads n_kv_heads d_head")
    assert str(n * d * w * (h + 2 * k)) == "n_layers · d_model · d_head · (n_heads + 2·n_kv_heads)"
    assert str(n * (2 * d + h) + d) == "n_layers·(2·d_model + n_heads) + d_model"


def test_numbers_of_layers_and_experts_come_before_coefficients_and_dimensions() -> None:
    d, f, n, dense, e = make_symbols("d_model d_expert n_layers n_dense_layers n_routed_experts")
    assert str(3 * d * f * e * (n - dense)) == "(n_layers − n_dense_layers) · n_routed_experts · 3 · d_model · d_expert"
    assert str((n - dense) * (d + 2 * f) * 5) == "(n_layers − n_dense_layers) · 5 · (d_model + 2·d_expert)"
    assert str(d * (2 * n + 1)) == "(2·n_layers + 1) · d_model"
    # d_model stands in more terms, and still what layers hold comes first
    expected = "n_layers·(d_model·d_expert + n_routed_experts) + (n_routed_experts + 7)·d_model"
    assert str(n * (d * f + e) + d * (e + 7)) == expected


def test_signs_units_and_constants_are_printed_in_the_usual_notation() -> None:
    n, d = make_symbols("n d")
    assert str(d - d) == "0"
    assert str(to_polynomial(7)) == "7"
    assert str(to_polynomial(-7)) == "−7"
    assert str(1 * d) == "d"
    assert str(-d) == "−d"
    assert str(3 - d) == "3 − d"
    assert str(d - 3) == "d − 3"
    assert str(-1 * d * n - 1) == "−(d·n + 1)"
    assert str(1_000_000 * d) == "1,000,000 · d"
    assert str(d * d * d * d * d * d * d * d * d * d) == "d¹⁰"
    assert repr(d * d) == "d²"
    assert str(Polynomial({(("d", 1_234_567_890),): 1})) == "d¹²³⁴⁵⁶⁷⁸⁹⁰"


def test_latex_names_have_subscripts() -> None:
    n, d, v, t = make_symbols("n_kv_heads d_model vocab_size vision.d_model")
    assert (2 * n * d * d - 50_257 * v * t).latex() == (
        r"2 \cdot {d_{\mathrm{model}}}^{2} \cdot n_{\mathrm{kv\_heads}} "
        r"- 50{,}257 \cdot \mathrm{vocab\_size} \cdot \mathrm{vision.d\_model}"
    )


# Names in every place that the order of factors knows, so that all ways of factoring are taken.
FACTORS = ("d_model", "n_heads", "vocab_size", "n_layers", "n_dense_layers", "n_routed_experts", "d_ff")
MONOMIALS = st.dictionaries(st.sampled_from(FACTORS), st.integers(1, 3), max_size=4).map(
    lambda powers: tuple(sorted(powers.items()))
)
SHORT = st.dictionaries(MONOMIALS, st.integers(-12, 12), max_size=5).map(Polynomial)
ANY = st.one_of(
    SHORT,
    st.dictionaries(MONOMIALS, st.integers(-(10**9), 10**9), max_size=9).map(Polynomial),
    st.builds(operator.mul, SHORT, SHORT),
)


@given(p=ANY, values=st.fixed_dictionaries({name: st.integers(-50, 50) for name in FACTORS}))
@settings(max_examples=100, deadline=None)
def test_the_printed_factored_form_equals_the_polynomial(p: Polynomial, values: dict[str, int]) -> None:
    expected = p.evaluate(**{name: values[name] for name in p.names})
    assert evaluate_text(str(p), values) == evaluate_latex(p.latex(), values) == expected


@given(
    p=ANY,
    name=st.sampled_from(FACTORS),
    by=st.integers(-3, 1000),
    values=st.fixed_dictionaries({name: st.integers(-50, 50) for name in FACTORS}),
)
@run_quickly
def test_a_difference_is_the_cost_of_increasing_one_size(
    p: Polynomial, name: str, by: int, values: dict[str, int]
) -> None:
    if name not in p.names:
        with pytest.raises(ParamcountError, match=f"difference: unknown size {name}"):
            p.difference(name, by)
        return
    more = {**values, name: values[name] + by}
    found, wanted = (
        p.difference(name, by),
        [p.evaluate(**{name: sizes[name] for name in p.names}) for sizes in (more, values)],
    )
    assert found.evaluate(**{name: values[name] for name in found.names}) == wanted[0] - wanted[1]


def test_a_difference_accepts_a_symbol_and_rejects_an_unknown_size() -> None:
    n, d, m = make_symbols("n_layers d_model more")
    assert (n * d).difference("n_layers", by=m) == d * m
    assert (n * d).difference("n_layers", by=0) == 0
    with pytest.raises(
        ParamcountError,
        match=r"^difference: unknown size n_layer \(expected d_model or n_layers\); did you mean n_layers\?$",
    ):
        (n * d).difference("n_layer")
    with pytest.raises(TypeError, match="is not an integer"):
        (n * d).difference("n_layers", by=0.5)


def test_names_are_the_sizes_a_polynomial_depends_on() -> None:
    n, d = make_symbols("n_layers d_model")
    assert (n * d + d).names == ("d_model", "n_layers")
    assert (n * d - d * n + 3).names == ()
    assert make_symbols("") == ()


def test_a_polynomial_survives_copying_and_pickling() -> None:
    n, d = make_symbols("n_layers d_model")
    p = n * d * d - 3
    assert copy(p) == deepcopy(p) == pickle.loads(pickle.dumps(p)) == p  # noqa: S301 - our own bytes


# ---- evaluation


def test_evaluation_takes_ints_symbols_and_arrays() -> None:
    n, d = make_symbols("n_layers d_model")
    p = n * (4 * d * d + 2 * d)
    assert p.evaluate(n_layers=12, d_model=768) == 28_329_984
    assert p.evaluate(n_layers=n, d_model=d) == p
    assert p.evaluate(n_layers=2, d_model=n * n) == 8 * n * n * n * n + 4 * n * n
    found = p.evaluate(n_layers=np.array([[1], [2]]), d_model=np.array([3, 5]))
    assert (found.dtype, found.tolist()) == (np.int64, [[42, 110], [84, 220]])


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"n_layers": 3}, "d_model is missing (expected d_model and n_layers)"),
        (
            {"n_layers": 3, "d_model": 4, "d_modle": 5},
            "unknown size d_modle (expected d_model or n_layers); did you mean d_model?",
        ),
    ],
)
def test_a_missing_or_unknown_size_is_one_line_that_names_it(sizes: dict[str, int], message: str) -> None:
    n, d = make_symbols("n_layers d_model")
    assert error_of(lambda: (n * d).evaluate(**sizes)) == f"evaluate: {message}"


def test_a_constant_evaluates_without_sizes_and_refuses_any() -> None:
    (d,) = make_symbols("d_model")
    assert (d - d + 7).evaluate() == 7
    assert error_of(lambda: (d - d).evaluate(d_model=3)).startswith("evaluate: unknown size d_model")


@pytest.mark.parametrize("value", [1.5, True, None, "7", [3], np.array([1.5])], ids=repr)
def test_a_value_that_is_not_an_integer_is_an_error_that_names_the_size(value: object) -> None:
    (d,) = make_symbols("d_model")
    with pytest.raises(ParamcountError, match="d_model"):
        (d * d).evaluate(d_model=value)


@pytest.mark.parametrize("dtype", ["int64", "uint8"])
def test_evaluation_on_arrays_is_exact_or_an_error(dtype: str) -> None:
    (d,) = make_symbols("d_model")
    assert (d * d).evaluate(d_model=np.array([200], dtype=dtype)).tolist() == [40_000]
    with pytest.raises(ParamcountError):
        (d * d * d * d * d * d * d * d * d).evaluate(d_model=np.array([1, 200], dtype=dtype))


def test_negative_values_and_coefficients_do_not_hide_an_overflow() -> None:
    n, d = make_symbols("n_layers d_model")
    for c, value, swept in itertools.product((1, -1), (10**10, -(10**10)), ([10**10, -3], [-(10**10), 3])):
        with pytest.raises(ParamcountError, match="the largest of these counts is 100,000,000,000,000,000,000 "):
            (c * n * d).evaluate(n_layers=value, d_model=np.array(swept))


def test_evaluation_rejects_arrays_mixed_with_symbols() -> None:
    n, d = make_symbols("n_layers d_model")
    with pytest.raises(ParamcountError, match="is an array, but n_layers is a symbol"):
        (n * d).evaluate(n_layers=n, d_model=np.array([3, 4]))


# ---- structure must not depend on a symbol

REFUSED: dict[str, Callable[[Any], object]] = {
    "bool": bool,
    "not": operator.not_,
    "if": lambda d: 1 if d else 0,
    "and": lambda d: d and 1,
    "<": lambda d: d < 3,
    "<=": lambda d: d <= 3,
    ">": lambda d: d > 3,
    ">=": lambda d: d >= 3,
    "reflected <": lambda d: operator.lt(3, d),
    "symbol < symbol": lambda d: d < make_symbols("d_ff")[0],
    "max": lambda d: max(d, 3),
    "min": lambda d: min(3, d),
    "sorted": lambda d: sorted([d, d * d]),
    "range": range,
    "int": int,
    "float": float,
    "index": lambda d: [1, 2, 3][d],
    "slice": lambda d: [1, 2, 3][:d],
    "iter": list,
    "in": lambda d: 3 in d,
    "//": lambda d: d // 2,
    "/": lambda d: d / 2,
    "%": lambda d: d % 2,
    "**": lambda d: d**2,
    "divmod": lambda d: divmod(d, 2),
    "reflected //": lambda d: 2 // d,
    "reflected /": lambda d: 2 / d,
    "reflected %": lambda d: 2 % d,
    "reflected **": lambda d: 2**d,
    "reflected divmod": lambda d: divmod(2, d),
    "pow": lambda d: pow(d, 2),
    "a constant's bool": lambda d: bool(d - d),
    "a constant's int": lambda d: int(d - d + 3),
}


@pytest.mark.parametrize("name", REFUSED)
def test_branching_on_a_symbol_or_dividing_it_is_an_error(name: str) -> None:
    with pytest.raises(ParamcountError, match=r"code cannot depend on its value \(expected \+, - and \*\)$"):
        REFUSED[name](make_symbols("d_model")[0])


@pytest.mark.parametrize("combine", ARITHMETIC.values(), ids=list(ARITHMETIC))
@pytest.mark.parametrize("other", [1.5, True, None, "7", [1]], ids=repr)
def test_a_symbol_combines_only_with_integers_and_symbols(combine: Callable[[Any, Any], Any], other: object) -> None:
    (d,) = make_symbols("d_model")
    for pair in ((d, other), (other, d)):
        with pytest.raises((TypeError, ParamcountError), match="is not an integer or a symbol"):
            combine(*pair)


@pytest.mark.parametrize("other", [1.5, True, False, None, "d_model", [1]], ids=repr)
def test_a_symbol_equals_only_numbers_and_symbols(other: object) -> None:
    (d,) = make_symbols("d_model")
    assert d != other
    assert (d == other) is False


# ---- declarations on symbols


@in_batches("id", pick_structures(every=3), size=80)
def test_a_declaration_run_on_symbols_evaluates_to_the_count_of_its_entry(id: str) -> None:
    model, count = zoo.load_entry(id), paramcount.count(id)
    c, values = make_symbolic(model.sizes)
    with decide_by(values):
        (out, _), *_ = list_flows(c, model.reading.head)
        sums = sum_parameters(out), sum_parameters(out, active=True)
    for formula, expected in zip(sums, (count.total, count.active)):
        assert formula.evaluate(**{name: values[name] for name in formula.names}) == expected


@pytest.mark.parametrize("id", [id for id in ZOO if states_size(id, "n_mtp_layers")])
def test_mtp_layers_run_on_symbols_evaluate_to_their_count(id: str) -> None:
    sizes = zoo.load_entry(id).sizes
    c, values = make_symbolic(sizes)
    out = type(sizes).mtp(c, flow.given("tokens", "tokens"))
    if sizes.has_unknown_mtp():
        assert (out, paramcount.count(id).mtp) == (None, None)
    else:
        assert out is not None
        formula = sum_parameters(out)
        assert formula.evaluate(**{name: values[name] for name in formula.names}) == paramcount.count(id).mtp


@pytest.mark.parametrize("id", ["t5-small", "mixtral-8x7b"])
def test_a_declaration_run_on_arrays_gives_the_count_of_each_point(id: str) -> None:
    sizes = zoo.load_entry(id).sizes
    points = [replace_sizes(sizes, lambda _, size, by=by: by * size) for by in (1, 3)]  # type: ignore[misc]
    swept = replace_sizes(sizes, lambda _, size: np.array([size, 3 * size]))
    found = sum_parameters(type(sizes).forward(swept, flow.given("tokens", "tokens")), active=True)
    assert (found.dtype, found.tolist()) == (np.int64, [count_sizes(point).active for point in points])


def test_the_formula_of_a_whole_model_is_readable() -> None:
    sizes = zoo.load_entry("llama-3.1-8b").sizes
    c, _ = make_symbolic(sizes)
    assert str(sum_parameters(type(sizes).forward(c, flow.given("tokens", "tokens")))) == (
        "d_model · (n_layers·(2·d_head·(n_heads + n_kv_heads) + 3·d_ff + 2) + 2·vocab_size + 1)"
    )
