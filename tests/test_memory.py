"""Memory at inference: weights by format, KV cache and recurrent state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
from paramcount.costs.columns import find_resource
from paramcount.costs.devices import FITS, TOO_CLOSE
from tests.running import Runner


@pytest.mark.parametrize(
    ("model", "per_token"), [("deepseek-v3", 70_272), ("qwen2.5-72b", 327_680), ("llama-3.1-405b", 516_096)]
)
def test_the_kv_cache_per_token_is_the_published_one(model: str, per_token: int) -> None:
    # "Insights into DeepSeek-V3", arXiv:2505.09343, table 1: 70.272, 327.680 and 516.096 KB in BF16
    assert pc.memory(model).kv_bytes_per_token == per_token


def test_a_sliding_window_stops_growing() -> None:
    # gpt-oss-20b: 12 layers keep 127 tokens besides the new one, 12 keep all; 2 × 8 heads × 64, 2 bytes
    result = pc.memory("gpt-oss-20b", context=10_000, batch=3)
    assert result.kv_cache_bytes == 3 * 12 * 2 * 8 * 64 * 2 * (127 + 10_000)
    assert result.weights_bytes == 13_761_264_768  # as it is stored: metadata.total_size of its index
    assert result.kv_bytes_per_token == 12 * 2 * 8 * 64 * 2


@pytest.mark.parametrize(
    ("config", "rows", "row"),
    [
        # DynamicCache keeps sliding_window - 1 tokens, though MoshiModel's mask is plain causal; 2 × 8 heads × 8
        ({"model_type": "moshi", "hidden_size": 64, "num_attention_heads": 8, "sliding_window": 6}, 5, 2 * 64),
        # KyutaiSpeechToTextModel likewise; its default is 375
        ({"model_type": "kyutai_speech_to_text", "hidden_size": 64, "num_attention_heads": 8}, 374, 2 * 64),
        # XLNetModel.cache_mem keeps the inputs of the last mem_len tokens, or of all; its default is 512
        ({"model_type": "xlnet", "d_model": 32, "n_head": 2, "mem_len": 4}, 4, 32),
        ({"model_type": "xlnet", "d_model": 32, "n_head": 2, "mem_len": 0}, 1000, 32),
        ({"model_type": "xlnet", "d_model": 32, "n_head": 2, "mem_len": None}, 1000, 32),
        ({"model_type": "xlnet", "d_model": 32, "n_head": 2}, 512, 32),
        # CpmAntModel puts the embeddings of a prompt in front of the tokens; 2 × 2 heads × 12
        (
            {"model_type": "cpmant", "hidden_size": 32, "num_attention_heads": 2, "dim_head": 12, "prompt_length": 5},
            1005,
            48,
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::paramcount.ConfigWarning")
def test_a_cache_has_the_rows_that_the_reference_keeps(config: dict[str, object], rows: int, row: int) -> None:
    result = pc.memory(config, context=1000)
    assert result.kv_cache_bytes == result.caches[0].layers * rows * row * 2


@pytest.mark.filterwarnings("ignore::paramcount.ConfigWarning")
def test_a_prompt_sees_more_than_a_decoded_token_if_the_cache_alone_has_a_window() -> None:
    config = {"model_type": "moshi", "hidden_size": 64, "num_attention_heads": 8, "sliding_window": 6}
    prompt, decoded = pc.trace(config, tokens=20), pc.trace(config, past=20)
    scores = [next(step for step in trace.steps if step.op == "QKᵀ").out for trace in (prompt, decoded)]
    assert scores == [(8, 20, 20), (8, 1, 6)]  # 5 tokens that are kept, and itself
    assert not any(step.op == "mask" for step in decoded.steps)


@pytest.mark.filterwarnings("ignore::paramcount.ConfigWarning")
def test_a_window_that_no_layer_reads_is_told() -> None:
    """get_layer_types_and_kwargs of transformers' cache_utils.py gives every layer a DynamicSlidingWindowLayer."""
    result = pc.memory({"model_type": "llama", "sliding_window": 4096})
    assert result.warnings == (
        "ignored sliding_window = 4,096: every layer of LlamaForCausalLM sees all tokens, but the KV cache of "
        "transformers may keep only 4,095 tokens",
    )
    for config in ({}, {"sliding_window": None}, {"model_type": "mistral", "sliding_window": 6}):
        assert pc.memory({"model_type": "llama", **config}).warnings == ()


