"""Rotary positions are read from a config.json as the reference reads them.

The expected values are those of the config classes of transformers 5.23.0, which tests/oracle/test_rotary.py builds.
"""

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
NEOX = {key: size for key, size in SMALL.items() if key not in ("head_dim", "num_key_value_heads")}
LAYERS = ["sliding_attention", "full_attention"]
LINEAR = {"type": "linear", "factor": 3.0}
BLOCK = {"rope_type": "default", "rope_theta": 555.0}


def read_ropes(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in load({**SMALL, **document}).sizes.settings.items() if "rope" in name}


@pytest.mark.parametrize(("model_type", "base"), [("apertus", 12e6), ("cwm", 1e6), ("ministral3", 1e6)])
def test_a_base_outside_of_the_default_parameters_of_a_class_is_not_read(model_type: str, base: float) -> None:
    assert read_ropes({"model_type": model_type, "rope_theta": 777.0})["rope"].base == base


@pytest.mark.parametrize(
    ("model_type", "words", "bases"),
    [("mellum", LAYERS, {"rope": 500_000, "local_rope": 10_000}),
     ("beam", LAYERS, {"rope": 10_000}),
     ("laguna", LAYERS, {"rope": 500_000, "rope_sliding": 10_000}),
     ("mimo_v2_flash", LAYERS, {"rope": 5_000_000, "rope_sliding": 10_000}),
     ("zaya", ["hybrid", "hybrid_sliding"], {"rope": 5_000_000, "sliding_rope": 10_000})],
)  # fmt: skip
def test_a_base_outside_of_blocks_for_each_kind_of_layer_is_not_read(
    model_type: str, words: list[str], bases: dict[str, float]
) -> None:
    ropes = read_ropes({"model_type": model_type, "layer_types": words, "sliding_window": 8, "rope_theta": 777.0})
    assert {name: rope.base for name, rope in ropes.items()} == bases


@pytest.mark.parametrize("model_type", ["gpt_neox", "gpt_neox_japanese"])
def test_gpt_neox_has_a_key_of_its_own_for_the_base(model_type: str) -> None:
    document = {"model_type": model_type, **NEOX, "rope_theta": 777.0, "rotary_emb_base": 555.0}
    assert load(document).sizes.settings["rope"].base == 555.0


def test_an_older_type_does_not_replace_the_default_kind_in_the_blocks_of_olmo3() -> None:
    document = {"model_type": "olmo3", "layer_types": LAYERS, "rope_scaling": LINEAR}
    assert read_ropes(document)["rope"].kind == "default"
    named = {**document, "rope_scaling": {"rope_type": "linear", "factor": 3.0}}
    assert {name: rope.kind for name, rope in read_ropes(named).items()} == {"rope": "linear", "local_rope": "default"}


def test_parameters_for_all_layers_change_no_block_of_olmo3() -> None:
    assert read_ropes({"model_type": "olmo3", "layer_types": LAYERS, "rope_parameters": BLOCK})["rope"].base == 500_000


def test_scaled_angles_for_a_part_of_heads_that_rotate_as_a_whole_are_an_error() -> None:
    with pytest.raises(pc.ParamcountError, match=r"partial_rotary_factor = 0\.5, but the layers rotate whole heads"):
        pc.count({"model_type": "llama", **SMALL, "partial_rotary_factor": 0.5, "rope_scaling": LINEAR})
    assert pc.count({"model_type": "llama", **SMALL, "partial_rotary_factor": 0.5}).total > 0


@pytest.mark.parametrize("model_type", ["glm", "phi3", "nemotron", "minimax_m2", "gpt_neox"])
def test_an_odd_part_of_a_head_has_the_angles_of_that_width(model_type: str) -> None:
    """int(10 * 0.7) = 7 values of a head: base ** -(0, 2, 4, 6) / 7, and 8 values rotate."""
    document = {"model_type": model_type, **SMALL, "hidden_size": 40, "pad_token_id": 0}
    sizes: Any = load({**document, "rope_parameters": {"rope_theta": 100.0, "partial_rotary_factor": 0.7}}).sizes
    found = sizes.settings["rope"].frequencies(sizes.d_rope, 1).tolist()
    assert found == pytest.approx([100.0 ** (-i / 7) for i in (0, 2, 4, 6)])


