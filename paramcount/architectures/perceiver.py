"""Perceiver IO on text: learned latents read the text, attend to one another, and answer a query for each position."""

from typing import Any, ClassVar, NamedTuple

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, describe_value

TABLE = "perceiver.input_preprocessor.embeddings.weight"
LAYERS = "perceiver.encoder.self_attends.{layer}."
MOST_BLOCKS = 256  # each is walked
DECODER_HEADS, DECODER_HEAD = 8, 32  # of the masked language model, fixed by its class


class PerceiverHeads(NamedTuple):
    n: ops.Size
    d_qk: ops.Size
    d_v: ops.Size


def read_shape(js: sizes.ConfigJson) -> str:
    return js.get("cross_attention_shape_for_attention", "kv")


def find_widths(js: sizes.ConfigJson, c: sizes.FieldValues, *, crossing: bool) -> tuple[int, int]:
    """What the queries and keys, and the values of all heads have together."""
    usual = c["d_model"] if crossing and read_shape(js) == "kv" else c["d_latents"]
    d_qk = js.get("qk_channels") or usual
    return d_qk, js.get("v_channels") or d_qk


@sizes.options_first
def head_size(js: sizes.ConfigJson, c: sizes.FieldValues, heads: str, part: int, *, crossing: bool) -> Any:
    return max(1, find_widths(js, c, crossing=crossing)[part] // c[heads])


def widths_divide(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """Each head has an equal part, and self-attention returns what it was given."""
    classes = js.get("architectures") or ["PerceiverForMaskedLM"]
    reads_shape = js.get("qk_channels") is None or classes[0] != "PerceiverForMaskedLM"
    if reads_shape and read_shape(js) not in ("q", "kv"):
        raise sizes.make_value_error(read_shape(js), "cross_attention_shape_for_attention", "q or kv")
    for heads, crossing in (("n_cross_heads", True), ("n_heads", False)):
        widths = (*find_widths(js, c, crossing=crossing), c["d_latents"])
        for width in widths:
            if width % c[heads]:
                key = "num_cross_attention_heads" if crossing else "num_self_attention_heads"
                raise ParamcountError(f"= {c[heads]} does not divide {width}", where=key, expected="a divisor")
    if find_widths(js, c, crossing=False)[1] != c["d_latents"]:
        found = f"= {describe_value(js.get('v_channels'))} with d_latents = {c['d_latents']}"
        raise ParamcountError(found, where="v_channels", expected=f"{c['d_latents']}")


def decodes_text(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    classes = js.get("architectures") or ["PerceiverForMaskedLM"]
    if classes[0] == "PerceiverForMaskedLM" and c["d_model"] % DECODER_HEADS:
        raise sizes.make_value_error(c["d_model"], "d_model", f"a multiple of {DECODER_HEADS}")


def few_blocks(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if c["n_blocks"] > MOST_BLOCKS:
        raise sizes.make_value_error(c["n_blocks"], "num_blocks", f"at most {MOST_BLOCKS}")


class Perceiver(sizes.Sizes):
    """Source: arXiv:2107.14795, section 3; PerceiverForMaskedLM of the reference."""

    reference = "PerceiverForMaskedLM"
    task_heads = {"ForSequenceClassification": parts.TaskHead(lambda c, x: c.classify(x), parts.LABELS)}
    # Of the other inputs and outputs.
    unused_keys = ("_label_trainable_num_channels", "image_size", "num_frames", "output_num_channels", "train_size")
    base_model = ""  # it has no embeddings of its own
    conditions = (widths_divide, decodes_text, few_blocks)

    vocab_size: sizes.Positive = sizes.hf()
    n_positions: sizes.Positive = sizes.hf("max_position_embeddings")
    d_model: sizes.Positive = sizes.hf("d_model")
    n_latents: sizes.Positive = sizes.hf("num_latents")
    d_latents: sizes.Positive = sizes.hf("d_latents")
    n_blocks: sizes.Positive = sizes.hf("num_blocks")
    n_layers: sizes.Natural = sizes.hf("num_self_attends_per_block")
    n_heads: sizes.Positive = sizes.hf("num_self_attention_heads")
    d_head: sizes.Positive = sizes.derived(head_size("n_heads", 0, crossing=False))
    d_v: sizes.Positive = sizes.derived(head_size("n_heads", 1, crossing=False))
    n_cross_heads: sizes.Positive = sizes.hf("num_cross_attention_heads")
    d_cross_head: sizes.Positive = sizes.derived(head_size("n_cross_heads", 0, crossing=True))
    d_cross_v: sizes.Positive = sizes.derived(head_size("n_cross_heads", 1, crossing=True))
    d_decoder_v: sizes.Positive = sizes.derived(lambda js, c: max(1, c["d_model"] // DECODER_HEADS))
    widening: sizes.Positive = sizes.hf("self_attention_widening_factor")
    cross_widening: sizes.Positive = sizes.hf("cross_attention_widening_factor")
    query_residual: sizes.Flag = sizes.hf("use_query_residual")

    activation = sizes.setting("hidden_act")
    norm_eps: ClassVar[float] = 1e-5  # of torch.nn.LayerNorm: no config.json states it

    def forward(c, tokens: Data) -> Data:
        def build(tokens: Data) -> Data:
            x = c.decode(tokens, c.encode(tokens))
            logits = ops.linear(x, "lm_head", "lm_head", c.vocab_size, tied_to=TABLE)
            return ops.add_vector(logits, "embedding_decoder.bias", "lm_head", c.vocab_size)

        return ops.block(tokens, "", build, part="encoder")

    def encode(c, tokens: Data) -> Data:
        """Token ids to latents, [n_latents, d_latents]."""
        name = "perceiver.input_preprocessor.position_embeddings.weight"
        x = ops.lookup(tokens, TABLE, "embedding", c.vocab_size, c.d_model)
        x = x + ops.lookup_position(tokens, name, c.n_positions, c.d_model)
        z = ops.learned_rows("perceiver.embeddings.latents", "other_embedding", c.n_latents, c.d_latents)
        heads, names = (
            PerceiverHeads(c.n_cross_heads, c.d_cross_head, c.d_cross_v),
            "perceiver.encoder.cross_attention.",
        )
        z = ops.block(
            z,
            names,
            lambda z, x: c.layer(z, heads, c.cross_widening, x, keeps_query=c.query_residual),
            reads=(x,),
            part="encoder",
        )
        z = c.process(z)
        if c.n_blocks == 1:
            return z
        return ops.layers(z, "", [("again", c.n_blocks - 1)], lambda kind, z: c.process(z, LAYERS))

    def process(c, z: Data, tied_to: str | None = None) -> Data:
        """One block of layers. `tied_to`: the prefix of their weights, if they have been used before."""
        heads, kinds = PerceiverHeads(c.n_heads, c.d_head, c.d_v), [("layer", c.n_layers)]

        def build(z: Data) -> Data:
            return ops.tie_weights(ops.block(z, "", lambda z: c.layer(z, heads, c.widening)), tied_to)

        return ops.layers(z, LAYERS, kinds, lambda kind, z: build(z))

    def layer(c, z: Data, heads: PerceiverHeads, widening: ops.Size, *source: Data, keeps_query: bool = True) -> Data:
        """Attention to the source, or of z to itself, and an MLP, with norms before both."""
        h = c.norm(z, "attention.self.layernorm1")
        rows = c.norm(source[0], "attention.self.layernorm2") if source else h
        q = ops.linear(h, "attention.self.query", "qkv.q", (heads.n, heads.d_qk), bias=True)  # [n, n, d_qk]
        k = ops.linear(rows, "attention.self.key", "qkv.k", (heads.n, heads.d_qk), bias=True)  # [n, n, d_qk]
        v = ops.linear(rows, "attention.self.value", "qkv.v", (heads.n, heads.d_v), bias=True)  # [n, n, d_v]
        a = ops.attend(q, k, v)
        a = ops.linear(a, "attention.output.dense", "output_projection", z.shape[-1], bias=True)
        z = a + z if keeps_query else a
        names, width = ("mlp.dense1", "mlp.dense2"), widening * z.shape[-1]
        return z + parts.plain_mlp(c.norm(z, "layernorm"), names, "mlp", width, activation=c.activation, bias=True)

    def decode(c, tokens: Data, z: Data) -> Data:
        """A vector for each position, out of the latents."""
        prefix = "perceiver.decoder."
        x = ops.lookup_position(
            tokens, prefix + "output_position_encodings.position_embeddings", c.n_positions, c.d_model
        )
        heads = PerceiverHeads(DECODER_HEADS, DECODER_HEAD, c.d_decoder_v)

        def answer(x: Data, z: Data) -> Data:
            return c.layer(x, heads, 1, z, keeps_query=False)

        return ops.block(x, prefix + "decoding_cross_attention.", answer, reads=(z,))

    def body(c, tokens: Data) -> Data:
        return ops.block(tokens, "", lambda tokens: c.encode(tokens), part="encoder")

    def classify(c: Any, z: Data) -> Data:
        """Labels, by one query."""
        prefix = "perceiver.decoder.decoder."
        name = prefix + "output_position_encodings.position_embeddings"
        query = ops.learned_rows(name, "other", 1, c.d_latents)
        heads = PerceiverHeads(1, c.d_latents, c.d_latents)
        x = ops.block(query, prefix + "decoding_cross_attention.", lambda x, z: c.layer(x, heads, 1, z), reads=(z,))
        return ops.linear(x, prefix + "final_layer", "other", c.n_labels, bias=True)

    norm = parts.use_layer_norm
