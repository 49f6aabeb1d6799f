"""The parts of a model that speak compute what the reference computes."""

from __future__ import annotations

from typing import Any

import pytest

from paramcount.api import load
from paramcount.counting.tensors import list_tensors
from tests.oracle import logits, passes
from tests.oracle.differential import silence

pytestmark = pytest.mark.oracle
pytest.importorskip("torch", reason="the oracle tests need torch: pip install torch==2.13.0")
pytest.importorskip("transformers", reason="the oracle tests need transformers: pip install transformers==5.23.0")

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
    return model, load(document).settled_sizes, inputs


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
    assert abs(expected).max() < 1  # nothing is cut off
    assert_close(compute(sizes.speak()[2], sizes, model, {"mel_frames": mels[0].numpy()}), expected)
