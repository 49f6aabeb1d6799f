"""Gemma 3: Gemma 2 with a norm on every query and key head; five of six layers attend to a sliding window.

From 4B on with a SigLIP encoder, whose patches are pooled, normalized and projected to image tokens.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from paramcount.architectures.gemma2 import Gemma2, score_scale
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError


def visible_tokens(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """The tokens that a token sees, itself included; if it sees later ones: on either side, half of them."""
    n = js.get("sliding_window", 4096)
    if type(n) is not int or n < 1:
        raise sizes.make_value_error(n, "sliding_window", "a positive integer")
    return n // 2 if js.get("use_bidirectional_attention") else n


class Gemma3Text(Gemma2):
    """Source: arXiv:2503.19786, section 2; for EmbeddingGemma, whose tokens see later ones, arXiv:2509.20354."""

    reference = "Gemma3ForCausalLM"
    model_types = ("gemma3_text",)
    gguf = "gemma3 gemma-embedding"
    is_section_type = True
    task_head_prefix = "Gemma3Text"
    task_heads = "SCORED"
    base_model = "Gemma3TextModel"

    layer_types: sizes.Words = sizes.hf(absent=sizes.full_every_stated(6), null=sizes.ABSENT)
    bidirectional: sizes.Flag = sizes.hf("use_bidirectional_attention", null=False, unstated=False)
    window: sizes.Natural = sizes.derived(visible_tokens)

    rope = sizes.filled_rotary("full_attention", 1_000_000, 131072)
    local_rope = sizes.filled_rotary("sliding_attention", 10_000, 131072, key="rope_local_base_freq", scaled=False)
    logit_cap = sizes.setting("final_logit_softcapping", default=None)

    norms_heads = True

    def attend(c, x: Data, kind: str) -> Data:
        angles, window = (c.local_rope, c.window) if kind == sizes.SLIDING[0] else (c.rope, None)
        prepare = c.prepare_by(partial(ops.rope, settings=angles))
        if not c.bidirectional:
            return c.self_attention(x, bias=c.attention_bias, prepare=prepare, window=window)
        mask = None if window is None else ops.Window(window + 1, window)
        mix = partial(ops.attend, mask=mask, scale=c.attention_scale)
        return c.self_attention(x, bias=c.attention_bias, prepare=prepare, mix=mix)

    def check(c) -> None:
        super().check()
        if c.window < 1 and not c.bidirectional:
            raise ParamcountError(f"= {c.window}", where=FieldName("window"), expected="a positive integer")

    def cap(c, logits: Data) -> Data:
        return ops.soft_cap(logits, c.logit_cap) if ops.is_known(c.logit_cap) else logits  # no released model has one


Gemma3TextOf = sizes.in_section(Gemma3Text, "gemma3.Gemma3ForCausalLM", gguf="gemma3")


def causal_scale(config: Mapping[str, Any], c: Any) -> float:
    """The reference makes masks of a causal model, but its attention may leave them out."""
    if c.bidirectional:
        raise ValueError("the mask depends on the implementation of attention")
    return score_scale(config, c)


class Gemma3(parts.SeeingDecoder, Gemma3Text):
    """Source: arXiv:2503.19786, section 2; the encoder arXiv:2303.15343. Image tokens attend to those before them, as
    in the reference without token_type_ids.
    """

    reference = "Gemma3ForConditionalGeneration"
    gguf = "gemma3"
    task_heads = "SCORED"
    reference_names = parts.FORMER_PREFIXES
    prefix = "language_model.model."
    head_name = "language_model.lm_head"
    base_model = "Gemma3Model"

    tie_word_embeddings: sizes.Flag = sizes.hf("/tie_word_embeddings", absent=True, null=False)
    n_image_tokens: sizes.Positive = sizes.hf("/mm_tokens_per_image", absent=256)
    vision: parts.SiglipVision

    attention_scale = sizes.setting(default=causal_scale)
    image_token = sizes.setting("/image_token_index", "/image_token_id", default=262144)

    def project(c, x: Data) -> Data:
        return project(c, x)


def project(c: Any, x: Data) -> Data:
    """Means of squares of patches to vectors of the language model's size."""
    x = ops.mean_of_squares(x, c.n_image_tokens)
    x = ops.rms_norm(x, "mm_soft_emb_norm", c.vision.norm_eps, offset=1.0)
    return ops.fused(x, "mm_input_projection_weight", {"projector": c.d_model}, transposed=True, suffixes=("", ""))[0]
