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
from tests.refusing import command_error, error_of
from tests.settings import list_readers
from tests.small_models import LLAMA

YARN = {"rope_type": "yarn", "factor": 2.0}
INF = float("inf")
BASE = "a positive number"
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


@pytest.mark.parametrize(("model_type", "keys"), RIGHT, ids=str)
def test_what_the_reference_takes_for_a_setting_is_counted(model_type: str, keys: dict[str, Any]) -> None:
    document = make_document(model_type)
    assert pc.count({**document, **keys}).total == pc.count(document).total


def test_a_command_names_the_file_and_the_key_of_a_wrong_setting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**LLAMA, "rope_theta": "10000"}), encoding="utf-8")
    message = command_error(capsys, "show", str(path))
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
    assert error_of(parse_entry, {**ENTRY, "settings": settings}).startswith(error)


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
    assert error_of(parse_entry, {**entry, "settings": {"token2wav_config": {section: keys}}}).startswith(error)


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
