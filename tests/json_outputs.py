"""Command lines whose JSON covers what each command can print, for the test of the schemas."""

from __future__ import annotations

import json
from pathlib import Path

DATA = Path(__file__).parent / "data"
ZOO = Path(__file__).parent.parent / "configs"
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


def command_lines(folder: Path) -> list[list[str]]:
    """The command lines, --json left out. `folder`: for the files that they read."""
    lines: list[list[str]] = [
        ["list"],
        ["list", "gpt", "--estimates"],
        ["list", "deepseek", "--columns", "kv_lora_rank,q4_k_m,attention_bias,tied", "--where", "total > 1e9"],
        ["sql", "SELECT id, total, 1.5, NULL, x'00' FROM models LIMIT 2"],
        ["sql", "--schema"],
        ["architectures"],
        ["validate", str(ZOO / "gpt/gpt2-small.yaml"), str(ZOO / "qwen/qwq-32b.yaml"), str(DATA / "limits.json")],
        ["compare", "gpt2-small", "deepseek-v3", "jamba-v0.1"],
        ["cite", "gpt2-small", "gpt-4", "--estimates"],
        ["cite"],
    ]
    lines += [
        ["compare", "gpt-4", "gpt2-small", "--estimates"],
        ["compare", "llama", "--columns", "total,d_model"],
        ["compare", "gpt2-small", "jamba-v0.1", "--columns", "bf16,q4_k_m,kv_per_token,state,flops_per_token"],
        ["compare", "gpt2-small", "--set", "n_layers=13"],
        ["compare", "gpt2-small", "deepseek-v3", "--share"],
        ["sweep", "gpt2-small", "n_layers=2,3", "--where", "n_layers > 2", "--sort", "-total"],
    ]
    lines += [
        ["show", "gpt-4", "--estimates"],
        ["show", "gpt-4o", "--estimates"],
        ["show", "deepseek-v3", "--expect", "671B", "--expect", "active=36B"],
        ["show", "gpt2-small", "--expect", "124M", "--set", "n_layers=13"],
        ["diff", "gpt2-small", "llama-3.1-8b"],
        ["diff", "gpt2-small", "--set", "n_layers=24"],
    ]
    lines += [
        ["why", "qwen2-7b", "7.07B"],
        ["why", "gpt2-small", "1"],
        ["why", "gpt2-small", "124439808"],
        ["why", "deepseek-v3", "685B"],
        ["why", "mixtral-8x7b"],
    ]
    for id in MODELS:
        lines += [["show", id], *(["show", id, "--by", by] for by in ("layer", "part", "tensor"))]
        lines += [
            ["explain", id],
            ["explain", id, "--layer", "0"],
            ["explain", id, "--tensors"],
            ["trace", id],
            ["verify", id],
            ["why", id],
            ["memory", id],
            ["flops", id],
            ["training", id, "--context", "512"],
            ["flops", id, "--gpu", "8xH100", "--train-tokens", "15T", "--batch", "4"],
            ["lora", id],
        ]
    lines += [
        ["show", "gpt2-small", "--set", "n_layers=24"],
        ["flops", "gpt2-small", "--gpu", "m4-max"],
        ["explain", "llama-3.1-8b", "--head"],
        ["sweep", "gpt2-small", "n_layers=1:3", "tie_word_embeddings=true,false", "d_ff=4*d_model"],
        ["sweep", "gpt2-small", "n_heads=5:7", "--invalid"],
        ["size", "--like", "gpt2-small", "--total", "200M", "--limit", "2"],
        ["size", "--like", "gpt2-small", "--memory", "2GB", "--vary", "n_layers", "--limit", "2"],
        ["explain", "gpt2-small", "--set", "n_layers=24"],
    ]
    lines += [
        ["trace", "llama-3.1-8b", "--decode", "--past", "9"],
        ["trace", "t5-small", "--source", "7", "--batch", "2"],
        ["trace", "gpt2-small", "--set", "n_layers=2", "--full"],
    ]
    lines += [
        ["memory", "llama-3.1-8b", "--dtype", "int4", "--dtype", "lm_head=fp8", "--context", "32k", "--batch", "2"],
        ["memory", "gpt2-small", "--set", "n_layers=24"],
        ["memory", "llama-3.1-8b", "--gpu", "2xH100", "--pp", "2", "--ram", "64GB"],
        ["memory", "llama-3.1-70b", "--dtype", "q4_k_m", "--gpu", "RTX 4090", "--engine", "ollama"],
        ["memory", "gpt-oss-20b", "--engine", "vllm", "--available-kv", "12.5GiB"],
    ]
    lines += [
        ["plan", "llama-3.1-8b", "--limit", "2"],
        ["plan", "gpt2-small", "--set", "n_layers=24", "--gpu", "1xT4,m1", "--dtype", "bf16,q4_k_m"],
        ["plan", "bert-base", "--gpu", "a10"],
        ["plan", "deepseek-v3", "--gpu", "4xh100,h100", "--engine-option", "block_size=32", "--utilization", "0.9"],
    ]
    lines += [
        ["training", "llama-3.1-8b", "--pp", "2", "--zero", "1", "--gpu", "8xH100"],
        ["training", "gpt2-small", "--set", "n_layers=24", "--memory", "8GB"],
        ["why", "llama-3.2-1b", "gemma-3-4b", "--trainable", "14,901,248"],
        ["training", "llama-3.1-8b", "--qlora", "--targets", "q_proj,v_proj", "--layers-to-transform", "1,2"],
        ["training", "llama-3.1-8b", "--optimizer", "paged-adamw8bit", "--dora", "--dp", "2", "--estimators"],
        ["training", "llama-3.1-8b", "--fsdp", "8", "--offload-optimizer", "nvme", "--offload-params", "cpu"],
    ]
    lines += [
        ["trace", "jamba-v0.1", "--decode", "--past", "9"],
        ["trace", "gpt2-small", "--pad", "16", "--explain"],
        ["verify", "gpt2-small", "--set", "n_layers=2", "--set", "vocab_size=100"],
    ]
    for name in CONFIGS:
        config = json.loads((DATA / "config_truth" / f"{name}.json").read_text(encoding="utf-8"))["config"]
        path = folder / "models" / name / "config.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(config), encoding="utf-8")
        lines += [
            ["show", str(path)],
            ["show", str(path), "--keys"],
            ["trace", str(path)],
            ["explain", str(path)],
            ["compare", str(path)],
        ]
    lines.append(["scan", str(folder / "models")])
    for run in json.loads((DATA / "peft_adapters.json").read_text(encoding="utf-8")):
        path = folder / "adapters" / run["name"] / "adapter_config.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(run["config"]), encoding="utf-8")
        lines.append(["show", str(path)])
    for name in HEADERS:
        saved = json.loads((DATA / "headers" / f"{name}.json").read_text(encoding="utf-8"))
        place = folder / "checkpoints" / name
        place.mkdir(parents=True)
        (place / "config.json").write_text(json.dumps(saved["config"]), encoding="utf-8")
        header = place / "header.json"
        header.write_text(json.dumps(saved["header"]), encoding="utf-8")
        lines += [
            ["show", str(header)],
            ["show", str(header), "--by", "tensor"],
            ["verify", str(place), str(header)],
            ["verify", "gpt2-small", str(header)],
        ]
        lines += [["why", str(place), str(header)], ["show", str(place / "config.json")]]
    odd = folder / "odd.json"
    odd.write_text(
        json.dumps(
            {"model_type": "llama", "hidden_size": 64, "num_layer": 3, "quantization_config": {"quant_method": "x"}}
        ),
        encoding="utf-8",
    )
    lines += [["show", str(odd)], ["show", str(odd), "--keys"]]
    claims = folder / "claims.csv"
    claims.write_text(CLAIMS, encoding="utf-8")
    return [*lines, ["audit", str(claims)], ["audit", str(claims), str(claims)]]
