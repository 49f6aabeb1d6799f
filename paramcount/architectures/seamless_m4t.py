"""SeamlessM4T, both versions, from text to text: NLLB's dense layers, without the parts that hear and speak."""

from paramcount.flow import Data
from paramcount.parts.classic import Stack, crossing, multi_head
from paramcount.parts.feed_forward import plain_mlp
from paramcount.parts.seq2seq import SinusoidalSeq2Seq, first_after_padding
from paramcount.sizes import Natural, Positive, hf
from paramcount.sizes.conditions import padding_inside, positions_after_padding

OTHER_PARTS = (  # keys of the parts that hear and speak
    "adaptor_kernel_size", "char_vocab_size", "conv_depthwise_kernel_size", "feature_projection_input_dim",
    "lang_embed_dim", "layer_norm_eps", "num_adapter_layers", "num_conv_pos_embedding_groups",
    "num_conv_pos_embeddings", "output_hidden_states", "resblock_kernel_sizes", "speech_encoder_attention_heads",
    "speech_encoder_intermediate_size", "speech_encoder_layers", "spkr_embed_dim", "t2u_decoder_attention_heads",
    "t2u_decoder_ffn_dim", "t2u_decoder_layers", "t2u_encoder_attention_heads", "t2u_encoder_ffn_dim",
    "t2u_encoder_layers", "t2u_variance_predictor_embed_dim", "t2u_variance_predictor_hidden_dim",
    "t2u_variance_predictor_kernel_size", "t2u_vocab_size", "unit_embed_dim", "unit_hifi_gan_vocab_size",
    "upsample_initial_channel", "upsample_kernel_sizes", "variance_predictor_kernel_size", "vocoder_num_langs",
    "vocoder_num_spkrs",
)  # fmt: skip


class SeamlessM4T(SinusoidalSeq2Seq):
    """Source: arXiv:2308.11596, section 4.2; modeling_seamless_m4t.py of the reference."""

    reference = "SeamlessM4TForTextToText"
    table_copies = {"shared": "text_encoder.embed_tokens"}
    base_model = ""
    unused_keys = OTHER_PARTS
    conditions = (padding_inside(0), positions_after_padding(0))
    defaults = {"vocab_size": 256102}

    d_model: Positive = hf(absent=1024)
    n_encoder_layers: Natural = hf("encoder_layers", absent=24)
    n_decoder_layers: Natural = hf("num_hidden_layers", "decoder_layers", absent=24)
    n_encoder_heads: Positive = hf("encoder_attention_heads", absent=16)
    n_decoder_heads: Positive = hf("num_attention_heads", "decoder_attention_heads", absent=16)
    d_encoder_ff: Natural = hf(absent=8192)
    d_decoder_ff: Natural = hf(absent=8192)

    stack_names = ("text_encoder.", "text_decoder.", "shared.weight")
    first_position = first_after_padding(0)

    def layer(c, s: Stack, x: Data, *memory: Data) -> Data:
        x = x + multi_head(s, c.norm(x, "self_attn_layer_norm"), "self_attn.", cached=bool(memory))
        for m in memory:
            x = crossing(x, "", lambda x, m: x + c.cross_attention(s, c.norm(x, "cross_attention_layer_norm"), m), m)
        h, names = c.norm(x, "ffn_layer_norm"), ("ffn.fc1", "ffn.fc2")
        return x + plain_mlp(h, names, "mlp", s.d_ff, activation=c.activation, bias=True)

    def cross_attention(c, s: Stack, x: Data, memory: Data) -> Data:
        return multi_head(s, x, "cross_attention.", memory=memory)


class SeamlessM4Tv2(SeamlessM4T):
    """Source: arXiv:2312.05187, section 3.1; modeling_seamless_m4t_v2.py of the reference."""

    reference = "SeamlessM4Tv2ForTextToText"
    defaults = {"n_positions": 4096}
