"""Rotary positions of model types that tests/oracle/test_rotary.py does not build are read as the reference does."""

from __future__ import annotations

from typing import Any

import pytest

import paramcount as pc
from paramcount.api import load
from paramcount.flow import Rope, YarnScaling

SMALL = {
    "vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 10, "intermediate_size": 44, "max_position_embeddings": 64,
}  # fmt: skip
LAYERS = ["sliding_attention", "full_attention"]


def test_zaya_reads_no_base_or_share_outside_of_the_blocks_for_each_kind_of_layer() -> None:
    """Source: _compute_linear_scaling_rope_parameters of the reference, whose default share is 1."""
    words = ["hybrid", "hybrid_sliding"]
    document = {"model_type": "zaya", **SMALL, "layer_types": words, "sliding_window": 8}
    ropes = load({**document, "rope_theta": 777.0}).sizes.settings
    assert (ropes["rope"].base, ropes["sliding_rope"].base) == (5_000_000, 10_000)
    block = {"rope_type": "linear", "factor": 3.0, "rope_theta": 555.0}
    scaled: Any = load({**document, "rope_scaling": dict.fromkeys(words, block)}).sizes
    assert (scaled.d_rope, scaled.d_rope_sliding) == (10, 10)


def test_longrope_has_one_factor_or_one_for_each_pair() -> None:
    """LlamaRotaryEmbedding cannot be built with other lists: its frequencies are divided by them, one by one."""
    scaling = {"rope_type": "longrope", "factor": 2.0, "short_factor": [4.0], "long_factor": [1.0, 2.0, 3.0]}
    rope = load({"model_type": "llama", **SMALL, "rope_scaling": scaling}).sizes.settings["rope"]
    assert rope.frequencies(10, 1)[0] == 0.25
    with pytest.raises(pc.ParamcountError, match=r"^LongRoPE with 3 factors for 5 pairs \(expected one factor, or one"):
        rope.frequencies(10, 65)


def test_yarn_has_no_angles_of_base_1() -> None:
    with pytest.raises(pc.ParamcountError, match=r"^YaRN with a base of 1 \(expected another base"):
        Rope(1, YarnScaling(1.0, 64, 1, 32)).frequencies(8, 1)


def test_an_odd_part_of_a_head_is_rounded_up_by_what_rotates_and_not_in_the_angles() -> None:
    """Source: `dim` in compute_default_rope_parameters of the reference, for base ** -(0, 2, ...) / dim."""
    sections = {"rope_theta": 100.0, "rope_type": "default", "mrope_section": [2, 1, 1], "partial_rotary_factor": 0.5}
    glm4v: Any = load(
        {"model_type": "glm4v_text", **SMALL, "head_dim": 14, "pad_token_id": 0, "rope_parameters": sections}
    ).sizes  # whose angles are for heads of 14, though they are 32 / 4
    assert glm4v.settings["rope"].frequencies(8, 1).tolist() == pytest.approx([100.0 ** (-i / 7) for i in (0, 2, 4, 6)])
    deepseek: Any = load({"model_type": "deepseek_v4", "head_dim": 24}).sizes  # an eighth of 24
    assert deepseek.d_rope == 4
    assert deepseek.settings["rope"].frequencies(4, 1).tolist() == pytest.approx([1, 10_000.0 ** (-2 / 3)])
    assert deepseek.settings["far_rope"].frequencies(4, 1).tolist() == pytest.approx([1, 160_000.0 ** (-2 / 3)])
    text = {**SMALL, "rope_theta": 100.0, "layer_types": LAYERS, "sliding_window": 8, "pad_token_id": 0}
    document = {"model_type": "step3p7", "text_config": {**text, "partial_rotary_factors": [0.3, 0.7]}}
    step: Any = load(document).sizes
    ropes = step.settings["ropes"]
    assert ropes["full_attention"].frequencies(8, 1).tolist() == pytest.approx(
        [100.0 ** (-i / 7) for i in (0, 2, 4, 6)]
    )
    assert ropes["sliding_attention"].frequencies(4, 1).tolist() == pytest.approx([1, 100.0 ** (-2 / 3)])