def test_one_component_may_have_a_dtype_of_its_own() -> None:
    # 128,256 × 4,096 values: one byte each and a scale of 4 bytes per block of 128 × 128 instead of two bytes
    whole = pc.memory("llama-3.1-8b", dtype="int4")
    mixed = pc.memory("llama-3.1-8b", dtype="int4", component_dtypes={"lm_head": "fp32"})
    assert mixed.weights_bytes - whole.weights_bytes == 128_256 * 4096 * 2


def test_comparisons_have_columns_of_resources(run: Runner) -> None:
    found = run("compare", "gpt2-small", "llama-3.1-8b", "--columns", "f16,kv_per_token,flops_per_token", "--csv")
    flops = [pc.flops(model).flops_per_token for model in ("gpt2-small", "llama-3.1-8b")]
    assert found.out.splitlines() == [
        "id,f16,kv_per_token,flops_per_token",
        f"gpt2-small,248879616,36864,{flops[0]}",
        f"llama-3.1-8b,16060522496,131072,{flops[1]}",
    ]


def test_a_fit_says_what_is_left_and_what_would_fit(run: Runner) -> None:
    # 8,030,261,248 × 2 bytes, 8,192 × 131,072 bytes of cache and 1 GB leave 24e9 − 18,134,264,320
    fit = pc.memory("llama-3.1-8b", context=8192, memory=24 * 10**9).fit
    assert fit is not None
    assert fit.free_bytes == 24 * 10**9 - 18_134_264_320
    # 2.4 GB, a tenth of the memory, must be left for "fits"
    assert fit.longest_context == (24 * 10**9 - 34 * 10**8 - 16_060_522_496) // 131_072
    assert fit.largest_batch == (24 * 10**9 - 34 * 10**8 - 16_060_522_496) // (131_072 * 8192)
    found = run("memory", "llama-3.1-8b", "--memory", "24GB")
    assert found.out.splitlines()[1] == "fits on one 24.0 GB device: 5.87 GB free"


def test_the_line_above_the_contexts_has_every_part_of_the_cache(run: Runner) -> None:
    # T5 base: 12 layers of 12 heads × 64, keys and values in BF16, of tokens and of the encoder's output
    caches = {
        "t5-base": "36.9 kB per token + 302 MB for an encoder input of 8,192; total with",
        "mamba2-2.7b": "none; 86.0 MB state (BF16); total with",
    }
    for model, cache in caches.items():
        assert f"KV cache (BF16): {cache}" in " ".join(run("memory", model).out.split())


def test_tensor_parallelism_repeats_kv_heads_and_norms() -> None:
    # Llama 3.1 8B over 16 GPUs: 8 KV heads, so every second GPU holds the same one; 65 norms of 4,096 on each
    fit = pc.memory("llama-3.1-8b", context=1024, gpu="16xH100").fit
    assert fit is not None
    kv = 32 * 2 * 4096 * 1024 // 8
    rest = 8_030_261_248 - 32 * 2 * 4096 * 1024 - 65 * 4096
    assert fit.shares[0].weights_bytes == 2 * (kv + rest // 16 + 65 * 4096)
    assert fit.shares[0].kv_cache_bytes == 32 * 2 * 128 * 2 * 1024


@pytest.mark.parametrize("extension", ["svg", "png", "pdf"])
def test_a_plot_is_written_in_the_format_of_its_extension(run: Runner, tmp_path: Path, extension: str) -> None:
    path = tmp_path / f"memory.{extension}"
    assert run("memory", "jamba-v0.1", "--gpu", "2xH100", "--plot", str(path)).code == 0
    start = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}[extension]
    written = path.read_bytes()
    assert written.startswith(start)
    if extension == "svg":
        for word in ("weights (BF16)", "state", "KV cache (BF16)", "2 × H100 SXM", "context (tokens per sequence)"):
            assert f">{word}".encode() in written


