"""One decoding step of a Llama with 494,005,120 parameters in NumPy, against the same step of the reference in torch.

Both read the same checkpoint, compute in float32 on the CPU and run in turn. Needs torch and transformers; see
`test_speed` for the rest.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.benchmarks.test_speed import run_process

ROUNDS = 5
CONFIG = {  # the sizes of Qwen2.5-0.5B
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 151936, "hidden_size": 896,
    "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2, "head_dim": 64,
    "intermediate_size": 4864, "max_position_embeddings": 4096, "tie_word_embeddings": True,
}  # fmt: skip
WRITE = """
import torch, transformers
torch.manual_seed(0)
model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**{config!r}))
model.to(torch.{dtype}).save_pretrained({path!r})
"""
NUMPY = """
import time
import paramcount
run = paramcount.run({path!r}, {path!r}, [5, 6, 7, 8, 9, 10, 11, 12])
times = [time.perf_counter()]
for token in range({n}):
    run = run.append([token])
    times.append(time.perf_counter())
"""
TORCH = """
import time
import torch, transformers
model = transformers.LlamaForCausalLM.from_pretrained({path!r}, dtype=torch.float32)
with torch.no_grad():
    out = model(torch.tensor([[5, 6, 7, 8, 9, 10, 11, 12]]), use_cache=True)
    times = [time.perf_counter()]
    for token in range({n}):
        out = model(torch.tensor([[token]]), past_key_values=out.past_key_values, use_cache=True)
        times.append(time.perf_counter())
"""
REPORT = "print(min(after - before for before, after in zip(times, times[1:])))"
N_STEPS = 8


class Decoding(NamedTuple):
    step: float  # seconds of the fastest step
    process: float  # seconds of a process that loads the model, reads eight tokens and decodes eight
    peak_kib: int


def decode(code: str, path: Path) -> Decoding:
    process = run_process(code.format(path=str(path), n=N_STEPS) + REPORT)
    return Decoding(float(process.output), process.seconds, process.peak_kib)


@pytest.mark.skipif(
    not find_spec("torch") or not find_spec("transformers"), reason="needs torch==2.13.0 and transformers==5.23.0"
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_decoding_step_against_the_reference(benchmark: Any, tmp_path: Path, dtype: str) -> None:
    """The goal is 3 times at most, and less memory."""
    write = WRITE.format(config=CONFIG, dtype=dtype, path=str(tmp_path))
    subprocess.run([sys.executable, "-c", write], capture_output=True, check=True)
    decode(NUMPY, tmp_path), decode(TORCH, tmp_path)  # the first start of each fills the file cache
    pairs = [(decode(NUMPY, tmp_path), decode(TORCH, tmp_path)) for _ in range(ROUNDS)]
    for name in Decoding._fields:
        ratios = [getattr(ours, name) / getattr(reference, name) for ours, reference in pairs]
        benchmark.extra_info[f"{name} ratio"] = round(statistics.median(ratios), 3)
    benchmark.extra_info["peak in MiB"] = [run.peak_kib // 1024 for run in pairs[0]]
    benchmark.pedantic(lambda: None, rounds=1)
    print(f"\n{benchmark.name}: {json.dumps(benchmark.extra_info)}")
