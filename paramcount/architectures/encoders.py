"""The parts of a multimodal model whose class differs from model to model: the vision encoders that a config.json can
name, and the language model, which can be any architecture.
"""

from __future__ import annotations

from importlib import import_module

from paramcount.architectures import architecture, read_index
from paramcount.declare import sizes
from paramcount.errors import ParamcountError, describe_value, find_nearest, list_names

# {model type of a vision encoder: "module.Class" of paramcount.parts}
ENCODERS: dict[str, str] = read_index("encoders")
SECTION_ENCODERS: tuple[str, ...] = tuple(read_index("section_encoders"))  # those that a section may have


def load_encoder(name: str) -> type[sizes.Sizes]:
    """The class of a vision encoder by its model type, one of `ENCODERS`."""
    module, cls = ENCODERS[name].split(".")
    return getattr(import_module(f"paramcount.parts.{module}"), cls)


def find_part(kind: type[sizes.Sizes], name: object) -> type[sizes.Sizes]:
    """The class of a language model (`kind` is `Sizes`) or of a vision encoder (`Tower`) by its model type.

    >>> from paramcount.sizes import Tower
    >>> find_part(Tower, "siglip_vision_model").__name__
    'SiglipVision'

    Raises: ParamcountError for an unknown model type.
    """
    if kind is sizes.Sizes:
        return architecture(name)
    if not isinstance(name, str) or name not in ENCODERS:
        raise ParamcountError(
            f"= {describe_value(name)}",
            expected=list_names(ENCODERS, str(name)),
            nearest=find_nearest(str(name), ENCODERS),
        )
    return load_encoder(name)
