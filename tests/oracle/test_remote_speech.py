"""Speech models whose code their authors publish: every parameter of released and of small configs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.oracle import differential
from tests.oracle.remote import find_maker
from tests.oracle.test_remote_multimodal import RELEASED, SOUND, list_parameters

GLMASR = {
    "model_type": "glmasr", "architectures": ["GlmasrModel"], "merge_factor": 3, "use_rope": True,
    "whisper_config": SOUND,
    "lm_config": {
        "model_type": "llama", "hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2,
        "num_hidden_layers": 2, "intermediate_size": 44, "vocab_size": 96, "tie_word_embeddings": False,
    },
}  # fmt: skip
MAKER = ("remote_glmasr", "make_glmasr")
MADE: dict[str, tuple[dict[str, Any], tuple[str, str]]] = {
    "GLM-ASR-Nano-2512": (RELEASED["GLM-ASR-Nano-2512"]["config"], MAKER),
    "GLM-ASR, small": (GLMASR, MAKER),
    "GLM-ASR, with a table of positions": ({**GLMASR, "use_rope": False}, MAKER),
}


@pytest.mark.parametrize("name", MADE)
def test_every_parameter_is_one_of_the_authors_code(name: str) -> None:
    import torch

    document, code = MADE[name]
    with torch.device("meta"):
        model = find_maker(*code)(SimpleNamespace(**document))
    _, found, buffers = differential.count_document(document)
    unread = differential.find_unreachable_tensors(document)
    assert found | unread == list_parameters(model)
    assert buffers == {}
    assert bool(unread) is bool(document["use_rope"])
