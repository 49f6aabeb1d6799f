"""The language model of every composite: counted as the reference builds it, tensor by tensor, wherever a tie is said
and whatever it is.
"""

from __future__ import annotations

import itertools
from collections import Counter
from math import prod
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
from paramcount.architectures import architecture, list_section_types, read_index
from paramcount.counting.components import TOWERS as OTHER_PARTS
from paramcount.counting.tensors import list_unreachable
from paramcount.huggingface.config import read_config
from paramcount.huggingface.multimodal import find_sections
from tests.model_types import MODEL_TYPES
from tests.oracle import differential, flaws

Shapes = Counter[tuple[int, ...]]
SECTIONS = {name: find_sections({"model_type": name}) for name in read_index("multimodal")}
# Those that the library has; tests/test_remote_models.py has the others.
SHIPPED = sorted(
    name for name in SECTIONS if (" of " not in architecture(name).reference) and differential.can_be_built(name)
)
# Without these a language model of its type could not run.
NEEDED: dict[str, dict[str, Any]] = {
    "glm4v_text": {"rope_parameters": {"partial_rotary_factor": 0.5}},
    "glm4v_moe_text": {"head_dim": 128},
    "qwen2_vl_text": {"num_attention_heads": 32, "hidden_size": 4096},
    "qwen3_omni_moe_text": {"head_dim": 128},
    "qwen2_5_vl_text": {"num_attention_heads": 32, "hidden_size": 4096},
    "hunyuan_vl_text": MODEL_TYPES["hunyuan_vl_text"].vary["="],
    "cohere_compass_text": MODEL_TYPES["cohere_compass_text"].vary["="],
}
# Without these another part could not be built.
AROUND: dict[str, dict[str, Any]] = {"aya_vision": {"vision_config": {"num_attention_heads": 16, "hidden_size": 64}}}
# Parts that have to fit a language model of the default sizes.
FITTING: dict[str, dict[str, Any]] = {
    "fun_asr_nano": {"adaptor_config": {"hidden_size": 4096, "intermediate_size": 1024}}
}


def find_class(model_type: str) -> str:
    from transformers.models.auto import modeling_auto as auto

    names = {
        **auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
        **auto.MODEL_FOR_PRETRAINING_MAPPING_NAMES,
        **auto.MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES,
        **auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
    }
    return str(names[model_type])


def reference_shapes(document: dict[str, Any]) -> Shapes:
    """What the reference's language model would be saved as: all but towers and projectors, tied ones once."""
    model = differential.build_model(document, find_class(document["model_type"]))
    modules = (model.get_decoder(), getattr(model, "projection_head", None), model.get_output_embeddings())
    own = {id(p) for module in modules if module is not None for p in module.parameters()}
    spoken = {name: p for name, p in model.named_parameters() if id(p) in own}
    return Counter(tuple(p.shape) for p in flaws.revert_names(model, spoken).values())


def declared_shapes(document: dict[str, Any]) -> Shapes:
    count = pc.count(document)
    found: Shapes = Counter()
    for tensor in count.tensors:
        if (
            tensor.part not in (*OTHER_PARTS, "mtp")
            and tensor.role == "parameter"
            and tensor.tied_to is None
            and 0 not in tensor.shape
        ):
            found[tensor.shape] += tensor.copies
    assert sum_values(found) == count.language_model
    for tensor, _ in list_unreachable(count.sizes):
        if tensor.part not in OTHER_PARTS:
            found[tensor.shape] += tensor.copies
    return found


def complete(document: dict[str, Any]) -> dict[str, Any]:
    """With the keys without which the reference could not run."""
    facts = MODEL_TYPES.get(document["model_type"])
    fitting = FITTING.get(document["model_type"], {}) if "text_config" in document else {}
    return {**fitting, **(facts.vary.get("=", {}) if facts else {}), **document}


def assert_same_shapes(document: dict[str, Any]) -> None:
    document = complete(document)
    has, wants = declared_shapes(document), reference_shapes(document)
    assert sum_values(has) == sum_values(wants)
    assert has == wants


def sum_values(shapes: Shapes) -> int:
    return sum(prod(shape) * n for shape, n in shapes.items())


def make_section(model_type: str, **more: Any) -> dict[str, Any]:
    """A text_config with few layers."""
    return {"model_type": model_type, "num_hidden_layers": 2, **NEEDED.get(model_type, {}), **more}


def list_documents(model_type: str) -> list[dict[str, Any]]:
    """Every way to say a tie, outside the section and inside, or not at all."""
    found = []
    for outside, inside in itertools.product((None, True, False), repeat=2):
        tie = {"tie_word_embeddings": outside} if outside is not None else {}
        inner = {"tie_word_embeddings": inside} if inside is not None else {}
        found.append(
            {
                "model_type": model_type,
                **AROUND.get(model_type, {}),
                **tie,
                "text_config": make_section(SECTIONS[model_type].default_type, **inner),
            }
        )
    return found


@pytest.mark.parametrize("model_type", SHIPPED)
def test_the_language_model_of_a_multimodal_config_matches_the_reference_wherever_the_tie_is_given(
    model_type: str,
) -> None:
    for document in list_documents(model_type):
        if SECTIONS[model_type].tie_rule == "outside" and document.get("tie_word_embeddings") is False:
            with pytest.raises(pc.ParamcountError, match="tie_word_embeddings"):
                pc.count(document)  # the sizes of its head are not given outside
            head = {"vocab_size": 96, "hidden_size": 64}
            document = (
                document
                | head
                | {"text_config": document["text_config"] | head | {"num_attention_heads": 4, "num_key_value_heads": 2}}
            )
        assert_same_shapes(document)


