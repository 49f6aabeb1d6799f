"""The NumPy pass: the declaration's tensors and shapes, the reference's logits, and errors in one line."""

from __future__ import annotations

import math
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paramcount.zoo as zoo
from paramcount.architectures.gpt2 import GPT2
from paramcount.counting.count import count_sizes
from paramcount.errors import ParamcountError
from paramcount.flow import Data, Unknown, activate, linear, norm
from paramcount.gpt2 import forward_pass as gpt2_numpy
from paramcount.gpt2.forward_pass import Array, forward, list_shapes, make_weights
from paramcount.parts.attentions import gpt_attention
from paramcount.zoo.checks import Check
from paramcount.zoo.forward_pass_checks import check_forward_pass
from tests.comparison import load_reference
from tests.gpt2_files import FROZEN, make_frozen_weights
from tests.refusing import error_of
from tests.structures import ROWS, ZOO

GPT2S = [id for id in ZOO if ROWS[id]["architecture"] == "gpt2"]

TINY = GPT2(
    vocab_size=23, n_positions=11, d_model=8, n_layers=2, n_heads=2, d_head=4, d_ff=20, tie_word_embeddings=True
)
TOKENS = [3, 0, 22, 7, 7, 15]


def list_declared(sizes: Any) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Names and shapes of the declaration's parameters, one by one."""
    for tensor in count_sizes(sizes).tensors:
        if tensor.parameters:
            for i in range(tensor.copies):
                yield tensor.name.format(layer=i), tensor.shape


@pytest.mark.parametrize("id", GPT2S)
def test_the_arrays_of_every_gpt2_in_the_zoo_match_the_declaration_and_the_reference(id: str) -> None:
    model = zoo.load_entry(id)
    sizes: Any = model.sizes
    shapes = list_shapes(sizes)
    assert shapes == dict(list_declared(sizes))
    reference = load_reference()[id]
    assert Counter("×".join(map(str, shape)) for shape in shapes.values()) == reference["shapes"]
    assert sum(math.prod(shape) for shape in shapes.values()) == count_sizes(model.sizes).total == reference["total"]


def test_initial_arrays_have_the_listed_shapes_and_nonzero_biases() -> None:
    arrays = make_weights(TINY)
    assert {name: array.shape for name, array in arrays.items()} == list_shapes(TINY)
    assert {array.dtype for array in arrays.values()} == {np.dtype(np.float32)}
    assert all(np.all(array != 0) for array in arrays.values())
    assert all(np.all(array == 1) == ("ln_" in name and name.endswith(".weight")) for name, array in arrays.items())
    assert (
        0.019 < np.std(np.concatenate([array.ravel() for name, array in arrays.items() if "ln_" not in name])) < 0.021
    )


def test_the_seed_determines_the_initial_arrays() -> None:
    assert np.array_equal(make_weights(TINY, seed=1)["wte.weight"], make_weights(TINY, seed=1)["wte.weight"])
    assert not np.array_equal(make_weights(TINY, seed=1)["wte.weight"], make_weights(TINY, seed=2)["wte.weight"])


def test_the_pass_does_not_import_the_declaration() -> None:
    code = (
        "import sys, paramcount.gpt2.forward_pass; print(sorted(m for m in sys.modules if m.startswith('paramcount.')))"
    )
    root = Path(gpt2_numpy.__file__).parents[1]
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    names = ("errors", "gpt2", "gpt2.forward_pass", "lazy", "version")
    assert ran.stdout.strip() == str([f"paramcount.{name}" for name in names])


def test_logits_equal_the_frozen_ones_of_the_reference() -> None:
    logits = forward(make_frozen_weights(), FROZEN["token_ids"], n_heads=FROZEN["sizes"]["n_heads"])
    np.testing.assert_allclose(logits, FROZEN["logits"], rtol=0, atol=1e-9)


