"""Values and scraps of text that a file or a caller may give."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

SCRAPS = (
    "", " ", "  ", "\n", "\n\n", "\t", "\r\n", ":", ": ", "- ", "-", "{", "}", "[", "]", ",", "#", "|", ">", "? ", "%",
    "@", "`", "'", '"', "\\", "&a ", "*a", "!", "!!int ",
    "<<: ", "---\n", "...\n", "0", "-1", "1", "7", "64", "2147483648", "2147483649", "9" * 40, "1" * 101, "1e5", "0.5",
    "1e999", "012", "true", "null", "~", "no", "é", "\0",
    "\x1b", "\u2028", "\u202e", "\ufeff", "😀", "config:", "n_layers: 3\n", "d_model", "id: x\n", "estimate: true\n",
    "a" * 300,
)  # fmt: skip

SIZES = (
    st.integers()
    | st.integers(-2, 130)
    | st.sampled_from([2**31, 2**31 + 1, 2**63, 2**64])
    | st.just(5000).map(lambda n: 10**n)
)
LEAVES: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | SIZES
    | st.floats()
    | st.text(max_size=8)
    | st.binary(max_size=4)
    | st.dates()
    | st.datetimes()
    | st.complex_numbers()
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(LEAVES, inner, max_size=3) | st.frozensets(LEAVES, max_size=2)
    ),
    max_leaves=6,
)
