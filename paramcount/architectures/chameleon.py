"""Chameleon: Llama's layers over one token embedding of words and of the codes that a VQ-VAE finds in an image."""

from collections.abc import Mapping
from itertools import count, takewhile
from typing import Any

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, describe_value, make_printable

IMAGE_WORD = "IMGIMG"  # start of the words for codes, which continue with digits as letters and end with "Z"
DIGITS = str.maketrans("ABCDEFGHIJ", "0123456789")


def words_are_numbered(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if not isinstance(words := js.get("vocabulary_map"), Mapping):
        problem = "is missing" if words is None else f"= {describe_value(words)}"
        raise ParamcountError(problem, where="vocabulary_map", expected="the token id of each word")
    n = c["vocab_size"]
    for word, id in image_words(js).items():
        if type(id) is not int or not -n <= id < n:
            raise sizes.make_value_error(id, f"vocabulary_map.{make_printable(word, 40)}", f"0 to {n - 1}")


def image_words(config: Mapping[str, Any]) -> dict[str, Any]:
    """The token ids of the words that stand for codes."""
    return {word: id for word, id in config["vocabulary_map"].items() if word.startswith(IMAGE_WORD)}


def code_ids(config: Mapping[str, Any], c: Any) -> tuple[int, ...]:
    """The token id of each code, from 0 on."""
    found = {
        word[len(IMAGE_WORD) : -1].translate(DIGITS).lstrip("0") or "0": id for word, id in image_words(config).items()
    }
    return tuple(found[str(code)] for code in takewhile(lambda code: str(code) in found, count()))


def levels_with_attention(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """Those whose images have one of the resolutions."""
    sides, side = js.get("attn_resolutions") or (), js.get("resolution", 512)
    if js.get("attn_type", "vanilla") != "vanilla":
        return ()
    return tuple(level for level in range(len(c["multipliers"])) if side // 2**level in sides)


class ChameleonVqVae(parts.VqVae):
    """Source: ChameleonVQVAE of the reference."""

    config_class = "ChameleonVQVAEConfig"

    attended: sizes.Indices = sizes.derived(levels_with_attention)
    attends_last: sizes.Flag = sizes.derived(lambda js, c: js.get("attn_type", "vanilla") == "vanilla")

    def attention_levels(c) -> tuple[int, ...]:
        return c.attended

    def has_attention(c) -> bool:
        return c.attends_last


class Chameleon(parts.AttentionDecoder):
    """Source: arXiv:2405.09818, sections 2.1 and 2.3; modeling_chameleon.py of the reference."""

    reference = "ChameleonForConditionalGeneration"
    rotated = "d_head"
    is_section_type = False
    conditions = (words_are_numbered, sizes.padding_in_table(None), sizes.angles_fit_heads)
    unused_keys = ("model_parallel_size",)

    n_kv_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf()
    attention_bias: sizes.Flag = sizes.hf(null=False)
    mlp_bias: sizes.Flag = sizes.hf()
    post_norm: sizes.Flag = sizes.hf("swin_norm", null=False)
    tie_word_embeddings: sizes.Flag = sizes.hf()

    codec: ChameleonVqVae

    image_token = sizes.setting(default=lambda config, c: config["vocabulary_map"].get("<image>"))
    code_ids = sizes.setting(default=code_ids)
    masked_ids = sizes.setting(default=lambda config, c: tuple(sorted(image_words(config).values())))

    def forward(c, tokens: Data) -> Data:
        codec = c.codec
        pixels = ops.given("pixels", codec.n_channels, "height", "width")
        ids = ops.block(pixels, "model.vqmodel.", lambda x: codec.quantise(codec.encode(x), c.code_ids), part="vision")
        return c.decode(c.embed(ops.insert(tokens, tokens, ids, c.image_token)))

    def head(c, x: Data) -> Data:
        """The codes of images are never written."""
        logits = super().head(x)
        return ops.mask_tokens(logits, c.masked_ids) if c.masked_ids else logits

    def layer(c, x: Data) -> Data:
        if c.post_norm:
            x = x + c.norm(c.attend(x), "input_layernorm")
            return x + c.norm(c.gated_mlp(x, bias=c.mlp_bias), "post_attention_layernorm")
        x = x + c.attend(c.norm(x, "input_layernorm"))
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"), bias=c.mlp_bias)

    def attend(c, x: Data) -> Data:
        return c.self_attention(x, bias=c.attention_bias, prepare=c.prepare)

    def prepare(c, q: Data, k: Data) -> tuple[Data, Data]:
        """A norm with weights of its own for each head, then the rotation."""
        q = ops.layer_norm_per_head(q, "self_attn.q_norm", 1e-5, bias=True)
        k = ops.layer_norm_per_head(k, "self_attn.k_norm", 1e-5, bias=True)
        return ops.rope(q, c.rope), ops.rope(k, c.rope)

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        codes = ops.given("codes", "image", c.codec.d_code)
        unread = ops.block(
            codes,
            "model.vqmodel.",
            lambda x: parts.convolve_one(x, "post_quant_conv", "mixer", c.codec.d_latent),
            part="vision",
        )
        return (ops.Unreachable(unread, "no codes are decoded to an image"),)

    def check(c) -> None:
        sizes.check_heads_fill(c)
        sizes.check_rotated_in_pairs(c, "d_head")
