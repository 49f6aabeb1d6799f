"""T5: an encoder and a decoder without biases, each with one table of relative positions.

The first layer owns the table and all layers read it.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import partial
from typing import Any, ClassVar

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, describe_value

QKVO = ("q", "k", "v", "o")
KEYS = ("relative_attention_num_buckets", "relative_attention_max_distance")
BUCKETS: tuple[sizes.Condition, ...] = (sizes.buckets_reach(*KEYS, 128, one_sided=True),)


def is_no_decoder(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The reference would give the layers of an encoder a causal mask, and cross-attention that nothing reads."""
    if js.get("is_decoder", False) is not False:
        raise ParamcountError(
            f"= {describe_value(js['is_decoder'])}, but the class is an encoder", where="is_decoder", expected="false"
        )


OF_AN_ENCODER: tuple[sizes.Condition, ...] = (sizes.buckets_reach(*KEYS, 128, one_sided=False), is_no_decoder)


def gated(js: sizes.ConfigJson, c: sizes.FieldValues, absent: str = "relu") -> bool:
    word = js.get("feed_forward_proj", absent)
    first, *rest = word.split("-") if isinstance(word, str) else ("", "", "")
    if len(rest) > 1 or (rest and first != "gated"):
        raise sizes.make_value_error(word, "feed_forward_proj", "an activation such as relu, or gated-ACTIVATION")
    return bool(first == "gated")


@sizes.options_first
def decoder_layers(js: sizes.ConfigJson, c: sizes.FieldValues, absent: int) -> Any:
    """As many as the encoder has where the config says nothing else.

    What counts is num_layers, also where an alias overrides it.
    """
    return js.get("num_layers", absent)


def dense_activation(config: Mapping[str, Any], c: Any, absent: str = "relu") -> str:
    """Source: T5Config of the reference: "gated-gelu" is the GELU with tanh, "gelu" is not."""
    word = str(config.get("feed_forward_proj", absent))
    return "gelu_new" if word == "gated-gelu" else word.split("-")[-1]


