"""Command lines whose JSON covers what each command can print, for the test of the schemas."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
MODELS = (
    "gpt2-small",
    "llama-3.2-11b-vision",
    "mixtral-8x7b",
    "deepseek-v3",
    "gpt-oss-20b",
    "t5-small",
    "jamba-v0.1",
)
CONFIGS = ("gemma-3-27b-it", "bert-base-uncased", "Qwen3.5-35B-A3B")
HEADERS = ("llama-GPTQ", "gpt2", "gpt_oss-MXFP4", "deepseek_v3-FP8", "llama-tied")
CLAIMS = """\
model,params,layers,d_model,FP16 size,MoE?
gpt2-small,124M,12,768,248 MB,no
mixtral-8x7b,45B,>31,4096,,yes
unheard-of,7B,32,4096,,
llama-3.1-8b,8.03B,32,5120,~16 GB,
"""
LINES = """\
list
list gpt --estimates
list deepseek --columns kv_lora_rank,q4_k_m,attention_bias,tied --where "total > 1e9"
sql "SELECT id, total, 1.5, NULL, x'00' FROM models LIMIT 2"
sql --schema
architectures
validate configs/gpt/gpt2-small.yaml configs/qwen/qwq-32b.yaml tests/data/limits.json
compare gpt2-small deepseek-v3 jamba-v0.1
compare gpt-4 gpt2-small --estimates
compare llama --columns total,d_model
compare gpt2-small jamba-v0.1 --columns bf16,q4_k_m,kv_per_token,state,flops_per_token
compare gpt2-small --set n_layers=13
compare gpt2-small deepseek-v3 --share
cite
cite gpt2-small gpt-4 --estimates
sweep gpt2-small n_layers=2,3 --where "n_layers > 2" --sort -total
sweep gpt2-small n_layers=1:3 tie_word_embeddings=true,false d_ff=4*d_model
sweep gpt2-small n_heads=5:7 --invalid
size --like gpt2-small --total 200M --limit 2
size --like gpt2-small --memory 2GB --vary n_layers --limit 2
show gpt-4 --estimates
show gpt-4o --estimates
show deepseek-v3 --expect 671B --expect active=36B
show gpt2-small --expect 124M --set n_layers=13
show gpt2-small --set n_layers=24
diff gpt2-small llama-3.1-8b
diff gpt2-small --set n_layers=24
why qwen2-7b 7.07B
why gpt2-small 1
why gpt2-small 124439808
why deepseek-v3 685B
why llama-3.2-1b gemma-3-4b --trainable 14,901,248
verify gpt2-small --set n_layers=2 --set vocab_size=100
flops gpt2-small --gpu m4-max
explain llama-3.1-8b --head
explain gpt2-small --set n_layers=24
trace llama-3.1-8b --decode --past 9
trace t5-small --source 7 --batch 2
trace gpt2-small --set n_layers=2 --full
trace jamba-v0.1 --decode --past 9
trace gpt2-small --pad 16 --explain
memory llama-3.1-8b --dtype int4 --dtype lm_head=fp8 --context 32k --batch 2
memory gpt2-small --set n_layers=24
memory llama-3.1-8b --gpu 2xH100 --pp 2 --ram 64GB
memory llama-3.1-70b --dtype q4_k_m --gpu "RTX 4090" --engine ollama
memory gpt-oss-20b --engine vllm --available-kv 12.5GiB
plan llama-3.1-8b --limit 2
plan gpt2-small --set n_layers=24 --gpu 1xT4,m1 --dtype bf16,q4_k_m
plan bert-base --gpu a10
plan deepseek-v3 --gpu 4xh100,h100 --engine-option block_size=32 --utilization 0.9
training llama-3.1-8b --pp 2 --zero 1 --gpu 8xH100
training gpt2-small --set n_layers=24 --memory 8GB
training llama-3.1-8b --qlora --targets q_proj,v_proj --layers-to-transform 1,2
training llama-3.1-8b --optimizer paged-adamw8bit --dora --dp 2 --estimators
training llama-3.1-8b --fsdp 8 --offload-optimizer nvme --offload-params cpu
"""
OF_MODELS = """\
show {id}
show {id} --by layer
show {id} --by part
show {id} --by tensor
explain {id}
explain {id} --layer 0
explain {id} --tensors
trace {id}
verify {id}
why {id}
memory {id}
flops {id}
flops {id} --gpu 8xH100 --train-tokens 15T --batch 4
training {id} --context 512
lora {id}
"""


def command_lines(folder: Path) -> list[list[str]]:
    """The command lines, --json left out; they run in the root of the project. `folder`: for files that they read."""
    texts = LINES + "".join(OF_MODELS.format(id=id) for id in MODELS)
    lines = [shlex.split(line) for line in texts.splitlines()]
    for name in CONFIGS:
        path = write_json(folder / "models" / name / "config.json", read_saved(f"config_truth/{name}")["config"])
        lines += [["show", path], ["show", path, "--keys"], ["trace", path], ["explain", path], ["compare", path]]
    lines.append(["scan", str(folder / "models")])
    for run in read_saved("peft_adapters"):
        lines.append(["show", write_json(folder / "adapters" / run["name"] / "adapter_config.json", run["config"])])
    for name in HEADERS:
        saved, place = read_saved(f"headers/{name}"), folder / "checkpoints" / name
        config = write_json(place / "config.json", saved["config"])
        header = write_json(place / "header.json", saved["header"])
        lines += [["show", header], ["show", header, "--by", "tensor"], ["show", config]]
        lines += [["verify", str(place), header], ["verify", "gpt2-small", header], ["why", str(place), header]]
    sizes = {"model_type": "llama", "hidden_size": 64, "num_layer": 3, "quantization_config": {"quant_method": "x"}}
    odd = write_json(folder / "odd.json", sizes)
    claims = folder / "claims.csv"
    claims.write_text(CLAIMS, encoding="utf-8")
    lines += [["show", odd], ["show", odd, "--keys"], ["audit", str(claims)], ["audit", str(claims), str(claims)]]
    return lines


def read_saved(name: str) -> Any:
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))


def write_json(path: Path, content: object) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    return str(path)
