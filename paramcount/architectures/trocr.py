"""TrOCR: the decoder that reads text off an image encoder's output, whose width it may not share."""

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError


def sines_need_padding(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """Places that are not learned are counted from behind the padding token."""
    if not c["learned_places"] and js.get("pad_token_id", 1) is None:
        raise ParamcountError(
            "= null, but the sinusoidal positions need it", where="pad_token_id", expected="a token id"
        )


class TrOCR(parts.TiedDecoder):
    """Source: arXiv:2109.10282, section 2; modeling_trocr.py of the reference."""

    reference = "TrOCRForCausalLM"
    conditions = (*parts.TiedDecoder.conditions, sines_need_padding)

    n_layers: sizes.Natural = sizes.hf("num_hidden_layers", "decoder_layers")
    n_heads: sizes.Positive = sizes.hf("num_attention_heads", "decoder_attention_heads")
    d_memory: sizes.Positive = sizes.hf(
        "cross_attention_hidden_size", absent=sizes.equal_to("d_model"), null=sizes.equal_to("d_model")
    )
    learned_places: sizes.Flag = sizes.hf("use_learned_position_embeddings")
    tables_normed: sizes.Flag = sizes.hf("layernorm_embedding")

    layer = parts.seq2seq.post_norm_layer
    head_name = "output_projection"
    position_offset = 2

    padding = sizes.setting("pad_token_id")

    def embed(c, x: Data, tokens: Data, prefix: str) -> Data:
        x = ops.scale_by(x, c.embedding_scale, "times √d_model")
        x = x + (c.positions(tokens, prefix) if c.learned_places else fixed_positions(x, c.padding))
        return c.norm(x, prefix + "layernorm_embedding") if c.tables_normed else x

    def source(c) -> Data:
        return parts.source_states(c.d_memory)


def fixed_positions(x: Data, padding: int | ops.Unknown) -> Data:
    """Sines and cosines, counted from behind the padding token."""
    first = padding + 1 if isinstance(padding, int) else padding
    return ops.sinusoids(x, slowest="base", offset=first)