def test_llama_cpp_keeps_all_tokens_of_a_model_whose_layers_all_have_a_window() -> None:
    # Mistral 7B v0.1 has the architecture "llama" in llama.cpp, which sets no swa_type: 131,072 bytes per token
    config = {"model_type": "mistral", "sliding_window": 4096}
    assert pc.memory(config, context=32_768, engine="llama.cpp").kv_cache_bytes == 32_768 * 131_072
    assert pc.memory(config, context=32_768).kv_cache_bytes == 4095 * 131_072


def test_each_engine_keeps_states_in_its_own_dtype() -> None:
    # Jamba: 28 × 8,192 channels × 16 states and 3 inputs; llama.cpp llama-memory-recurrent.cpp: F32
    dtypes = {engine: pc.memory("jamba-v0.1", engine=engine).state_dtype for engine in ("minimal", "llama.cpp")}
    assert dtypes == {"minimal": "BF16", "llama.cpp": "FP32"}
    assert pc.memory("jamba-v0.1", engine="transformers").state_dtype == "FP32, convolutions BF16"
    assert pc.memory("jamba-v0.1", engine="llama.cpp").state_bytes == 28 * 8192 * (16 + 3) * 4
    for context, batch in ((16, 1), (100_000, 3)):
        state = pc.memory("jamba-v0.1", state_dtype="f32", context=context, batch=batch).state_bytes
        assert state == batch * 28 * 8192 * (16 + 3) * 4


def test_source_is_the_length_of_an_image(run: Runner) -> None:
    # Llama 3.2 11B: 8 layers attend to an image; keys and values of 8 heads × 128, in BF16
    none = run("memory", "llama-3.2-11b-vision")
    assert none.err == (
        "warning: the cache of cross-attention is not included: its length, the number of patches (source), "
        "is not given\n"
    )
    sizes = [pc.memory("llama-3.2-11b-vision", context=1000, source=n).kv_cache_bytes for n in (1601, 1602)]
    assert sizes[1] - sizes[0] == 8 * 2 * 8 * 128 * 2
    assert sizes[0] == 2 * 8 * 128 * 2 * (32 * 1000 + 8 * 1601)


def test_compressed_blocks_grow_by_one_for_every_block_of_tokens() -> None:
    # DeepSeek-V4 (transformers 5.23, modeling_deepseek_v4.py): a layer keeps one row for every 128 tokens
    config = {
        "model_type": "deepseek_v4", "num_hidden_layers": 1, "head_dim": 512, "sliding_window": 128,
        "layer_types": ["heavily_compressed_attention"],
        "compress_rates": {"heavily_compressed_attention": 128, "compressed_sparse_attention": 4},
    }  # fmt: skip
    sizes = [pc.memory(config, context=n).kv_cache_bytes for n in (1024, 1024 + 127, 1024 + 128)]
    assert sizes == [512 * 2 * (127 + n) for n in (8, 8, 9)]


def test_the_profile_run_of_vllm_is_computed_from_the_flow() -> None:
    # 1,024 sequences: the sampler, 9.57 × 128,256 × 4 bytes, beside the hidden states of 8,192 tokens. 8 sequences: the
    # MLP, with queries (4,096) and residual stream (twice 4,096) of 8,192 tokens: 3 × 14,336 + 3 × 4,096 values in BF16
    def measure(**options: int | str) -> int:
        fit = pc.memory("llama-3.1-8b", engine="vllm", gpu="h100", engine_options={"version": "v0.11", **options}).fit
        assert fit is not None
        return dict(fit.overhead_items)["peak activation"]

    assert measure() == round(9.57 * 1024 * 128_256 * 4) + 8192 * 4096 * 2
    assert measure(max_num_seqs=8) == 8192 * (3 * 14_336 + 3 * 4096) * 2
    assert measure(max_num_seqs=8, max_num_batched_tokens=2048) == 2048 * (3 * 14_336 + 3 * 4096) * 2


