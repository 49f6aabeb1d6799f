"""LLaVA as its authors release it: the reference's language models and encoders, put together as llava_arch.py of
haotian-liu/LLaVA and siglip_encoder.py of LLaVA-VL/LLaVA-NeXT do it. Their code is not run.
"""

# mypy: disable-error-code="misc"

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import transformers
from torch import nn

from paramcount.api import load
from paramcount.architectures.llava_released import TOWERS
from paramcount.counting.tensors import list_tensors
from paramcount.execution import run_model
from paramcount.execution.evaluate import Evaluation
from paramcount.execution.weights import open_weights
from tests.oracle import logits, passes
from tests.oracle.differential import count_document, silence

ENCODER = {
    "hidden_size": 16, "intermediate_size": 20, "num_hidden_layers": 4, "num_attention_heads": 2, "num_channels": 3,
    "patch_size": 4, "image_size": 12, "layer_norm_eps": 1e-3,
}  # fmt: skip
SMALL = {
    "clip-small": {"model_type": "clip_vision_model", **ENCODER, "hidden_act": "quick_gelu"},
    "siglip-small": {
        "model_type": "siglip_vision_model", **ENCODER, "num_hidden_layers": 3, "hidden_act": "gelu_pytorch_tanh",
        "vision_use_head": False,
    },
}  # fmt: skip
LANGUAGE = {
    "vocab_size": 96, "hidden_size": 32, "intermediate_size": 44, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-3, "rope_theta": 500.0,
    "tie_word_embeddings": False, "mm_hidden_size": 16, "mm_vision_select_layer": -2,
    "mm_vision_select_feature": "patch", "hidden_act": "silu", "sliding_window": None,
}  # fmt: skip
# {what is special: (model type in config.json, its keys)}
CASES: dict[str, dict[str, Any]] = {
    "LlavaLlamaForCausalLM, 1.5": {"model_type": "llava", "mm_projector_type": "mlp2x_gelu"},
    "LlavaLlamaForCausalLM, 1.0": {"model_type": "llava"},
    "LlavaLlamaForCausalLM, three matrices": {
        "model_type": "llava_llama", "mm_projector_type": "mlp3x_gelu", "mm_vision_select_feature": "cls_patch",
        "mm_vision_select_layer": -1,
    },
    "LlavaMistralForCausalLM, 1.6": {
        "model_type": "llava_mistral", "mm_projector_type": "mlp2x_gelu", "mm_patch_merge_type": "spatial_unpad",
    },
    "LlavaQwenForCausalLM, OneVision": {
        "model_type": "llava", "mm_projector_type": "mlp2x_gelu", "mm_patch_merge_type": "spatial_unpad",
        "mm_vision_tower": "siglip-small",
    },
}  # fmt: skip
LANGUAGES = {"Llama": "llama", "Mistral": "mistral", "Qwen": "qwen2"}


@pytest.fixture(autouse=True)
def _small_encoders(monkeypatch: pytest.MonkeyPatch) -> None:
    silence()
    for name, section in SMALL.items():
        monkeypatch.setitem(TOWERS, name, section)


def make_document(name: str) -> dict[str, Any]:
    return {**LANGUAGE, "mm_vision_tower": "clip-small", **CASES[name], "architectures": [name.partition(",")[0]]}


class Encoder(nn.Module):
    """`vision_tower` of the model: the selected states of an image's patches."""

    def __init__(self, document: dict[str, Any]) -> None:
        super().__init__()
        self.document, section = document, SMALL[document["mm_vision_tower"]]
        self.is_clip = section["model_type"] == "clip_vision_model"
        names = ("CLIPVisionModel", "CLIPVisionConfig") if self.is_clip else ("SiglipVisionModel", "SiglipVisionConfig")
        build, config = (getattr(transformers, name) for name in names)
        self.vision_tower = nn.Module()
        self.vision_tower.vision_model = build(config(**{k: v for k, v in section.items() if k != "model_type"}))

    def forward(self, pixels: Any) -> Any:
        states = self.vision_tower.vision_model(pixel_values=pixels, output_hidden_states=True).hidden_states
        if not self.is_clip:
            return states[-1]
        found = states[self.document["mm_vision_select_layer"]]
        return found[:, 1:] if self.document["mm_vision_select_feature"] == "patch" else found


def build(document: dict[str, Any]) -> Any:
    cls = document["architectures"][0]
    language = next(own for word, own in LANGUAGES.items() if word in cls)
    config = transformers.AutoConfig.for_model(language, **{k: v for k, v in LANGUAGE.items() if k[:3] != "mm_"})
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    kind, d = document.get("mm_projector_type", "linear"), config.hidden_size
    first = nn.Linear(document["mm_hidden_size"], d)
    others = [nn.Linear(d, d) for _ in range(int(kind[3]) - 1)] if kind != "linear" else []
    model.model.vision_tower = Encoder(document)
    steps = [step for matrix in others for step in (nn.GELU(), matrix)]
    model.model.mm_projector = first if kind == "linear" else nn.Sequential(first, *steps)
    if "unpad" in document.get("mm_patch_merge_type", ""):
        model.model.image_newline = nn.Parameter(torch.empty(d))
    logits.fill_weights(model)
    return model


def name_weights(model: Any) -> dict[str, Any]:
    return {name: weight.detach() for name, weight in model.named_parameters()}


@pytest.mark.parametrize("name", CASES)
def test_every_tensor_has_the_name_and_the_shape_of_the_models_put_together(name: str) -> None:
    count, found, buffers = count_document(make_document(name))
    expected = {key: tuple(weight.shape) for key, weight in name_weights(build(make_document(name))).items()}
    assert (found, buffers) == (expected, {})
    assert (count.total, count.scope) == (sum(int(np.prod(shape)) for shape in expected.values()), "model")


@pytest.mark.parametrize("name", CASES)
def test_a_text_has_the_logits_of_the_language_model(name: str) -> None:
    model, sizes = build(make_document(name)), load(make_document(name)).sizes
    ids = passes.make_token_ids(23, 1)
    weights = {key: weight.numpy() for key, weight in name_weights(model).items()}
    with torch.no_grad():
        expected = model(input_ids=ids).logits[0].numpy()
    found = run_model(sizes, weights, ids[0].tolist()).logits
    assert np.abs(found - expected).max() < logits.TOLERANCE * np.abs(expected).max()


@pytest.mark.parametrize("name", CASES)
def test_an_image_becomes_the_vectors_of_the_encoder_and_the_projector(name: str) -> None:
    model, sizes = build(make_document(name)), load(make_document(name)).sizes
    weights = {key: weight.numpy() for key, weight in name_weights(model).items()}
    pixels = torch.randn(1, 3, 12, 12, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        expected = model.model.mm_projector(model.model.vision_tower(pixels))[0]
        if hasattr(model.model, "image_newline"):  # behind each row of tiles; here behind the image
            expected = torch.cat((expected, model.model.image_newline[None]))
    see: Any = sizes
    inputs = {"tokens": np.zeros(1, int), "pixels": pixels[0].numpy()}
    found = Evaluation(see.see(), open_weights(weights, list(list_tensors(sizes)))).run(inputs)
    assert np.abs(found - expected.numpy()).max() < logits.TOLERANCE * np.abs(expected.numpy()).max()
