"""Regular expressions from a config.json, limited to those that match in quadratic time."""

from __future__ import annotations

import re
from functools import lru_cache

from paramcount.errors import ParamcountError, describe_value

LONGEST = 500  # characters
MOST_REPEATS = 2  # that may be tried at several lengths; a last `.*` matches at once
REPEAT = r"(?:\.|\\[dwDW]|\[[^\]]*\]|[\w\-])(?:[*+?]|\{\d{1,3}(?:,\d{0,3})?\})"
PLAIN = r"(?:\\[.dwDW\-/]|[\w.\-/|]|\[[\w\-^]+\]|\((?:\?:)?|\)|\^|\$|[*+?]|\{\d{1,3}(?:,\d{0,3})?\})*"


@lru_cache(maxsize=1024)
def compile_pattern(text: str) -> re.Pattern[str]:
    r"""The compiled regular expression.

    >>> bool(compile_pattern(r".*mlp\.(gate|up|down)_proj$").match("model.layers.0.mlp.up_proj"))
    True

    Raises: ParamcountError if it is invalid or may take long to match: a repeated group, many repeats, look-arounds.
    """
    head = re.sub(r"(?:\.\*)+\$?$", "", text)
    if (
        len(text) > LONGEST
        or not re.fullmatch(PLAIN, text)
        or re.search(r"\)[*+?{]|[*+?}][*+{]", text)
        or len(re.findall(REPEAT, head)) > MOST_REPEATS
    ):
        raise ParamcountError(
            f"= {describe_value(text)} is a regular expression that may take long to match",
            expected="at most two repeats such as `.*`",
        )
    try:
        return re.compile(text)
    except re.error:
        raise ParamcountError(
            f"= {describe_value(text)} is not a valid regular expression",
            expected="a name, or `re:` and a regular expression",
        ) from None
