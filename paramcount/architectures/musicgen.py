"""MusicGen: a decoder that reads a token of each of several codebooks at a time and writes the next ones.

Source: arXiv:2306.05284, section 2.
"""

from functools import reduce

from paramcount.errors import FieldName, ParamcountError, describe_value
from paramcount.flow import Data, given, join, linear, lookup, sinusoids
from paramcount.parts.classic import Stack, multi_head, source_states
from paramcount.parts.feed_forward import plain_mlp
from paramcount.parts.seq2seq import DECODER, Stacks, pre_norm_layer
from paramcount.sizes import ConfigJson, FieldValues, Indices, Positive, d_model_per_head, derived, hf
from paramcount.sizes.layer_types import check_no_types
from paramcount.sizes.rules import check_heads_fill, check_sinusoids


def mono_or_stereo(js: ConfigJson, c: FieldValues) -> None:
    if (n := js.get("audio_channels", 1)) not in (1, 2):
        raise ParamcountError(f"= {describe_value(n)}", where="audio_channels", expected="1 or 2")


class MusicGenMelody(Stacks):
    """Its text and melody, if there are any, stand in front of the tokens as vectors. The reference reads no
    scale_embedding. Source: modeling_musicgen_melody.py of the reference.
    """

    reference = "MusicgenMelodyForCausalLM"
    linear_heads = (".weight",)
    conditions = (mono_or_stereo,)

    vocab_size: Positive = hf(absent=2048)
    d_model: Positive = hf(absent=1024)
    n_layers: Positive = hf(absent=24)
    n_heads: Positive = hf(absent=16)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = hf("ffn_dim", absent=4096)
    codebooks: Indices = derived(lambda js, c: tuple(range(check_no_types(js, "num_codebooks", 4))))

    layer = pre_norm_layer
    last_norm = "layer_norm"

    def forward(c, tokens: Data) -> Data:
        """The tokens are those of the first codebook; logits of all codebooks stand side by side."""
        codes = [tokens, *(given(f"tokens of codebook {i + 1}", "tokens") for i in c.codebooks[1:])]
        tables = [f"{DECODER}embed_tokens.{i}.weight" for i in c.codebooks]
        found = [lookup(x, name, "embedding", c.vocab_size + 1, c.d_model) for x, name in zip(codes, tables)]
        x = reduce(Data.__add__, found)
        x = x + sinusoids(x, "cosines first", slowest="base")
        x = c.stack(Stack(c.n_layers, c.n_heads, c.d_head, c.d_ff), x, DECODER, *c.memory())
        return reduce(join, [linear(x, f"lm_heads.{i}", "lm_head", c.vocab_size) for i in c.codebooks])

    def memory(c) -> tuple[Data, ...]:
        """The encoder's output."""
        return ()

    def self_attention(c, s: Stack, x: Data, *, cached: bool) -> Data:
        return multi_head(s, x, "self_attn.", bias=False)

    def cross_attention(c, s: Stack, x: Data, memory: Data) -> Data:
        return multi_head(s, x, "encoder_attn.", memory=memory, bias=False)

    def feed_forward(c, s: Stack, x: Data) -> Data:
        return plain_mlp(x, ("fc1", "fc2"), "mlp", s.d_ff, activation=c.activation)

    def check(c) -> None:
        if not c.codebooks:
            raise ParamcountError("= 0", where=FieldName("codebooks"), expected="at least one")
        check_heads_fill(c)
        check_sinusoids(c)


class MusicGen(MusicGenMelody):
    """Every layer looks at the text's encoding. Source: modeling_musicgen.py of the reference."""

    reference = "MusicgenForCausalLM"

    def memory(c) -> tuple[Data, ...]:
        return (source_states(c.d_model),)


OTHER_PARTS = ("/audio_encoder", "/text_encoder", "/num_chroma", "/chroma_length")


class MusicGenOf(MusicGen):
    """The decoder of a config that has a text encoder and a codec too."""

    section = "decoder"
    unused_keys = OTHER_PARTS


class MusicGenMelodyOf(MusicGenMelody):
    """The decoder of a config that has a text encoder and a codec too."""

    section = "decoder"
    unused_keys = OTHER_PARTS
