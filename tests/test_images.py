"""Images in a text: patches, where they stand, the tokens whose place they take, and runs with and without them.

The expected values are worked out by hand; the reference's logits check whole models (tests/oracle/test_logits.py).
"""

from __future__ import annotations

from math import cos, sin
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import paramcount as pc
from paramcount import flow as ops
from paramcount.errors import ParamcountError
from paramcount.flow import Axes, Data, Rope
from paramcount.flow.masks import Causal, Chunk, Pairs, Window
from paramcount.flow.operation import Array
from tests.small_models import LLAMA, TOKENS, make_arrays
from tests.steps import Leaf, attend, run_steps

IMAGE_TOKEN = 7
LLAVA: dict[str, Any] = {
    "model_type": "llava", "image_token_index": IMAGE_TOKEN, "text_config": LLAMA, "vision_feature_layer": -1,
    "vision_config": {
        "model_type": "clip_vision_model", "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 12, "image_size": 4, "patch_size": 2,
    },
}  # fmt: skip
WITH_IMAGE = [3, IMAGE_TOKEN, IMAGE_TOKEN, IMAGE_TOKEN, IMAGE_TOKEN, 5]  # four patches


def compute(
    operation: ops.Operation,
    *inputs: Any,
    weights: tuple[Any, ...] = (),
    state: dict[str, Array] | None = None,
    shape: tuple[int, ...] = (),
) -> Any:
    arrays = [np.asarray(x) for x in inputs]
    run: Any = SimpleNamespace(positions=np.arange(len(arrays[0])), state={} if state is None else state, layer=0)
    return operation.compute(run, arrays, [np.asarray(w, np.float32) for w in weights], shape or arrays[0].shape)


X = Data("x", (), ("image", 2, 2))
IMAGE = np.arange(24.0).reshape(1, 4, 6)  # one channel, rows 0–5, 6–11, 12–17, 18–23


def test_patches_are_read_row_by_row_or_square_by_square() -> None:
    assert compute(ops.Patches(2, 3), IMAGE)[1, 0].tolist() == [[3, 4, 5], [9, 10, 11]]
    rows = compute(ops.PatchPlaces(1, 1), IMAGE)
    assert rows[[0, 1, 6]].tolist() == [[0, 0], [0, 1], [1, 0]]
    squares = compute(ops.PatchPlaces(1, 1, 2), IMAGE)
    assert squares[:5].tolist() == [[0, 0], [0, 1], [1, 0], [1, 1], [0, 2]]


def test_frames_repeat_the_image() -> None:
    found = compute(ops.Patches(2, 3, axes="cfhw", frames=2), IMAGE)
    assert found.shape == (4, 1, 2, 2, 3)
    assert (found[:, :, 0] == found[:, :, 1]).all()


def test_places_beside_a_class_token_at_zero_have_columns_first_and_begin_at_one() -> None:
    placed = [[1, 1], [2, 1], [1, 2], [2, 2]]
    assert compute(ops.LastClassTokenPlaces(2, 3), IMAGE).tolist() == [*placed, [0, 0]]
    assert compute(ops.ClassTokenPlaces(2, 3), IMAGE).tolist() == [[0, 0], *placed]


def test_a_convolution_of_single_channels_may_make_several_values_of_each() -> None:
    """Two patches a side of two channels; one pixel wide, so that each value is one of its channel times a weight."""
    patches = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0]], np.float32)
    kernel = np.array([1.0, 2.0, 3.0, 4.0], np.float32).reshape(4, 1, 1, 1)
    found = compute(ops.ImageConvolution(1, grouped=True), patches, weights=(kernel,))
    assert found.tolist() == [[n, 2 * n, 30 * n, 40 * n] for n in (1, 2, 3, 4)]


def test_a_convolution_of_a_video_reads_a_frame_and_those_before_it() -> None:
    """Frames of one pixel. Zeros stand in front of them, as many as leave a frame for each step."""
    frames = np.array([1.0, 2.0, 3.0, 4.0], np.float32).reshape(1, 4, 1)
    every, second = (
        np.array(values, np.float32).reshape(1, 1, -1, 1, 1) for values in ([100, 10, 1], [1000, 100, 10, 1])
    )
    found = compute(ops.VideoConvolution(1, frames=3), frames, weights=(every, [0.5]))
    assert found.ravel().tolist() == [1.5, 12.5, 123.5, 234.5]
    found = compute(ops.VideoConvolution(1, 2, frames=4), frames, weights=(second, [0.5]))
    assert found.ravel().tolist() == [12.5, 1234.5]


