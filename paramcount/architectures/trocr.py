"""TrOCR: the decoder that reads text off an image encoder's output, whose width it may not share."""

from paramcount.errors import ParamcountError
from paramcount.flow import Data, Unknown, scale_by, sinusoids
from paramcount.parts.classic import source_states
from paramcount.parts.seq2seq import TiedDecoder, post_norm_layer
from paramcount.sizes import ConfigJson, FieldValues, Flag, Natural, Positive, equal_to, hf, setting


def sines_need_padding(js: ConfigJson, c: FieldValues) -> None:
    """Places that are not learned are counted from behind the padding token."""
    if not c["learned_places"] and js.get("pad_token_id", 1) is None:
        raise ParamcountError(
            "= null, but the sinusoidal positions need it", where="pad_token_id", expected="a token id"
        )


class TrOCR(TiedDecoder):
    """Source: arXiv:2109.10282, section 2; modeling_trocr.py of the reference."""

    reference = "TrOCRForCausalLM"
    conditions = (*TiedDecoder.conditions, sines_need_padding)

    n_layers: Natural = hf("num_hidden_layers", "decoder_layers")
    n_heads: Positive = hf("num_attention_heads", "decoder_attention_heads")
    d_memory: Positive = hf("cross_attention_hidden_size", absent=equal_to("d_model"), null=equal_to("d_model"))
    learned_places: Flag = hf("use_learned_position_embeddings")
    tables_normed: Flag = hf("layernorm_embedding")

    layer = post_norm_layer
    head_name = "output_projection"
    position_offset = 2

    padding = setting("pad_token_id", default=1)

    def embed(c, x: Data, tokens: Data, prefix: str) -> Data:
        x = scale_by(x, c.embedding_scale, "times √d_model")
        x = x + (c.positions(tokens, prefix) if c.learned_places else fixed_positions(x, c.padding))
        return c.norm(x, prefix + "layernorm_embedding") if c.tables_normed else x

    def source(c) -> Data:
        return source_states(c.d_memory)


def fixed_positions(x: Data, padding: int | Unknown) -> Data:
    """Sines and cosines, counted from behind the padding token."""
    first = padding + 1 if isinstance(padding, int) else padding
    return sinusoids(x, slowest="base", offset=first)
