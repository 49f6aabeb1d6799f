"""FLOPs of a model: per decoded token, per prompt and per token of training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paramcount as pc
from paramcount.costs.flops import Flops
from paramcount.costs.gpus import find_gpu
from paramcount.costs.roofline import Bound
from paramcount.flow import ChooseTokens
from paramcount.flow.masks import Causal, Chosen, Chunk, Mask, Pairs, Window
from tests.running import Runner
from tests.steps import Run


def test_a_mixture_of_experts_multiplies_the_active_experts_alone() -> None:
    # Mixtral: 12,879,925,248 active parameters, of which 32,000 × 4,096 are looked up and 65 × 4,096 are norms
    matrices = 12_879_925_248 - 32_000 * 4096 - 65 * 4096
    result = pc.flops("mixtral-8x7b", context=100)
    assert result.flops_per_token == 2 * (matrices + 32 * 2 * 32 * 128 * 100)
    assert sum(result.prefill_by_component.values()) == result.prefill_flops


def test_layers_with_a_window_attend_to_meta_tokens_too_whether_they_share_keys_or_not() -> None:
    """Hymba: 25 heads, keys of 64, values of 128; 3 layers see all, 29 a token and 1,024 before it; 128 meta tokens."""
    keys = 3 * (8192 + 128) + 29 * (1 + 1024 + 128)
    assert pc.flops("hymba-1.5b", context=8192).by_component["attention"] == 2 * 25 * (64 + 128) * keys


def test_training_runs_the_lm_head_at_every_position_and_takes_three_forward_passes() -> None:
    result = pc.flops("gpt2-small", context=1024)
    lm_head = 2 * 768 * 50257
    assert result.training_flops_per_token == 3 * (result.prefill_flops + 1023 * lm_head) // 1024


def test_a_model_that_rewrites_a_canvas_decodes_no_token() -> None:
    result = pc.flops("diffusiongemma-26b-a4b", context=7)
    assert (result.flops_per_token, result.by_component) == (None, {})


def test_global_tokens_see_all_and_all_see_them() -> None:
    # PEGASUS-X (arXiv:2208.04347 §4): 6 global tokens see them and the 12 others, which see them and their block of 4
    config = {
        "model_type": "pegasus_x", "d_model": 16, "encoder_layers": 2, "encoder_attention_heads": 2,
        "num_global_tokens": 6, "block_size": 4, "stagger_local_blocks": False,
    }  # fmt: skip
    (scores,) = (
        step
        for step in pc.trace(config, tokens=5, source=12).steps
        if step.op == "QKᵀ" and step.scopes[-1].name.startswith("model.encoder.")
    )
    assert scores.multiply_adds == 16 * 18 * 18
    assert scores.visible_multiply_adds == 16 * (6 * (6 + 12) + 12 * (6 + 4))


def test_keys_of_the_source_stand_in_front_of_those_of_the_tokens() -> None:
    # T5Gemma 2 (arXiv:2512.14856 §2): one attention reads the source and the earlier tokens, in each of 26 layers of 8
    # heads of 256; windows leave out earlier tokens alone
    config = {"model_type": "t5gemma2", "decoder": {"num_attention_heads": 8, "head_dim": 256, "sliding_window": 4}}
    longer, shorter = (pc.flops(config, context=10, source=n).flops_per_token for n in (700, 699))
    assert longer is not None
    assert shorter is not None
    assert longer - shorter == 2 * 26 * 2 * 8 * 256


def test_sums_of_blocks_stand_in_front_of_the_keys_of_the_tokens() -> None:
    # LongT5 (arXiv:2112.07916 §3.1.2): 24 tokens in 6 blocks of 4, whose sums have keys and values too, as torch's
    # FlopCounterMode counts them in LongT5TransientGlobalAttention; every token sees all sums and 3 tokens on each side
    config = {
        "model_type": "longt5", "encoder_attention_type": "transient-global", "d_model": 16, "d_kv": 4, "num_heads": 2,
        "d_ff": 8, "num_layers": 1, "num_decoder_layers": 1, "vocab_size": 64, "local_radius": 3,
        "global_block_size": 4,
    }  # fmt: skip
    steps = pc.trace(config, tokens=5, source=24).steps
    keys, values, scores, mixed = (
        next(step for step in steps if step.text == text) for text in ("keys", "values", "QKᵀ", "· V")
    )
    assert keys.multiply_adds == values.multiply_adds == 7680 // 2
    assert scores.multiply_adds == mixed.multiply_adds == 2 * 4 * 24 * (24 + 6)
    assert scores.visible_multiply_adds == 2 * 4 * (24 * (6 + 1 + 2 * 3) - 2 * (3 + 2 + 1))
    assert [step.out for step in steps if step.text in ("block sums", "add bias")][:2] == [(6, 16), (2, 24, 30)]
    assert pc.flops(config, context=5, source=24).warnings == ()


def test_a_decoded_token_multiplies_every_matrix_once_and_each_latent_twice() -> None:
    # DeepSeek-V3: every matrix once per token, and 128 heads over 8,192 latents of 512 + 64 and of 512, in 61 layers
    result = pc.flops("deepseek-v3", context=8192)
    count = pc.count("deepseek-v3")
    matrices = count.active - count.components["embedding"] - count.components["norm"]
    attention = 61 * 8192 * 128 * (512 + 64 + 512)
    assert result.flops_per_token == 2 * (matrices + attention) == sum(result.by_component.values())
    assert result.by_component["attention"] == 2 * attention
    assert result.by_component["lm_head"] == 2 * 129_280 * 7168


def test_the_reference_expands_all_latents_for_each_decoded_token() -> None:
    # DeepseekV3Attention: kv_b_proj of 512 × 128 · (128 + 128) over all tokens; scores of 192 and values of 128
    result = pc.flops("deepseek-v3", context=8192)
    expansion = 61 * 8191 * 512 * 128 * 256
    attention = 61 * 8192 * 128 * ((192 + 128) - (512 + 64 + 512))
    assert result.expanded_flops_per_token == (result.flops_per_token or 0) + 2 * (expansion + attention)


@pytest.mark.parametrize("model", ["llama-3.1-8b", {"model_type": "diffllama"}, {"model_type": "gpt_oss"}])
def test_other_attention_has_one_way_to_decode(model: pc.ModelLike) -> None:
    result = pc.flops(model, context=100)
    assert result.expanded_flops_per_token is None
    assert result.flops_per_token == pc.trace(model, past=99).flops


def test_keys_of_an_indexer_are_no_latents() -> None:
    # DeepSeek-V3.2: beside the latents of 512 and the rotated keys of 64, an indexer caches keys of 128
    longer, shorter = (pc.flops("deepseek-v3.2", context=n).by_component["attention"] for n in (1001, 1000))
    scores = 2 * 61 * 64 * (128 + 1)  # 64 heads of 128; DeepseekV32Indexer sums them by weights @ scores
    assert longer - shorter == 2 * 61 * 128 * (512 + 64 + 512) + scores


def test_elementwise_work_of_experts_is_that_of_the_chosen_ones() -> None:
    # Mixtral, decoding: per layer two norms, two additions and the sum of experts of 4,096; rotary positions of 32 + 8
    # heads of 128; softmax of 32 heads over 10 tokens; softmax and normalisation of the scores of 8 experts; SiLU and
    # product in 2 experts
    result = pc.flops("mixtral-8x7b", context=10)
    layer = 5 * 4096 + 40 * 128 + 32 * 10 + 2 * 8 + 2 * 2 * 14336
    assert result.elementwise_operations == 32 * layer + 4096


def draw_mask(rng: np.random.Generator) -> Mask:
    """One of the combinations of masks that positions decide."""

    def maybe(low: int, high: int) -> int | None:
        return int(rng.integers(low, high)) if rng.random() < 0.5 else None

    causal = bool(rng.random() < 0.5)
    window, chunk = maybe(1, 10), maybe(1, 8)
    mask: Mask = Causal() if causal else Mask()
    if window is None and chunk is None and causal and rng.random() < 0.3:
        return Causal(hides_front=True)
    if window is not None:
        mask = mask & (Window(window) if causal else Window(window, int(rng.integers(0, 9))))
    if chunk is not None:
        before, after = (0, 0) if causal else map(int, rng.integers(0, 3, 2))
        mask = mask & Chunk(chunk, int(rng.integers(0, chunk)), before, after)
    return mask


def test_visible_pairs_are_those_that_the_mask_of_the_computation_leaves() -> None:
    rng = np.random.default_rng(0)
    for _ in range(3000):
        mask, n, past = draw_mask(rng), int(rng.integers(1, 14)), int(rng.choice((0, 0, 1, 5, 30)))
        end, m = past + n, past + n
        window = mask.find(Window)
        if window is not None:  # what decoding keeps
            m = n + min(past, window.n - 1)
        front = (0, 0) if past else (int(rng.choice((0, 0, 3))),) * 2
        pairs = Pairs(n + front[0], m + front[1], end)
        shown = np.broadcast_to(mask.show(pairs, iter(())), (pairs.n, pairs.m))
        assert mask.count(pairs, front) == shown.sum(), (mask.describe(), pairs, front)


def test_a_decoded_token_of_llama_4_sees_its_own_chunk_alone() -> None:
    # Llama 4 Scout: position 9,999 is the 1,808th of a chunk of 8,192 (attention_chunk_size), in 36 of 48 layers
    steps = [step for step in pc.trace("llama-4-scout", tokens=1, past=9999).steps if step.op == "QKᵀ"]
    assert {step.visible_multiply_adds for step in steps} == {40 * 128 * 1808, 40 * 128 * 10_000}
    bound = bound_decoding(pc.flops("llama-4-scout", context=10_000, gpu="8xH100"))
    assert bound.cache_bytes == pytest.approx(2 * 8 * 128 * 2 * (36 * 1808 + 12 * 10_000), rel=1e-3)


def test_compressed_blocks_are_seen_when_they_have_ended() -> None:
    # DeepSeek V4 (DeepseekV4ForCausalLM): a token sees the last 6 tokens and, in sparse layers, 3 blocks of 4 that have
    # ended, of those that the indexer chooses, or, in the others, all blocks of 8 that have ended
    config = {
        "model_type": "deepseek_v4", "num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 16,
        "sliding_window": 6, "index_topk": 3, "hidden_size": 64, "o_groups": 2, "vocab_size": 96,
        "qk_rope_head_dim": 8, "index_head_dim": 16, "index_n_heads": 2,
        "layer_types": ["compressed_sparse_attention", "heavily_compressed_attention"],
        "compress_rates": {"compressed_sparse_attention": 4, "heavily_compressed_attention": 8},
    }  # fmt: skip
    for tokens, past in ((30, None), (1, 29), (1, 27), (4, 26)):
        first = past or 0
        rows = range(first, first + tokens)
        seen = [
            sum(min(i + 1, 6) + min((i + 1) // 4, 3) for i in rows),
            sum(min(i + 1, 6) + (i + 1) // 8 for i in rows),
        ]
        trace = pc.trace(config, tokens=tokens, past=past)
        scores = [step for step in trace.steps if step.op == "QKᵀ"]
        visible = [step.visible_multiply_adds or 0 for step in scores]  # of tokens, and of blocks
        assert [sum(visible[i : i + 2]) for i in (0, 2)] == [4 * 16 * pairs for pairs in seen]
        (choice,) = (step for step in trace.steps if step.op == "top-k blocks")
        assert choice.visible_multiply_adds == 2 * (16 + 1) * sum((i + 1) // 4 for i in rows)


def test_chosen_tokens_are_counted_as_the_computation_chooses_them() -> None:
    kinds: list[tuple[Any, int, bool]] = [
        ("tokens", 1, False),
        ("tokens of blocks", 4, False),
        ("tokens of blocks", 4, True),
        ("blocks of keys", 4, False),
    ]
    rng = np.random.default_rng(0)
    for of, block, tail in kinds:
        for n_chosen in (4, 8, 40) if of != "blocks of keys" else (1, 2, 9):
            operation = ChooseTokens(n_chosen, of, block, 1, tail)
            for n, past in ((21, 0), (1, 20), (3, 17)):
                end = n + past
                run: Any = Run(np.arange(past, end))
                m = end // block if of == "tokens of blocks" else end
                q, k = rng.normal(size=(n, 2, 8)).astype("f4"), rng.normal(size=(m, 8)).astype("f4")
                given = [q, k] if of == "blocks of keys" else [q, k, np.ones((n, 2), "f4")]
                chosen = operation.compute(run, given, [], (n, n_chosen))
                block_of_keys = block if of == "blocks of keys" else 1
                mask = Chosen(None, block_of_keys) & Causal()
                seen: Any = mask.show(Pairs(n, end, end), iter([chosen]))
                seen = seen[0]
                assert operation.count_chosen(range(past, end)) == seen.sum(), (of, n_chosen, n, past)


def bound_decoding(flops: Flops) -> Bound:
    """The lower bound of a decoding step."""
    assert flops.roofline is not None
    assert flops.roofline.decoding is not None
    return flops.roofline.decoding


def test_a_decoding_step_reads_every_weight_but_the_embedding_and_the_cache() -> None:
    # H100 SXM: 3.35 TB/s (data sheet). Llama 3.1 8B: 2 bytes per parameter; 131,072 bytes per cached token
    result = pc.flops("llama-3.1-8b", context=8192, gpu="H100", batch=3)
    bound = bound_decoding(result)
    assert bound.weights_bytes == 2 * (8_030_261_248 - 128_256 * 4096)
    assert bound.cache_bytes == 3 * 8192 * 131_072
    read = bound.weights_bytes + bound.cache_bytes
    assert bound.seconds == bound.memory_seconds == read / 3_350_000_000_000
    flops = pc.flops("llama-3.1-8b", context=8192).flops_per_token
    assert flops is not None
    assert bound.flops == 3 * flops
    assert result.roofline is not None
    assert result.roofline.tokens_per_second == 3 / bound.seconds
    assert (bound.limit, result.roofline.prompt.limit) == ("memory", "compute")


def test_a_prompt_multiplies_no_masked_pairs() -> None:
    bound = pc.flops("llama-3.1-8b", context=4096, gpu="2xH100").roofline
    assert bound is not None
    attention = 32 * 2 * 32 * 128  # multiply-adds per pair of a query and a key
    masked = 4096 * 4095 // 2
    assert bound.prompt.flops == pc.flops("llama-3.1-8b", context=4096).prefill_flops - 2 * attention * masked
    assert bound.prompt.seconds == bound.prompt.flops / (2 * find_gpu("H100").flops["bf16"])


def test_tied_embeddings_are_read_by_the_lm_head_and_experts_as_chosen() -> None:
    gpt2 = bound_decoding(pc.flops("gpt2-small", context=10, gpu="H100"))
    mixtral = bound_decoding(pc.flops("mixtral-8x7b", context=10, gpu="H100"))
    assert gpt2.weights_bytes == 2 * (124_439_808 - 1024 * 768)
    assert mixtral.weights_bytes == 2 * (12_879_925_248 - 32_000 * 4096)


def test_bounds_of_latent_attention_are_those_of_the_absorbed_computation() -> None:
    result = pc.flops("deepseek-v3", context=8192, gpu="8xH200")
    assert result.roofline is not None
    assert bound_decoding(result).flops == result.flops_per_token
    assert result.roofline.rate_dtype == "FP8"  # as released


def test_sparse_attention_reads_only_the_chosen_tokens() -> None:
    # DeepSeek-V3.2 attends to 2,048 tokens (index_topk), so the cache that a step reads stops growing there
    config = {"architectures": ["DeepseekV32ForCausalLM"], "model_type": "deepseek_v32", "index_topk": 2048}
    with pytest.warns(pc.ConfigWarning):
        short, long = (bound_decoding(pc.flops(config, context=n, gpu="H100")) for n in (2048, 8192))
    assert long.cache_bytes == short.cache_bytes


def test_formats_that_a_gpu_does_not_multiply_are_unpacked() -> None:
    # A100: no FP8 (data sheet)
    rates = {dtype: pc.flops("gpt2-small", gpu=gpu, dtype=dtype).roofline for gpu, dtype in [("A100", "fp8")]}
    assert [roofline.rate_dtype for roofline in rates.values() if roofline] == ["BF16"]
    nvfp4 = pc.flops("gpt2-small", gpu="B200", dtype="nvfp4").roofline
    assert nvfp4 is not None
    assert nvfp4.rate_dtype == "FP4"


@pytest.mark.parametrize(
    ("gpu", "reason"),
    [
        ("V100", "no BF16 rate of V100 SXM2 16GB is known (only FP32 and FP16)"),
        ("m2-max", "no BF16 rate of Apple M2 Max 96GB is known"),
    ],
)
def test_without_a_rate_only_the_compute_bound_is_missing(run: Runner, gpu: str, reason: str) -> None:
    # V100: 900 GB/s, M2 Max: 400 GB/s
    result = pc.flops("gpt2-small", context=1024, gpu=gpu, train_tokens=10**9)
    assert result.roofline is not None
    assert (result.roofline.rate_dtype, result.roofline.rate_reason) == (None, reason)
    bound = bound_decoding(result)
    bandwidth = {"V100": 9 * 10**11, "m2-max": 4 * 10**11}[gpu]
    assert bound.seconds == bound.memory_seconds == (bound.weights_bytes + bound.cache_bytes) / bandwidth
    assert (bound.compute_seconds, bound.limit, result.training_time) == (None, "memory", None)
    assert f"no time of training: {reason}" in result.warnings
    text = " ".join(run("flops", "gpt2-small", "--gpu", gpu).out.split())
    assert f"no compute bound: {reason}" in text
    assert "ms from memory alone; ≤" in text or "µs from memory alone; ≤" in text


def test_training_takes_six_flops_per_weight_and_twelve_per_head_channel_and_token() -> None:
    # arXiv:2204.02311, appendix B: 6N + 12·L·H·Q·T per token, here with the N that is multiplied
    matrices = 8_030_261_248 - 128_256 * 4096 - 65 * 4096
    result = pc.flops("llama-3.1-8b", context=8192, train_tokens=15 * 10**12)
    assert result.training_flops == (6 * matrices + 12 * 32 * 32 * 128 * 8192) * 15 * 10**12


def test_six_nd_of_gpt3_is_the_compute_that_its_paper_prints() -> None:
    # arXiv:2005.14165, table D.1: 3.14E+23 FLOPs for 300 billion tokens
    result = pc.flops("gpt-3", train_tokens=300 * 10**9)
    assert result.six_nd is not None
    assert round(result.six_nd, -21) == 314 * 10**21


def test_gpu_hours_do_not_depend_on_the_number_of_gpus_and_days_do() -> None:
    one, many = (pc.flops("gpt2-small", gpu=f"{n}xH100", train_tokens=10**12) for n in (1, 64))
    assert one.training_time is not None
    assert many.training_time is not None
    assert one.training_flops is not None
    assert one.training_time.mfu == 0.4
    assert one.training_time.gpu_hours == many.training_time.gpu_hours
    assert one.training_time.days == 64 * many.training_time.days
    peak = find_gpu("H100").flops["bf16"]
    assert one.training_time.gpu_hours * 3600 * peak * 0.4 == pytest.approx(one.training_flops)


def test_bounds_and_training_are_printed_with_their_assumptions(run: Runner) -> None:
    line = ["llama-3.1-8b", "--train-tokens", "15T", "--gpu", "8xH100", "--mfu", "0.5"]
    text = run("flops", *line).out
    assert "training on 15.0T tokens: 869 ZFLOPs; 6ND estimate: 723 ZFLOPs (17% too low)\n" in text
    assert "  at an assumed MFU of 50% of 989 TFLOPs/s (BF16, dense):\n" in text
    assert "minimum time on 8 × H100 SXM: 3.35 TB/s, 989 TFLOPs/s (BF16, dense)\n" in text
    assert "  weights BF16; KV cache BF16; batch 1; causal mask excluded\n" in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_model_that_decodes_no_tokens_has_the_flops_of_a_pass_alone(run: Runner) -> None:
    # BERT base, 512 tokens: in 12 layers the products of 4 matrices of 768 × 768 and 2 of 768 × 3,072, and QKᵀ and · V;
    # the transform of 768 × 768 and the LM head of 30,522
    products = 12 * (4 * 768**2 + 2 * 768 * 3072 + 2 * 768 * 512) + 768**2 + 768 * 30522
    result = pc.flops("bert-base-uncased", gpu="H100")
    assert result.prefill_flops == 512 * 2 * products
    assert result.roofline is not None
    assert (result.flops_per_token, result.elementwise_operations, result.roofline.decoding) == (None, None, None)
    assert result.by_component == {}
    shown = run("flops", "bert-base-uncased", "--gpu", "H100").out
    assert "pass of 512 tokens" in shown
    assert "219 MFLOPs per token, 112 GFLOPs per pass (8% too low)" in shown  # 2N: 2 · 109,514,298, times 512
    assert "decod" not in shown
    assert "prompt" not in shown
