"""Random tables of claims in CSV and Markdown: each is audited or a one-line error."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import paramcount as pc
from paramcount.auditing.audit import audit_tables
from paramcount.auditing.cells import UnreadableClaim, parse_claims
from paramcount.auditing.claim_tables import from_bytes, from_text
from paramcount.auditing.headings import parse_heading
from paramcount.auditing.render import build_table
from paramcount.output.tables import FORMATS, render
from tests.fuzz.frame import fuzz, seldom, spoil_text
from tests.refusing import assert_one_line, read_or_none
from tests.test_audit import CLAIMS, HEADINGS

pytestmark = pytest.mark.fuzz

SCRAPS = st.sampled_from(
    [
        *"|,;\t\n\"'-:()[]<>*`\\#~≈+/ ",
        "\r\n",
        "|-|-|\n",
        "model",
        "params",
        "gpt2-small",
        "layers",
        "7B",
        "1e9",
        "N/A",
        "🙂",
        "\ufeff",
        "2 of 8",
        "top-",
    ]
)


@seldom
@given(st.lists(SCRAPS, max_size=60).map("".join), st.booleans())
def test_a_random_file_is_audited_or_a_one_line_error(text: str, with_head: bool) -> None:
    data = (f"model,params,heads\ngpt2,124M,12\n{text}" if with_head else text).encode()
    try:
        (table, *_) = from_bytes(data, "f").claims
        rows = [
            dict(zip((heading.text or str(i) for i, heading in enumerate(table.headings)), line.cells))
            for line in table.lines
        ]
        json.dumps(pc.audit(rows).to_dict())
    except pc.ParamcountError as error:
        assert_one_line(str(error))


@seldom
@given(
    st.text(max_size=60) | st.lists(SCRAPS, max_size=20).map("".join),
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


VALID = [path.read_text(encoding="utf-8")[:3000] for path in sorted(CLAIMS.glob("*.*"))]
PIECES = [
    *"|,;\t\n\"'-–−:()[]<>≥~≈+/ 0123456789",
    "\r\n",
    "|-|-|\n",
    ">",
    "less than ",
    "–",
    "1e9",
    "9" * 40,
    "K",
    "B",
    "\0",
    "\x1b",
    "\u202e",
    "=1+1",
    "\ufeff",
    "x" * 300,
]


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