def test_an_id_ends_each_row_of_the_ids_of_an_image() -> None:
    assert compute(ops.end_rows_of_ids(X, 9).operation, np.array([1, 2, 3, 4])).tolist() == [1, 2, 9, 3, 4, 9]


def test_windows_hold_whole_squares() -> None:
    """A window of 5 pixels over squares of 2 × 2 patches of 1 pixel: two squares a side."""
    found = compute(ops.PatchWindows(1, 1, 2, 5), IMAGE)
    assert found.tolist() == [0] * 8 + [1] * 4 + [0] * 8 + [1] * 4


def test_text_continues_after_the_largest_position_of_an_image() -> None:
    """arXiv:2409.12191, figure 3: three tokens, an image of 2 × 3, then text from 3 + 3 on."""
    operation = ops.TokenPlaces(3, 2, 2, IMAGE_TOKEN)
    ids = np.array([1, 2, 3, *[IMAGE_TOKEN] * 6, 4, 5])
    found = compute(operation, ids, IMAGE)
    assert found[2:].tolist() == [
        [2, 2, 2], [3, 3, 3], [3, 3, 4], [3, 3, 5], [3, 4, 3], [3, 4, 4], [3, 4, 5], [6, 6, 6], [7, 7, 7],
    ]  # fmt: skip
    state: dict[str, Array] = {}
    parts = [compute(operation, part, IMAGE, state=state) for part in (ids[:5], ids[5:])]
    assert np.concatenate(parts).tolist() == found.tolist()


def test_squares_of_patches_become_one_row() -> None:
    x = np.arange(16.0).reshape(8, 2)  # 2 × 4 patches
    places = [[i, j] for i in range(2) for j in range(4)]
    assert compute(ops.MergeSquares(4), x, places)[1].tolist() == [4, 5, 6, 7, 12, 13, 14, 15]
    by_channel = compute(ops.MergeSquaresByChannel(4), x, places)
    assert by_channel[1].tolist() == [4, 6, 12, 14, 5, 7, 13, 15]
    by_column = compute(ops.MergeSquaresByColumn(4), x, places)
    assert by_column[1].tolist() == [4, 5, 12, 13, 6, 7, 14, 15]
    means = compute(ops.MeanOfSquares(4), np.arange(8.0).reshape(8, 1), places)
    assert means.ravel().tolist() == [2.5, 4.5]
    means = compute(ops.MeanOfSquares(4), np.arange(16.0).reshape(16, 1))
    assert means.ravel().tolist() == [2.5, 4.5, 10.5, 12.5]


def test_the_last_block_has_no_mean_if_it_is_shorter() -> None:
    assert compute(ops.mean_of_blocks(X, 2).operation, [[1.0], [3.0], [5.0], [9.0], [100.0]]).ravel().tolist() == [2, 7]


def test_patches_outside_the_image_fill_the_last_windows() -> None:
    """2 × 3 patches in windows of 2: a third window, whose second column is outside."""
    places, windows = (compute(kind(2, 2, window=4), IMAGE) for kind in (ops.PaddedPlaces, ops.PaddedWindows))
    assert places.tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2], [0, 3], [1, 3]]
    assert windows.tolist() == [0, 0, 1, 0, 0, 1, 1, 1]
    assert compute(ops.pad_rows(X, X).operation, [[5.0]], windows[:3]).ravel().tolist() == [5, 0, 0]
    assert compute(ops.EarlierTokens(), [[5.0], [6.0], [7.0]], [1, 1]).ravel().tolist() == [5, 6]


def test_shifted_windows_begin_behind_one_that_is_smaller() -> None:
    """4 × 6 patches in windows of 2, shifted by 1: the first row and the first column have windows of their own."""
    shifted = ops.PaddedWindows(1, 1, window=2, shift=1)
    windows = compute(shifted, IMAGE).reshape(4, 6).tolist()
    assert windows[0] == [0, 1, 1, 2, 2, 3]
    assert windows[1] == windows[2] == [4, 5, 5, 6, 6, 7]
    assert windows[3] == [8, 9, 9, 10, 10, 11]
    whole = ops.PaddedWindows(1, 1, window=4, shift=2)  # as high as the image: no shift
    assert compute(whole, IMAGE[:, :, :4]).tolist() == [0] * 16


