"""Qwen 3 Omni: the thinker is Qwen 3 VL of experts that also hears; the talker writes the first code of each frame of
sound, a small model the others, and a vocoder turns them into samples.
"""

from functools import partial, reduce
from typing import Any, ClassVar

from paramcount.architectures.qwen2_moe import moe
from paramcount.architectures.qwen3_moe import Qwen3OmniMoeText
from paramcount.architectures.qwen3_vl import Qwen3VL, Qwen3VLVision
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError


class Qwen3OmniVision(Qwen3VLVision):
    config_class = "Qwen3OmniMoeVisionEncoderConfig"
    merger_names = ("ln_q", "mlp.0", "mlp.2")
    deep_mergers = "merger_list"


class Qwen3OmniMoeThinker(Qwen3VL):
    """Source: arXiv:2509.17765, section 2; modeling_qwen3_omni_moe.py of the reference."""

    reference = "Qwen3OmniMoeThinkerForConditionalGeneration"
    model_types = ("qwen3_omni_moe_thinker",)
    sections = sizes.Sections(
        "qwen3_omni_moe_text", ignores_model_type=True, other_sections=("vision_config", "audio_config")
    )
    reference_names = {"model.": "model.language_model.", "lm_head.": "lm_head.", "": "model."}
    adapts_experts = True
    encoder_prefix = "visual."
    audio_prefix: ClassVar[str] = "audio_tower."
    moved = ("model.", "model.")

    vision: Qwen3OmniVision
    audio: parts.Qwen3OmniEars

    audio_token = sizes.setting("audio_token_id")

    def insert_sound(c: Any, x: Data, tokens: Data) -> Data:
        return parts.insert_sound(c, x, tokens, c.audio_prefix)


class Qwen3OmniThinkerText(Qwen3OmniMoeText):
    config_class = "Qwen3OmniMoeTextConfig"
    section = "thinker_config.text_config"

    tie_word_embeddings: sizes.Flag = sizes.derived(parts.thinker_tie, at_root=True)


class Qwen3OmniThinkerVision(Qwen3OmniVision):
    config_class = "Qwen3OmniMoeVisionEncoderConfig"
    section = "thinker_config.vision_config"


class Qwen3OmniThinkerEars(parts.Qwen3OmniEars):
    config_class = "Qwen3OmniMoeAudioEncoderConfig"
    section = "thinker_config.audio_config"


class SpeechDecoder(parts.AttentionDecoder):
    """Qwen 3's layers over codes. The text costs no memory of theirs, so none is cached here."""

    rotated = "d_head"

    attention_bias: sizes.Flag = sizes.hf()

    norms_heads = True

    def layer(c, x: Data) -> Data:
        h = c.norm(x, "input_layernorm")
        x = x + c.self_attention(h, bias=c.attention_bias, mix=partial(ops.attend, mask=ops.Causal()))
        return x + c.feed_forward(c.norm(x, "post_attention_layernorm"))

    def feed_forward(c, x: Data) -> Data:
        return c.gated_mlp(x)


def is_tied(js: sizes.ConfigJson, c: sizes.FieldValues) -> bool:
    return sizes.flag(js.get("talker_config") or {}, "tie_word_embeddings", False)


