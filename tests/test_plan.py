"""Plans: `memory` confirms every deployment, no fewer GPUs hold it, and its bounds follow from the data sheet."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import paramcount as pc
from paramcount.costs.gpus import find_gpu, list_gpus
from paramcount.costs.plan.records import PlannedDeployment
from paramcount.costs.plan.render import fold_command, write_check
from tests.running import Runner

# One of each kind: many heads, few of them, a latent, experts, windows, states, no cache, an encoder.
MODELS = (
    "llama-3.1-8b", "qwen3-235b-a22b", "deepseek-v3", "mixtral-8x7b", "gpt-oss-120b", "gemma-3-27b", "jamba-v0.1",
    "codestral-mamba-7b", "bert-base", "t5-small", "gpt2-xl",
)  # fmt: skip
GPUS = ("h100", "2xH200", "rtx4090", "1xA10", "m4-max", "mi300x", "dgx-spark", "8xb200")
NEEDS = {
    "users": st.sampled_from((1, 2, 16, 100)),
    "context": st.sampled_from((None, 512, 4096, 32_768)),
    "gpu": st.lists(st.sampled_from(GPUS), min_size=1, max_size=3, unique=True),
    "dtype": st.sampled_from((None, "int4", "bf16,fp8", "q4_k_m")),
    "engine": st.sampled_from((None, None, "llama.cpp", "minimal")),
}


def confirm(model: str, it: PlannedDeployment) -> None:
    measured = pc.memory(model, **it.arguments).fit
    assert measured is not None
    assert measured._replace(suggestions=()) == it.fit._replace(suggestions=())


@settings(max_examples=15, deadline=None)
@given(model=st.sampled_from(MODELS), need=st.fixed_dictionaries(NEEDS))
def test_memory_confirms_every_deployment_with_the_same_arguments(model: str, need: dict[str, Any]) -> None:
    try:
        deployments = pc.plan(model, **need).deployments
    except pc.ParamcountError as error:  # llama.cpp does not support the model or the dtype
        deployments = ()
        if "positions of the position embedding" in str(error):
            assert need["context"] > 512
            return
    assert deployments or need["engine"] == "llama.cpp" or need["dtype"] == "q4_k_m" or need["gpu"] == ["m4-max"]
    for it in deployments:
        confirm(model, it)
        for suggestion in it.fit.suggestions:
            fit = pc.memory(model, **{**it.arguments, **suggestion.options}).fit
            assert fit is not None
            assert (fit.verdict, fit.free_bytes) == ("fits", suggestion.free_bytes)
        for suggestion in it.on_one_machine:
            changed = {"users" if name == "batch" else name: value for name, value in suggestion.options.items()}
            asked = {name: need[name] for name in ("users", "context", "engine")} | {"dtype": it.arguments.get("dtype")}
            (one,) = pc.plan(model, **{**asked, **changed, "gpu": f"8x{it.gpu}"}).deployments
            assert one.fit.verdict == "fits"


@settings(max_examples=8, deadline=None)
@given(
    model=st.sampled_from(("llama-3.1-70b", "mixtral-8x7b", "gpt-oss-120b", "deepseek-v3", "gemma-3-27b")),
    gpu=st.sampled_from(("h100", "h200", "a10", "rtx4090", "mi300x")),
    users=st.sampled_from((1, 16, 64)),
)
def test_fewer_gpus_do_not_hold_a_deployment_for_certain(model: str, gpu: str, users: int) -> None:
    (it,) = pc.plan(model, gpu=gpu, users=users).deployments
    numbers = [n for n in (1, 2, 4, *range(8, 64, 8)) if n < it.devices]
    verdicts = {}
    for n in numbers:
        layout = {"gpu": f"{n}x{gpu}", "tp": min(n, 8), "pp": -(-n // 8)}
        fit = pc.memory(model, **{**it.arguments, **layout}).fit
        assert fit is not None
        verdicts[n] = fit.verdict
    assert "fits" not in verdicts.values()
    close = [n for n, verdict in verdicts.items() if verdict == "too close to call"]
    assert it.too_close_devices == (close[0] if close else None)


def test_without_gpus_those_with_the_least_memory_in_all_come_first() -> None:
    plan = pc.plan("llama-3.1-8b", users=4, engine="vllm", limit=1000)
    fits = {}
    for gpu in list_gpus():
        if not gpu.name.startswith("Apple "):
            fit = pc.memory("llama-3.1-8b", batch=4, engine="vllm", gpu=gpu.name).fit
            assert fit is not None
            fits[gpu.name] = fit.verdict == "fits"
    holding = sorted((find_gpu(name).memory_bytes, name) for name, holds in fits.items() if holds)
    alone = [(find_gpu(it.gpu).memory_bytes, it.gpu) for it in plan.deployments if it.devices == 1]
    assert [size for size, _ in alone] == [size for size, _ in holding]
    assert sorted(alone) == holding
    assert [it.devices for it in plan.deployments] == sorted(it.devices for it in plan.deployments)
    best = pc.plan("llama-3.1-8b", users=4, engine="vllm", limit=3)
    assert best.deployments == plan.deployments[:3]


# ---- speed


def test_stages_read_their_weights_one_after_the_other_and_share_the_users() -> None:
    # Llama 3.1 405B: all weights but the embedding in BF16, 126 layers of 2 × 8 heads × 128 values in BF16 per token.
    weights = 2 * (405_853_388_800 - 128_256 * 16_384)
    cache = 16 * 8192 * 126 * 2 * 8 * 128 * 2
    (it,) = pc.plan("llama-3.1-405b", users=16, gpu="h100").deployments
    assert (it.devices, it.tp, it.pp) == (16, 8, 2)
    assert it.speed is not None
    expected = (weights / 8 + cache / 8 / 2) / find_gpu("h100").bandwidth
    assert it.speed.step_seconds == pytest.approx(expected, rel=1e-12)
    flops = pc.flops("llama-3.1-405b", context=8192, gpu="16xh100").roofline  # stages work on parts of a prompt at once
    assert flops is not None and flops.prompt.compute_seconds is not None
    assert it.speed.prompt_seconds == pytest.approx(flops.prompt.compute_seconds)


def test_every_gpu_reads_a_latent_that_all_of_them_keep() -> None:
    # DeepSeek-V3: 61 layers of 512 + 64 values in BF16 per token, on each of the GPUs.
    (few,) = pc.plan("deepseek-v3", users=1, context=8192, gpu="8xh200").deployments
    (many,) = pc.plan("deepseek-v3", users=9, context=8192, gpu="8xh200").deployments
    assert few.speed is not None and many.speed is not None
    difference = many.speed.step_seconds - few.speed.step_seconds  # type: ignore[operator]
    assert difference == pytest.approx(8 * 8192 * 61 * 576 * 2 / find_gpu("h200").bandwidth)


@pytest.mark.parametrize(
    ("model", "users", "context", "gpu", "limit"),
    [
        ("llama-3.1-70b", 8, 4096, "8xh100", "memory"),
        ("mixtral-8x7b", 8, 4096, "8xh100", "memory"),
        ("gemma-3-27b", 8, 4096, "8xh100", "memory"),
        ("llama-3.1-8b", 2000, 64, "1xh200", "compute"),
    ],
)
def test_the_bounds_are_those_of_the_data_sheet_as_flops_has_them(
    model: str, users: int, context: int, gpu: str, limit: str
) -> None:
    (it,) = pc.plan(model, users=users, context=context, gpu=gpu).deployments
    roofline = pc.flops(model, context=context, batch=users, gpu=f"{it.devices}x{gpu[2:]}").roofline
    assert roofline is not None and roofline.decoding is not None and it.speed is not None
    assert it.speed.step_seconds == pytest.approx(roofline.decoding.seconds)
    assert it.speed.limit == limit
    assert it.speed.tokens_per_second_per_user == pytest.approx(1 / roofline.decoding.seconds)
    assert it.speed.tokens_per_second == pytest.approx(users / roofline.decoding.seconds)
    assert it.speed.prompt_seconds == pytest.approx(roofline.prompt.seconds)
    assert it.speed.prompt_tokens_per_second == pytest.approx(context / roofline.prompt.seconds)
    assert it.speed.rate_dtype == "BF16"


def test_a_gpu_without_a_rate_has_the_bound_of_its_bandwidth() -> None:
    plan = pc.plan("llama-3.1-8b", gpu="m2-ultra", context=4096)
    (it,) = plan.deployments
    assert it.speed is not None and find_gpu("m2-ultra").flops == {}
    assert it.speed.tokens_per_second is not None
    assert (it.speed.prompt_seconds, it.speed.rate_dtype) == (None, None)


def test_an_encoder_has_no_steps_and_no_tokens_per_second() -> None:
    (it,) = pc.plan("bert-base", gpu="a10").deployments
    assert it.speed is not None
    assert (it.speed.step_seconds, it.speed.tokens_per_second, it.speed.limit) == (None, None, "")
    assert it.speed.prompt_tokens_per_second is not None


# ---- choices


@pytest.mark.parametrize(
    ("need", "engine", "reason", "dtype", "kv_dtype"),
    [
        ({"gpu": "h100"}, "vllm", "default", "FP8 (128 × 128 blocks, as stored)", "BF16"),
        ({"gpu": "m3-ultra"}, "llama.cpp", "default on Apple GPUs", "Q8_0", "FP16"),
        ({"gpu": "h100", "dtype": "q4_k_m"}, "llama.cpp", "default for GGUF formats", "Q4_K_M", "FP16"),
        ({"gpu": "h100", "engine": "minimal", "kv_dtype": "fp8"}, "minimal", "as asked",
         "FP8 (128 × 128 blocks, as stored)", "FP8"),
    ],
)  # fmt: skip
def test_what_was_chosen_is_stated_with_its_reason(
    need: dict[str, Any], engine: str, reason: str, dtype: str, kv_dtype: str
) -> None:
    (it,) = pc.plan("deepseek-v3", **need).deployments
    assert (it.engine, it.engine_reason, it.dtype, it.kv_dtype) == (engine, reason, dtype, kv_dtype)


def test_the_command_starts_the_engine_with_the_release_or_a_name_that_stands_for_weights() -> None:
    vllm, gguf = pc.plan("llama-3.1-8b", users=4, context=4096, gpu="h100", dtype="bf16,q4_k_m").deployments
    assert vllm.command == "vllm serve meta-llama/Llama-3.1-8B --max-model-len 4096 --max-num-seqs 4"
    assert gguf.command.startswith("llama-server -m Llama-3.1-8B-Q4_K_M.gguf -c 16384 -np 4")


def test_a_config_is_planned_with_its_directory(run: Runner, tmp_path: Any) -> None:
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 8}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    found = run("plan", str(tmp_path / "config.json"), "--gpu", "a10", "--json")
    assert found.code == 0
    assert json.loads(found.out)["deployments"][0]["command"].startswith(f"vllm serve {tmp_path} ")


def test_experts_are_divided_whole_if_tensor_parallelism_would_cut_their_blocks(run: Runner) -> None:
    # 1,536 columns per expert in blocks of 128: 8 GPUs would have one and a half blocks, 4 GPUs have three.
    (eight,) = pc.plan("minimax-m2.7", users=16, context=32_768, gpu="h100").deployments
    assert (eight.devices, eight.tp, eight.ep) == (8, 8, 8)
    assert "--enable-expert-parallel" in eight.command
    assert "--ep 8" in run("plan", "minimax-m2.7", "--users", "16", "--context", "32k", "--gpu", "h100").out
    confirm("minimax-m2.7", eight)
    (four,) = pc.plan("minimax-m2.7", users=1, context=8192, gpu="b200").deployments
    assert (four.devices, four.ep) == (2, 1)


def test_kv_heads_divide_among_the_gpus() -> None:
    # Phi-3 medium has 40 heads and 10 KV heads: vLLM runs it on two GPUs and fails on four.
    (it,) = pc.plan("phi-3-medium", gpu="rtx3070").deployments
    assert (it.devices, it.tp, it.pp) == (8, 2, 4)


def test_an_apple_gpu_is_alone() -> None:
    plan = pc.plan("llama-3.1-405b", gpu="m4-max")
    (it,) = plan.deployments
    assert (it.devices, it.fit.verdict) == (1, "does not fit")
    assert not any("gpu" in suggestion.options for suggestion in it.fit.suggestions)


# ---- output


def test_the_printed_command_of_memory_gives_the_printed_answer(run: Runner) -> None:
    line = ("llama-3.1-70b", "--users", "16", "--context", "32k", "--gpu", "h100", "--engine-option", "block_size=32")
    found = run("plan", *line, "--utilization", "0.9", "--overhead", "1.5GB", "--set", "n_layers=79")
    assert found.code == 0
    text = found.out[found.out.index("paramcount memory") :].replace("\\\n", " ")
    memory = run(*shlex.split(text.splitlines()[0])[1:])
    assert memory.code == 0
    first = re.search(r"fits on \d × H100 SXM.*?free per GPU", found.out)
    assert first is not None and first[0] in memory.out


def test_every_gpu_is_found_by_the_name_that_a_command_has() -> None:
    for gpu in (find_gpu(gpu.name) for gpu in list_gpus()):
        words = shlex.split(write_check("model", {"gpu": f"8x{gpu.name}"}))
        assert find_gpu(words[-1].removeprefix("8x")).name == gpu.name


@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_folded_command_is_the_same_to_a_shell(width: int) -> None:
    command = "vllm serve 'a model' --tensor-parallel-size 8 --kv-cache-dtype fp8 --max-model-len 32768 -x y"
    folded = fold_command(command, width)
    assert max(map(len, folded.splitlines())) <= width
    assert shlex.split(folded.replace("\\\n", "")) == shlex.split(command)


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_table_fits_the_terminal(run: Runner, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    found = run("plan", "qwen3-235b-a22b", "--users", "16", "--gpu", "h100,1xrtx4090,m4-max")
    assert max(map(len, found.out.splitlines())) <= width


# ---- exit codes and bad input


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (("llama-3.1-8b", "--gpu", "h100"), 0),
        (("llama-3.1-8b", "--gpu", "h100,1xt4"), 0),
        (("llama-3.1-8b", "--gpu", "1xt4"), 1),
        (("llama-3.1-8b", "--gpu", "1xa10", "--users", "6", "--engine", "minimal"), 3),
    ],
)
def test_the_exit_code_is_that_of_the_best_deployment(run: Runner, line: tuple[str, ...], code: int) -> None:
    assert run("plan", *line).code == code


def test_what_makes_it_fit_follows_if_nothing_does(run: Runner) -> None:
    # 16.1 GB of weights, 1 GB of overhead and 3 × 1.07 GB of cache are below 23.6 GB less 10%; 4 × 1.07 GB are not.
    found = run("plan", "llama-3.1-8b", "--users", "64", "--gpu", "1xa10", "--engine", "minimal")
    assert found.code == 1
    assert "fits with --users 3" in found.out
    assert "--batch" not in found.out


def test_a_deployment_on_several_machines_has_what_would_fit_one(run: Runner) -> None:
    # 812 GB of weights on 8 × 85.5 GB.
    (it,) = pc.plan("llama-3.1-405b", gpu="h100", engine="minimal").deployments
    assert it.devices == 16
    assert {"dtype": "fp8"} in [suggestion.options for suggestion in it.on_one_machine]
    assert "on one machine with 8 × H100 SXM: fits with" in run("plan", "llama-3.1-405b", "--gpu", "h100").out


@pytest.mark.parametrize(
    ("engine", "flags"),
    [
        # The recipe of vLLM and the cookbook of SGLang for DeepSeek-V3
        ("vllm", "--data-parallel-size 16 --enable-expert-parallel"),
        ("sglang", "--enable-dp-attention --dp-size 16"),
    ],
)
def test_many_users_of_a_model_with_mla_have_data_parallel_attention(engine: str, flags: str) -> None:
    best = pc.plan("deepseek-v3", users=256, context=32_768, gpu="b200", engine=engine).deployments[0]
    assert (best.devices, best.attention_replicas, best.fit.verdict) == (16, 16, "fits")
    assert flags in best.command
    # Each rank caches a 16th of the users: 61 layers of 512 + 64 values in BF16, in whole blocks
    cached = best.fit.fullest.kv_cache_bytes
    assert 0 <= cached - 16 * 32_768 * 61 * 576 * 2 < cached // 100
    shared = pc.plan("deepseek-v3", users=256, context=32_768, gpu="16xb200", engine=engine).deployments[0]
    assert shared.arguments == best.arguments
    checked = pc.memory("deepseek-v3", **{k: v for k, v in best.arguments.items() if k != "set"}).fit
    assert checked
    assert checked.needed_bytes == best.fit.needed_bytes


def test_one_user_and_models_whose_heads_divide_have_no_data_parallel_attention() -> None:
    for model, users in (("deepseek-v3", 1), ("qwen3-235b-a22b", 512)):
        plan = pc.plan(model, users=users, context=32_768, gpu="b200")
        assert {it.attention_replicas for it in plan.deployments} == {1}
