"""Multimodal models whose code their authors publish: every parameter of released configs."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.oracle import differential
from tests.oracle.remote import find_maker

RELEASED = json.loads((Path(__file__).parents[1] / "data" / "remote_models.json").read_text(encoding="utf-8"))


def list_parameters(model: Any) -> dict[str, tuple[int, ...]]:
    return {name: tuple(weight.shape) for name, weight in model.named_parameters()}


def make_section(cls: str, **params: Any) -> dict[str, Any]:
    return {"cls": cls, "params": params}


MLP = {"projector_type": "mlp_gelu"}
SMALL = {
    "model_type": "qwen", "hidden_size": 256, "num_attention_heads": 2, "kv_channels": 128, "num_hidden_layers": 2,
    "intermediate_size": 88, "vocab_size": 96,
}  # fmt: skip
VISUAL = {
    "width": 32, "layers": 3, "heads": 4, "mlp_ratio": 4.9231, "patch_size": 7, "image_size": 56, "output_dim": 256,
    "n_queries": 16,
}  # fmt: skip
AUDIO = {
    "n_mels": 10, "n_ctx": 30, "n_state": 24, "n_head": 3, "n_layer": 2, "output_dim": 256, "avg_pool": True,
    "add_audio_bos_eos_token": True,
}  # fmt: skip
QWEN = ("remote_qwen", "make_qwen")
MADE = {
    "Qwen-VL, small": ({**SMALL, "visual": VISUAL}, QWEN),
    "Qwen-VL, of one width": ({**SMALL, "visual": {**VISUAL, "width": 256}}, QWEN),
    "Qwen-Audio, small": ({**SMALL, "audio": AUDIO}, QWEN),
    "Qwen-Audio, without marks": ({**SMALL, "audio": {**AUDIO, "add_audio_bos_eos_token": False}}, QWEN),
    "Qwen-VL and Qwen-Audio": ({**SMALL, "visual": VISUAL, "audio": AUDIO}, QWEN),
}
JANUS = ("remote_janus", "make_janus")
GLM = {
    "model_type": "chatglm", "architectures": ["ChatGLMModel"], "hidden_size": 256, "ffn_hidden_size": 88,
    "num_attention_heads": 4, "kv_channels": 32, "multi_query_attention": True, "multi_query_group_num": 2,
    "num_layers": 2, "padded_vocab_size": 96, "add_qkv_bias": True, "add_bias_linear": False,
}  # fmt: skip
EVA = {
    "hidden_size": 40, "num_hidden_layers": 3, "num_heads": 4, "intermediate_size": 72, "in_channels": 3,
    "patch_size": 7, "num_positions": 65, "hidden_act": "gelu", "layer_norm_eps": 1e-6, "image_size": 56,
    "dropout_prob": 0.0, "scaling_factor": 8,
}  # fmt: skip
MADE["GLM-4V, small"] = ({**GLM, "vision_config": EVA}, ("remote_glm4v", "make_glm4v"))
COGVLM = {
    **SMALL, "model_type": "cogvlm", "num_attention_heads": 4, "num_multi_query_heads": 2, "rms_norm_eps": 1e-5,
}  # fmt: skip
MADE["CogVLM2, small"] = ({**COGVLM, "vision_config": EVA}, ("remote_glm4v", "make_cogvlm"))
SOUND = {
    "d_model": 24, "encoder_layers": 2, "encoder_attention_heads": 3, "encoder_ffn_dim": 40, "num_mel_bins": 10,
    "max_source_positions": 30, "model_type": "whisper",
}  # fmt: skip
ULTRAVOX = {
    "model_type": "ultravox", "hidden_size": 34, "stack_factor": 4, "projector_act": "swiglu",
    "projector_ln_mid": True, "audio_config": SOUND,
    "text_config": {**SMALL, "num_key_value_heads": 1, "model_type": "llama", "tie_word_embeddings": False},
}  # fmt: skip
VOX = ("remote_ultravox", "make_ultravox")
MADE["Ultravox, small"] = (ULTRAVOX, VOX)
MADE["Ultravox, norm at the end"] = ({**ULTRAVOX, "projector_ln_mid": False}, VOX)
MADE["Ultravox, not gated"] = ({**ULTRAVOX, "projector_act": "gelu"}, VOX)
CODES = {
    "cogvlm2-llama3-chat-19B": ("remote_glm4v", "make_cogvlm"),
    "DeepSeek-OCR": ("remote_multimodal", "make_ocr"),
    "DeepSeek-OCR-2": ("remote_multimodal", "make_ocr2"),
    "Janus-Pro-7B": JANUS,
    "MiniCPM-V-2": ("remote_minicpmv2", "make_minicpmv2"),
    "Molmo-7B-D-0924": ("remote_multimodal", "Molmo"),
    "Phi-4-multimodal-instruct": ("remote_phi4mm", "make_phi4mm"),
    "Qwen-VL-Chat": QWEN,
}
TOWER = {"model_name": "siglip_so400m_patch14_384", "image_size": 56, "select_layer": -2}
MADE["Janus, other sizes"] = (
    {
        **RELEASED["Janus-Pro-7B"]["config"],
        "language_config": {**SMALL, "num_key_value_heads": 1, "model_type": "llama"},
        "vision_config": {"cls": "CLIPVisionTower", "params": TOWER},
        "aligner_config": make_section("MlpProjector", input_dim=1152, n_embed=256, depth=1, **MLP),
        "gen_aligner_config": make_section("MlpProjector", input_dim=8, n_embed=256, depth=3, **MLP),
        "gen_head_config": make_section("vision_head", image_token_embed=20, image_token_size=16384, n_embed=256),
    },
    JANUS,
)
MADE |= {name: (RELEASED[name]["config"], code) for name, code in CODES.items()}


@pytest.mark.parametrize("name", MADE)
def test_every_parameter_and_buffer_is_one_of_the_authors_code(name: str) -> None:
    import torch

    document, code = MADE[name]
    with torch.device("meta"):
        model = find_maker(*code)(SimpleNamespace(**document))
    _, found, buffers = differential.count_document(document)
    assert found | differential.find_unreachable_tensors(document) == list_parameters(model)
    assert buffers == {name: tuple(buffer.shape) for name, buffer in model.named_buffers()}
