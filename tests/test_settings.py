"""A setting of the wrong type or out of range is an error in one line, in a config.json as in a zoo entry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
from paramcount.architectures import ARCHITECTURES, architecture
from paramcount.formats.strict_yaml import parse_yaml
from paramcount.sizes.fields import find_default
from paramcount.sizes.setting_fields import OF_REFERENCE, Setting, list_settings
from paramcount.sizes.setting_kinds import KEY_KINDS
from paramcount.zoo.adding import make_entry
from paramcount.zoo.entries import parse_entry
from paramcount.zoo.writing import format_entry
from tests.model_types import MODEL_TYPES, default_document
from tests.refusing import assert_one_line, command_error
from tests.settings import list_readers
from tests.small_models import LLAMA

YARN = {"rope_type": "yarn", "factor": 2.0}
LLAMA3 = {
    "rope_type": "llama3", "factor": 2.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}  # fmt: skip
INF, NAN = float("inf"), float("nan")
BASE = "a positive number"
WRONG: tuple[tuple[str, dict[str, Any], str], ...] = (  # (model type, keys, error)
    ("llama", {"rope_theta": "10000"}, f"rope_theta = '10000' (expected {BASE})"),
    ("llama", {"rope_theta": "1_000"}, f"rope_theta = '1_000' (expected {BASE})"),
    ("llama", {"rope_theta": True}, f"rope_theta = true (expected {BASE})"),
    ("llama", {"rope_theta": None}, f"rope_theta = null (expected {BASE})"),
    ("llama", {"rope_theta": INF}, f"rope_theta = inf (expected {BASE})"),
    ("llama", {"rope_theta": -1}, f"rope_theta = -1 (expected {BASE})"),
    ("llama", {"rope_theta": [10000.0]}, f"rope_theta = [10000.0] (expected {BASE})"),
    ("llama", {"rope_theta": 10**400}, f"rope_theta = a number of more than 30 digits (expected {BASE})"),
    ("llama", {"rms_norm_eps": INF}, "rms_norm_eps = inf (expected a non-negative number)"),
    ("llama", {"rms_norm_eps": NAN}, "rms_norm_eps = nan (expected a non-negative number)"),
    ("llama", {"rms_norm_eps": -1e-6}, "rms_norm_eps = -1e-06 (expected a non-negative number)"),
    ("llama", {"rope_scaling": {**YARN, "factor": "2"}}, f"rope_scaling.factor = '2' (expected {BASE})"),
    ("llama", {"rope_scaling": {**YARN, "truncate": 1}}, "rope_scaling.truncate = 1 (expected true or false)"),
    ("llama", {"rope_parameters": {"rope_theta": "x"}}, f"rope_parameters.rope_theta = 'x' (expected {BASE})"),
    # modeling_rope_utils.py divides original_max_position_embeddings by both
    (
        "llama",
        {"rope_scaling": {**LLAMA3, "high_freq_factor": 0}},
        "rope_scaling.high_freq_factor = 0 (expected a number",
    ),
    (
        "llama",
        {"rope_scaling": {**LLAMA3, "low_freq_factor": 0.0}},
        "rope_scaling.low_freq_factor = 0.0 (expected a num",
    ),
    # its validation asks for each key of the kind, which no null states
    (
        "llama",
        {"rope_scaling": {**LLAMA3, "high_freq_factor": None}},
        "rope_scaling.high_freq_factor = null (expected a number",
    ),
    # the reference computes with these nulls: its validation of YaRN and Llama 3, and the angles of the others
    (
        "llama",
        {"rope_scaling": {**YARN, "original_max_position_embeddings": None}},
        "rope_scaling.original_max_position_embeddings = null for rope_type = yarn (expected a number)",
    ),
    (
        "llama",
        {"rope_scaling": {**LLAMA3, "original_max_position_embeddings": None}},
        "rope_scaling.original_max_position_embeddings = null for rope_type = llama3 (expected a number)",
    ),
    (
        "llama",
        {"rope_scaling": {"rope_type": "proportional", "partial_rotary_factor": None}},
        "rope_scaling.partial_rotary_factor = null for rope_type = proportional (expected a number)",
    ),
    ("afmoe", {"route_scale": None}, "route_scale = null (expected a number)"),
    ("inkling2_text", {"routed_scaling_factor": None}, "routed_scaling_factor = null (expected a number)"),
    (
        "inkling_mm_model",
        {"text_config": {"embedding_multiplier": None}},
        "text_config.embedding_multiplier = null (ex",
    ),
    ("bamba", {"time_step_limit": None}, "time_step_limit = null (expected a list of 2 numbers)"),
    ("granitemoehybrid", {"time_step_limit": None}, "time_step_limit = null (expected a list of 2 numbers)"),
    ("falcon_h1", {"time_step_limit": None}, "time_step_limit = null (expected a list of 2 numbers)"),
    (
        "evolla",
        {"protein_encoder_config": {"token_dropout": None}},
        "protein_encoder_config.token_dropout = null (expected true or false)",
    ),
    # torch takes no other probability for its dropout, which some models are built with and others call
    ("gpt2", {"resid_pdrop": 1.5}, "resid_pdrop = 1.5 (expected a probability from 0 to 1)"),
    ("bert", {"hidden_dropout_prob": -0.1}, "hidden_dropout_prob = -0.1 (expected a probability from 0 to 1)"),
    ("bart", {"dropout": 1.5}, "dropout = 1.5 (expected a probability from 0 to 1)"),
    ("t5", {"dropout_rate": 2}, "dropout_rate = 2 (expected a probability from 0 to 1)"),
    ("baichuan", {"rms_norm_eps": "1e-6"}, "rms_norm_eps = '1e-6' (expected a non-negative number)"),
    (
        "baichuan",
        {"hidden_act": "sliu"},
        "hidden_act = 'sliu' (expected silu, gelu, relu, relu2, relu6 or 18 others)",
    ),
    ("minicpm", {"scale_emb": "12"}, "scale_emb = '12' (expected a number)"),
    ("internlm", {"rotary": "x"}, "rotary = 'x' (expected a JSON object)"),
    ("internlm", {"rotary": {"type": 1}}, "rotary.type = 1 (expected a string)"),
    ("falcon_h1", {"mlp_multipliers": [1.0]}, "mlp_multipliers = [1.0] (expected a list of 2 numbers)"),
    ("olmo", {"clip_qkv": [8]}, "clip_qkv = [8] (expected"),
    ("gemma3", {"text_config": {"rope_theta": "x"}}, f"text_config.rope_theta = 'x' (expected {BASE})"),
    ("qwen2_vl", {"image_token_id": "x"}, "image_token_id = 'x' (expected an integer)"),
)
RIGHT: tuple[tuple[str, dict[str, Any]], ...] = (  # what the reference builds and runs
    ("llama", {"rope_theta": 10000}),
    ("llama", {"rms_norm_eps": 0.0}),
    ("llama", {"rope_theta": None, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}),
    ("mamba2", {"time_step_limit": [0.0, INF]}),
    ("llama", {"rope_scaling": {"rope_type": "linear", "factor": 2.0, "original_max_position_embeddings": None}}),
    ("bert", {"rope_scaling": {"rope_type": "proportional", "partial_rotary_factor": None, "rope_theta": 1.0}}),
    ("llama", {"attention_dropout": 1.5}),
    ("qwen2", {"attention_dropout": -1.0}),
    ("gpt2", {"resid_pdrop": 1.0}),
    ("m2m_100", {"max_position_embeddings": 0}),
    ("seamless_m4t", {"max_position_embeddings": 0}),
    ("xlnet", {"clamp_len": -1}),
    ("llava", {"image_token_index": -200}),
)


def make_document(model_type: str) -> dict[str, Any]:
    return default_document(model_type) if model_type in MODEL_TYPES else {**LLAMA, "model_type": model_type}


@pytest.mark.parametrize(("model_type", "keys", "error"), WRONG, ids=lambda value: str(value)[:60])
def test_a_wrong_setting_is_an_error_for_a_count_too(model_type: str, keys: dict[str, Any], error: str) -> None:
    with pytest.raises(pc.ParamcountError) as refused:
        pc.count({**make_document(model_type), **keys})
    assert_one_line(str(refused.value))
    assert str(refused.value).startswith(error)


@pytest.mark.parametrize(("model_type", "keys"), RIGHT, ids=str)
def test_what_the_reference_takes_for_a_setting_is_counted(model_type: str, keys: dict[str, Any]) -> None:
    document = make_document(model_type)
    assert pc.count({**document, **keys}).total == pc.count(document).total


@pytest.mark.parametrize("command", ["show", "flops", "trace", "explain", "memory", "training", "lora", "draw"])
def test_every_command_names_the_file_and_the_key_of_a_wrong_setting(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**LLAMA, "rope_theta": "10000"}), encoding="utf-8")
    message = command_error(capsys, command, str(path))
    assert message.endswith(f"config.json: rope_theta = '10000' (expected {BASE})")


ENTRY = {
    "id": "x", "family": "x", "publisher": "x", "architecture": "llama", "checked": "unverified",
    "config": {
        "vocab_size": 23, "d_model": 16, "n_layers": 3, "n_heads": 4, "n_kv_heads": 2, "d_head": 4, "d_ff": 20,
        "attention_bias": False, "mlp_bias": False, "tie_word_embeddings": False,
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"rope_theta": "1_000"}, f"settings.rope_theta = '1_000' (expected {BASE})"),
        ({"rms_norm_eps": True}, "settings.rms_norm_eps = true (expected a non-negative number)"),
        ({"hidden_act": "sliu"}, "settings.hidden_act = 'sliu' (expected"),
        ({"rope_scaling": "x"}, "settings.rope_scaling = 'x' (expected a JSON object)"),
        ({"rope_scaling": {**YARN, "factor": -1}}, f"settings.rope_scaling.factor = -1 (expected {BASE})"),
    ],
    ids=str,
)
def test_a_wrong_setting_of_a_zoo_entry_is_an_error_that_names_its_key(settings: dict[str, Any], error: str) -> None:
    with pytest.raises(pc.ParamcountError) as refused:
        parse_entry({**ENTRY, "settings": settings})
    assert str(refused.value).startswith(error)


@pytest.mark.parametrize(
    ("section", "keys", "error"),
    [
        ("dit_config", {"enc_dilations": [1, 2]}, "settings.enc_dilations = [1, 2] (expected 5 entries)"),
        ("bigvgan_config", {"resblock_dilation_sizes": [[1]]}, "settings.resblock_dilation_sizes = [[…]] (expected 3"),
    ],
)
def test_a_zoo_entry_has_as_many_dilations_as_its_sizes_ask_for(section: str, keys: dict[str, Any], error: str) -> None:
    # Qwen2_5OmniDiTConfig has 5 enc_channels, Qwen2_5OmniBigVGANConfig 3 resblock_kernel_sizes
    model = pc.load({"model_type": "qwen2_5_omni"})
    entry = parse_yaml(format_entry(make_entry(model, "own-model", source="a test")))
    with pytest.raises(pc.ParamcountError) as refused:
        parse_entry({**entry, "settings": {"token2wav_config": {section: keys}}})
    assert str(refused.value).startswith(error)


def test_a_zoo_entry_with_experts_names_one_of_the_functions_of_its_router() -> None:
    """Cohere2MoeTopKRouter: softmax or sigmoid."""
    entry = parse_yaml(format_entry(make_entry(pc.load({"model_type": "cohere2_moe"}), "own-model", source="a test")))
    parse_entry({**entry, "settings": {"expert_selection_fn": "sigmoid"}})
    with pytest.raises(pc.ParamcountError, match=r"^settings.expert_selection_fn = '' \(expected softmax or sigmoid\)"):
        parse_entry({**entry, "settings": {"expert_selection_fn": ""}})


def list_defaults() -> Iterator[tuple[str, Setting, Any]]:
    """(class and setting, the setting, its default) of every architecture."""
    for cls in map(architecture, ARCHITECTURES):
        for name, setting in list_settings(cls).items():
            yield f"{cls.__name__}.{name}", setting, find_default(cls, name, setting.default)


def test_every_setting_has_a_default() -> None:
    assert [place for place, _, default in list_defaults() if default is OF_REFERENCE] == []


def test_every_setting_with_a_key_has_a_kind() -> None:
    assert [
        place for place, setting, default in list_defaults() if setting.names and not setting.find_kind(default)
    ] == []


# Keys that no kind is declared for: their readers, or conditions of the sizes, check them.
CHECKED_ELSEWHERE = {
    "<image>", "<|extra_200|>", "activation_function", "architecture", "architectures", "deepstack_layer_map",
    "embed_dim", "feed_forward_type", "global_pool", "head_dim", "sscp_conv_stride_size",
}  # fmt: skip


def test_every_key_that_a_function_reads_a_setting_from_has_a_kind() -> None:
    missing = {reader.path[-1] for reader in list_readers() if reader.by_function and reader.path[-1] not in KEY_KINDS}
    assert missing == CHECKED_ELSEWHERE
