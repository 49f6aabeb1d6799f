"""The language model of DeepSeek-VL2 computes what DeepSeek-V2 and V3 and, without a latent, Llama do."""

from __future__ import annotations

from typing import Any

import pytest

from paramcount.api import load
from paramcount.execution import run_model
from tests.oracle import logits, passes

GROUPED = {
    **{key: size for key, size in passes.VARIED.items() if key != "head_dim"}, "attention_bias": False,
    "topk_method": "group_limited_greedy", "rope_parameters": {**passes.YARN, "type": "yarn"},
}  # fmt: skip
BIASED = {**GROUPED, "topk_method": "noaux_tc", "scoring_func": "sigmoid", "norm_topk_prob": True}
PLAIN = {**passes.NO_WIDTH, "rms_norm_eps": 1e-2, "rope_theta": 300.0, "use_mla": False}
AROUND = {
    "model_type": "deepseek_vl_v2", "tile_tag": "2D", "projector_config": {"projector_type": "downsample_mlp_gelu"},
    "vision_config": {"width": 24, "layers": 2, "heads": 4, "patch_size": 4, "image_size": 16, "mlp_ratio": 2.0},
}  # fmt: skip


@pytest.mark.parametrize(
    ("model_type", "cls", "config"),
    [
        ("deepseek_v2", "DeepseekV2ForCausalLM", GROUPED),
        ("deepseek_v3", "DeepseekV3ForCausalLM", BIASED),
        ("llama", "LlamaForCausalLM", PLAIN),
    ],
)
def test_the_language_model_computes_the_logits_of_a_reference(model_type: str, cls: str, config: Any) -> None:
    import numpy as np
    import torch

    model = logits.build_reference({**config, "model_type": model_type}, cls)
    whole: Any = load({**AROUND, "language_config": config}).sizes
    ids = passes.make_token_ids(logits.TOKENS, 1)
    with torch.no_grad():
        expected = model(input_ids=ids).logits[0].numpy()
    found = run_model(whole.language, logits.save_weights(model), ids[0].tolist()).logits
    assert np.abs(found - expected).max() < logits.TOLERANCE * np.abs(expected).max()
