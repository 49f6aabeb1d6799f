"""The default run takes little of what takes long: of a slow test function with many parameters each n-th.

The others are exhaustive. `python -m tests.slow JUNIT.xml` writes tests/data/slow.txt from the times of one run with an
empty one: `pytest --junitxml=JUNIT.xml`.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from math import ceil
from pathlib import Path
from xml.etree.ElementTree import parse

import pytest

PATH = Path(__file__).parent / "data" / "slow.txt"
LONGEST = 0.3  # seconds that a function may take in the default run
LONGEST_ALONE = 0.7  # the same, if it has no parameters
EXEMPT = ("tests/test_mutants.py", "tests/test_readme.py")  # every mutant and every document is tried in every run


def mark_slow(items: Iterable[pytest.Item]) -> None:
    """Mark what the default run leaves out."""
    shares = dict(line.rsplit(" ", 1) for line in PATH.read_text(encoding="utf-8").splitlines())
    seen: Counter[str] = Counter()
    for item in items:
        name = item.nodeid.partition("[")[0]
        if name in shares and item.get_closest_marker("exhaustive") is None:
            n = int(shares[name])
            if n == 0 or seen[name] % n:
                item.add_marker(pytest.mark.exhaustive)
            seen[name] += 1


def find_shares(path: Path) -> dict[str, int]:
    """{test function: each how many-th of its parameters the default run tries; 0 for none}."""
    times: dict[str, list[float]] = defaultdict(list)
    for case in parse(path).iter("testcase"):  # noqa: S314  # a file that pytest wrote
        file = case.get("classname", "").replace(".", "/") + ".py"
        if file.startswith("tests/") and file not in EXEMPT:
            times[f"{file}::{case.get('name', '').partition('[')[0]}"].append(float(case.get("time", "0")))
    shares = {}
    for name, found in sorted(times.items()):
        if len(found) == 1 and found[0] > LONGEST_ALONE:
            shares[name] = 0
        elif len(found) > 1 and (n := min(len(found), ceil(sum(found) / LONGEST))) > 1:
            shares[name] = n
    return shares


if __name__ == "__main__":
    PATH.write_text("".join(f"{name} {n}\n" for name, n in find_shares(Path(sys.argv[1])).items()), encoding="utf-8")
