"""LED: BART whose encoder has Longformer's attention."""

from collections.abc import Hashable
from itertools import groupby
from typing import Any

from paramcount.architectures.longformer import attend_nearby, check_windows, read_windows, windows_fill_the_text
from paramcount.errors import FieldName, ParamcountError
from paramcount.flow import Data, Unreachable, block, given, layers, linear, lookup
from paramcount.parts.classic import encoder_stack, unread_table
from paramcount.parts.seq2seq import Seq2Seq, post_norm_layer
from paramcount.parts.tasks import SPAN
from paramcount.sizes import Positive, Widths, hf
from paramcount.sizes.conditions import padding_inside


class LED(Seq2Seq):
    """Source: arXiv:2004.05150, section 7; LEDEncoderLayer and LEDDecoderLayer of the reference."""

    reference = "LEDForConditionalGeneration"
    task_heads = {"ForQuestionAnswering": SPAN}
    conditions = (padding_inside(1), windows_fill_the_text("attention_window"))
    layer = post_norm_layer
    norms_embedding = True

    n_encoder_positions: Positive = hf("max_encoder_position_embeddings")
    n_positions: Positive = hf("max_decoder_position_embeddings")
    n_encoder_layers: Positive = hf("num_hidden_layers", "encoder_layers")  # the reference needs one
    windows: Widths = read_windows("attention_window", "n_encoder_layers")

    def forward(c, tokens: Data, head: bool = True) -> Data:
        def build(tokens: Data, source: Data, marks: Data) -> Data:
            x = c.decode(tokens, c.encode(source, marks))
            return c.logits(x) if head else x

        reads = (given("source tokens", "source"), given("global tokens", "source", default=0))
        return block(tokens, "", build, reads=reads, moved=("model.", "led."))

    def encode(c, tokens: Data, *reads: Data) -> Data:
        t = c.tables()
        kinds: list[tuple[Hashable, int]] = [(window, len(tuple(run))) for window, run in groupby(c.windows)]

        def encoder(tokens: Data, marks: Data) -> Data:
            table = f"/{t.shared}" if t.shared else "embed_tokens.weight"
            x = c.embed(lookup(tokens, table, "embedding", t.source, c.d_model), tokens, "")
            return layers(x, "layers.{layer}.", kinds, c.encoder_layer, reads=(marks,))

        return block(tokens, "model.encoder.", encoder, reads=reads, part="encoder")

    def encoder_layer(c, window: Any, x: Data, marks: Data) -> Data:
        s = encoder_stack(c)
        a = attend_nearby(s, x, marks, window, "self_attn.longformer_self_attn.")
        a = linear(a, "self_attn.output", "output_projection", c.d_model, bias=True)
        x = c.norm(x + a, "self_attn_layer_norm")
        return c.norm(x + c.feed_forward(s, x), "final_layer_norm")

    def positions(c, tokens: Data, prefix: str) -> Data:
        rows = c.n_positions if prefix else c.n_encoder_positions
        return lookup(tokens, prefix + "embed_positions.weight", "position", rows, c.d_model, index="positions")

    def unreachable(c, tokens: Data) -> tuple[Unreachable, ...]:
        return () if c.tie_word_embeddings else unread_table(c, tokens, "led.shared.weight", c.vocab_size)

    def check(c) -> None:
        super().check()
        check_windows(c, "n_encoder_layers")
        if 2 * max(c.windows) > c.n_encoder_positions:
            found = f"= {c.n_encoder_positions}, but texts are padded to {2 * max(c.windows)} tokens"
            raise ParamcountError(
                found, where=FieldName("n_encoder_positions"), expected=f"at least {2 * max(c.windows)}"
            )
