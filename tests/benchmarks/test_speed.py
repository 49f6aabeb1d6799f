"""Speed and size, as ratios within one run: `pip install -e '.[bench]' && pytest tests/benchmarks`.

Whole processes are run in turn, so that a machine that slows down slows both sides. Nothing here asserts a time.
The comparison with building the model needs torch and transformers and is skipped without them.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import paramcount
from tests.headers import write_file
from tests.huge import write_deepseek, write_llama

ROUNDS = 15
TRUTH = Path(__file__).parent.parent / "data" / "truth"
COMMAND = "from paramcount.cli import main; main(['gpt2-small'])"
LIBRARIES = "import click, yaml, pydantic\nclass Model(pydantic.BaseModel):\n    id: str\n    total: int\n"
CONFIG = "from paramcount.cli import main; main([{path!r}])"
FROM_CONFIG = (
    "import torch, transformers\n"
    "config = transformers.AutoConfig.from_pretrained({path!r})\n"
    "with torch.device('meta'):\n"
    "    model = transformers.AutoModelForCausalLM.from_config(config)\n"
    "print(sum(p.numel() for p in model.parameters()))\n"
)
REFERENCE = (
    "import torch, transformers\n"
    "with torch.device('meta'):\n"
    "    model = transformers.GPT2LMHeadModel(transformers.GPT2Config())\n"
    "print(sum(p.numel() for p in model.parameters()))\n"
)


# What a process says of its own peak as it leaves: what the operating system says of a child includes its parent's.
PEAK = (
    "import atexit, re; atexit.register(lambda: "
    "print(re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1], file=sys.stderr))"
)


class Process(NamedTuple):
    seconds: float
    peak_kib: int
    output: str


def run_process(code: str) -> Process:
    """One interpreter from start to end, with its peak memory. Needs Linux."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {PEAK}\n{code}"], capture_output=True, text=True, check=True
    )
    return Process(time.perf_counter() - start, int(done.stderr.split()[-1]), done.stdout)


def compare_processes(benchmark: Any, code: str, other: str, rounds: int) -> None:
    """Time `code`, and say beside it how it compares with `other`, run in turn."""
    run_process(code), run_process(other)  # the first start of each fills the file cache
    pairs = [(run_process(code), run_process(other)) for _ in range(rounds)]
    benchmark.extra_info["wall ratio"] = round(statistics.median(a.seconds / b.seconds for a, b in pairs), 3)
    benchmark.extra_info["peak memory ratio"] = round(statistics.median(a.peak_kib / b.peak_kib for a, b in pairs), 3)
    benchmark.pedantic(run_process, args=(code,), rounds=5)
    print(f"\n{benchmark.name}: {benchmark.extra_info}")


def test_a_command_against_importing_its_libraries(benchmark: Any) -> None:
    compare_processes(benchmark, COMMAND, LIBRARIES, ROUNDS)


@pytest.mark.skipif(
    not find_spec("torch") or not find_spec("transformers"), reason="needs torch==2.13.0 and transformers==5.23.0"
)
def test_a_command_against_building_the_model_on_the_meta_device(benchmark: Any) -> None:
    compare_processes(benchmark, COMMAND, REFERENCE, 5)


MANY = ["--context", "8k", "--engine", "vllm"]
# (command, another that it takes at most so many times as long as, times)
GOALS = [
    (["why", "gpt-oss-20b", "3.6B"], ["gpt-oss-20b"], 1.5),
    (["explain", "deepseek-v3"], ["deepseek-v3"], 1.5),
    (["trace", "deepseek-v3"], ["deepseek-v3"], 1.5),
    *((["memory", id], [id], 1.3) for id in ("llama-3.1-8b", "deepseek-v3")),
    *(
        (["plan", id, "--users", "16", "--context", "8k"], ["memory", id, "--gpu", "8xh100", "--batch", "16", *MANY], 3)
        for id in ("llama-3.1-8b", "deepseek-v3", "gpt-oss-120b")
    ),
]


@pytest.mark.parametrize(("line", "other", "goal"), GOALS, ids=lambda it: " ".join(it) if isinstance(it, list) else "")
def test_a_command_against_another(benchmark: Any, line: list[str], other: list[str], goal: float) -> None:
    benchmark.extra_info["goal"] = goal
    command = "from paramcount.cli import main; main({!r})"
    compare_processes(benchmark, command.format(line), command.format(other), ROUNDS)


