"""TrOCR: the decoder that reads text off an image encoder's output, whose width it may not share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.architectures.bart import Decoder
from paramcount.errors import ParamcountError
from paramcount.flow import Data
from paramcount.parts.seq2seq import Layout, decoder_alone
from paramcount.sizes import Flag, Positive, equal_to, hf


def sines_need_padding(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
    """Places that are not learned are counted from behind the padding token."""
    if not c["learned_places"] and js.get("pad_token_id", 1) is None:
        raise ParamcountError("= null without learned positions", where="pad_token_id", expected="a token")


class TrOCR(Decoder):
    """Source: arXiv:2109.10282, section 2; modeling_trocr.py of the reference."""

    reference: ClassVar[str] = "TrOCRForCausalLM"
    conditions: ClassVar = (*Decoder.conditions, sines_need_padding)
    defaults: ClassVar = {"n_positions": 512}

    n_layers: Positive = hf("num_hidden_layers", "decoder_layers", absent=12)
    n_heads: Positive = hf("num_attention_heads", "decoder_attention_heads", absent=16)
    d_memory: Positive = hf("cross_attention_hidden_size", absent=equal_to("d_model"), null=equal_to("d_model"))
    learned_places: Flag = hf("use_learned_position_embeddings", absent=True)
    tables_normed: Flag = hf("layernorm_embedding", absent=True)

    def forward(c, tokens: Data) -> Data:
        layout = Layout(extra_places=2, tables_normed=c.tables_normed)
        return decoder_alone(
            c, tokens, layout, head_name="output_projection", places=c.learned_places, d_memory=c.d_memory
        )
