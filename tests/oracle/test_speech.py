"""The parts of a model that speak compute what the reference computes."""

from __future__ import annotations

from typing import Any

import pytest

from paramcount.api import load
from paramcount.counting.tensors import list_tensors
from tests.oracle import logits, passes
from tests.oracle.differential import silence

N = 18  # tokens, or mel frames


def compute(flow: Any, sizes: Any, model: Any, inputs: dict[str, Any]) -> Any:
    """The output of one declared part, with the weights of the reference."""
    import numpy as np

    from paramcount.execution.evaluate import Evaluation
    from paramcount.execution.weights import open_weights

    weights = {name: weight.numpy() for name, weight in model.state_dict().items()}
    found = open_weights(weights, list(list_tensors(sizes)))
    return Evaluation(flow, found).run({"tokens": np.zeros(N, int), **inputs})


def assert_close(found: Any, expected: Any) -> None:
    expected = expected.numpy()
    assert abs(found.reshape(expected.shape) - expected).max() < 1e-5 * abs(expected).max()


@pytest.fixture(name="omni")
def _omni() -> tuple[Any, Any, dict[str, Any]]:
    """Qwen 2.5 Omni: the reference's model, its sizes, and random inputs."""
    import torch

    silence()
    document = passes.make_document("qwen2_5_omni")
    model = logits.build_reference(document, "Qwen2_5OmniForConditionalGeneration").requires_grad_(requires_grad=False)
    model.token2wav.set_attn_implementation("sdpa")  # the denoiser has no other
    torch.manual_seed(3)
    inputs = {"ids": torch.randint(0, 96, (1, N)), "states": torch.randn(1, N, 32), "mels": torch.randn(1, N, 12)}
    return model, load(document).sizes, inputs


def test_the_talker_of_qwen_2_5_omni_is_the_references(omni: Any) -> None:
    model, sizes, inputs = omni
    codes, states = inputs["ids"], inputs["states"]
    embedded = model.talker.get_input_embeddings()(codes) + states
    expected = model.talker(input_text_ids=codes, inputs_embeds=embedded).logits[0]
    given = {"codec_tokens": codes[0].numpy(), "states_of_the_thinker": states[0].numpy()}
    assert_close(compute(sizes.speak()[0], sizes, model, given), expected)


def test_a_step_of_the_denoiser_of_qwen_2_5_omni_is_the_references(omni: Any) -> None:
    import torch

    model, sizes, inputs = omni
    dit, codes, mels = model.token2wav.code2wav_dit_model, inputs["ids"][:, ::2], inputs["mels"]
    voice, sample, time = torch.randn(1, 6), torch.randn(1, 25, 12), torch.tensor([0.4])
    expected = dit(mels, sample, voice[:, None].repeat(1, N, 1), codes, time, apply_cfg=False)[0]
    given = {
        "codec_token_of_each_mel_frame": codes[0].repeat_interleave(2).numpy(),
        "noisy_mel_frames": mels[0].numpy(),
        "sines_of_the_time": dit.time_embed.time_embed(time).numpy(),
        "speaker": voice.numpy(),
        "mel_frames_of_the_speaker": sample[0].numpy(),
    }
    assert_close(compute(sizes.speak()[1], sizes, model, given), expected)


def test_the_vocoder_of_qwen_2_5_omni_is_the_references(omni: Any) -> None:
    model, sizes, inputs = omni
    mels = 2 * inputs["mels"] - 3
    expected = model.token2wav.code2wav_bigvgan_model(mels.transpose(1, 2))
    assert (abs(expected) < 1).float().mean() > 0.9  # little is cut off
    assert_close(compute(sizes.speak()[2], sizes, model, {"mel_frames": mels[0].numpy()}), expected)


@pytest.fixture(name="omni3")
def _omni3() -> tuple[Any, Any]:
    """Qwen 3 Omni: the reference's model and its sizes."""
    silence()
    document = passes.make_document("qwen3_omni_moe")
    model = logits.build_reference(document, "Qwen3OmniMoeForConditionalGeneration").requires_grad_(requires_grad=False)
    return model, load(document).sizes