@pytest.mark.parametrize(
    "line",
    [["sql", "SELECT family, count(*), max(total) FROM models GROUP BY family ORDER BY 3 DESC"], ["list"]],
    ids=lambda line: line[0],
)
def test_a_question_about_the_zoo_against_one_model(
    benchmark: Any, line: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The goal is 1.5 times at most, from the cache. The first query after a change of the zoo fills it."""
    monkeypatch.setenv("PARAMCOUNT_CACHE", str(tmp_path))
    code = f"from paramcount.cli import main; main({line!r})"
    benchmark.extra_info["first query in s"] = round(run_process(code).seconds, 2)
    compare_processes(benchmark, code, COMMAND, ROUNDS)


@pytest.mark.parametrize("id", ["gpt2-small", "deepseek-v3", "jamba-v0.1"])
def test_one_drawing(benchmark: Any, id: str) -> None:
    """The goal is a second at most for the largest."""
    benchmark(lambda: paramcount.draw(id).svg())


# ---- config.json


def load_documents() -> list[dict[str, Any]]:
    """Real configs of many architectures, as the tests have them."""
    facts = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(TRUTH.glob("*.json"))]
    return [fact["config"] for fact in facts]


def vary_documents(n: int) -> Iterator[dict[str, Any]]:
    """n configs of which no two are the same: real ones, each time with another vocabulary."""
    known = load_documents()
    for i in range(n):
        document = dict(known[i % len(known)])
        section = "text_config" if "text_config" in document else None
        sizes = dict(document[section]) if section else document
        if type(sizes.get("vocab_size")) is int:
            sizes["vocab_size"] += i
        yield {**document, section: sizes} if section else document


def test_configs_counted_in_one_process(benchmark: Any) -> None:
    """The goal is 10,000 a second from parsed JSON."""
    work = list(vary_documents(10_000))
    for document in work[:1000]:
        paramcount.count(document)  # imports the architectures, meets every structure
    benchmark.pedantic(lambda: [paramcount.count(document).total for document in work], rounds=3)
    seconds = benchmark.stats.stats.min
    benchmark.extra_info["configs a second"] = round(len(work) / seconds)
    print(f"\n{benchmark.name}: {benchmark.extra_info}")


def test_memory_over_100_000_configs_stays_flat(benchmark: Any) -> None:
    code = (
        "import sys; sys.path.insert(0, '.')\n"
        "from tests.benchmarks.test_speed import measure_peak, vary_documents\nimport paramcount\n"
        "for i, document in enumerate(vary_documents(100_000)):\n"
        "    paramcount.count(document)\n"
        "    if i == 10_000: early = measure_peak()\n"
        "print(early, measure_peak())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    early, late = map(int, done.stdout.split())
    benchmark.extra_info["peak after 10,000 and 100,000 in KiB"] = early, late
    benchmark.pedantic(lambda: None, rounds=1)
    print(f"\n{benchmark.name}: {benchmark.extra_info}")


def measure_peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def test_a_scan_of_10_000_files(benchmark: Any, tmp_path: Path) -> None:
    for i, document in enumerate(vary_documents(10_000)):
        folder = tmp_path / f"{i // 100:03}" / f"{i:05}"
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps(document), encoding="utf-8")
    code = f"from paramcount.cli import main; main(['scan', {str(tmp_path)!r}, '--csv'])"
    benchmark.pedantic(run_process, args=(code,), rounds=3)


@pytest.mark.skipif(
    not find_spec("torch") or not find_spec("transformers"), reason="needs torch==2.13.0 and transformers==5.23.0"
)
def test_a_config_json_against_building_it_on_the_meta_device(benchmark: Any, tmp_path: Path) -> None:
    config = next(document for document in load_documents() if document["model_type"] == "qwen3")
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    path = str(tmp_path / "config.json")
    compare_processes(benchmark, CONFIG.format(path=path), FROM_CONFIG.format(path=path), 5)


# ---- checkpoints


def write_many_tensors(folder: Path) -> Path:
    names = (f"l.{layer}.e.{expert}.{letter}" for layer in range(50) for expert in range(2000) for letter in "abcd")
    return write_file(folder / "model.safetensors", dict.fromkeys(names, ("U8", (4,))))


def write_many_claims(folder: Path) -> None:
    rows = "".join(f"GPT-2 Small,{124_000_000 + i}\n" for i in range(49_999))
    (folder / "claims.csv").write_text(f"model,params\n{rows}", encoding="utf-8")


@pytest.mark.parametrize(
    ("write", "line", "code"),
    [
        (write_deepseek, "verify deepseek-v3 {}", 0),  # 689 GB: seconds and flat memory
        (write_llama, "verify {0}/config.json {0}/model.gguf", 0),  # 150,000 tokens: less than a second
        (write_many_tensors, "verify gpt2-small {}/model.safetensors", 1),  # 400,000: five seconds and 300 MiB
        (write_many_claims, "audit {}/claims.csv", 1),  # 50,000 rows: five seconds
    ],
)
def test_a_large_file_takes_seconds(
    benchmark: Any, tmp_path: Path, write: Callable[[Path], object], line: str, code: int
) -> None:
    """The exit code is 1 if it does not match."""
    write(tmp_path)
    call = f"from paramcount.cli import main; main({line.format(tmp_path).split()!r})"
    checked = f"try:\n    {call}\nexcept SystemExit as leaving:\n    assert (leaving.code or 0) == {code}"
    benchmark.extra_info["peak in MiB"] = run_process(checked).peak_kib // 1024
    benchmark.pedantic(run_process, args=(checked,), rounds=5)
    print(f"\n{benchmark.name}: {benchmark.extra_info}")
