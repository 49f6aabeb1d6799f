"""wav2vec 2.0 with Conformer layers, whose attention knows positions, relative or rotary."""

from typing import Any, ClassVar

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError


def half_of_head(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    return int((c["d_head"] + 1) // 2)


def spells(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """Only the class for CTC needs a vocabulary."""
    classes = js.get("architectures") or ["ForCTC"]
    if classes[0].endswith("ForCTC") and not c["vocab_size"]:
        raise ParamcountError("is missing", where="vocab_size", expected="a positive integer")


class ConformerOfWaves(parts.AdaptedWaves, parts.RelativeSpeechEncoder):
    """The sizes of Conformer layers under the names that other encoders of sounds have."""

    n_speech_layers = n_adapter_zeros = n_mels = sizes.constant(None)
    n_speech_heads: ClassVar[Any] = property(lambda c: c.n_heads)  # type: ignore[misc]
    d_speech_head: ClassVar[Any] = property(lambda c: c.d_head)  # type: ignore[misc]
    d_speech_ff: ClassVar[Any] = property(lambda c: c.d_ff)  # type: ignore[misc]
    conditions: ClassVar[tuple[sizes.Condition, ...]] = (spells,)

    vocab_size: sizes.Natural = sizes.hf(absent=0, null=0)
    n_frequencies: sizes.Natural = sizes.derived(half_of_head, late=True)

    speech_activation: ClassVar = sizes.setting("hidden_act", usual="swish")

    def share(c, x: Data) -> tuple[Data, ...]:
        if c.has_rotary:
            name = "embed_positions.inv_freq"
            return (ops.stored_sinusoids(x, name, c.d_head, c.n_frequencies, c.speech_base),)
        return c.share_positions(x)

    def layer(c, x: Data, *shared: Data) -> Data:
        return c.conformer_layer(x, *shared)

    def check(c) -> None:
        super().check()
        kinds = [name for name in ("has_relative", "has_rotary", "has_distances") if getattr(c, name, False)]
        if len(kinds) > 1:
            raise ParamcountError("= true", where=FieldName(kinds[1]), expected=f"false, because {kinds[0]} = true")
        if c.n_layers and c.d_conv % 2 == 0:
            raise sizes.make_value_error(c.d_conv, FieldName("d_conv"), "an odd number")
        size = "d_model" if c.has_relative else "d_head"
        if (c.has_relative or c.has_rotary) and getattr(c, size) % 2:
            raise ParamcountError(f"= {getattr(c, size)}", where=FieldName(size), expected="an even number")


class Wav2Vec2Conformer(ConformerOfWaves, parts.PlacedByConvolution):
    """Source: arXiv:2010.05171, section 2; modeling_wav2vec2_conformer.py of the reference."""

    reference = "Wav2Vec2ConformerForCTC"
    model_types = ("wav2vec2-conformer",)
    base_model = "Wav2Vec2ConformerModel"
    task_head_prefix = "Wav2Vec2Conformer"
    task_heads = parts.SOUND_HEADS | {
        "ForPreTraining": parts.TaskHead(parts.compare_with_codes, parts.CODES, (parts.states_are_as_wide,))
    }
    prefix = "wav2vec2_conformer."
    unused_keys = (*parts.HEAD_KEYS, "max_source_positions")
    conditions = (spells, parts.KNOWN_NORMS)

    def transform(c, x: Data) -> Data:
        return c.norm(c.run_layers(x), "layer_norm")

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        x = ops.given("states", "frames", c.d_model)
        placed = ops.block(x, c.prefix + "encoder.", c.place, part="encoder")
        return (ops.Unreachable(placed, "no layer reads the positions that a convolution makes"),)