def test_pairs_of_patches_have_the_row_of_their_distance() -> None:
    """A grid of 1 × 2: distances of -1, 0 and 1 column, then pairs with a class token in front."""
    places = [[0, 0], [0, 1]]
    assert compute(ops.PatchDistances(1, 2), places).tolist() == [[1, 0], [2, 1]]
    found = compute(ops.ClassPatchDistances(1, 2), places)
    assert found.tolist() == [[5, 3, 3], [4, 1, 0], [4, 2, 1]]
    farther = compute(ops.PatchDistances(1, 2), [[0, 0], [0, 5]])
    assert farther.tolist() == [[1, 0], [2, 1]]  # those beyond the table are in other windows


def test_rows_in_front_of_the_text_see_each_other_and_no_text() -> None:
    """Two rows in front of two tokens, whose positions are 0 and 1."""
    found: Any = Causal().show(Pairs(4, 4, 2), iter(()))
    assert found.astype(int).tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]


def test_a_chunk_may_begin_in_front_of_the_text_and_global_rows_see_all() -> None:
    """One global row in front of three tokens; one token is missing from the first chunk of two."""
    found: Any = Chunk(2, offset=1).show(Pairs(4, 4, 3), iter(()))
    assert found.astype(int).tolist() == [[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 1, 1], [1, 0, 1, 1]]


def test_a_window_may_reach_less_far_back_than_ahead() -> None:
    found: Any = Window(2, 2).show(Pairs(4, 4, 4), iter(()))
    assert found.astype(int).tolist() == [[1, 1, 1, 0], [1, 1, 1, 1], [0, 1, 1, 1], [0, 0, 1, 1]]


def test_a_learned_vector_takes_the_place_of_all_tokens_with_an_id() -> None:
    vector = (np.array([7.0, 8.0]),)
    found = compute(ops.InsertLearned(9), [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [9, 1, 9], weights=vector)
    assert found.tolist() == [[7, 8], [3, 4], [7, 8]]
    stored = compute(ops.InsertLearned(9), [[1.0, 2.0], [3.0, 4.0]], [9, 1], weights=(vector[0].reshape(1, 1, 2),))
    assert stored.tolist() == [[7, 8], [3, 4]]


def test_cosines_may_stand_first() -> None:
    """The first position is 0, whose sines are 0 and whose cosines are 1."""
    found = [compute(ops.Sinusoids(order, "base"), np.zeros((1, 4))).ravel() for order in ("halves", "cosines first")]
    assert [x.tolist() for x in found] == [[0, 0, 1, 1], [1, 1, 0, 0]]


def test_a_score_per_distance_in_rows_and_in_columns() -> None:
    """Two patches in a row: of the second one, the first is one column to the left, which has the largest score."""
    q, v, columns = np.zeros((2, 1, 1)), [[[1.0]], [[9.0]]], np.array([[[0.0, 0.0, 50.0]]] * 2)
    places = Leaf([[0, 0], [0, 1]], int)
    rows = run_steps(ops.bias_by_place(Leaf(0 * columns), places, "rows"), 2)
    biases = rows, run_steps(ops.bias_by_place(Leaf(columns), places, "columns"), 2)
    found = attend(q, q, v, *biases)
    assert found.ravel().tolist() == pytest.approx([5, 1])


def test_a_convolution_over_an_image_pads_it_with_zeros() -> None:
    """Sums of 3 × 3 patches of a 4 × 4 image of ones, at every other row and column."""
    operation = ops.ImageConvolution(3, 2)
    found = compute(operation, np.ones((16, 1)), weights=(np.ones((1, 1, 3, 3)),))
    assert found.ravel().tolist() == [4, 6, 6, 9]


def test_a_convolution_may_pad_an_image_only_behind() -> None:
    """The squares of 3 × 3 start at rows and columns 0 and 2 of 4; the second ones reach one zero."""
    operation = ops.ImageConvolution(3, 2, ops.BEHIND)
    found = compute(operation, np.ones((16, 1)), weights=(np.ones((1, 1, 3, 3)), [0.5]))
    assert found.ravel().tolist() == [9.5, 6.5, 6.5, 4.5]


def test_a_group_norm_is_over_all_rows_of_an_image() -> None:
    """arXiv:1803.08494, section 3.1: of the first two channels the mean is 4 and the variance 5; of the others, 0."""
    x = np.array([[1.0, 3.0, 2.0, 2.0], [5.0, 7.0, 2.0, 2.0]])
    operation = ops.GroupNorm(4.0, 2)
    found = compute(operation, x, weights=([1.0, 1.0, 1.0, 3.0], [0.0, 0.0, 0.0, 9.0]))
    assert found.tolist() == [[-1, pytest.approx(-1 / 3), 0, 9], [pytest.approx(1 / 3), 1, 0, 9]]


def test_an_image_becomes_twice_as_high_and_wide() -> None:
    x = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0]])
    found = compute(ops.enlarge(X).operation, x)
    assert found[:, 0].tolist() == [1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4]
    assert found[:, 1].tolist() == (10 * found[:, 0]).tolist()


