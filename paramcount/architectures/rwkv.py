"""RWKV-4: time mixing with a decay per channel instead of attention, channel mixing instead of the MLP.

Both also read the previous token.
"""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.errors import FieldName, ParamcountError
from paramcount.flow import Data, Weight, activate, layers, linear, lookup, norm
from paramcount.parts.decoders import head
from paramcount.sizes import ABSENT, Flag, Positive, Sizes, equal_to, hf


class Rwkv(Sizes):
    """Source: arXiv:2305.13048, section 3."""

    reference: ClassVar[str] = "RwkvForCausalLM"
    float32_if_float16: ClassVar[tuple[str, ...]] = ("time_decay", "time_first")

    vocab_size: Positive = hf(absent=50277)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=32)
    d_inner: Positive = hf("attention_hidden_size", absent=equal_to("d_model"), null=ABSENT)
    d_ff: Positive = hf(absent=lambda js, c: 4 * c["d_model"], null=ABSENT)
    tie_word_embeddings: Flag = hf(absent=False)

    def check(c) -> None:
        if c.n_layers < 2:  # how much each layer mixes is initialised by its depth over n_layers - 1
            raise ParamcountError(
                "= 1, which the reference cannot initialise",
                where=FieldName("n_layers"),
                expected="an integer of at least 2",
            )

    def forward(c, tokens: Data) -> Data:
        table = "rwkv.embeddings.weight"
        x = lookup(tokens, table, "embedding", c.vocab_size, c.d_model)
        x = layers(
            x, "rwkv.blocks.{layer}.", [("first", 1), ("later", c.n_layers - 1)], lambda kind, x: layer(c, kind, x)
        )
        return head(c, norm(x, "rwkv.ln_out", bias=True), table, "head")


def layer(c: Any, kind: str, x: Data) -> Data:
    if kind == "first":
        x = norm(x, "pre_ln", bias=True)
    x = x + time_mixing(c, norm(x, "ln1", bias=True), "attention.")
    return x + channel_mixing(c, norm(x, "ln2", bias=True), "feed_forward.")


def mixed(x: Data, before: Data, name: str, component: str) -> Data:
    """Of each channel a learned share of the token and the rest of the one before."""
    return Data("mix", (x, before), x.shape, (Weight(name, component, (1, 1, x.shape[-1])),))


def token_before(x: Data) -> Data:
    return Data("token before", (x,), x.shape, states=(x.shape[1:],))


def time_mixing(c: Any, x: Data, prefix: str) -> Data:
    """Source: arXiv:2305.13048, section 3.1."""
    before = token_before(x)

    def stream(name: str) -> Data:
        y = mixed(x, before, f"{prefix}time_mix_{name}", "mixer.mix")
        return linear(y, prefix + name, "mixer." + name, c.d_inner)

    k, v, r = stream("key"), stream("value"), activate(stream("receptance"), "sigmoid")
    held = tuple(Weight(prefix + name, "mixer.state", (c.d_inner,)) for name in ("time_decay", "time_first"))
    y = Data(
        "scan", (k, v), v.shape, held, states=((3, c.d_inner),)
    )  # weighted values, their weights, the largest exponent
    return linear(r * y, prefix + "output", "mixer.out", x.shape[-1])


def channel_mixing(c: Any, x: Data, prefix: str) -> Data:
    before = token_before(x)
    k = linear(mixed(x, before, prefix + "time_mix_key", "mlp.mix"), prefix + "key", "mlp.up", c.d_ff)
    r = linear(
        mixed(x, before, prefix + "time_mix_receptance", "mlp.mix"), prefix + "receptance", "mlp.gate", x.shape[-1]
    )
    return activate(r, "sigmoid") * linear(activate(k, "relu²"), prefix + "value", "mlp.down", x.shape[-1])