def test_attention_weights_sum_to_one_over_the_past() -> None:
    seen: dict[str, Array] = {}
    forward(make_frozen_weights(), TOKENS, n_heads=2, observe=seen.__setitem__)
    pattern = seen["h.1.attention weights"]
    np.testing.assert_allclose(pattern.sum(axis=-1), 1, atol=1e-12)
    assert np.array_equal(pattern > 0, np.broadcast_to(np.tri(6) > 0, (2, 6, 6)))


def test_observing_intermediates_changes_nothing() -> None:
    weights = make_weights(TINY)

    def meddle(name: str, x: Array) -> None:
        with pytest.raises(ValueError, match="read-only"):
            x[:] = 0

    assert np.array_equal(forward(weights, TOKENS, n_heads=2, observe=meddle), forward(weights, TOKENS, n_heads=2))


def test_the_pass_runs_with_one_token_and_with_all_positions() -> None:
    assert forward(make_weights(TINY), [22], n_heads=2).shape == (1, 23)
    assert forward(make_weights(TINY), np.arange(11), n_heads=2).shape == (11, 23)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logits_have_the_dtype_of_the_weights(dtype: type[np.float32 | np.float64]) -> None:
    types: set[Any] = set()
    forward(make_weights(TINY, dtype=dtype), TOKENS, n_heads=2, observe=lambda _, x: types.add(x.dtype))
    assert types == {np.dtype(dtype)}


WRONG: list[tuple[Any, str]] = [
    ([], "token_ids is empty (expected 1 to 11 token ids)"),
    ([0] * 12, "token_ids: 12 tokens (expected 1 to 11 token ids)"),
    (7, "token_ids: 7 is not a list (expected 1 to 11 token ids)"),
    ([1, 23], "token_ids: token 1 is 23 (expected integers from 0 to 22)"),
    ([-1], "token_ids: token 0 is -1 (expected integers from 0 to 22)"),
    ([1.0], "token_ids: token 0 is 1.0 (expected integers from 0 to 22)"),
    ([True], "token_ids: token 0 is true (expected integers from 0 to 22)"),
    (["3"], "token_ids: token 0 is '3' (expected integers from 0 to 22)"),
    ([[1, 2]], "token_ids: token 0 is [1, 2] (expected integers from 0 to 22)"),
    (np.array([1.5]), "token_ids: token 0 is 1.5 (expected integers from 0 to 22)"),
]


@pytest.mark.parametrize(("token_ids", "message"), WRONG, ids=[message for _, message in WRONG])
def test_wrong_token_ids_are_an_error_in_one_line(token_ids: Any, message: str) -> None:
    assert error_of(lambda: forward(make_weights(TINY), token_ids, n_heads=2)) == message


@pytest.mark.parametrize("n_heads", [0, -2, 3])
def test_heads_that_do_not_divide_the_model_dimension_are_an_error(n_heads: int) -> None:
    with pytest.raises(
        ParamcountError, match=rf"^n_heads = {n_heads} does not divide d_model = 8 \(expected a divisor\)$"
    ):
        forward(make_weights(TINY), TOKENS, n_heads=n_heads)


@pytest.mark.parametrize(
    ("start", "missing"),
    [("wte", "wte.weight"), ("h.1.mlp.c_fc.b", "h.1.mlp.c_fc.bias"), ("ln_f.b", "ln_f.bias"), ("h", "h.0.ln_1.weight")],
)
def test_a_missing_array_is_an_error_that_names_it(start: str, missing: str) -> None:
    weights = {name: array for name, array in make_weights(TINY).items() if not name.startswith(start)}
    with pytest.raises(ParamcountError, match=f"^weights: array {missing} is missing "):
        forward(weights, TOKENS, n_heads=2)


# ---- what `paramcount verify` says of it


def check_verdicts(sizes: Any) -> dict[str, tuple[int, int | None, str]]:
    return {
        check.what.removeprefix("NumPy pass: "): check[1:4] for check in check_forward_pass(sizes, count_sizes(sizes))
    }


