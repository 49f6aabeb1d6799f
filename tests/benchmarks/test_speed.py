"""Speed and size, as ratios within one run: `pip install -e '.[bench]' && pytest tests/benchmarks`.

Whole processes are run in turn, so that a machine that slows down slows both sides. Nothing here asserts a time.
The comparison with building the model needs torch and transformers and is skipped without them.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import pytest

from paramcount import zoo
from paramcount.counting import count_sizes, counted
from paramcount.zoo import from_file

ROUNDS = 15
COMMAND = "from paramcount.cli import main; main(['gpt2-small'])"
LIBRARIES = "import click, yaml, pydantic\nclass Model(pydantic.BaseModel):\n    id: str\n    total: int\n"
REFERENCE = (
    "import torch, transformers\nwith torch.device('meta'):\n    model = transformers.GPT2LMHeadModel(transformers.GPT2Config())\n"
    "print(sum(p.numel() for p in model.parameters()))\n"
)


# What a process says of its own peak as it leaves: what the operating system says of a child includes its parent's.
PEAK = "import atexit, re; atexit.register(lambda: print(re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1], file=sys.stderr))"


class Process(NamedTuple):
    seconds: float
    peak_kib: int


def run(code: str) -> Process:
    """One interpreter from start to end, with its peak memory. Needs Linux."""
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", f"import sys; {PEAK}\n{code}"], capture_output=True, text=True, check=True)
    return Process(time.perf_counter() - start, int(done.stderr.split()[-1]))


def against(benchmark: Any, code: str, other: str, rounds: int) -> None:
    """Time `code`, and say beside it how it compares with `other`, run in turn."""
    run(code), run(other)  # the first start of each fills the file cache
    pairs = [(run(code), run(other)) for _ in range(rounds)]
    benchmark.extra_info["wall ratio"] = round(statistics.median(a.seconds / b.seconds for a, b in pairs), 3)
    benchmark.extra_info["peak memory ratio"] = round(statistics.median(a.peak_kib / b.peak_kib for a, b in pairs), 3)
    benchmark.pedantic(run, args=(code,), rounds=5)
    print(f"\n{benchmark.name}: {benchmark.extra_info}")


def test_a_command_against_importing_its_libraries(benchmark: Any) -> None:
    against(benchmark, COMMAND, LIBRARIES, ROUNDS)


@pytest.mark.skipif(not find_spec("torch") or not find_spec("transformers"), reason="needs torch==2.13.0 and transformers==5.23.0")
def test_a_command_against_building_the_model_on_the_meta_device(benchmark: Any) -> None:
    against(benchmark, COMMAND, REFERENCE, 5)


@pytest.mark.parametrize("id", ["gpt2-small", "llama-3.1-8b", "deepseek-v3"])
@pytest.mark.parametrize("how", [counted, lambda model: count_sizes(model.sizes)], ids=["count of a loaded model", "counted anew"])
def test_one_count(benchmark: Any, id: str, how: Callable[[zoo.Model], Any]) -> None:
    benchmark(how, zoo.entry(id))


def test_loading_and_counting_the_whole_zoo(benchmark: Any) -> None:
    paths = sorted(zoo.CONFIGS.glob("*/*.yaml"))
    benchmark(lambda: [count_sizes(model.sizes) for model in map(from_file, paths) if not model.estimate])
