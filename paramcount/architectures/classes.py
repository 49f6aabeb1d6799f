"""The reference's classes: those that an architecture declares, and the model type of a class."""

from functools import cache

from paramcount.architectures import read_index
from paramcount.declare import sizes

REFERENCE_ENDINGS = (
    "ForCausalLM", "ForConditionalGeneration", "WithLMHeadModel", "LMHeadModel", "ForMaskedLM", "Decoder", "MTModel",
)  # fmt: skip


def strip_class_ending(name: str) -> str:
    """A class name without its ending: Qwen2 for Qwen2ForCausalLM."""
    return next((name.removesuffix(ending) for ending in REFERENCE_ENDINGS if name.endswith(ending)), name)


def get_reference_class(architecture: type[sizes.Sizes]) -> str:
    """The class whose parameters an architecture declares."""
    return architecture.reference.partition(" ")[0]


def get_base_class(architecture: type[sizes.Sizes]) -> str:
    """The reference class without a head; empty if there is none."""
    if architecture.base_model is not None:
        return architecture.base_model
    return f"{strip_class_ending(get_reference_class(architecture))}Model"


@cache
def list_equivalent_classes(architecture: type[sizes.Sizes]) -> tuple[str, ...]:
    """The classes whose parameters an architecture declares, with the LM head and without."""
    names = (get_reference_class(architecture), *architecture.equivalent_classes, get_base_class(architecture))
    return tuple(name for name in names if name)


def has_lm_head(architecture: type[sizes.Sizes], cls: str) -> bool:
    """Whether a class has an LM head: ChatGLMModel, which is declared as equivalent, has one in spite of its name."""
    with_head = (get_reference_class(architecture), *architecture.equivalent_classes)
    return cls in with_head or cls != get_base_class(architecture)


def model_types() -> dict[str, str]:
    """{class: its model type} for every class that a declaration names.

    A class of several model types is the one whose own reference it is, the whole rather than a part of it. A class of
    a library comes before the same name in a publisher's own code.
    """
    return read_index("classes")


@cache
def stems() -> dict[str, str]:
    """{class without its ending: its model type} for the classes of `model_types`."""
    return {strip_class_ending(name): model_type for name, model_type in model_types().items()}
