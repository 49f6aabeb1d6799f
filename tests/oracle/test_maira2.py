"""MAIRA-2: Llama and DINOv2's backbone of the reference, put together with a projector as modeling_maira2.py of
microsoft/maira-2 builds them. Its code is not run; its file has the names that the backbone had when it was released.
"""

# mypy: disable-error-code="misc"

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from torch import nn

from paramcount.api import load
from paramcount.execution import run_model
from tests.oracle import differential, logits, passes
from tests.oracle.remote_multimodal import name_modules

PATH = Path(__file__).parents[1] / "data" / "remote_models.json"
FORMER = {
    "attention.q_proj": "attention.attention.query", "attention.k_proj": "attention.attention.key",
    "attention.v_proj": "attention.attention.value", "attention.o_proj": "attention.output.dense",
}  # fmt: skip
TEXT = {
    "model_type": "llama", "vocab_size": 96, "hidden_size": 32, "intermediate_size": 44, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "rms_norm_eps": 1e-3, "tie_word_embeddings": False,
}  # fmt: skip
IMAGES = {
    "model_type": "dinov2", "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 3, "mlp_ratio": 2,
    "image_size": 28, "patch_size": 7, "layer_norm_eps": 1e-3, "reshape_hidden_states": False, "num_channels": 3,
    "apply_layernorm": True, "use_swiglu_ffn": False, "qkv_bias": True, "hidden_act": "gelu",
    "out_features": ["stage3"], "out_indices": [3],
}  # fmt: skip
SMALL = {
    "model_type": "maira2", "architectures": ["Maira2ForConditionalGeneration"], "image_token_index": 90,
    "projector_hidden_act": "gelu", "projector_n_layers": 3, "vision_feature_layer": -1,
    "vision_feature_select_strategy": "default", "text_config": TEXT, "vision_config": IMAGES,
}  # fmt: skip
UNBIASED = {**SMALL, "projector_n_layers": 1, "vision_config": {**IMAGES, "qkv_bias": False, "use_mask_token": False}}


def build(document: dict[str, Any], device: str) -> nn.Module:
    text = transformers.LlamaConfig(**document["text_config"])
    image = transformers.Dinov2Config(**document["vision_config"])
    with torch.device(device):
        projector: list[nn.Module] = [nn.Linear(image.hidden_size, text.hidden_size)]
        for _ in range(document["projector_n_layers"] - 1):
            projector += [nn.GELU(), nn.Linear(text.hidden_size, text.hidden_size)]
        model: nn.Module = name_modules(
            vision_tower=transformers.Dinov2Backbone(image),
            multi_modal_projector=name_modules(layers=nn.Sequential(*projector)),
            language_model=transformers.LlamaForCausalLM(text),
        )
    return model.eval()


def list_weights(model: nn.Module) -> dict[str, torch.Tensor]:
    """By the names in the released file."""
    weights = {}
    for name, weight in model.named_parameters():
        for now, before in FORMER.items():
            name = name.replace(now, before) if name.startswith("vision_tower.") else name
        weights[name] = weight
    return weights


@pytest.mark.parametrize("name", ["MAIRA-2", "small", "unbiased"])
def test_every_tensor_has_the_name_and_the_shape_of_the_models_put_together(name: str) -> None:
    differential.silence()
    released = json.loads(PATH.read_text(encoding="utf-8"))
    document = {"small": SMALL, "unbiased": UNBIASED}.get(name) or released[name]["config"]
    found = differential.count_document(document)[1] | differential.find_unreachable_tensors(document)
    expected = {key: tuple(weight.shape) for key, weight in list_weights(build(document, "meta")).items()}
    assert found == expected
    if name == "MAIRA-2":
        assert len(expected) == 522  # tensors of its files


def test_an_image_and_a_text_have_the_logits_of_the_models_put_together() -> None:
    differential.silence()
    model, sizes = build(SMALL, "cpu"), load(SMALL).sizes
    logits.fill_weights(model)
    pixels = torch.linspace(-1, 1, 3 * 28 * 28).reshape(1, 3, 28, 28)
    ids = passes.make_token_ids(23, 1)
    ids[0, 2:18] = SMALL["image_token_index"]
    weights = {name: weight.detach().numpy() for name, weight in list_weights(model).items()}
    with torch.no_grad():
        image = model.multi_modal_projector.layers(model.vision_tower(pixels).feature_maps[-1][:, 1:])
        x = model.language_model.model.embed_tokens(ids)
        x[0, 2:18] = image[0]
        expected = model.language_model(inputs_embeds=x).logits[0].numpy()
    found = run_model(sizes, weights, ids[0].tolist(), pixels=pixels[0].numpy()).logits
    assert np.abs(found - expected).max() < logits.TOLERANCE * np.abs(expected).max()
