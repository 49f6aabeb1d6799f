"""Images in a text: what the reference's logits (tests/oracle/test_logits.py) do not show of their operations, and runs
with and without them.

The expected values are worked out by hand.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paramcount as pc
from paramcount import flow as ops
from paramcount.errors import ParamcountError
from paramcount.flow import Axes, Rope
from paramcount.flow.operation import Array
from tests.small_models import LLAMA, TOKENS, make_arrays
from tests.test_operations import compute

IMAGE_TOKEN = 7
LLAVA: dict[str, Any] = {
    "model_type": "llava", "image_token_index": IMAGE_TOKEN, "text_config": LLAMA, "vision_feature_layer": -1,
    "vision_config": {
        "model_type": "clip_vision_model", "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 12, "image_size": 4, "patch_size": 2,
    },
}  # fmt: skip
WITH_IMAGE = [3, IMAGE_TOKEN, IMAGE_TOKEN, IMAGE_TOKEN, IMAGE_TOKEN, 5]  # four patches


def test_squares_of_patches_become_one_row() -> None:
    x = np.arange(16.0).reshape(8, 2)  # 2 × 4 patches
    places = [[i, j] for i in range(2) for j in range(4)]
    by_column = compute(ops.MergeSquaresByColumn(4), x, places)
    assert by_column[1].tolist() == [4, 5, 12, 13, 6, 7, 14, 15]
    patches = np.array([[1.0, 8.0], [5.0, 7.0], [2.0, 6.0], [3.0, 9.0]])
    assert compute(ops.LargestOfSquares(4), patches).tolist() == [[5, 9]]
    with pytest.raises(ParamcountError, match="cannot merge 2 patches"):
        compute(ops.MergeSquares(2), np.zeros((4, 1)))


def test_a_code_without_a_token_id_is_an_error() -> None:
    with pytest.raises(ParamcountError, match=r"code 1 has no token id \(expected 0 to 0\)"):
        compute(ops.NearestRow((70,)), [[1.0]], weights=([[5.0], [1.0]],))


def test_a_second_table_continues_the_first() -> None:
    tables = ([[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0]])
    assert compute(ops.LookupContinued(), [2, 0, 1], weights=tables).tolist() == [[5, 6], [1, 2], [3, 4]]
    with pytest.raises(ParamcountError, match=r"unknown token id 3 \(expected 0 to 2\)"):
        compute(ops.LookupContinued(), [3], weights=tables)


def test_what_is_stored_with_a_table_is_not_looked_up() -> None:
    """I-BERT's scale and 8-bit integers of the same table."""
    weights = ([[1.0, 2.0], [3.0, 4.0]], [0.5], [[2.0, 4.0], [6.0, 8.0]])
    assert compute(ops.Lookup(), [1, 0], weights=weights).tolist() == [[3, 4], [1, 2]]
    with pytest.raises(ParamcountError, match=r"unknown token id 2 \(expected 0 to 1\)"):
        compute(ops.Lookup(), [2], weights=weights)


SQUARE = [[0.0], [1.0], [2.0], [3.0]]  # two rows of two columns
FOUR_ROWS = [[i, 0] for i in range(4)]


@pytest.mark.parametrize(
    ("stretch", "table", "places", "expected"),
    [
        # 3 × 3 over 2 × 5 patches: the middle column is the middle one, its neighbours are halves
        (
            "corners", np.arange(9.0).reshape(9, 1), [[i, j] for i in range(2) for j in range(5)],
            [0, 0.5, 1, 1.5, 2, 6, 6.5, 7, 7.5, 8],
        ),
        # Keys' kernel with a = -0.75 at ±0.25 and ±0.75 of two rows, whose border continues
        ("centres", [[0.0], [0.0], [8.0], [8.0]], FOUR_ROWS, [0, 2, 6, 8]),
        ("centres, cubic", [[0.0], [0.0], [8.0], [8.0]], FOUR_ROWS, [-0.84375, 1.8125, 6.1875, 8.84375]),
        # over 4 × 4 patches, whose centres are at -1/4, 1/4, 3/4 and 5/4; the image has two rows
        (
            "centres of a square", SQUARE, [[i, j] for i in range(2) for j in range(4)],
            [0, 0.25, 0.75, 1, 0.5, 0.75, 1.25, 1.5],
        ),
        # four patches a side: each row and each column stands for two
        ("nearest", SQUARE, [[0, 0], [1, 1], [1, 2], [2, 1], [3, 3]], [0, 0, 1, 2, 3]),
        # Four rows for two patches: each reaches two rows far, by 0.75, 0.75 and 0.25.
        ("centres, averaged", [[[0.0]], [[4.0]], [[8.0]], [[12.0]]], [[0, 0], [1, 0]], [5 / 1.75, 16 / 1.75]),
        # Two rows for four patches: a quarter of the outer ones is outside.
        ("centres, zeros outside", [[[8.0]], [[8.0]]], FOUR_ROWS, [6, 8, 8, 6]),
    ],
)  # fmt: skip
def test_a_grid_of_positions_is_interpolated(stretch: Any, table: Any, places: Any, expected: list[float]) -> None:
    found = compute(ops.GridLookup(stretch), places, weights=(table,), shape=(len(places), 1))
    assert found.ravel() == pytest.approx(expected)


