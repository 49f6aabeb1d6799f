"""Run the oracle tests of the model types whose proof is missing or out of date, and freeze the proofs that pass.

`python -m tests.oracle.prove` does it for all types, `python -m tests.oracle.prove TYPE…` for some. Each proof is
written as soon as its tests have passed: started again, the command goes on with the others. `--list` prints what is
out of date; `--check` runs it, a sample of the other types and the tests of no type, and writes nothing; `--all` runs
everything.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from tests.oracle import digests
from tests.type_files import load_facts, save_fact

Proof = tuple[str, str]  # model type, file of tests
FILES = sorted(path.stem for path in Path(__file__).parent.glob("test_*.py"))


def list_digests(names: list[str], processes: int) -> dict[Proof, str]:
    """The digest of every proof as it has to be."""
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        found = pool.map(digest_type, names, chunksize=8)
        return {(name, file): text for name, texts in zip(names, found) for file, text in zip(FILES, texts)}


def digest_type(name: str) -> list[str]:
    return [digests.digest_proof(name, file) for file in FILES]


class Recorder:
    """Write each proof when all of its tests have passed."""

    def __init__(self, expected: dict[Proof, str], writes: bool) -> None:
        self.expected, self.writes = expected, writes
        self.done: Counter[Proof] = Counter()
        self.failed: dict[Proof, list[str]] = {}
        self.proven = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        properties: dict[str, Any] = dict(report.user_properties)
        for proof, number in zip(properties.get("proofs", ()), properties.get("numbers", ())):
            proof = (proof[0], proof[1])
            if report.failed:
                self.failed.setdefault(proof, []).append(report.nodeid)
            self.done[proof] += report.when == "teardown"
            if report.when == "teardown" and self.done[proof] == number and proof not in self.failed:
                self.proven += 1
                if self.writes and proof in self.expected:
                    name, file = proof
                    save_fact(name, "proofs", {**load_facts(name).get("proofs", {}), file: self.expected[proof]})


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.prove", description=__doc__)
    parser.add_argument("types", nargs="*", metavar="TYPE")
    parser.add_argument("-n", type=int, default=2, help="processes")
    parser.add_argument("--list", action="store_true", help="print the proofs that are out of date")
    parser.add_argument("--check", action="store_true", help="run what is out of date and a sample, write nothing")
    parser.add_argument("--all", action="store_true", help="run every oracle test")
    options = parser.parse_args(arguments)
    if unknown := set(options.types) - set(digests.list_types()):
        parser.error(f"no model types: {', '.join(sorted(unknown))}")
    names = options.types or list(digests.list_types())
    expected = list_digests(names, options.n)
    frozen = {(name, file): text for name in names for file, text in load_facts(name).get("proofs", {}).items()}
    stale = [proof for proof, text in expected.items() if frozen.get(proof) != text]  # or there is no such test
    proven = {name for name, _ in frozen} - {name for name, file in stale if (name, file) in frozen}
    types = [name for name in names if name not in proven]
    print(f"{len(types)} of {len(names)} model types have changed since their proof", flush=True)
    if options.list:
        print("\n".join(types))
        return 0
    sample = [(name, file) for name in digests.pick_sample() for file in FILES] if options.check else []
    recorder = Recorder(expected, writes=not options.check)
    with tempfile.TemporaryDirectory() as folder:
        chosen = Path(folder) / "proofs.json"
        chosen.write_text(json.dumps(sorted({*stale, *sample})), encoding="utf-8")
        limits = [] if options.all else ["--proofs", str(chosen), *([] if options.check else ["--only-types"])]
        command = [str(Path(__file__).parent), "-m", "oracle", "-n", str(options.n), "--dist", "loadgroup", *limits]
        command += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of what transformers has imported
        code = pytest.main(command, plugins=[recorder])
    print(f"{recorder.proven} proofs hold, {len(recorder.failed)} do not")
    for (name, file), tests in sorted(recorder.failed.items()):
        print(f"{name}: {file}: {tests[0]}" + (f" and {len(tests) - 1} more" if len(tests) > 1 else ""))
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