def test_the_talker_of_qwen_3_omni_is_the_references(omni3: Any) -> None:
    import torch

    model, sizes = omni3
    talker = model.talker
    codes, states = torch.randint(0, 96, (4, N)), torch.randn(2, N, 32)
    is_media = torch.arange(N) % 3 == 1
    x = torch.where(is_media[:, None], talker.hidden_projection(states[1]), talker.text_projection(states[0]))
    tables = (talker.get_input_embeddings(), *talker.code_predictor.get_input_embeddings())
    x = x + sum(table(row) for table, row in zip(tables, codes))
    given = {f"codes_of_group_{i + 1}": codes[i + 1].numpy() for i in range(3)} | {
        "codec_tokens": codes[0].numpy(),
        "text_of_the_thinker": states[0].numpy(),
        "states_of_the_thinker": states[1].numpy(),
        "tokens_of_media": is_media.long().numpy(),
    }
    expected = talker(inputs_embeds=x[None]).logits[0]
    assert_close(compute(sizes.speak()[0], sizes, model, given), expected)


def test_the_code_predictor_of_qwen_3_omni_is_the_references(omni3: Any) -> None:
    import torch

    model, sizes = omni3
    predictor, x = model.talker.code_predictor, torch.randn(1, N, 24)
    hidden = predictor.model(inputs_embeds=x).last_hidden_state[0]
    expected = torch.cat([head(hidden) for head in predictor.lm_head], dim=-1)
    given = {"state_of_the_talker_and_codes_of_a_frame": x[0].numpy()}
    assert_close(compute(sizes.speak()[1], sizes, model, given), expected)


def test_the_vocoder_of_qwen_3_omni_is_the_references(omni3: Any) -> None:
    import torch

    model, sizes = omni3
    codes = torch.randint(0, 96, (1, 4, N))
    expected = model.code2wav(codes)
    assert (abs(expected) < 1).float().mean() > 0.9  # little is cut off
    all_codes = (codes[0].T + 96 * torch.arange(4)).flatten()
    assert_close(compute(sizes.speak()[2], sizes, model, {"all_codes": all_codes.numpy()}), expected)


@pytest.mark.parametrize("name", ["musicgen", "musicgen, other settings"])
@pytest.mark.parametrize("n_samples", [60, 47, 5])
def test_musicgens_codec_makes_codes_of_a_sound_and_a_sound_of_codes(name: str, n_samples: int) -> None:
    import torch

    model, sizes = build_musicgen(name)
    codec = model.audio_encoder
    samples = torch.randn(1, sizes.codec.n_channels, n_samples)
    codes = codec.encode(samples, bandwidth=codec.config.target_bandwidths[-1]).audio_codes
    assert codes.shape[2] == len(sizes.codec.codebooks) > 1
    expected = codec.decode(codes, [None]).audio_values
    assert_close(compute(sizes.speak(), sizes, model, {"samples": samples[0].T.numpy()}).T, expected)


@pytest.mark.parametrize("name", ["musicgen_melody", "musicgen_melody, other settings"])
def test_codes_of_musicgen_melody_become_a_sound(name: str) -> None:
    import torch

    model, sizes = build_musicgen(name)
    codes = torch.randint(0, 16, (1, 1, len(sizes.codec.codebooks), N))
    expected = model.audio_encoder.decode(codes, [None]).audio_values
    given = {f"codes_of_codebook_{i + 1}": book.numpy() for i, book in enumerate(codes[0, 0])}
    assert_close(compute(sizes.speak(), sizes, model, given).T, expected)


def build_musicgen(name: str) -> tuple[Any, Any]:
    silence()
    document, cls_name = passes.make_document(name), passes.find_class(name)
    model = logits.build_reference(document, cls_name).requires_grad_(requires_grad=False)
    return model, load(document).sizes
