"""Formulas of one layer's parts: on ints, int64 arrays and symbols alike, exact or an error, and equal to forms typed
from papers.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import paramcount
import paramcount.zoo as zoo
from paramcount import formulas
from paramcount.errors import ParamcountError
from paramcount.symbolic.polynomials import Polynomial, make_symbols
from tests.batches import in_batches

LARGEST = 2**63 - 1
HUGE = 10**12
PUBLIC = sorted(
    name
    for name, f in vars(formulas).items()
    if inspect.isfunction(f) and f.__module__ == formulas.__name__ and not name.startswith("_")
)

Sizes = dict[str, Any]
Flags = dict[str, Any]  # o_bias may be None


class Formula(NamedTuple):
    """What a formula takes, and its closed form typed from the papers."""

    sizes: tuple[str, ...]
    optional: tuple[str, ...]  # sizes that may be None
    flags: tuple[str, ...]
    form: Callable[[Sizes, Flags], Any]


def _qkv(s: Sizes, f: Flags) -> Any:
    """arXiv:1706.03762, 3.2.2: h matrices [d_model, d_head] for q; as many for k and v as there are groups
    (arXiv:2305.13245, 2.2).
    """
    groups = s["n_heads"] if s.get("n_kv_heads") is None else s["n_kv_heads"]
    columns = s["n_heads"] * s["d_head"] + 2 * groups * s["d_head"]
    return s["d_model"] * columns + (columns if f["bias"] else 0)


def _output_projection(s: Sizes, f: Flags) -> Any:
    """arXiv:1706.03762, 3.2.2: W_O [h · d_v, d_model]."""
    return s["n_heads"] * s["d_head"] * s["d_model"] + (s["d_model"] if f["bias"] else 0)


def _attention(s: Sizes, f: Flags) -> Any:
    o_bias = f["bias"] if f.get("o_bias") is None else f["o_bias"]
    return _qkv(s, f) + _output_projection(s, {"bias": o_bias}) + (2 * s["d_head"] if f["qk_norm"] else 0)


def _latent_attention(s: Sizes, _: Flags) -> Any:
    """arXiv:2405.04434, equations 37 to 47, and RMSNorm on both latents."""
    d, h, nope, rope, v, kv, q = (
        s[name] for name in ("d_model", "n_heads", "d_nope", "d_rope", "d_v", "d_kv_lora", "d_q_lora")
    )
    w_uq_and_qr = h * (nope + rope)
    queries = d * w_uq_and_qr if q is None else d * q + q + q * w_uq_and_qr
    return queries + d * kv + kv + kv * h * nope + kv * h * v + d * rope + h * v * d


def _mlp(s: Sizes, f: Flags) -> Any:
    """arXiv:1706.03762, equation 2: W_1, b_1, W_2, b_2; arXiv:2002.05202, equation 6: W, V, W_2."""
    n_up = 2 if f["gated"] else 1
    return (n_up + 1) * s["d_model"] * s["d_ff"] + (n_up * s["d_ff"] + s["d_model"] if f["bias"] else 0)


def _router(s: Sizes, f: Flags) -> Any:
    """arXiv:2401.06066, equation 5: a centroid for each routed expert."""
    return s["d_model"] * s["n_routed_experts"] + (s["n_routed_experts"] if f["bias"] else 0)


def _experts(s: Sizes, f: Flags) -> Any:
    return s["n_experts"] * (3 * s["d_model"] * s["d_expert"] + (2 * s["d_expert"] + s["d_model"] if f["bias"] else 0))


def _moe(s: Sizes, f: Flags) -> Any:
    """arXiv:2401.06066, equations 9 to 11; the shared experts stored as one wide one, with one bias of d_model."""
    visited = s["n_routed_experts"] if s.get("n_active_experts") is None else s["n_active_experts"]
    total = s["d_model"] * s["n_routed_experts"] + _experts({**s, "n_experts": visited}, f)
    if s.get("n_shared_experts") is None:
        return total
    wide = s["n_shared_experts"] * s["d_expert"]
    return total + 3 * s["d_model"] * wide + (2 * wide + s["d_model"] if f["bias"] else 0)


def _norm(s: Sizes, f: Flags) -> Any:
    """arXiv:1607.06450, section 3: gain and bias; arXiv:1910.07467: gain alone."""
    return s["d_model"] + (s["d_model"] if f["bias"] else 0)


def _lm_head(s: Sizes, f: Flags) -> Any:
    return (0 if f["tied"] else s["vocab_size"] * s["d_model"]) + (s["vocab_size"] if f["bias"] else 0)


HEADS = ("d_model", "n_heads", "d_head")
LATENT = ("d_model", "n_heads", "d_q_lora", "d_kv_lora", "d_nope", "d_rope", "d_v")
MOE = ("d_model", "d_expert", "n_routed_experts", "n_active_experts", "n_shared_experts")
FORMULAS = {
    "attention": Formula((*HEADS, "n_kv_heads"), ("n_kv_heads",), ("bias", "o_bias", "qk_norm"), _attention),
    "embedding": Formula(("vocab_size", "d_model"), (), (), lambda s, f: s["vocab_size"] * s["d_model"]),
    "experts": Formula(("d_model", "d_expert", "n_experts"), (), ("bias",), _experts),
    "latent_attention": Formula(LATENT, ("d_q_lora",), (), _latent_attention),
    "lm_head": Formula(("vocab_size", "d_model"), (), ("tied", "bias"), _lm_head),
    "mlp": Formula(("d_model", "d_ff"), (), ("gated", "bias"), _mlp),
    "moe": Formula(MOE, ("n_active_experts", "n_shared_experts"), ("bias",), _moe),
    "norm": Formula(("d_model",), (), ("bias",), _norm),
    "output_projection": Formula(HEADS, (), ("bias",), _output_projection),
    "position": Formula(("n_positions", "d_model"), (), (), lambda s, f: s["n_positions"] * s["d_model"]),
    "qkv": Formula((*HEADS, "n_kv_heads"), ("n_kv_heads",), ("bias",), _qkv),
    "router": Formula(("d_model", "n_routed_experts"), (), ("bias",), _router),
}
EACH_SIZE = [(name, size) for name, formula in FORMULAS.items() for size in formula.sizes]


def call_formula(name: str, sizes: Sizes, flags: Flags) -> Any:
    return getattr(formulas, name)(**sizes, **flags)


def sample_arguments(name: str, value: Any = 3) -> tuple[Sizes, Flags]:
    """Arguments that a formula accepts: every size the same, every flag off."""
    return dict.fromkeys(FORMULAS[name].sizes, value), dict.fromkeys(FORMULAS[name].flags, False)


@st.composite
def draw_arguments(draw: st.DrawFn, name: str, most: int = 10**6) -> tuple[Sizes, Flags]:
    """Sizes and flags that fit each other: no more experts are active than there are, KV heads divide heads."""
    formula = FORMULAS[name]
    sizes: Sizes = {}
    for size in formula.sizes:
        top = {"n_active_experts": sizes.get("n_routed_experts", most), "n_kv_heads": 64}.get(size, most)
        one: st.SearchStrategy[Any] = st.integers(1, top)
        sizes[size] = draw(st.none() | one if size in formula.optional else one)
    if sizes.get("n_kv_heads"):
        sizes["n_heads"] *= sizes["n_kv_heads"]
    return sizes, {
        flag: draw(st.none() | st.booleans() if flag == "o_bias" else st.booleans()) for flag in formula.flags
    }


def run_quickly(test: Callable[..., None]) -> Callable[..., None]:
    return settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])(test)


def test_every_public_formula_is_tested_with_all_it_takes() -> None:
    assert sorted(FORMULAS) == PUBLIC
    for name, formula in FORMULAS.items():
        assert set(inspect.signature(getattr(formulas, name)).parameters) == {*formula.sizes, *formula.flags}


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_formula_documents_its_shapes_units_errors_and_source_with_an_example(name: str) -> None:
    text = inspect.getdoc(getattr(formulas, name)) or ""
    assert [part for part in ("Shapes: ", "Units: ", "Raises: ", "Source: ", ">>> ") if part not in text] == []


# ---- one arithmetic


@pytest.mark.parametrize("name", FORMULAS)
@given(data=st.data())
@run_quickly
def test_ints_and_symbols_give_the_closed_form_typed_from_the_papers(name: str, data: st.DataObject) -> None:
    sizes, flags = data.draw(draw_arguments(name))
    count = call_formula(name, sizes, flags)
    assert type(count) is int
    assert count == FORMULAS[name].form(sizes, flags)
    named = {size: None if value is None else make_symbols(size)[0] for size, value in sizes.items()}
    found = call_formula(name, named, flags)
    assert found == FORMULAS[name].form(named, flags)
    if isinstance(found, Polynomial):
        assert found.evaluate(**{size: sizes[size] for size in found.names}) == count
    else:
        assert found == count == 0  # a tied head


@pytest.mark.parametrize("name", FORMULAS)
@given(data=st.data())
@run_quickly
def test_a_grid_of_two_swept_sizes_gives_at_each_point_the_count_of_ints(name: str, data: st.DataObject) -> None:
    sizes, flags = data.draw(draw_arguments(name, most=1000))
    swept = data.draw(
        st.lists(
            st.sampled_from([size for size, value in sizes.items() if value is not None]),
            min_size=1,
            max_size=2,
            unique=True,
        )
    )
    dtype = data.draw(st.sampled_from(["int64", "int32", "uint16", "uint64"]))
    points = {
        size: [sizes[size], *data.draw(st.lists(st.integers(1, sizes[size]), min_size=1, max_size=3))] for size in swept
    }
    if name == "moe" and sizes["n_active_experts"] is not None:  # on every point no more active experts than there are
        points |= {"n_active_experts": [1, 1]} if "n_active_experts" in swept else {}
        sizes["n_active_experts"] = 1
    if sizes.get("n_kv_heads"):  # on every point one that divides the heads
        points |= {"n_kv_heads": [1, 1]} if "n_kv_heads" in swept else {}
        sizes["n_kv_heads"] = 1
    axes = [np.array(points[size], dtype=dtype) for size in swept]
    grid = [axes[0]] if len(axes) == 1 else [axes[0][:, None], axes[1][None, :]]
    found = call_formula(name, sizes | dict(zip(swept, grid, strict=True)), flags)
    if np.ndim(found) == 0:  # a tied head without a bias, or a bias alone beside a swept d_model
        assert name == "lm_head"
        assert flags["tied"]
    full = np.broadcast_to(found, tuple(len(axis) for axis in axes))
    assert np.asarray(found).dtype == np.int64
    for index in np.ndindex(full.shape):
        point = {size: points[size][i] for size, i in zip(swept, index, strict=True)}
        assert int(full[index]) == call_formula(name, sizes | point, flags)


def test_small_dtypes_are_widened_before_anything_is_multiplied() -> None:
    sizes = np.array([250], dtype="uint8")
    assert formulas.embedding(vocab_size=sizes, d_model=sizes).tolist() == [62_500]


@pytest.mark.parametrize("name", FORMULAS)
def test_numpy_scalars_count_as_ints(name: str) -> None:
    sizes, flags = sample_arguments(name, np.int32(3))
    found = call_formula(name, sizes, flags)
    assert type(found) is int
    assert found == call_formula(name, *sample_arguments(name, 3))


def test_a_formula_leaves_the_arrays_it_was_given_as_they_were() -> None:
    d_model = np.array([768, 1024])
    formulas.mlp(d_model=d_model, d_ff=d_model, bias=True, gated=True)
    assert d_model.tolist() == [768, 1024]


# ---- overflow


@pytest.mark.parametrize("name", FORMULAS)
@given(data=st.data())
@run_quickly
def test_arrays_of_any_size_are_exact_or_rejected_and_never_wrap(name: str, data: st.DataObject) -> None:
    sizes, flags = data.draw(draw_arguments(name, most=10 ** data.draw(st.integers(1, 13))))
    exact = call_formula(name, sizes, flags)
    arrays = {size: None if value is None else np.array([1, value]) for size, value in sizes.items()}
    if name == "moe" and sizes["n_active_experts"] is not None:
        arrays["n_active_experts"] = np.array([1, sizes["n_active_experts"]])
    if exact > LARGEST:
        with pytest.raises(ParamcountError, match=f"the largest of these counts is {exact:,} "):
            call_formula(name, arrays, flags)
    else:
        assert np.broadcast_to(call_formula(name, arrays, flags), 2).tolist() == [
            call_formula(name, {size: value and 1 for size, value in sizes.items()}, flags),
            exact,
        ]


@pytest.mark.parametrize("name", sorted(set(FORMULAS) - {"norm"}))
def test_overflow_of_arrays_is_an_error_and_ints_are_exact(name: str) -> None:
    sizes, flags = sample_arguments(name, HUGE)
    exact = call_formula(name, sizes, flags)
    assert exact == FORMULAS[name].form(sizes, flags) > LARGEST
    for size in sizes:
        with pytest.raises(ParamcountError, match="the largest of these counts is"):
            call_formula(name, sizes | {size: np.array([HUGE])}, flags)


def test_the_largest_int64_count_is_exact_and_one_more_is_an_error() -> None:
    vocab, d_model = 7 * 7 * 73 * 127 * 337, 92737 * 649657
    assert vocab * d_model == LARGEST
    assert formulas.embedding(vocab_size=np.array([1, vocab]), d_model=d_model).tolist() == [d_model, LARGEST]
    assert formulas.norm(d_model=np.array([LARGEST])).tolist() == [LARGEST]
    with pytest.raises(ParamcountError, match="9,223,372,036,854,775,808"):
        formulas.embedding(vocab_size=np.array([1, 2**31]), d_model=2**32)


def test_overflow_in_unrequested_parts_is_not_an_error() -> None:
    assert formulas.router(d_model=np.array([10**9]), n_routed_experts=10**9).tolist() == [10**18]
    assert formulas.output_projection(d_model=np.array([10**9]), n_heads=10**4, d_head=10**5).tolist() == [10**18]
    assert formulas.lm_head(vocab_size=np.array([10**12]), d_model=10**12, tied=True, bias=True).tolist() == [10**12]


# ---- wrong sizes

WRONG: dict[str, tuple[Any, str]] = {
    "zero": (0, "= 0 "),
    "negative": (-1, "= -1 "),
    "true": (True, "= true "),
    "false": (False, "= false "),
    "fraction": (1.5, "= 1.5 "),
    "whole float": (3.0, "= 3.0 "),
    "nan": (float("nan"), "= nan "),
    "text": ("7", "= '7' "),
    "list": ([3, 4], "= [3, 4] "),
    "mapping": ({"a": 1}, "= {…} "),
    "zero in an array": (np.array([3, 0]), "= 0 to 3 "),
    "negative in an array": (np.array([[3], [-2]]), "= -2 to 3 "),
    "numpy zero": (np.int64(0), "= 0 to 0 "),
    "numpy float": (np.float64(3), "= 3.0 "),
    "numpy bool": (np.True_, "= "),
    "empty array": (np.array([], dtype="int64"), "= "),
    "float array": (np.array([3.0, 4.0]), "= "),
    "bool array": (np.array([True, True]), "= "),
    "object array": (np.array([3, 4], dtype=object), "= "),
    "text array": (np.array(["3"]), "= "),
    "too large for int64": (np.array([3, 2**63], dtype="uint64"), "= 3 to 9223372036854775808 "),
}


@pytest.mark.parametrize("wrong", WRONG)
@in_batches(("name", "size"), EACH_SIZE, size=80)
def test_a_wrong_size_is_one_line_that_names_it(name: str, size: str, wrong: str) -> None:
    value, said = WRONG[wrong]
    sizes, flags = sample_arguments(name)
    least = 0 if size == "n_shared_experts" else 1  # of parts that are optional there may be none
    if least == 0 and "zero" in wrong:
        assert np.all(call_formula(name, sizes | {size: value}, flags) <= call_formula(name, sizes | {size: 3}, flags))
        return
    with pytest.raises(ParamcountError) as error:
        call_formula(name, sizes | {size: value}, flags)
    message = str(error.value)
    assert message.startswith(f"{size} {said}")
    integer = "a non-negative integer" if least == 0 else "a positive integer"
    assert message.endswith(f"(expected {integer}, an array of integers or a symbol)")
    assert message.isprintable()


@pytest.mark.parametrize(
    ("name", "size"), [(name, size) for name, size in EACH_SIZE if size not in FORMULAS[name].optional]
)
def test_a_size_that_has_to_be_there_may_not_be_none(name: str, size: str) -> None:
    sizes, flags = sample_arguments(name)
    with pytest.raises(ParamcountError, match=f"^{size} = null "):
        call_formula(name, sizes | {size: None}, flags)


def test_a_wrong_size_is_named_beside_an_array_and_if_another_one_follows_from_it() -> None:
    for value, _ in WRONG.values():
        with pytest.raises(ParamcountError, match=r"^n_routed_experts "):  # all of them are active
            formulas.moe(d_model=3, d_expert=3, n_routed_experts=value)
        with pytest.raises(ParamcountError, match=r"^d_ff "):
            formulas.mlp(d_model=np.array([768, 1024]), d_ff=value)


def test_arrays_that_do_not_broadcast_are_named_with_their_shapes() -> None:
    with pytest.raises(ParamcountError, match=r"d_model \[2\], d_ff \[3\]"):
        formulas.mlp(d_model=np.array([1, 2]), d_ff=np.array([1, 2, 3]))


def test_arrays_and_symbols_do_not_mix() -> None:
    (d,) = make_symbols("d_model")
    with pytest.raises(
        ParamcountError, match=r"^d_ff is an array, but d_model is a symbol \(expected only arrays or only symbols\)$"
    ):
        formulas.mlp(d_model=d, d_ff=np.array([3, 4]))


def test_symbols_and_ints_mix() -> None:
    (d,) = make_symbols("d_model")
    assert formulas.mlp(d_model=d, d_ff=3072, bias=True) == 6145 * d + 3072


# ---- whole models


def test_gpt2_small_assembled_from_formulas_is_its_count() -> None:
    heads: Sizes = {"d_model": 768, "n_heads": 12, "d_head": 64}
    norm = formulas.norm(d_model=768, bias=True)
    layer = norm + formulas.attention(**heads, bias=True) + norm + formulas.mlp(d_model=768, d_ff=3072, bias=True)
    tables = formulas.embedding(vocab_size=50257, d_model=768) + formulas.position(n_positions=1024, d_model=768)
    head = formulas.lm_head(vocab_size=50257, d_model=768, tied=True)
    assert tables + 12 * layer + norm + head == paramcount.count("gpt2-small").total == 124_439_808


def test_deepseek_v3_assembled_from_formulas_is_its_count() -> None:
    c = zoo.load_entry("deepseek-v3").sizes
    norm = formulas.norm(d_model=7168)
    latent = {name: getattr(c, name) for name in LATENT}
    mixture: Sizes = {"d_model": 7168, "d_expert": 2048, "n_routed_experts": 256, "n_shared_experts": 1}
    around = norm + formulas.latent_attention(**latent) + norm
    dense = formulas.mlp(d_model=7168, d_ff=18432, gated=True)
    tables = 2 * formulas.embedding(vocab_size=129280, d_model=7168) + norm
    count = paramcount.count("deepseek-v3")
    assert tables + 61 * around + 3 * dense + 58 * formulas.moe(**mixture) == count.total
    assert tables + 61 * around + 3 * dense + 58 * formulas.moe(**mixture, n_active_experts=8) == count.active


# ---- sizes that do not fit each other, flags that are none


def test_more_active_experts_than_there_are_is_an_error() -> None:
    with pytest.raises(
        ParamcountError, match=r"^n_active_experts is more than n_routed_experts \(expected at most n_routed_experts\)$"
    ):
        formulas.moe(d_model=3, d_expert=3, n_routed_experts=4, n_active_experts=9)
    with pytest.raises(ParamcountError, match="n_active_experts"):
        formulas.moe(d_model=3, d_expert=3, n_routed_experts=np.array([9, 4]), n_active_experts=5)


def test_key_value_heads_that_do_not_divide_the_heads_are_an_error() -> None:
    with pytest.raises(ParamcountError, match=r"^n_kv_heads does not divide n_heads \(expected divisors of n_heads\)$"):
        formulas.qkv(d_model=3, n_heads=8, d_head=4, n_kv_heads=3)
    with pytest.raises(ParamcountError, match="n_kv_heads"):
        formulas.attention(d_model=3, n_heads=8, d_head=4, n_kv_heads=np.array([4, 3]))


@pytest.mark.parametrize(
    ("name", "flag"), [(name, flag) for name, formula in FORMULAS.items() for flag in formula.flags]
)
def test_a_flag_is_true_or_false_and_nothing_else(name: str, flag: str) -> None:
    sizes, flags = sample_arguments(name)
    odd: list[object] = ["no", 0, 1, [], *([None] if flag != "o_bias" else [])]
    for wrong in odd:
        with pytest.raises(ParamcountError, match=rf"^{flag} = .* \(expected True or False\)$"):
            call_formula(name, sizes, flags | {flag: wrong})