def test_proportional_positions_rotate_the_whole_head_a_part_by_no_angle() -> None:
    block = {"rope_type": "proportional", "rope_theta": 100.0, "partial_rotary_factor": 0.5}
    sizes: Any = load({"model_type": "glm", **SMALL, "pad_token_id": 0, "rope_parameters": block}).sizes
    assert sizes.d_rope == 10
    assert sizes.settings["rope"].frequencies(10, 1).tolist() == pytest.approx([1, 100.0**-0.2, 0, 0, 0])


def test_the_context_before_scaling_is_that_outside_of_the_parameters_if_both_are_there() -> None:
    scaling = {"rope_type": "yarn", "factor": 3.0, "original_max_position_embeddings": 8}
    document = {"model_type": "llama", "rope_scaling": scaling, "original_max_position_embeddings": 16}
    assert read_ropes(document)["rope"].scaling.original_positions == 16


YARN = {"rope_type": "yarn", "factor": 3.0, "original_max_position_embeddings": 100, "rope_theta": 555.0}


def test_yarn_of_a_kind_of_layer_rounds_unless_a_key_beside_the_blocks_says_otherwise() -> None:
    """Source: _compute_yarn_parameters of the reference looks `truncate` up in rope_parameters, not in the block."""
    document = {"model_type": "mellum", "layer_types": LAYERS, "sliding_window": 8}
    inside = {word: {**YARN, "truncate": False} for word in LAYERS}
    assert read_ropes({**document, "rope_parameters": inside})["rope"].scaling.truncate is True
    assert read_ropes({**document, "rope_parameters": {**inside, "truncate": False}})["rope"].scaling.truncate is False
    assert (
        read_ropes({"model_type": "llama", "rope_parameters": {**YARN, "truncate": False}})["rope"].scaling.truncate
        is False
    )


@pytest.mark.parametrize(
    ("model_type", "words", "keys", "share"),
    [("laguna", LAYERS, "rope_parameters", 1.0),
     ("laguna", LAYERS, "rope_scaling", 1.0),
     ("zaya", ["hybrid", "hybrid_sliding"], "rope_scaling", 1.0),
     ("mimo_v2_flash", LAYERS, "rope_scaling", 1.0)],
)  # fmt: skip
def test_scaled_blocks_that_state_no_share_rotate_whole_heads(
    model_type: str, words: list[str], keys: str, share: float
) -> None:
    """Source: _compute_linear_scaling_rope_parameters of the reference, whose default share is 1."""
    block = {"rope_type": "linear", "factor": 3.0, "rope_theta": 555.0}
    document = {"model_type": model_type, **SMALL, "layer_types": words, "sliding_window": 8}
    sizes: Any = load({**document, keys: dict.fromkeys(words, block)}).sizes
    assert (sizes.d_rope, sizes.d_rope_sliding) == (10, 10)


def test_unscaled_blocks_of_mimo_that_state_no_share_rotate_a_third_of_a_head() -> None:
    """Source: compute_default_rope_parameters in modeling_mimo_v2_flash.py: int(10 * 0.334), in pairs."""
    document = {"model_type": "mimo_v2_flash", **SMALL, "layer_types": LAYERS, "sliding_window": 8}
    sizes: Any = load({**document, "rope_parameters": dict.fromkeys(LAYERS, BLOCK)}).sizes
    assert (sizes.d_rope, sizes.d_rope_sliding) == (4, 4)


@pytest.mark.parametrize(("model_type", "width"), [("glm", 10), ("glm4", 10), ("qwen3_next", 10)])
def test_a_null_share_beside_the_parameters_is_that_of_whole_heads(model_type: str, width: int) -> None:
    """Source: convert_rope_params_to_dict of the reference copies no null, and the angles' default share is 1."""
    document = {"model_type": model_type, **SMALL, "pad_token_id": 0, "partial_rotary_factor": None}
    sizes: Any = load(document).sizes
    assert sizes.d_rope == width


def test_longrope_has_one_factor_or_one_for_each_pair() -> None:
    """LlamaRotaryEmbedding cannot be built with other lists: its frequencies are divided by them, one by one."""
    scaling = {"rope_type": "longrope", "factor": 2.0, "short_factor": [4.0], "long_factor": [1.0, 2.0, 3.0]}
    rope = read_ropes({"model_type": "llama", "rope_scaling": scaling, "max_position_embeddings": 64})["rope"]
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
