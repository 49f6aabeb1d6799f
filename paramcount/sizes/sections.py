"""How the reference reads the sections of a multimodal config.json: its language model and its other parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from paramcount.sizes.fields import Sizes


class Sections(NamedTuple):
    """How the reference reads the language model of a multimodal config, and which vision encoder it takes."""

    default_type: str  # the language model's type if its section has no model_type
    section: str = "text_config"  # the section of the language model
    classes: Mapping[str, str] = {}  # {class: model type}, if the section's `architectures` decides the type
    versions: Mapping[str, str] = {}  # {`version`: model type}, if that key decides the type
    tie_rule: str = "top"  # which tie_word_embeddings counts: a key of TIE_RULES
    default_tie: bool = False  # the top-level tie_word_embeddings if it is missing
    ignores_model_type: bool = False  # the section's own model_type is ignored
    is_flat: bool = False  # the language model's keys are at the top level if there is no section
    default_section: Mapping[str, Any] = {}  # the section if it is missing
    fills_missing_keys: bool = False  # `default_section` also supplies single missing keys
    old_type: str = ""  # an older name of `default_type`
    needs_model_type: bool = False  # the section must have a model_type
    other_sections: tuple[str, ...] = ("vision_config",)  # the sections of the other parts
    supported_types: tuple[str, ...] = ()  # the valid types of the language model, if not all with `is_section_type`
    default_encoder: str = ""  # the vision encoder's type if its section has no model_type
    encoders: tuple[str, ...] = ()  # the valid types of the vision encoder, if not all with `is_section_type`
    has_old_tie_key: bool = False  # at the top level, where it counts if both are there
    default_encoder_section: Mapping[str, Any] = {}  # the vision encoder's section if it is missing


# Where the reference reads tie_word_embeddings.
TIE_RULES = {
    "top": "at the top level",
    "text": "in the section of the language model",
    "either": "at the top level or in the section",
    "text unless top": "at the top level; in the section if it is missing or null there",
    "outside": "at the top level, with the sizes of the LM head",
    "never": "nowhere: the LM head is never tied",
}


def in_section(architecture: type[Sizes], model_type: str, section: str = "text_config", **facts: Any) -> type[Sizes]:
    """The architecture as the language model of a config that has other parts too, if that names the class.

    `model_type`: with the class behind it.
    """
    own = {"model_types": (model_type,), "section": section, "__module__": architecture.__module__, **facts}
    make: Any = type(architecture)
    found: type[Sizes] = make(architecture.__name__ + "Of", (architecture,), {**own, "__doc__": architecture.__doc__})
    return found
