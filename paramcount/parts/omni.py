"""Models that think in text and speak: a thinker in a section of its own, and the parts that speak beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from paramcount import flow as ops
from paramcount import sizes
from paramcount.errors import ParamcountError
from paramcount.flow import Data

THINKER = "thinker_config"
SPEAKS = "enable_audio_output"


def thinker_tie(js: sizes.ConfigJson, c: sizes.FieldValues) -> bool:
    """The thinker's tie_word_embeddings, not that of its text model."""
    return sizes.flag(sizes.find_section(js, THINKER), "tie_word_embeddings", False)


@sizes.options_first
def thinker_setting(js: Mapping[str, Any], c: Any, *names: str, default: Any) -> Any:
    """A setting in the thinker's section."""
    section = sizes.find_section(js, THINKER)
    return next((section[name] for name in names if section.get(name) is not None), default)


@sizes.options_first
def sections_are_objects(js: sizes.ConfigJson, c: sizes.FieldValues, *names: str) -> None:
    for name in names:
        if not isinstance(js.get(name, {}), Mapping | None):
            raise sizes.make_value_error(js[name], name, "a JSON object")


@sizes.options_first
def if_it_speaks(
    js: sizes.ConfigJson, c: sizes.FieldValues, section: str, part: str, *conditions: sizes.Condition
) -> None:
    """Conditions on a section that matters only if the model speaks. `part`: its field."""
    if not js.get(SPEAKS, True):
        return
    for each in conditions:
        try:
            each(sizes.find_section(js, section), c[part])
        except ParamcountError as error:
            raise error.add_block(section) from None


if TYPE_CHECKING:
    from paramcount.parts.qwen_vision import PlacedImages as Thinker
else:
    Thinker = sizes.Sizes


class Speaking(Thinker):
    """A text is read without the parts that speak. A subclass adds `speak`, and inherits from the thinker too."""

    base_model = ""
    linear_heads = ("lm_head.weight", "codec_head.weight")

    speaks: sizes.Flag = sizes.hf(SPEAKS)

    def insert_sound(c, x: Data, tokens: Data) -> Data:
        """Embedded tokens with a sound; beside them stands what the parts that speak return."""
        x = super().insert_sound(x, tokens)
        return ops.bundle(x, *c.speak()) if c.speaks else x

    def speak(c) -> tuple[Data, ...]:
        """Scores of codec tokens, samples of sound, and what lies between them."""
        raise NotImplementedError

    def check(c) -> None:
        super().check()
        if c.speaks:
            c.check_speech()

    def check_part(c, part: str, check: Callable[[Any], None]) -> None:
        """Check the sizes of a part. Raises: ParamcountError that names it."""
        try:
            check(getattr(c, part))
        except ParamcountError as error:
            raise error.add_block(part) from None

    def check_speech(c) -> None:
        """What the reference needs to build the parts that speak, and to run them."""
