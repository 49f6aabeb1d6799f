"""Random tables of claims in CSV and Markdown: each is audited or a one-line error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paramcount.auditing.audit import audit_tables
from paramcount.auditing.cells import UnreadableClaim, parse_claims
from paramcount.auditing.claim_tables import from_text
from paramcount.auditing.headings import parse_heading
from paramcount.auditing.render import build_table
from paramcount.output.tables import FORMATS, render
from tests.fuzz.frame import fuzz, seldom, spoil_text
from tests.refusing import assert_one_line, read_or_none
from tests.test_audit import CLAIMS, HEADINGS

pytestmark = pytest.mark.fuzz

VALID = [path.read_text(encoding="utf-8")[:3000] for path in sorted(CLAIMS.glob("*.*"))]
PIECES = [
    *"|,;\t\n\"'-–−:()[]<>≥~≈+/*`\\# 0123456789", "\r\n", "|-|-|\n", "less than ", "1e9", "9" * 40, "K", "B", "7B",
    "N/A", "2 of 8", "top-", "model", "params", "layers", "gpt2-small", "\0", "\x1b", "\u202e", "=1+1", "\ufeff", "🙂",
    "x" * 300,
]  # fmt: skip


@seldom
@given(
    st.text(max_size=60) | st.lists(st.sampled_from(PIECES), max_size=20).map("".join),
    st.sampled_from([text for texts in HEADINGS.values() for text in texts]),
)
def test_a_random_cell_is_parsed_or_has_a_reason(text: str, heading: str) -> None:
    if parse_heading(heading).kind not in (None, "model"):
        assert_one_line(describe_cell(text, heading))


def describe_cell(text: str, heading: str) -> str:
    """The claims in a cell, or the reason why it cannot be read."""
    try:
        return ", ".join(claim.kind for claim in parse_claims(text, parse_heading(heading)))
    except UnreadableClaim as reason:
        return str(reason)


def test_a_corrupted_table_is_audited_and_printed_or_an_error() -> None:
    def audit_text(text: str) -> str:
        tables = read_or_none(from_text, text, "f")
        if tables is None:
            return "refused"
        audit = audit_tables([tables])
        for format in FORMATS:
            assert render(build_table(audit, format), format, 80)
        return "read"

    assert fuzz(lambda rng: spoil_text(rng, VALID, PIECES), audit_text) == {"refused", "read"}