def test_positions_that_do_not_fit_the_image_are_an_error() -> None:
    with pytest.raises(ParamcountError, match="pixels: 1 positions"):
        compute(ops.AddPositions(), [[1.0]], weights=([[1.0], [2.0]],))


@pytest.mark.parametrize(
    ("axes", "expected"),
    [
        (Axes((1, 1, 2), "sections"), [1, 10 / 10, 100 / 100, 100 / 1000]),
        (Axes((3, 1, 0), "interleaved"), [1, 10 / 10, 1 / 100, 1 / 1000]),
        (Axes((1, 1), "restarted"), [1, 1 / 100, 10, 10 / 100]),
        (Axes((1, 1), "alternating"), [1, 1 / 100, 10 / 10, 10 / 1000]),
        (Axes((1, 1), "in turns"), [10, 1, 10 / 100, 1 / 100]),
    ],
)
def test_pairs_rotate_with_the_position_of_their_axis(axes: Axes, expected: list[float]) -> None:
    """Base 10,000 and a head of 8: frequencies 1, 1/10, 1/100 and 1/1000, or 1 and 1/100 if they begin again."""
    places = np.array([[1, 10, 100]])[:, : len(axes.sections)]
    assert axes.find_angles(places, Rope(10_000.0), 8, 1)[0] == pytest.approx(expected)


def test_vectors_take_the_place_of_placeholders_in_order() -> None:
    rows, state = [[10.0], [20.0], [30.0]], {}  # type: tuple[list[list[float]], dict[str, Array]]
    ids = [5, IMAGE_TOKEN, IMAGE_TOKEN]
    x = [[1.0], [2.0], [3.0]]
    assert compute(ops.Insert(IMAGE_TOKEN), x, ids, rows, state=state).ravel().tolist() == [1, 10, 20]
    assert compute(ops.Insert(IMAGE_TOKEN), [[4.0]], [IMAGE_TOKEN], rows, state=state).ravel().tolist() == [30]
    assert compute(ops.InsertSum(IMAGE_TOKEN), x, ids, rows).ravel().tolist() == [1, 12, 23]
    with pytest.raises(ParamcountError, match=r"tokens: 4 placeholder tokens \(id 7\) for an input of 3 vectors"):
        compute(ops.Insert(IMAGE_TOKEN), [[4.0]], [IMAGE_TOKEN], rows, state=state)


# ---- whole models


def run_llava(tokens: list[int], **inputs: Any) -> Array:
    logits: Array = pc.run(LLAVA, make_arrays(LLAVA), tokens, **inputs).logits
    return logits


def test_a_text_without_an_image_needs_no_weight_of_the_vision_encoder() -> None:
    arrays = make_arrays(LLAVA)
    language = {name: array for name, array in arrays.items() if name.startswith("language_model.")}
    found = pc.run(LLAVA, language, TOKENS).logits
    alone = {name.removeprefix("language_model."): array for name, array in language.items()}
    assert np.allclose(found, pc.run(LLAMA, alone, TOKENS).logits, atol=1e-5)


def test_an_image_changes_the_logits_from_its_first_token_on() -> None:
    pixels = np.random.default_rng(1).normal(size=(3, 4, 4))
    first, second = run_llava(WITH_IMAGE, pixels=pixels), run_llava(WITH_IMAGE, pixels=-pixels)
    assert np.allclose(first[0], second[0], atol=1e-6)
    assert (np.abs(first[1:] - second[1:]).max(-1) > 1e-3).all()


@pytest.mark.parametrize(
    ("tokens", "inputs", "message"),
    [
        (TOKENS, {"pixel": np.zeros((3, 4, 4))}, "unknown input 'pixel' .*did you mean pixels"),
        (WITH_IMAGE, {"pixels": np.zeros((4, 4))}, "pixels: an array with 2 axes"),
        (WITH_IMAGE, {"pixels": np.zeros((3, 8, 4))}, "pixels: 9 positions .expected 5"),
        ([*WITH_IMAGE, IMAGE_TOKEN], {"pixels": np.zeros((3, 4, 4))}, "5 placeholder tokens .* of 4 vectors"),
    ],
)
def test_what_does_not_fit_an_image_is_an_error(tokens: list[int], inputs: dict[str, Any], message: str) -> None:
    with pytest.raises(pc.ParamcountError, match=message):
        run_llava(tokens, **inputs)
