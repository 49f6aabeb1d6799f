"""What paramcount makes of every model type of transformers' mappings is what its file says, and the guide on
accuracy states the sums.
"""

from __future__ import annotations

from pathlib import Path

from tests.batches import in_batches
from tests.mapping_states import EXACT, STATES, UNREACHABLE, Row, find_state, load_mappings, summarise_mappings

ROWS = load_mappings()
DISTINCT = {(row.model_type, row.cls, row.state): row for row in ROWS}.values()  # several mappings have some classes
ACCURACY = Path(__file__).parent.parent / "paramcount/docs/accuracy.md"


@in_batches("row", DISTINCT, ids=lambda row: f"{row.mapping}-{row.model_type}-{row.cls}", size=100)
def test_the_state_of_a_class_is_as_the_table_says(row: Row) -> None:
    """After a change of what is supported: python -m tests.mapping_states"""
    assert find_state(row) == row.state


def test_every_row_has_a_state_and_a_reason_unless_it_is_counted_in_full() -> None:
    assert {row.state for row in ROWS} <= set(STATES)
    assert [row for row in ROWS if (row.state in (EXACT, UNREACHABLE)) == bool(row.reason)] == []


def test_the_guide_on_accuracy_states_the_sums() -> None:
    assert summarise_mappings(ROWS) in ACCURACY.read_text(encoding="utf-8")
