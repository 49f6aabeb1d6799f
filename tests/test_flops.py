"""FLOPs of a model: per decoded token, per prompt and per token of training."""

from __future__ import annotations

import pytest

import paramcount as pc
from tests.running import Runner


def test_a_decoded_token_multiplies_every_matrix_once_and_attends_to_the_whole_context() -> None:
    # Llama 3.1 8B: all parameters but the token embedding and 65 norms of 4,096; QKᵀ and · V over 32 layers of 32 heads
    matrices = 8_030_261_248 - 128_256 * 4096 - 65 * 4096
    attention = 32 * 2 * 32 * 128 * 8192
    assert pc.flops("llama-3.1-8b", context=8192).flops_per_token == 2 * (matrices + attention)


def test_a_mixture_of_experts_multiplies_the_active_experts_alone() -> None:
    # Mixtral: 12,879,925,248 active parameters, of which 32,000 × 4,096 are looked up and 65 × 4,096 are norms
    matrices = 12_879_925_248 - 32_000 * 4096 - 65 * 4096
    assert pc.flops("mixtral-8x7b", context=1).flops_per_token == 2 * (matrices + 32 * 2 * 32 * 128)


def test_training_runs_the_lm_head_at_every_position_and_takes_three_forward_passes() -> None:
    result = pc.flops("gpt2-small", context=1024)
    lm_head = 2 * 768 * 50257
    assert result.training_flops_per_token == 3 * (result.prefill_flops + 1023 * lm_head) // 1024


def test_absorbed_latent_attention_multiplies_each_latent_twice() -> None:
    # DeepSeek-V3: every matrix once per token, and 128 heads over 8,192 latents of 512 + 64 and of 512, in 61 layers
    result = pc.flops("deepseek-v3", context=8192)
    one = pc.flops("deepseek-v3", context=1)
    assert one.absorbed_flops_per_token is not None
    per_latent = 2 * 61 * 128 * (512 + 64 + 512)
    assert result.absorbed_flops_per_token == one.absorbed_flops_per_token + 8191 * per_latent
    assert pc.flops("llama-3.1-8b").absorbed_flops_per_token is None


def test_components_add_up() -> None:
    result = pc.flops("jamba-v0.1", context=100)
    assert sum(result.by_component.values()) == result.flops_per_token
    assert sum(result.prefill_by_component.values()) == result.prefill_flops


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (["gpt2-small", "--context", "1.5"], "--context = '1.5' (expected tokens, such as 8192, 8k or 1M)"),
        (["gpt2-small", "--source", "3"], "--source 3, but gpt2-small has no text encoder"),
        (["gpt2-small", "--context", "0"], "--context 0 (expected an integer from 1 to 1,000,000,000)"),
    ],
)
def test_a_wrong_option_is_one_line(run: Runner, line: list[str], error: str) -> None:
    found = run("flops", *line)
    assert (found.code, found.out, found.err) == (2, "", f"error: {error}\n")
