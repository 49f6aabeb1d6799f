"""The scales of a hierarchical MLP, and the assignment that chooses them."""

from itertools import combinations, pairwise, permutations
from math import log

from hypothesis import given, settings
from hypothesis import strategies as st

from paramcount.parts.hmlp import assign_columns, plan_scales


@given(
    st.integers(1, 4).flatmap(
        lambda n: st.lists(st.lists(st.integers(0, 9), min_size=5, max_size=5), min_size=n, max_size=n)
    )
)
@settings(max_examples=30, deadline=None)
def test_no_other_assignment_is_cheaper(costs: list[list[int]]) -> None:
    chosen = assign_columns(costs)
    assert len(set(chosen)) == len(costs)
    least = min(sum(row[j] for row, j in zip(costs, columns)) for columns in permutations(range(5), len(costs)))
    assert sum(row[j] for row, j in zip(costs, chosen)) == least


def test_few_layers_shrink_an_image_as_evenly_as_they_can() -> None:
    """Squares of 40 pixels grow by 5, 2, 2 and 2, frames by 2: the logarithms of four sizes are near equal steps."""
    sizes = [1, 25, 100, 400, 1600, 3200]
    for n in range(1, 5):
        ideal = [log(40 * 40 * 2 * 3) * i / n for i in range(1, n)]
        best = min(
            combinations(sizes[1:-1], n - 1), key=lambda chosen: sum(abs(a - log(b)) for a, b in zip(ideal, chosen))
        )
        found = [scale.n_frames * scale.side * scale.side for scale in plan_scales(2, 40, n, 3)]
        assert found == [1, *best, 3200]


def test_many_layers_repeat_scales() -> None:
    """Sizes and channels as plan_scales of the reference gives them: plan_out_scales(2, 8, 8, 3)."""
    found = plan_scales(2, 8, 8, 3)
    assert [tuple(scale) for scale in found] == [
        (1, 1, 3), (1, 2, 64), (1, 2, 64), (1, 4, 64), (1, 4, 64), (1, 8, 192), (1, 8, 192), (2, 8, 24576),
        (2, 8, 24576),
    ]  # fmt: skip
    assert all(after.side % before.side == 0 for before, after in pairwise(found))
