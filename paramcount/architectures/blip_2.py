"""BLIP-2 and InstructBLIP: a vision encoder, a Q-Former that asks it, one matrix and a language model."""

from typing import Any, ClassVar

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, describe_value

BLIP_LANGUAGES = ("llama", "opt", "t5")


@sizes.options_first
def token_given(js: sizes.ConfigJson, c: sizes.FieldValues, *keys: str) -> None:
    """The reference looks for the tokens that stand for an image in every text, and cannot without their id."""
    found = next((js[key] for key in keys if js.get(key) is not None), None)
    if type(found) is not int:
        raise ParamcountError(
            "is missing" if found is None else f"= {describe_value(found)}", where=keys[-1], expected="a token id"
        )


class Blip2Vision(parts.BlipVision):
    """The sizes of the encoder. Keys have no bias when they are trained; the reference stores one for them."""

    config_class = "Blip2VisionConfig"

    qkv_bias: sizes.Flag = sizes.hf("qkv_bias")


class Blip2(parts.Composite):
    """Source: arXiv:2301.12597, section 3."""

    reference = "Blip2ForConditionalGeneration"
    model_types = ("blip-2",)
    sections = sizes.Sections("opt", tie_rule="text", supported_types=BLIP_LANGUAGES)
    base_model: ClassVar[str | None] = ""  # Blip2Model has the LM head, too
    conditions: ClassVar[tuple[sizes.Condition, ...]] = (token_given("image_token_id", "image_token_index"),)
    float32_if_float16: ClassVar[tuple[str, ...]] = ("query_tokens", "qformer")
    moved = None

    vision: Blip2Vision
    qformer: parts.Blip2QFormer
    language: sizes.Sizes
    n_queries: sizes.Positive = sizes.hf("num_query_tokens")

    image_token = sizes.setting("image_token_id", "image_token_index", default=None)

    def list_inputs(c) -> parts.Inputs:
        return ((c.see(), c.image_token),)

    def see(c) -> Data:
        """An image to n_queries vectors of the language model's size."""
        image = ops.block(c.vision.image(), "vision_model.", c.vision.forward, part="vision")
        return ops.block(image, "", c.project, reads=c.questions(), part="projector")

    def questions(c) -> tuple[Data, ...]:
        """What the Q-Former reads besides the image."""
        return ()

    def project(c: Any, image: Data, *text: Data) -> Data:
        x = parts.fill_queries(c, image, *text)
        return ops.linear(x, "language_projection", "projector", c.language.d_model, bias=True)

    def check(c: Any) -> None:
        d_token = getattr(c.language, "d_token", None)
        if d_token is not None and d_token > c.language.d_model:
            raise ParamcountError(
                f"= {d_token}, but an image has vectors of {c.language.d_model} values",
                where="text_config.word_embed_proj_dim",
                expected=f"at most {c.language.d_model}",
            )

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        if not c.qformer.has_text_mlp:
            return ()
        x = ops.given("queries", c.n_queries, c.qformer.d_model)
        idle = ops.block(x, "qformer.", c.qformer.read_text, part="projector")
        return (ops.Unreachable(idle, "the Q-Former reads no text"),)


class InstructBlip(Blip2):
    """The Q-Former reads the instruction too. Source: arXiv:2305.06500, section 2.3."""

    reference = "InstructBlipForConditionalGeneration"
    model_types = ("instructblip",)
    sections = sizes.Sections("opt", tie_rule="text", supported_types=BLIP_LANGUAGES)
    base_model = None
    float32_if_float16 = ("query_tokens",)

    qformer: parts.TextQFormer  # type: ignore[assignment]

    def questions(c) -> tuple[Data, ...]:
        return (ops.given("instruction tokens", "instruction"),)

    unreachable = sizes.Sizes.unreachable


class InstructBlipVideo(InstructBlip):
    """Each frame of a video is an image. Source: modeling_instructblipvideo.py of the reference."""

    reference = "InstructBlipVideoForConditionalGeneration"
    model_types = ("instructblipvideo",)
    sections = sizes.Sections("opt", tie_rule="text", supported_types=BLIP_LANGUAGES)
    conditions = (token_given("video_token_id", "video_token_index"),)

    image_token = sizes.setting("video_token_id", "video_token_index", default=None)
