"""The language model of every composite: counted as the reference builds it, tensor by tensor, wherever a tie is said and whatever it is."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest

import paramcount as pc
from paramcount.architectures.composites import COMPOSITES, TEXTS
from paramcount.config_json import from_config
from paramcount.counting import TOWERS as OTHER_PARTS
from tests.model_types import MODEL_TYPES
from tests.oracle import differential

pytestmark = pytest.mark.oracle
pytest.importorskip("torch", reason="the oracle tests need torch: pip install torch==2.13.0")
pytest.importorskip("transformers", reason="the oracle tests need transformers: pip install transformers==5.23.0")

Shapes = Counter[tuple[int, ...]]
NAMED_IN_FULL = ("Glm46VForConditionalGeneration",)
# Without these a language model of its type could not run.
NEEDED: dict[str, dict[str, Any]] = {
    "glm4v_text": {"rope_parameters": {"partial_rotary_factor": 0.5}},
    "glm4v_moe_text": {"head_dim": 128},
    "qwen2_vl_text": {"num_attention_heads": 32, "hidden_size": 4096},
    "qwen2_5_vl_text": {"num_attention_heads": 32, "hidden_size": 4096},
}
# What a layer's experts are stored as depends on the class around them in these.
SAVED_OTHERWISE: set[str] = set()


def class_of(model_type: str) -> str:
    from transformers.models.auto import modeling_auto as auto

    names = {**auto.MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES, **auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES}
    return str(names[model_type])


def theirs(document: dict[str, Any]) -> Shapes:
    """What the reference's language model would be saved as: all but towers and projectors, tied ones once."""
    from transformers.core_model_loading import revert_weight_conversion

    model = differential.build(document, class_of(document["model_type"]))
    own = {id(p) for module in (model.get_decoder(), model.get_output_embeddings()) for p in module.parameters()}
    spoken = {name: p for name, p in model.named_parameters() if id(p) in own}
    return Counter(tuple(p.shape) for p in revert_weight_conversion(model, spoken).values())


def ours(document: dict[str, Any]) -> Shapes:
    count = pc.count(document)
    found: Shapes = Counter()
    for tensor in count.tensors:
        if tensor.part not in (*OTHER_PARTS, "mtp") and tensor.role == "parameter" and tensor.tied_to is None and 0 not in tensor.shape:
            found[tensor.shape] += tensor.copies
    assert sum(shape_product(shape) * n for shape, n in found.items()) == count.language_model
    return found


def shape_product(shape: tuple[int, ...]) -> int:
    n = 1
    for size in shape:
        n *= size
    return n


def section(model_type: str, **more: Any) -> dict[str, Any]:
    """A text_config with few layers."""
    kept = {key: value for key, value in MODEL_TYPES[model_type].vary.get("=", {}).items() if key != "text_config"} if model_type in MODEL_TYPES else {}
    return {"num_hidden_layers": 2, **kept, **NEEDED.get(model_type, {}), **more}


def documents(model_type: str) -> list[dict[str, Any]]:
    """Every way to say a tie, outside the section and inside, or not at all."""
    found = []
    for outside, inside in itertools.product((None, True, False), repeat=2):
        tie = {"tie_word_embeddings": outside} if outside is not None else {}
        inner = {"tie_word_embeddings": inside} if inside is not None else {}
        found.append({"model_type": model_type, **tie, "text_config": section(COMPOSITES[model_type].text, **inner)})
    return found


@pytest.mark.parametrize("model_type", sorted(COMPOSITES))
def test_a_composites_language_model_is_the_references_wherever_a_tie_is_said(model_type: str) -> None:
    for document in documents(model_type):
        assert ours(document) == theirs(document), document


@pytest.mark.parametrize("model_type", sorted(COMPOSITES))
def test_a_composite_without_a_section_has_the_references_language_model(model_type: str) -> None:
    document: dict[str, Any] = {"model_type": model_type}
    try:
        expected = theirs(document)
    except Exception:
        pytest.skip("the reference has no default that it can build")
    try:
        found = ours(document)
    except pc.ParamcountError:
        assert COMPOSITES[model_type].text in NEEDED  # it builds what can never run
    else:
        assert found == expected


@pytest.mark.parametrize("text", sorted(TEXTS))
def test_a_section_may_name_another_language_model(text: str) -> None:
    for tie in (True, False):
        document = {"model_type": "llava", "tie_word_embeddings": tie, "text_config": {"model_type": text, **section_of(text)}}
        assert ours(document) == theirs(document)


def section_of(text: str) -> dict[str, Any]:
    return dict(MODEL_TYPES[text].vary.get("=", {}))


@pytest.mark.parametrize(("composite", "text"), [("internvl", "llama"), ("internvl", "gpt_oss"), ("llava_onevision", "mistral"), ("qwen2_audio", "llama"), ("paligemma", "gemma2")])
def test_another_composite_may_name_one_too(composite: str, text: str) -> None:
    document = {"model_type": composite, "text_config": {"model_type": text, "num_hidden_layers": 2}}
    assert ours(document) == theirs(document)
    assert from_config(document).reading.scope in ("model", "language_model")


def test_a_language_model_that_the_reference_would_build_otherwise_is_refused() -> None:
    with pytest.raises(pc.ParamcountError, match=r"text_config\.model_type"):
        pc.count({"model_type": "llava", "text_config": {"model_type": "phi"}})  # its own head has a bias, llava's has none