def test_all_checks_of_a_tiny_model_are_exact() -> None:
    assert check_verdicts(TINY) == {
        "tensors": (28, 28, "exact"),
        "sum": (1624, 1624, "exact"),  # 23·8 + 11·8 + 2·(2·16 + 8·24 + 24 + 8·8 + 8 + 2·8·20 + 20 + 8) + 16
        "reads": (28, 28, "exact"),
        "shapes": (35, 35, "exact"),
        "causal": (0, 0, "exact"),
    }


class NormTwice(GPT2):
    def layer(c, x: Data, *memory: Data) -> Data:
        return super().layer(norm(x, "extra"))


class NotTransposed(GPT2):
    def layer(c, x: Data, *memory: Data) -> Data:
        x = x + gpt_attention(c, norm(x, "ln_1", bias=True))
        return x + c.mlp(norm(x, "ln_2", bias=True))

    def mlp(c, x: Data) -> Data:
        h = activate(linear(x, "mlp.c_fc", "mlp.up", c.d_ff, bias=True), Unknown("activation"))
        return linear(h, "mlp.c_proj", "mlp.down", c.d_model, bias=True, transposed=True)


class NoActivation(NotTransposed):
    def mlp(c, x: Data) -> Data:
        h = linear(x, "mlp.c_fc", "mlp.up", c.d_ff, bias=True, transposed=True)
        return linear(h, "mlp.c_proj", "mlp.down", c.d_model, bias=True, transposed=True)


@pytest.mark.parametrize(
    ("declaration", "differing", "says"),
    [
        (NotTransposed, {"tensors"}, "only in NumPy: ('h.0.mlp.c_fc.weight', (8, 20))"),
        (NoActivation, {"shapes"}, "only in NumPy: (15, ('Activation', (5, 20)))"),
        (NormTwice, {"tensors", "sum", "reads", "shapes"}, "missing from NumPy: ('h.0.extra.weight', (8,))"),
    ],
)
def test_a_wrong_declaration_fails_the_matching_check(declaration: type[GPT2], differing: set[str], says: str) -> None:
    sizes = declaration(**TINY.to_dict())
    found = [check for check in check_forward_pass(sizes, count_sizes(sizes)) if check.verdict == "differs"]
    assert {check.what.removeprefix("NumPy pass: ") for check in found} == differing
    assert says in found[0].source


def test_a_pass_that_sees_the_future_fails_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpt2_numpy, "attention", lambda q, k, v, at, see: 0 * v + v.mean(axis=0))
    expected, found, verdict = check_verdicts(TINY)["causal"]
    assert (expected, verdict) == (0, "differs")
    assert isinstance(found, int)
    assert found > 0


def test_a_model_with_one_position_or_one_token_is_not_checked_for_causality() -> None:
    assert set(check_verdicts(TINY.replace(n_positions=1))) == {"tensors", "sum", "reads", "shapes"}
    assert set(check_verdicts(TINY.replace(vocab_size=1))) == {"tensors", "sum", "reads", "shapes"}


@pytest.mark.parametrize(
    ("sizes", "why"),
    [
        (zoo.load_entry("gpt2-xl").sizes, "not run: needs 6.2 GB of arrays (limit 2.0 GB)"),
        (zoo.load_entry("gpt-3").sizes, "not run: needs 698.4 GB of arrays (limit 2.0 GB)"),
        (TINY.replace(tie_word_embeddings=False), "not run: the LM head is not tied to the token embedding"),
        (TINY.replace(n_layers=10_000), "not run: more than 100,000 arrays"),
        (TINY.replace(n_layers=2**31), "not run: needs 5,738.1 GB of arrays (limit 2.0 GB)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_pass_that_cannot_run_is_not_checkable_with_a_reason(sizes: GPT2, why: str) -> None:
    count = count_sizes(sizes)
    (check,) = check_forward_pass(sizes, count)
    assert check.ok is None
    assert check == Check("NumPy pass", count.total, None, "not checkable", why)