def test_the_nearest_row_has_the_smallest_distance() -> None:
    """Not the largest product: (1, 1) is nearer to (1, 0) than to (5, 5)."""
    table = [[5.0, 5.0], [1.0, 0.0], [-1.0, -1.0]]
    x = [[1.0, 1.0], [4.0, 4.0]]
    assert compute(ops.NearestRow(), x, weights=(table,)).tolist() == [1, 0]
    assert compute(ops.NearestRow((70, 80, 90)), x, weights=(table,)).tolist() == [80, 70]


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


def test_channels_stand_in_the_place_of_tokens() -> None:
    x = np.arange(12.0).reshape(3, 2, 2)
    found = compute(ops.transpose_heads(X).operation, x)
    assert found[:, 0].tolist() == [[0, 4, 8], [1, 5, 9]]
    assert compute(ops.transpose_heads(X).operation, found).tolist() == x.tolist()


def test_an_image_may_be_padded_with_more_zeros() -> None:
    """A single value of 1, and 3 × 3 weights of 1, with two zeros on each side: it is in all of 3 × 3 squares."""
    operation = ops.ImageConvolution(3, padding=ops.Zeros(2))
    assert compute(operation, np.ones((1, 1)), weights=(np.ones((1, 1, 3, 3)),)).ravel().tolist() == [1] * 9


def test_masked_tokens_have_the_smallest_logit() -> None:
    logits = np.array([[1.0, 2.0, 3.0, 4.0]], np.float32)
    found = compute(ops.MaskTokens((0, -2)), logits)
    assert found.tolist() == [[-3.4028234663852886e38, 2, -3.4028234663852886e38, 4]]


def test_learned_rows_come_first_or_last() -> None:
    x, token = [[1.0, 2.0]], ([[8.0, 9.0]],)
    assert compute(ops.ClassToken(), x, weights=token).tolist() == [[8, 9], [1, 2]]
    assert compute(ops.LastClassToken(), x, weights=token).tolist() == [[1, 2], [8, 9]]


def test_a_place_has_sines_and_cosines_of_its_column_before_those_of_its_row() -> None:
    """The order of Granite Docling's connector, worked out from the formula: row 2, column 1, angles 1 and 1 / 100."""
    (found,) = compute(ops.GridSinusoids(), np.array([[2, 1]]), shape=(1, 8))
    column = [sin(1), sin(0.01), cos(1), cos(0.01)]
    row = [sin(2), sin(0.02), cos(2), cos(0.02)]
    np.testing.assert_allclose(found, column + row, rtol=1e-6)


def test_a_grid_of_positions_is_interpolated() -> None:
    """A table of 3 × 3 stretched over 2 × 5 patches: the middle column is the middle one, its neighbours are halves."""
    table = np.arange(9.0).reshape(9, 1)
    places = [[i, j] for i in range(2) for j in range(5)]
    found = compute(ops.GridLookup(), places, weights=(table,))
    assert found.ravel().tolist() == [0, 0.5, 1, 1.5, 2, 6, 6.5, 7, 7.5, 8]


