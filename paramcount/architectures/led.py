"""LED: BART whose encoder has Longformer's attention."""

from collections.abc import Hashable
from itertools import groupby
from typing import Any

from paramcount.architectures.longformer import attend_nearby, check_windows, read_windows, windows_fill_the_text
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError


class LED(parts.Seq2Seq):
    """Source: arXiv:2004.05150, section 7; LEDEncoderLayer and LEDDecoderLayer of the reference."""

    reference = "LEDForConditionalGeneration"
    task_heads = {"ForQuestionAnswering": parts.SPAN}
    conditions = (sizes.padding_inside(1), windows_fill_the_text("attention_window"))
    layer = parts.seq2seq.post_norm_layer
    norms_embedding = True

    n_encoder_positions: sizes.Positive = sizes.hf("max_encoder_position_embeddings")
    n_positions: sizes.Positive = sizes.hf("max_decoder_position_embeddings")
    n_encoder_layers: sizes.Positive = sizes.hf("num_hidden_layers", "encoder_layers")  # the reference needs one
    windows: sizes.Widths = sizes.derived(read_windows("attention_window", "n_encoder_layers"))

    def forward(c, tokens: Data, head: bool = True) -> Data:
        def build(tokens: Data, source: Data, marks: Data) -> Data:
            x = c.decode(tokens, c.encode(source, marks))
            return c.logits(x) if head else x

        reads = (ops.given("source tokens", "source"), ops.given("global tokens", "source", default=0))
        return ops.rename_weights(ops.block(tokens, "", build, reads=reads), moved=("model.", "led."))

    def encode(c, tokens: Data, *reads: Data) -> Data:
        t = c.tables()
        kinds: list[tuple[Hashable, int]] = [(window, len(tuple(run))) for window, run in groupby(c.windows)]

        def encoder(tokens: Data, marks: Data) -> Data:
            table = f"/{t.shared}" if t.shared else "embed_tokens.weight"
            x = c.embed(ops.lookup(tokens, table, "embedding", t.source, c.d_model), tokens, "")
            return ops.layers(x, "layers.{layer}.", kinds, c.encoder_layer, reads=(marks,))

        return ops.block(tokens, "model.encoder.", encoder, reads=reads, part="encoder")

    def encoder_layer(c, window: Any, x: Data, marks: Data) -> Data:
        s = parts.encoder_stack(c)
        a = attend_nearby(s, x, marks, window, "self_attn.longformer_self_attn.")
        a = ops.linear(a, "self_attn.output", "output_projection", c.d_model, bias=True)
        x = c.norm(x + a, "self_attn_layer_norm")
        return c.norm(x + c.feed_forward(s, x), "final_layer_norm")

    def positions(c, tokens: Data, prefix: str) -> Data:
        rows = c.n_positions if prefix else c.n_encoder_positions
        return ops.lookup_position(tokens, prefix + "embed_positions.weight", rows, c.d_model)

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        return () if c.tie_word_embeddings else parts.unread_table(c, tokens, "led.shared.weight", c.vocab_size)

    def check(c) -> None:
        super().check()
        check_windows(c, "n_encoder_layers")
        if 2 * max(c.windows) > c.n_encoder_positions:
            found = f"= {c.n_encoder_positions}, but texts are padded to {2 * max(c.windows)} tokens"
            raise ParamcountError(
                found, where=FieldName("n_encoder_positions"), expected=f"at least {2 * max(c.windows)}"
            )
