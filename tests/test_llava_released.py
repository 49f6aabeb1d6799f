"""LLaVA as its authors release it: what the released files hold, and what is refused or left out."""

from __future__ import annotations

from typing import Any

import pytest

import paramcount as pc
from tests.comparison import load_configs

INDEX_SIZE = 13_518_798_848  # bytes: total_size of pytorch_model.bin.index.json of liuhaotian/llava-v1.5-7b
ID = "llava-v1.5-7b"


def change(**changes: Any) -> dict[str, Any]:
    document = {**load_configs()[ID], **changes}
    return {key: value for key, value in document.items() if value is not ...}


def test_the_released_files_hold_all_but_the_vision_encoder() -> None:
    count = pc.count(ID)
    frequencies = 32 * 64 * 4  # rotary_emb.inv_freq of each layer, in FP32
    assert 2 * (count.total - count.parts["vision"]) + frequencies == INDEX_SIZE


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({"mm_projector_type": "linear"}, -(4096 + 1) * 4096),
        ({"mm_projector_type": ...}, -(4096 + 1) * 4096),
        ({"mm_projector_type": "mlp3x_gelu"}, (4096 + 1) * 4096),
        ({"mm_patch_merge_type": "spatial_unpad"}, 4096),
        ({"mm_patch_merge_type": "flat"}, 0),
        ({"mm_vision_tower": "openai/clip-vit-large-patch14"}, -(24**2 - 16**2) * 1024),  # fewer positions
        ({"mm_vision_select_layer": -1, "mm_vision_select_feature": "cls_patch"}, 0),
        ({"model_type": "llava_llama"}, 0),
        ({"model_type": "llava_llama", "architectures": ...}, 0),
    ],
)
def test_a_changed_key_changes_the_total_by_the_expected_number(changes: dict[str, Any], more: int) -> None:
    count = pc.count(change(**changes))
    assert (count.total - pc.count(ID).total, count.scope, count.warnings) == (more, "model", ())


def test_an_encoder_of_another_name_is_not_counted() -> None:
    with pytest.warns(pc.ConfigWarning, match="mm_vision_tower = ./my-clip is not known; its parameters are not"):
        count = pc.count(change(mm_vision_tower="./my-clip"))
    assert (count.scope, count.not_counted) == ("language_model", ("vision_config", "projector"))
    assert count.total == pc.count(ID).language_model