@pytest.mark.parametrize("model_type", SHIPPED)
def test_a_composite_without_a_section_has_the_references_language_model(model_type: str) -> None:
    document: dict[str, Any] = {"model_type": model_type, **AROUND.get(model_type, {})}
    unrunnable = {
        "glm4v_text": "mrope_section",
        "glm4v_moe_text": "mrope_section",
        "qwen3_omni_moe_text": "73 is odd",
        "cohere_compass_text": "rope_parameters",
    }
    if wrong := unrunnable.get(SECTIONS[model_type].default_type):  # the reference builds it, but it could never run
        with pytest.raises(pc.ParamcountError, match=wrong):
            pc.count(document)
    else:
        assert_same_shapes(document)


@pytest.mark.parametrize("model_type", SHIPPED)
def test_a_section_without_a_model_type_is_of_the_usual_one(model_type: str) -> None:
    document: dict[str, Any] = {
        "model_type": model_type,
        **AROUND.get(model_type, {}),
        "text_config": make_section(SECTIONS[model_type].default_type),
    }
    del document["text_config"]["model_type"]
    if SECTIONS[model_type].needs_model_type:
        with pytest.raises(pc.ParamcountError, match=r"text_config\.model_type is missing"):
            pc.count(document)
    else:
        assert_same_shapes(document)


@pytest.mark.parametrize("section", [None, {"num_hidden_layers": 2}], ids=["missing", "partial"])
@pytest.mark.parametrize("model_type", SHIPPED)
def test_a_missing_or_partial_section_has_the_settings_of_the_reference(
    model_type: str, section: dict[str, Any] | None
) -> None:
    """They are those of the section as the reference completes it."""
    composite = SECTIONS[model_type]
    given = {} if section is None else {composite.section: section | {"model_type": composite.default_type}}
    document = complete({"model_type": model_type, **AROUND.get(model_type, {}), **given})
    try:
        config = differential.make_config(document, find_class(model_type))
        ours = read_language_settings(document)
    except (pc.ParamcountError, ValueError) as error:
        pytest.skip(f"cannot be read: {str(error)[:80]}")
    whole = getattr(config, composite.section).to_dict()
    assert ours == read_language_settings({**document, composite.section: whole})


def read_language_settings(document: dict[str, Any]) -> dict[str, Any]:
    sizes = pc.load(document).sizes
    return dict(getattr(sizes, "language", sizes).settings)


@pytest.mark.parametrize(
    "document",
    [
        *[
            {"model_type": name, **AROUND.get(name, {}), "text_config": make_section(SECTIONS[name].default_type)}
            for name in SHIPPED
        ],
        *[
            {"model_type": "llava", "text_config": make_section(name)}
            for name in ("gemma4_text", "gemma4_unified_text", "dots3_note_text")
        ],
    ],
    ids=lambda document: f"{document['model_type']}-{document['text_config']['model_type']}",
)
def test_a_composite_as_the_reference_saves_it_is_the_same(document: dict[str, Any], tmp_path: Path) -> None:
    cls_name = find_class(document["model_type"])
    config = differential.make_config(complete(document), cls_name)
    assert_same_shapes(differential.save_config(config, cls_name, tmp_path))


@pytest.mark.parametrize("model_type", [name for name in SHIPPED if SECTIONS[name].is_flat])
def test_keys_without_a_section_are_the_language_models(model_type: str) -> None:
    keys = make_section(SECTIONS[model_type].default_type)
    for tie in ({}, {"tie_word_embeddings": True}, {"tie_word_embeddings": False}):
        assert_same_shapes({**keys, "model_type": model_type, **tie})


def test_an_older_name_of_a_language_model_is_known() -> None:
    assert_same_shapes(
        {"model_type": "exaone4_5", "text_config": {"model_type": "exaone4_5_text", "num_hidden_layers": 2}}
    )


@pytest.mark.parametrize("text", list_section_types())
def test_a_section_may_name_another_language_model(text: str) -> None:
    for tie in (True, False):
        document = {
            "model_type": "llava",
            "tie_word_embeddings": tie,
            "text_config": {"model_type": text, **MODEL_TYPES[text].vary.get("=", {})},
        }
        assert_same_shapes(document)


@pytest.mark.parametrize(
    ("composite", "text"),
    [
        ("internvl", "llama"),
        ("internvl", "gpt_oss"),
        ("llava_onevision", "mistral"),
        ("qwen2_audio", "llama"),
        ("paligemma", "gemma2"),
    ],
)
def test_another_composite_may_name_one_too(composite: str, text: str) -> None:
    document = {"model_type": composite, "text_config": {"model_type": text, "num_hidden_layers": 2}}
    assert_same_shapes(document)
    assert read_config(document).reading.scope in ("model", "language_model")


def test_a_language_model_that_the_reference_builds_differently_is_an_error() -> None:
    with pytest.raises(pc.ParamcountError, match=r"text_config\.model_type"):
        pc.count(
            {"model_type": "llava", "text_config": {"model_type": "phi"}}
        )  # its own head has a bias, llava's has none
