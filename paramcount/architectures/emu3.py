"""Emu3: the Llama layout over one token embedding of words and of the codes that a VQ-VAE finds in an image."""

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, describe_value

IMAGE_WORD = "<|visual token"  # start of the words for codes, which end with the number of a code and "|>"
VQ = "vqmodel."


def words_are_known(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if not isinstance(words := js.get("vocabulary_map"), Mapping):
        problem = "is missing" if words is None else f"= {describe_value(words)}"
        raise ParamcountError(problem, where="vocabulary_map", expected="the token id of each word")


def code_ids(config: Mapping[str, Any], c: Any) -> tuple[int, ...]:
    """The token id of each code, from 0 on; 0 if it has none."""
    found = {int(word[-8:-2]): id for word, id in config["vocabulary_map"].items() if word.startswith(IMAGE_WORD)}
    return tuple(found.get(code, 0) for code in range(max(found, default=-1) + 1))


class Emu3Text(parts.AttentionDecoder):
    """Source: Emu3DecoderLayer of the reference, modeling_emu3.py; arXiv:2409.18869."""

    reference = "Emu3ForCausalLM"
    model_types = ("emu3_text_model",)
    base_model = "Emu3TextModel"
    rotated = "d_head"
    is_section_type = False
    conditions = (sizes.padding_in_table(151643), sizes.not_null("pad_token_id"))

    n_kv_heads: sizes.Positive = sizes.hf()
    d_ff: sizes.Natural = sizes.hf()
    attention_bias: sizes.Flag = sizes.hf(absent=False, null=False)
    mlp_bias: sizes.Flag = sizes.hf(absent=False, null=False)
    tie_word_embeddings: sizes.Flag = sizes.hf()

    rope = sizes.rotary(1_000_000, 9216)

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.attention_bias)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"), bias=c.mlp_bias)


class Emu3TextOf(Emu3Text):
    """The language model of a config that says how images become tokens too."""

    model_types = ("emu3.Emu3ForCausalLM",)

    base_model = ""
    section = "text_config"
    unused_keys: ClassVar[tuple[str, ...]] = ("/vq_config",)


class Emu3(Emu3TextOf):
    """An image is written into the tokens, each row of its codes with a token at its end. A text is read without what
    decodes codes to an image.

    Source: Emu3ForConditionalGeneration of the reference.
    """

    reference = "Emu3ForConditionalGeneration"
    reference_names = {"text_model.model.": "model.text_model.", "text_model.lm_head.": "lm_head.", "": "model."}
    base_model = "Emu3Model"
    unused_keys = ()
    root_conditions = (words_are_known,)
    prefix = "text_model.model."
    head_name = "text_model.lm_head"

    tie_word_embeddings: sizes.Flag = sizes.hf("/tie_word_embeddings", absent=False)
    codec: parts.EmuVqVae

    image_token = sizes.setting(default=lambda config, c: config["vocabulary_map"]["<image>"], at_root=True)
    row_end = sizes.setting(default=lambda config, c: config["vocabulary_map"]["<|extra_200|>"], at_root=True)
    code_ids = sizes.setting(default=code_ids, at_root=True)

    def forward(c, tokens: Data) -> Data:
        ids = ops.end_rows_of_ids(ops.block(c.see(), VQ, c.find_ids, part="vision"), c.row_end)
        return c.decode(c.embed(ops.insert(tokens, tokens, ops.bundle(ids, c.draw()), c.image_token)))

    def see(c) -> Data:
        return ops.given("pixels", c.codec.n_channels, "height", "width")

    def find_ids(c, pixels: Data) -> Data:
        return c.codec.quantise(c.codec.encode(pixels), c.code_ids)

    def draw(c) -> Data:
        """Codes to an image."""
        codec, name = c.codec, VQ + "decoder."
        codes = ops.given("codes of a written image", "image")
        quanta = ops.block(codes, VQ, lambda codes: codec.find_quanta(codes, VQ), part="vision")
        x = ops.block(quanta, VQ, codec.find_latents, part="vision")
        x = ops.block(x, name, codec.stretch, part="vision")
        quanta = ops.tie_weights(ops.block(quanta, name, codec.stretch, part="vision"), name)
        return ops.block(x, name, codec.grow, reads=(quanta,), part="vision")