def test_an_encoder_is_divided_and_takes_as_much_per_image_token_however_many_are_read() -> None:
    def measure(tokens: int, **options: str) -> int:
        given: dict[str, int | str] = {"max_num_seqs": 1, "max_num_batched_tokens": tokens, **options}
        fit = pc.memory("qwen3-vl-2b", engine="vllm", gpu="2xh100", tp=2, engine_options=given).fit
        assert fit is not None
        return dict(fit.overhead_items)["peak activation"]

    assert measure(32_768) == 2 * measure(16_384)
    # Values of a patch in the MLP: patch and position, which stay; what enters the layer, attention's part, their sum
    kept, layer = 3 * 2 * 16 * 16 + 1024, 1024 + 1024 // 2 + 1024
    assert measure(16_384) == 4 * 16_384 * 2 * (kept + layer + 2 * 4096 // 2)
    # A GPU has half of 4,096 values before and after the MLP's activation and of 1,024 of attention; 4 patches a token
    divided = 4 * 16_384 * 2 * (2 * 4096 + 1024) // 2
    assert measure(16_384, mm_encoder_tp_mode="data") - measure(16_384) == divided


def test_vllm_uses_a_share_of_the_memory_and_captures_graphs_unless_in_eager_mode() -> None:
    # 92% of 24 GB, less weights and overhead; blocks of 16 tokens × 131,072 bytes
    fit = pc.memory("llama-3.1-8b", engine="vllm", memory=24 * 10**9, context=8192).fit
    assert fit is not None
    room = 22_080_000_000 - fit.shares[0].weights_bytes - fit.overhead_bytes
    assert (fit.utilization, fit.kv_tokens) == (0.92, room // (16 * 131_072) * 16)
    assert [name for name, _ in fit.overhead_items] == ["peak activation", "non-torch memory", "CUDA graphs"]
    options = {"enforce_eager": True}
    eager = pc.memory("llama-3.1-8b", engine="vllm", memory=24 * 10**9, engine_options=options).fit
    assert eager is not None
    assert [name for name, _ in eager.overhead_items] == ["peak activation", "non-torch memory"]


def test_vllm_pads_a_vocabulary_to_a_multiple_of_64() -> None:
    # of so few rows that PyTorch does not round them to 2 MiB
    def measure(vocabulary: int) -> int:
        fit = pc.memory("gpt2-small", set={"vocab_size": vocabulary}, engine="vllm", memory=10**10).fit
        assert fit is not None
        return fit.shares[0].weights_bytes

    assert measure(1001) == measure(1024) == measure(1025) - 64 * 768 * 2


@pytest.mark.parametrize(
    ("options", "verdict"),
    [
        ({"version": "v0.14"}, TOO_CLOSE),  # "OOM even with very little max_model_len", vllm-project/vllm/issues/33155
        ({"version": "v0.21"}, FITS),  # graphs are counted in the share
        ({"version": "v0.14", "enforce_eager": True}, FITS),
        ({"version": "v0.14", "max_cudagraph_capture_size": 8}, FITS),
        ({"version": "v0.14", "gpu_memory_utilization": 0.9}, FITS),
    ],
)
def test_early_versions_of_vllm_capture_graphs_beside_their_share(options: dict[str, Any], verdict: str) -> None:
    given = {"gpu_memory_utilization": 0.97, "max_num_seqs": 1} | options
    result = pc.memory("gpt-oss-120b", engine="vllm", gpu="h100", context=5120, engine_options=given)
    assert result.fit is not None
    assert result.fit.verdict == verdict
    assert ("captures CUDA graphs beside" in " ".join(result.warnings)) == (verdict == TOO_CLOSE)


def test_an_assumed_dtype_of_states_is_named() -> None:
    def list_notes(model: str, **options: str) -> tuple[str, ...]:
        return pc.memory(model, engine="vllm", engine_options=options).notes

    text = "states in BF16, as for a config.json without mamba_ssm_dtype"
    assert [note for note in list_notes("bamba-9b") if note.startswith(text)]
    assert not [note for note in list_notes("bamba-9b", mamba_ssm_cache_dtype="float32") if note.startswith(text)]
    assert not [note for note in list_notes("qwen3.5-27b") if note.startswith(text)]  # every release says float32
    assert not [note for note in list_notes("nemotron-nano-9b-v2") if note.startswith(text)]  # its rule is float32
    assert not [note for note in list_notes("llama-3.1-8b") if note.startswith(text)]


def test_a_hybrid_model_that_fits_may_still_be_refused(run: Runner) -> None:
    # "ValueError: max_num_seqs (1024) exceeds available Mamba cache blocks (969)", vLLM 0.28.0, Qwen3.8-27B on an H100
    # at utilization 0.9 with 132,000 tokens
    line = ["memory", "qwen3.5-27b", "--engine", "vllm", "--gpu", "h100", "--engine-option"]
    text = "vLLM refuses to start; choose max_num_seqs = "
    assert text in run(*line, "mamba_ssm_cache_dtype=float32").err
    assert text not in run(*line, "max_num_seqs=16").err
    assert text not in run(*line, "enforce_eager=true").err  # there are no CUDA graphs, which need a block each
    assert text not in run("memory", "llama-3.1-8b", "--engine", "vllm", "--gpu", "h100").err


def test_an_available_cache_is_what_the_log_says(run: Runner) -> None:
    # vLLM 0.24.0: "Available KV cache memory: 6.01 GiB", "GPU KV cache size: 569,878 tokens", "4.35x"; 12 layers of
    # 131,072 bytes of another engine are exact to the token
    line = ["memory", "llama-3.1-8b", "--available-kv", "12.5GiB", "--context", "8k"]
    found = run(*line, "--json")
    cache = json.loads(found.out)["available"]
    assert cache["tokens"] == int(12.5 * 2**30) // 131_072 == 102_400
    assert (cache["concurrency"], cache["longest_context"], found.code) == (12.5, 102_400, 0)
    assert "KV cache of 13.4 GB (12.5 GiB): 102,400 tokens, 12.50 sequences of 8,192" in run(*line).out
    short = run(*line[:2], "--available-kv", "1GB", "--context", "8k")
    assert short.code == 1
    assert "one sequence of 8,192 tokens needs 1.07 GB" in " ".join(short.out.split())


def test_a_batch_that_nothing_limits_has_no_number(run: Runner) -> None:
    assert "largest batch unlimited" in run("memory", "bert-base-uncased", "--memory", "24GB").out


def test_a_comparison_counts_compressed_blocks_as_memory_does() -> None:
    # DeepSeek-V4 keeps one row for several tokens, so a further token adds a part of a row
    path = Path(__file__).parent / "data" / "config_truth" / "DeepSeek-V4-Flash.json"
    config = json.loads(path.read_text(encoding="utf-8"))["config"]
    column = find_resource("kv_per_token")
    assert column is not None
    assert column.compute(pc.load(config), pc.count(config)) == pc.memory(config).kv_bytes_per_token


def test_a_cache_of_given_bytes_must_hold_the_context(run: Runner) -> None:
    # Llama 3.1 8B takes 131,072 bytes per token, in blocks of 16 of which one holds nothing
    def judge(size: int) -> str:
        options = {"kv_cache_memory_bytes": size}
        fit = pc.memory("llama-3.1-8b", engine="vllm", engine_options=options, gpu="H100", context=8192).fit
        assert fit is not None
        return fit.verdict

    needed = 131_072 * (8192 + 16)
    assert (judge(needed), judge(needed - 1)) == ("fits", "does not fit")
    line = ["memory", "llama-3.1-8b", "--engine", "vllm", "--gpu", "h100"]
    found = run(*line, "--engine-option", "kv_cache_memory_bytes=100000000")
    text = " ".join(found.out.split())
    assert found.code == 1
    assert "does not fit on 1 × H100 SXM: the cache needs 1.08 GB; 100 MB given; 976 MB short" in text
