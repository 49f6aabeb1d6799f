"""Whisper: an encoder that hears log-mel frames through two convolutions, a decoder that writes. No bias on keys."""

from typing import Any

from paramcount.flow import Data, block, given, linear, lookup
from paramcount.parts import task_heads as heads
from paramcount.parts.classic import decoder_stack, encoder_stack
from paramcount.parts.seq2seq import DECODER, TiedDecoder
from paramcount.parts.tasks import LABELS, TaskHead
from paramcount.parts.whisper_encoder import WhisperStacks, encode_audio
from paramcount.sizes import ConfigJson, FieldValues, Flag, Natural, Positive, d_model_per, derived, hf
from paramcount.sizes.conditions import not_null, padding_inside
from paramcount.sizes.rules import check_stack_heads

ASKED = (padding_inside(50256), not_null("encoder_attention_heads"))


def audio_encoder(c: Any, tokens: Data) -> Data:
    return listen(c, "encoder.")


def encoder_heads(js: ConfigJson, c: FieldValues) -> Any:
    """Of two more names for them the last one in the file counts."""
    heads = js.get("encoder_attention_heads", 6)
    for key in js:
        if key in ("num_attention_heads", "num_key_value_heads"):
            heads = js[key]
    return heads


class Whisper(WhisperStacks):
    """Source: arXiv:2212.04356, section 2.2."""

    reference = "WhisperForConditionalGeneration"
    task_heads = {
        "ForAudioClassification": TaskHead(
            heads.classify_heard,
            LABELS
            | {
                "d_projected": (Positive, hf("classifier_proj_size", absent=256)),
                "weighted_layers": (Flag, hf("use_weighted_layer_sum", absent=False)),
            },
            body=audio_encoder,
        )
    }
    conditions = ASKED
    unused_keys = ("classifier_proj_size", "median_filter_width")

    vocab_size: Positive = hf()
    d_model: Positive = hf("hidden_size", "d_model")
    n_encoder_layers: Natural = hf("num_hidden_layers", "encoder_layers")
    n_decoder_layers: Natural = hf()
    n_encoder_heads: Positive = derived(encoder_heads)
    n_decoder_heads: Positive = hf()
    d_encoder_head: Positive = derived(d_model_per("n_encoder_heads"))
    d_decoder_head: Positive = derived(d_model_per("n_decoder_heads"))
    d_encoder_ff: Natural = hf()
    d_decoder_ff: Natural = hf()
    n_mels: Positive = hf("num_mel_bins")
    n_frames: Positive = hf("max_source_positions")
    n_positions: Positive = hf("max_target_positions")
    tie_word_embeddings: Flag = hf()

    check = check_stack_heads

    def forward(c, tokens: Data) -> Data:
        memory = listen(c, "model.encoder.")
        table = DECODER + "embed_tokens.weight"
        x = c.embed(lookup(tokens, table, "embedding", c.vocab_size, c.d_model), tokens, DECODER)
        x = c.stack(decoder_stack(c), x, DECODER, memory)
        return linear(x, "proj_out", "lm_head", c.vocab_size, tied_to=table if c.tie_word_embeddings else None)


class WhisperDecoder(WhisperStacks, TiedDecoder):
    """The decoder alone, which drafts for a larger one. Source: arXiv:2212.04356, section 2.2."""

    reference = "WhisperForCausalLM"
    model_types = ("whisper.WhisperForCausalLM",)
    conditions = ASKED

    head_name = "proj_out"
    takes_states = False  # but those of Whisper's encoder

    n_positions: Positive = hf("max_target_positions")


def listen(c: Any, prefix: str) -> Data:
    """The encoder's states."""
    frames = given("log-mel frames", "frames", c.n_mels)
    return block(frames, prefix, lambda frames: encode_audio(c, encoder_stack(c), frames), part="encoder")
