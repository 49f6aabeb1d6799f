"""PEGASUS-X: PEGASUS for long texts. Its encoder attends in blocks, and through global tokens from block to block."""

from functools import partial
from typing import Any

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError


class PegasusX(parts.Seq2Seq):
    """Source: arXiv:2208.04347, section 4; modeling_pegasus_x.py of the reference."""

    reference = "PegasusXForConditionalGeneration"
    conditions = (sizes.padding_inside(0),)

    n_global_tokens: sizes.Natural = sizes.hf("num_global_tokens")
    block_size: sizes.Positive = sizes.hf("block_size")
    block_offset: sizes.Natural = sizes.derived(lambda js, c: c["block_size"] // 2)
    staggered: sizes.Flag = sizes.hf("stagger_local_blocks")

    layer = parts.seq2seq.pre_norm_layer
    has_logits_bias = False
    last_norm = "layer_norm"
    embedding_scale = parts.scale_embedding(default=True)

    def embed(c, x: Data, tokens: Data, prefix: str) -> Data:
        x = ops.scale_by(x, c.embedding_scale, "times √d_model")
        return x + ops.sinusoids(x, slowest="base")

    def encode(c, tokens: Data) -> Data:
        t = c.tables()

        def encoder(tokens: Data) -> Data:
            table = f"/{t.shared}" if t.shared else "embed_tokens.weight"
            x = c.embed(ops.lookup(tokens, table, "embedding", t.source, c.d_model), tokens, "")
            shared = ops.learned_rows("embed_global.weight", "other_embedding", c.n_global_tokens, c.d_model)
            x = ops.layers(
                ops.put_in_front(shared, x), "layers.{layer}.", list_kinds(c), c.encoder_layer, reads=(shared,)
            )
            return c.norm(ops.text_alone(x), "layer_norm")

        return ops.block(tokens, "model.encoder.", encoder, part="encoder")

    def encoder_layer(c, kind: str, x: Data, shared: Data) -> Data:
        """Global tokens, in front of the others, have a norm of their own; they see all and all see them."""
        s = parts.encoder_stack(c)
        first = c.norm(ops.drop_rows(x, shared), "global_self_attn_layer_norm")
        h = ops.put_in_front(first, c.norm(ops.text_alone(x), "self_attn_layer_norm"))
        offset = c.block_offset if kind == "staggered layer" else 0
        mix = partial(ops.attend, mask=ops.Chunk(c.block_size, offset))
        x = x + parts.multi_head(s, h, "self_attn.", bias=False, mix=mix)
        return x + c.feed_forward(s, c.norm(x, "final_layer_norm"))

    def self_attention(c, s: parts.Stack, x: Data, *, cached: bool) -> Data:
        return parts.multi_head(s, x, "self_attn.", bias=False, mix=parts.causally_if(cached))

    def cross_attention(c, s: parts.Stack, x: Data, memory: Data) -> Data:
        return parts.multi_head(s, x, "encoder_attn.", memory=memory, bias=False)

    def check(c) -> None:
        super().check()
        sizes.check_sinusoids(c)
        if c.d_model % 2:
            found = f"= {c.d_model} is odd, but positions are pairs of a sine and a cosine"
            raise ParamcountError(found, where=FieldName("d_model"), expected="an even number")
        if c.block_offset != c.block_size // 2:
            found = f"= {c.block_offset} is not half of block_size = {c.block_size}"
            raise ParamcountError(found, where=FieldName("block_offset"), expected=str(c.block_size // 2))
        if c.staggered and c.n_encoder_layers > 1 and c.block_size % 2:
            found = f"= {c.block_size} is odd, but every other layer staggers blocks by half a block"
            raise ParamcountError(found, where=FieldName("block_size"), expected="an even number")


def list_kinds(c: Any) -> list[tuple[str, ops.Size]]:
    """In each second layer the blocks begin half a block later; no weight depends on it."""
    if type(c.n_encoder_layers) is not int:
        return [("layer", c.n_encoder_layers)]
    return [(("layer", "staggered layer")[c.staggered and i % 2], 1) for i in range(c.n_encoder_layers)]
