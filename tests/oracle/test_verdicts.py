"""What tests/test_verdicts.py says is refused or counted, asked of the reference itself."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import Siglip2VisionConfig

from paramcount.sizes.settings import DTYPES
from tests.model_types import MODEL_TYPES
from tests.oracle.differential import build_model, find_differences, run_tokens, silence
from tests.test_verdicts import COUNTED, REFUSED, vibe_voice
from tests.test_zero_sizes import BUILT


def find_failure(document: dict[str, Any], cls: str) -> Exception | None:
    """What goes wrong if the reference builds a model and runs it; None if nothing does."""
    try:
        build_model(document, cls)
    except Exception as error:
        return error
    return run_tokens(document, cls)


@pytest.mark.parametrize("name", REFUSED)
def test_the_reference_cannot_build_or_run_what_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    silence()
    monkeypatch.delattr(Siglip2VisionConfig, "image_size", raising=False)  # which tests/oracle/adapted.py gives it
    document, _ = REFUSED[name]
    cls = MODEL_TYPES[document["model_type"]].cls
    assert find_failure(document, cls)


@pytest.mark.parametrize("name", COUNTED)
def test_the_reference_builds_and_runs_what_is_counted(name: str) -> None:
    silence()
    document = COUNTED[name]
    assert find_differences(document, MODEL_TYPES[document["model_type"]].cls) == []


@pytest.mark.parametrize(("document", "total"), BUILT)
def test_the_reference_builds_and_runs_models_without_layers(document: dict[str, Any], total: int) -> None:
    silence()
    cls = MODEL_TYPES[document["model_type"]].cls
    assert find_differences(document, cls) == []
    assert sum(p.numel() for p in build_model(document, cls).parameters()) == total


@pytest.mark.parametrize("section", [None, {}, {"num_filters": 8}])
def test_vibe_voice_is_built_with_the_same_latents(section: dict[str, int] | None) -> None:
    silence()
    assert find_differences(vibe_voice(section), MODEL_TYPES["vibevoice_asr"].cls, run=False) == []


def test_the_names_of_data_types_are_those_of_torch() -> None:
    assert {name for name in dir(torch) if isinstance(getattr(torch, name), torch.dtype)} == DTYPES