def test_columns_and_rows_have_tables_of_their_own() -> None:
    columns, rows = [[1.0], [2.0], [3.0]], [[10.0], [20.0], [30.0]]
    places = [[0, 2], [1, 0]]
    assert compute(ops.PlaceTables(), places, weights=([columns, rows],)).ravel().tolist() == [13, 21]
    in_turns = np.stack((columns, rows), axis=1)
    found = compute(ops.PlaceTables(in_turns=True), places, weights=(in_turns,))
    assert found.ravel().tolist() == [13, 21]


def test_placeholders_are_looked_up_as_padding() -> None:
    operation = ops.LookupKnown(1, (IMAGE_TOKEN, 2))
    table = [[0.0], [10.0], [20.0]]
    assert compute(operation, [0, IMAGE_TOKEN, 2], weights=(table,)).ravel().tolist() == [0, 10, 10]


def test_pixels_with_channels_last() -> None:
    image = np.arange(8.0).reshape(2, 2, 2)
    assert compute(ops.Patches(2, 2, axes="hwc"), image).ravel().tolist() == [0, 4, 1, 5, 2, 6, 3, 7]


def test_stored_bounds_and_a_vector_that_is_subtracted() -> None:
    assert compute(ops.ClipToStored(), [[-9.0, 0.5, 9.0]], weights=(-1, 2)).tolist() == [[-1, 0.5, 2]]
    assert compute(ops.SubtractVector(), [[5.0, 6.0]], weights=([1.0, 2.0],)).tolist() == [[4, 4]]


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
    ],
)
def test_pairs_rotate_with_the_position_of_their_axis(axes: Axes, expected: list[float]) -> None:
    """Base 10,000 and a head of 8: frequencies 1, 1/10, 1/100 and 1/1000, or 1 and 1/100 if they begin again."""
    places = np.array([[1, 10, 100]])[:, : len(axes.sections)]
    assert axes.find_angles(places, Rope(10_000.0), 8, 1)[0] == pytest.approx(expected)


def test_the_first_half_rotates_with_the_column_and_the_second_with_the_row() -> None:
    operation = ops.RotaryApart(Rope(100.0))
    column, row = (compute(operation, np.ones((1, 1, 4)), [place]).ravel() for place in ([0, 1], [1, 0]))
    turned = [np.cos(1) - np.sin(1), np.cos(1) + np.sin(1)]
    assert column.tolist() == pytest.approx([*turned, 1, 1])
    assert row.tolist() == pytest.approx([1, 1, *turned])


def test_a_position_of_zero_rotates_nothing() -> None:
    operation = ops.RotaryAt(Rope(100.0), "halves", Axes((1, 1), "restarted"))
    x = np.ones((1, 1, 4), np.float32)
    assert compute(operation, x, [[0, 0]]).ravel().tolist() == [1, 1, 1, 1]
    turned = compute(operation, x, [[0, 1]]).ravel()
    assert turned[[0, 2]].tolist() == [1, 1]
    assert turned[[1, 3]] == pytest.approx([np.cos(1) - np.sin(1), np.cos(1) + np.sin(1)])


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


def test_a_grid_of_positions_is_interpolated_between_centres_of_squares() -> None:
    """Expected values: Keys' kernel with a = -0.75 at ±0.25 and ±0.75 of two rows, whose border continues."""
    table = [[0.0], [0.0], [8.0], [8.0]]  # two rows of two columns
    places = [[0, 0], [1, 0], [2, 0], [3, 0]]
    bilinear = compute(ops.GridLookup("centres"), places, weights=(table,))
    assert bilinear.ravel().tolist() == [0, 2, 6, 8]
    cubic = compute(ops.GridLookup("centres, cubic"), places, weights=(table,))
    assert cubic.ravel().tolist() == [-0.84375, 1.8125, 6.1875, 8.84375]


def test_rows_that_are_merged_channel_by_channel() -> None:
    x = np.arange(8).reshape(4, 2)  # four rows of two channels
    merged = compute(ops.MergeRowsByChannel(), x, shape=(1, 2, 2, 2))
    assert merged.tolist() == [[[[0, 2], [4, 6]], [[1, 3], [5, 7]]]]


