"""SeamlessM4T, both versions, from text or speech to text: NLLB's dense layers, and a Conformer."""

from __future__ import annotations

from typing import ClassVar

from paramcount.declare import Data, ops, parts, sizes

SPEECH_KEYS = (  # of the parts that hear
    "adaptor_kernel_size", "conv_depthwise_kernel_size", "feature_projection_input_dim", "layer_norm_eps",
    "left_max_position_embeddings", "num_adapter_layers", "right_max_position_embeddings",
    "speech_encoder_attention_heads", "speech_encoder_chunk_size", "speech_encoder_intermediate_size",
    "speech_encoder_layers",
)  # fmt: skip
VOICE_KEYS = (  # of the parts that speak, and of positions that no class builds
    "char_vocab_size", "lang_embed_dim", "num_conv_pos_embedding_groups", "num_conv_pos_embeddings",
    "output_hidden_states", "resblock_kernel_sizes", "spkr_embed_dim", "t2u_decoder_attention_heads",
    "t2u_decoder_ffn_dim", "t2u_decoder_layers", "t2u_encoder_attention_heads", "t2u_encoder_ffn_dim",
    "t2u_encoder_layers", "t2u_variance_predictor_embed_dim", "t2u_variance_predictor_hidden_dim",
    "t2u_variance_predictor_kernel_size", "t2u_vocab_size", "unit_embed_dim", "unit_hifi_gan_vocab_size",
    "upsample_initial_channel", "upsample_kernel_sizes", "variance_predictor_kernel_size", "vocoder_num_langs",
    "vocoder_num_spkrs",
)  # fmt: skip
TEXT_KEYS = ("encoder_layers", "encoder_attention_heads", "encoder_ffn_dim")  # of the part that reads


class SeamlessLayers(parts.Sinusoidal):
    """The layers of the stacks of text."""

    base_model = ""
    conditions: ClassVar[tuple[sizes.Condition, ...]] = (sizes.padding_inside(0), sizes.positions_after_padding(0))

    stack_names = ("text_encoder.", "text_decoder.", "shared.weight")
    first_position = parts.first_after_padding(0)

    def layer(c, s: parts.Stack, x: Data, *memory: Data) -> Data:
        x = x + parts.multi_head(
            s, c.norm(x, "self_attn_layer_norm"), "self_attn.", mix=parts.causally_if(bool(memory))
        )
        for m in memory:
            x = parts.crossing(
                x, "", lambda x, m: x + c.cross_attention(s, c.norm(x, "cross_attention_layer_norm"), m), m
            )
        h, names = c.norm(x, "ffn_layer_norm"), ("ffn.fc1", "ffn.fc2")
        return x + parts.plain_mlp(h, names, "mlp", s.d_ff, activation=c.activation, bias=True)

    def cross_attention(c, s: parts.Stack, x: Data, memory: Data) -> Data:
        return parts.multi_head(s, x, "cross_attention.", memory=memory)


class SeamlessM4T(SeamlessLayers, parts.SinusoidalSeq2Seq):
    """Source: arXiv:2308.11596, section 4.2; modeling_seamless_m4t.py of the reference."""

    reference = "SeamlessM4TForTextToText"
    table_copies = {"shared": "text_encoder.embed_tokens"}
    unused_keys = (*SPEECH_KEYS, *VOICE_KEYS)

    d_model: sizes.Positive = sizes.hf()
    n_encoder_layers: sizes.Natural = sizes.hf("encoder_layers")
    n_decoder_layers: sizes.Natural = sizes.hf("num_hidden_layers", "decoder_layers")
    n_encoder_heads: sizes.Positive = sizes.hf("encoder_attention_heads")
    n_decoder_heads: sizes.Positive = sizes.hf("num_attention_heads", "decoder_attention_heads")
    d_encoder_ff: sizes.Natural = sizes.hf()
    d_decoder_ff: sizes.Natural = sizes.hf()


class SeamlessM4Tv2(SeamlessM4T):
    """Source: arXiv:2312.05187, section 3.1; modeling_seamless_m4t_v2.py of the reference."""

    reference = "SeamlessM4Tv2ForTextToText"
    model_types = ("seamless_m4t_v2",)


class SpeechToText(SeamlessLayers, parts.SpeechEncoder, parts.Headed):
    """A decoder of text that reads what a speech encoder heard."""

    unused_keys = (*TEXT_KEYS, *VOICE_KEYS)

    vocab_size: sizes.Positive = sizes.hf()
    n_decoder_layers: sizes.Natural = sizes.hf("num_hidden_layers", "decoder_layers")
    n_decoder_heads: sizes.Positive = sizes.hf("num_attention_heads", "decoder_attention_heads")
    d_decoder_head: sizes.Positive = sizes.derived(sizes.d_model_per("n_decoder_heads"))
    d_decoder_ff: sizes.Natural = sizes.hf()
    n_positions: sizes.Natural = sizes.hf("max_position_embeddings")
    tie_word_embeddings: sizes.Flag = sizes.hf()

    def forward(c, tokens: Data, head: bool = True) -> Data:
        frames = ops.given("log-mel frames", "frames", c.n_mels)
        x = c.decode(tokens, ops.block(frames, "speech_encoder.", c.listen, part="encoder"))
        return c.logits(x) if head else x

    def embed_target(c, tokens: Data) -> Data:
        prefix, shared = c.stack_names[1], c.tables().shared
        name = shared or prefix + "embed_tokens.weight"
        return c.embed(ops.lookup(tokens, name, "embedding", c.vocab_size, c.d_model), tokens, prefix)

    def check(c) -> None:
        super().check()
        sizes.check_heads_fill(c, "n_decoder_heads", "d_decoder_head")
        c.check_speech()


class SeamlessM4TSpeechToText(SpeechToText, parts.RelativeSpeechEncoder):
    """Source: arXiv:2308.11596, section 4.1; modeling_seamless_m4t.py of the reference."""

    reference = "SeamlessM4TForSpeechToText"
    model_types = ("seamless_m4t.SeamlessM4TForSpeechToText",)
    table_copies = {"shared": "text_decoder.embed_tokens"}


class SeamlessM4Tv2SpeechToText(SpeechToText, parts.CausalSpeechEncoder):
    """Source: arXiv:2312.05187, section 3.1; modeling_seamless_m4t_v2.py of the reference."""

    reference = "SeamlessM4Tv2ForSpeechToText"
    model_types = ("seamless_m4t_v2.SeamlessM4Tv2ForSpeechToText",)
    table_copies = {"shared": "text_decoder.embed_tokens"}