class T5(sizes.Sizes):
    """Source: arXiv:1910.10683, section 2.1; gated feed-forward arXiv:2002.05202; order of operations: T5Block.

    The reference ties the head and the three tables whatever config.json says: tie_word_embeddings = false (T5 1.1,
    Flan-T5) only keeps it from scaling what the head reads. Their released files hold a head of its own, so their zoo
    entries state tie_word_embeddings: false.
    """

    reference = "T5ForConditionalGeneration"
    gguf = "t5"
    gguf_names = {"SelfAttention.o": "attn_o", "encoder.block.{layer}.layer.1.layer_norm": "ffn_norm"}
    task_heads = parts.t5("t5.T5EncoderModel")
    table_copies = {"shared": "encoder.embed_tokens"}
    conditions = BUCKETS
    float32_if_float16: ClassVar[tuple[str, ...]] = ("wo",)
    shares_bias: ClassVar[bool] = True  # all layers of a stack read the first one's table of relative positions

    vocab_size: sizes.Positive = sizes.hf()
    d_model: sizes.Positive = sizes.hf("hidden_size", "d_model")
    n_layers: sizes.Natural = sizes.hf("num_hidden_layers", "num_layers")
    n_decoder_layers: sizes.Natural = sizes.hf("num_decoder_layers", absent=decoder_layers(6), null=sizes.ABSENT)
    n_heads: sizes.Positive = sizes.hf("num_attention_heads", "num_heads")
    d_head: sizes.Positive = sizes.hf("head_dim", "d_kv")
    d_ff: sizes.Positive = sizes.hf("d_ff")
    gated: sizes.Flag = sizes.derived(gated)
    n_buckets: sizes.Positive = sizes.hf("relative_attention_num_buckets")
    scaled: sizes.Flag = sizes.derived(lambda js, c: js.get("tie_word_embeddings") is not False)
    tie_word_embeddings: sizes.Flag = sizes.fixed(True)

    activation = sizes.setting(default=dense_activation)
    norm_eps = sizes.setting("layer_norm_epsilon")
    farthest = sizes.setting("relative_attention_max_distance")

    def forward(c, tokens: Data) -> Data:
        return c.decode(tokens, c.encode(ops.given("source tokens", "source")))

    def encode(c, tokens: Data, change: Callable[..., Data] | None = None, *reads: Data) -> Data:
        """Token ids to states. `change`: applied to embedded tokens, the token ids and `reads`."""

        def encoder(tokens: Data, *reads: Data) -> Data:
            table = "shared.weight" if c.shares_table() else "encoder.embed_tokens.weight"
            x = ops.lookup(tokens, table, "embedding", c.vocab_size, c.d_model)
            x = change(x, tokens, *reads) if change else x
            return c.stack(x, "encoder.", c.encoder_layers())

        return ops.block(tokens, "", encoder, reads=reads, part="encoder")

    def decode(c, tokens: Data, memory: Data) -> Data:
        """Token ids and the encoder's output to logits."""
        component, shared = ("embedding", "shared.weight") if c.shares_table() else ("other_embedding", None)
        x = ops.lookup(tokens, "decoder.embed_tokens.weight", component, c.vocab_size, c.d_model, tied_to=shared)
        x = c.stack(x, "decoder.", c.decoder_layers(), memory)
        if c.scaled:
            x = ops.scale_by_root(x, c.d_model, "times 1/√d_model", inverse=True)
        return parts.head(c, x, "shared.weight")

    def shares_table(c) -> bool:
        """Whether encoder and decoder have one token embedding."""
        return True

    def encoder_layers(c) -> Iterable[tuple[Hashable, ops.Size]]:
        return parts.first_differs(c.n_layers)

    def decoder_layers(c) -> Iterable[tuple[Hashable, ops.Size]]:
        return parts.first_differs(c.n_decoder_layers)

    def stack(c, x: Data, prefix: str, kinds: Iterable[tuple[Hashable, ops.Size]], *memory: Data) -> Data:
        """The layers and the last norm; each layer passes on the bias of relative positions."""

        def layer(kind: Any, x: Data, *others: Data) -> Any:
            memory, passed = others[:n_memory], others[n_memory:]
            is_owner = not c.shares_bias or kind.startswith("first")
            bias = c.relative_bias(x, causal=bool(memory)) if is_owner else passed[0]
            x = c.layer(x, kind, bias, *memory)
            return (x, bias) if c.shares_bias else x

        n_memory, carry = len(memory), ((x.shape[0], c.n_heads),) if c.shares_bias else ()
        x = ops.layers(x, prefix + "block.{layer}.", kinds, layer, reads=memory, carry=carry)
        return c.norm(x, prefix + "final_layer_norm")

    def layer(c, x: Data, kind: str, bias: Data, *memory: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "layer.0.layer_norm"), bias, causal=bool(memory))
        for source in memory:
            x = parts.crossing(x, "layer.1.", lambda x, m: x + c.cross_attention(c.norm(x, "layer_norm"), m), source)
        last = f"layer.{1 + len(memory)}."
        return x + c.feed_forward(c.norm(x, last + "layer_norm"), last, kind)

    def self_attention(c, x: Data, bias: Data, *, causal: bool) -> Data:
        """Scores are not scaled: the initial weights were."""
        name = "layer.0.SelfAttention."
        attend = parts.causally_if(causal)
        return parts.multi_head(c, x, name, QKVO, bias=False, mix=lambda q, k, v: attend(q, k, v, bias, scale=1.0))

    def cross_attention(c, x: Data, memory: Data) -> Data:
        return parts.multi_head(
            c, x, "EncDecAttention.", QKVO, memory=memory, bias=False, mix=partial(ops.attend_to_memory, scale=1.0)
        )

    def feed_forward(c, x: Data, prefix: str, kind: str) -> Data:
        prefix += "DenseReluDense."
        if c.gated:
            names = ("wi_0", "wi_1", "wo")
            return parts.gated_mlp(x, prefix, "mlp", c.d_ff, activation=c.activation, names=names)
        return parts.plain_mlp(x, (prefix + "wi", prefix + "wo"), "mlp", c.d_ff, activation=c.activation)

    def relative_bias(c, x: Data, *, causal: bool) -> Data:
        return relative_bias(c, x, "SelfAttention.relative_attention_bias", causal=causal)

    norm = parts.use_rms_norm


class EncoderAlone(T5):
    """Without the decoder."""

    conditions = OF_AN_ENCODER

    def forward(c, tokens: Data) -> Data:
        return c.encode(tokens)


class T5Encoder(EncoderAlone):
    reference = "T5EncoderModel"
    model_types = ("t5.T5EncoderModel",)
    gguf = "t5encoder"


def relative_bias(c: Any, x: Data, name: str, *, causal: bool, block: int | ops.Unknown | None = None) -> Data:
    """A bias for each pair of tokens and each head, looked up by distance: [n, m, n_heads]."""
    buckets = ops.bucket_distances(x, c.n_buckets, c.farthest, causal=causal, block=block)
    return ops.lookup(buckets, f"layer.0.{name}.weight", "position", c.n_buckets, c.n_heads)