def test_a_grid_may_be_stretched_over_a_square_of_which_a_wide_image_is_a_part() -> None:
    """A grid of 2 × 2 over 4 × 4 patches, whose centres are at -1/4, 1/4, 3/4 and 5/4; the image has two rows."""
    places = [[row, column] for row in range(2) for column in range(4)]
    lookup = ops.GridLookup("centres of a square")
    found = compute(lookup, places, weights=([[[0.0], [1.0], [2.0], [3.0]]],), shape=(8, 1))
    assert found.ravel().tolist() == [0, 0.25, 0.75, 1, 0.5, 0.75, 1.25, 1.5]


def test_the_nearest_row_of_a_grid_is_looked_up() -> None:
    """Two rows and columns for four patches a side: each stands for two."""
    table = [[0.0], [1.0], [2.0], [3.0]]
    places = [[0, 0], [1, 1], [1, 2], [2, 1], [3, 3]]
    assert compute(ops.GridLookup("nearest"), places, weights=(table,)).ravel().tolist() == [0, 0, 1, 2, 3]


def test_a_convolution_over_bands_has_bands_as_the_rows_of_its_kernel() -> None:
    """Frames [2, bands, 1]; the only weight that is not 0 is that of the band before, in the same frame."""
    frames = np.array([[[1.0], [2.0], [3.0]], [[4.0], [5.0], [6.0]]])
    kernel = np.zeros((1, 1, 3, 3))
    kernel[0, 0, 0, 1] = 1
    found = compute(ops.BandConvolution(3), frames, weights=(kernel, [10.0]))
    assert found[..., 0].tolist() == [[10, 11, 12], [10, 14, 15]]


def test_a_block_renames_parts_of_the_names_of_its_weights() -> None:
    def body(x: Data) -> Data:
        return ops.linear(x, "model.layers.self_attn.q_proj", "qkv.q", 3)

    x = ops.given("x", "tokens", 2)
    out = ops.rename_weights(ops.block(x, "", body), moved=("model.", ""), replaced=((".q_proj.", ".to_q."),))
    assert [record.name for record in ops.list_rows(out)] == ["layers.self_attn.to_q.weight"]


def test_a_grid_that_shrinks_may_be_averaged_and_one_that_grows_may_have_zeros_outside() -> None:
    """Four rows for two patches: each reaches two rows far, by 0.75, 0.75 and 0.25. Two rows for four patches: a
    quarter of the outer ones is outside.
    """
    rows = [[[0.0]], [[4.0]], [[8.0]], [[12.0]]]
    averaged = compute(ops.GridLookup("centres, averaged"), [[0, 0], [1, 0]], weights=(rows,))
    assert averaged.ravel().tolist() == pytest.approx([5 / 1.75, 16 / 1.75])
    places = [[0, 0], [1, 0], [2, 0], [3, 0]]
    padded = compute(ops.GridLookup("centres, zeros outside"), places, weights=([[[8.0]], [[8.0]]],))
    assert padded.ravel().tolist() == [6, 8, 8, 6]


def test_a_channel_is_convolved_over_the_places_of_patches() -> None:
    """Column by column; the only weight that is not 0 is that of the patch above."""
    kernel = np.zeros((1, 1, 3, 3))
    kernel[0, 0, 0, 1] = 1
    patches, places = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    found = compute(ops.PatchConvolution(3), patches, places, weights=(kernel,))
    assert found.ravel().tolist() == [0, 1, 0, 3]


def test_the_largest_of_a_square_of_patches_is_chosen_by_channel() -> None:
    patches = np.array([[1.0, 8.0], [5.0, 7.0], [2.0, 6.0], [3.0, 9.0]])
    assert compute(ops.LargestOfSquares(4), patches).tolist() == [[5, 9]]


def test_patches_that_are_no_square_are_not_merged() -> None:
    with pytest.raises(ParamcountError, match="cannot merge 2 patches"):
        compute(ops.MergeSquares(2), np.zeros((4, 1)))


def test_each_frequency_may_rotate_with_the_column_and_then_with_the_row() -> None:
    angles = Axes((1, 1), "in turns").find_angles(np.array([[2, 3]]), Rope(100.0), 8, 1)
    assert angles.ravel().tolist() == pytest.approx([3, 2, 0.3, 0.2])