class Qwen3OmniTalker(SpeechDecoder):
    """All its layers have experts. `d_ff`: of the MLPs that read the thinker. Source: Qwen3OmniMoeTalkerModel of the
    reference.
    """

    config_class = "Qwen3OmniMoeTalkerTextConfig"

    section = "talker_config.text_config"

    n_kv_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.hf(absent=sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf()
    d_expert: sizes.Natural = sizes.hf()
    d_shared_expert: sizes.Natural = sizes.hf("shared_expert_intermediate_size", absent=1)
    n_routed_experts: sizes.Positive = sizes.hf("num_local_experts", "num_experts")
    n_active_experts: sizes.Natural = sizes.hf()
    tie_word_embeddings: sizes.Flag = sizes.derived(is_tied, at_root=True)

    norm_topk_prob = sizes.setting("norm_topk_prob")
    rope = sizes.rotary(positions=32768)

    def feed_forward(c, x: Data) -> Data:
        return moe(c, x)

    def read(c, x: Data, prefix: str) -> Data:
        """States of the thinker to vectors of the talker's size."""
        h = ops.activate(ops.linear(x, prefix + "linear_fc1", "projector", c.d_ff, bias=True), c.activation)
        return ops.linear(h, prefix + "linear_fc2", "projector", c.d_model, bias=True)


def later_groups(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    return tuple(range(max(sizes.check_no_types(js, "num_code_groups", 32) - 1, 0)))


class Predictor(SpeechDecoder):
    """The codes of a frame but the first. `groups`: their indices. Source: Qwen3OmniMoeTalkerCodePredictorModel of the
    reference.
    """

    config_class = "Qwen3OmniMoeTalkerCodePredictorConfig"

    section = "talker_config.code_predictor_config"
    tie_word_embeddings = sizes.constant(False)

    d_head: sizes.Positive = sizes.hf()
    d_ff: sizes.Natural = sizes.hf()
    groups: sizes.Indices = sizes.derived(later_groups)

    rope = sizes.rotary(positions=32768)

    def score(c, x: Data) -> Data:
        """The talker's state and the codes so far to the scores of every later code, side by side."""
        x = c.transform(x)
        found = [ops.linear(x, f"lm_head.{i}", "lm_head", c.vocab_size) for i in c.groups]
        return reduce(ops.join, found) if found else x


class Qwen3OmniVocoder(parts.Code2Wav):
    config_class = "Qwen3OmniMoeCode2WavConfig"
    section = "code2wav_config"


@sizes.options_first
def keys_are_given(js: sizes.ConfigJson, c: sizes.FieldValues, *keys: str) -> None:
    """Keys for which the reference has no default."""
    for key in keys:
        if key not in js:
            raise ParamcountError("is missing", where=key, expected="a positive integer")


def predictor_is_untied(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if sizes.flag(js, "tie_word_embeddings", False):
        raise ParamcountError("= true", where="tie_word_embeddings", expected="false")


def layers_see_everything(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The reference has no other mask for the code predictor."""
    window, first = js.get("sliding_window"), js.get("max_window_layers", 28)
    words = js.get("layer_types")
    if words is None:
        words = ["full_attention"] * (c["n_layers"] if window is None else min(first, c["n_layers"]))
    if any(word != "full_attention" for word in words) or (window is not None and len(words) < c["n_layers"]):
        key = "sliding_window" if js.get("layer_types") is None else "layer_types"
        raise ParamcountError("asks for sliding attention", where=key, expected="full attention in every layer")


def steps_are_positive(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    dense = js.get("mlp_only_layers") or ()
    if js.get("decoder_sparse_step", 1) == 0 and any(i not in dense for i in range(c["n_layers"])):
        raise ParamcountError("= 0", where="decoder_sparse_step", expected="a positive integer")


class Qwen3OmniMoe(parts.Speaking, Qwen3OmniMoeThinker):
    """Source: arXiv:2509.17765, section 2; modeling_qwen3_omni_moe.py of the reference."""

    reference = "Qwen3OmniMoeForConditionalGeneration"
    reference_names = {
        "thinker.model.": "thinker.model.language_model.",
        "thinker.lm_head.": "thinker.lm_head.",
        "thinker.": "thinker.model.",
    }
    encoder_prefix = "thinker.visual."
    audio_prefix = "thinker.audio_tower."
    moved = ("", "thinker.")
    conditions = (
        parts.sections_are_objects("thinker_config", "talker_config", "code2wav_config"),
        parts.if_it_speaks("talker_config", "talker", keys_are_given("spatial_merge_size")),
        parts.if_it_speaks(
            "talker_config.text_config", "talker", keys_are_given("shared_expert_intermediate_size"), steps_are_positive
        ),
        parts.if_it_speaks(
            "talker_config.code_predictor_config", "predictor", predictor_is_untied, layers_see_everything
        ),
        parts.if_it_speaks("code2wav_config", "vocoder", parts.both_rates_are_given),
    )
    required_keys = ("talker_config.spatial_merge_size",)

    language: Qwen3OmniThinkerText
    vision: Qwen3OmniThinkerVision
    audio: Qwen3OmniThinkerEars
    seen_layers: sizes.Indices = sizes.derived(
        lambda js, c: tuple(range(min(len(c["vision"]["deep_layers"]), c["language"]["n_layers"])))
    )
    talker: Qwen3OmniTalker
    predictor: Predictor
    vocoder: Qwen3OmniVocoder
    d_thinker: sizes.Positive = sizes.hf("talker_config.thinker_hidden_size", absent=2048)

    image_token = sizes.setting(default=parts.thinker_setting("image_token_id", default=151655))
    audio_token = sizes.setting(default=parts.thinker_setting("audio_token_id", default=151646))

    def speak(c) -> tuple[Data, ...]:
        codes = ops.given("codec tokens", "codec tokens")
        rows = [
            ops.given(what, "codec tokens", c.d_thinker) for what in ("text of the thinker", "states of the thinker")
        ]
        later = [ops.given(f"codes of group {i + 1}", "codec tokens") for i in c.predictor.groups]
        reads = (*rows, ops.given("tokens of media", "codec tokens"), *later)
        so_far = ops.given("state of the talker and codes of a frame", "codes", c.predictor.d_model)
        return (
            ops.block(codes, "talker.", c.talk, reads=reads, part="audio"),
            ops.block(so_far, "talker.code_predictor.", c.predictor.score, part="audio"),
            ops.block(ops.given("all codes", "all codes"), "code2wav.", c.vocoder.forward, part="audio"),
        )

    def talk(c, codes: Data, text: Data, states: Data, is_media: Data, *later: Data) -> Data:
        """The codes so far to the scores of the first code of the next frame.

        A token is a vector of the thinker's text, or its state if an image or a sound is meant, plus all of its codes.
        """
        talker, table = c.talker, "model.codec_embedding.weight"
        x = ops.select(is_media, talker.read(text, "text_projection."), talker.read(states, "hidden_projection."))
        x = x + ops.lookup(codes, table, "embedding", talker.vocab_size, talker.d_model)
        for i, more in enumerate(later):
            name = f"code_predictor.model.codec_embedding.{i}.weight"
            x = x + ops.lookup(more, name, "embedding", c.predictor.vocab_size, c.predictor.d_model)
        x = talker.transform(x)
        tied_to = "talker." + table if talker.tie_word_embeddings else None
        return ops.linear(x, "codec_head", "lm_head", talker.vocab_size, tied_to=tied_to)

    def check_speech(c) -> None:
        if c.predictor.d_model != c.talker.d_model:
            expected = f"{c.talker.d_model}, the size of the talker"
            raise sizes.make_value_error(c.predictor.d_model, FieldName("predictor.d_model"), expected)
        if c.d_thinker != c.language.d_model:
            expected = f"{c.language.d_model}, the size of the thinker"
            raise sizes.make_value_error(c.d_thinker, FieldName("d_thinker"), expected)
        c.check_part("vocoder", parts.check_code2wav)
