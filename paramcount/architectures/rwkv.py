"""RWKV-4: time mixing with a decay per channel instead of attention, channel mixing instead of the MLP.

Both also read the previous token.
"""

from typing import Any, ClassVar

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError


class Rwkv(parts.Decoder):
    """Source: arXiv:2305.13048, section 3; RwkvBlock of the reference.

    In inference the reference halves the hidden states after every `rescale_every` layers, and the matrices that add
    to them. That only changes what is added to a variance, which is declared instead.
    """

    reference = "RwkvForCausalLM"
    float32_if_float16 = ("time_decay", "time_first")

    d_inner: sizes.Positive = sizes.hf("attention_hidden_size", absent=sizes.equal_to("d_model"), null=sizes.ABSENT)
    d_ff: sizes.Positive = sizes.hf(absent=lambda js, c: 4 * c["d_model"], null=sizes.ABSENT)

    prefix = "rwkv."
    names = ("embeddings", "blocks", "ln_out")
    activation: ClassVar[str] = "relu2"
    norm_eps = sizes.setting("layer_norm_epsilon")
    rescale_every = sizes.setting("rescale_every", kind=sizes.NATURAL)

    def kinds(c) -> parts.Kinds:
        """The kind of each layer, and by how much hidden states are divided in front of it."""
        if not ops.is_known(c.rescale_every):
            return parts.first_differs(c.n_layers, ("first",), ("later",))
        found = [(("divided_by", d) if (d := c.find_divisor(i)) > 1 else ("later",), 1) for i in range(c.n_layers)]
        return [(("first",), 1), *found[1:]] if found else []

    def find_divisor(c, layer: int) -> int:
        every = c.rescale_every
        return 2 ** int(layer // every) if ops.is_known(every) and every > 0 else 1

    def layer(c, x: Data, kind: tuple[Any, ...]) -> Data:
        word, *divisor = kind
        if word == "first":
            x = c.norm(x, "pre_ln")
        x = x + time_mixing(c, c.norm(x, "ln1", *divisor), "attention.")
        return x + channel_mixing(c, c.norm(x, "ln2", *divisor), "feed_forward.")

    def norm(c, x: Data, name: str, divisor: int = 1) -> Data:
        return ops.layer_norm(x, name, divisor**2 * c.norm_eps if ops.is_known(c.norm_eps) else c.norm_eps)

    def last(c, x: Data) -> Data:
        return ops.layer_norm(x, "rwkv.ln_out", c.find_divisor(c.n_layers) ** 2 * 1e-5)

    def head(c, x: Data) -> Data:
        return parts.head(c, x, "rwkv.embeddings.weight", "head")

    def check(c) -> None:
        if c.d_inner == 1 and c.n_layers:  # its place among d_inner - 1 decides how a channel is initialised
            raise ParamcountError("= 1", where=FieldName("d_inner"), expected="an integer of at least 2")
        if c.n_layers == 1:  # how much each layer mixes is initialised by its depth over n_layers - 1
            raise ParamcountError(
                "= 1, which the reference cannot initialise",
                where=FieldName("n_layers"),
                expected="0, or an integer of at least 2",
            )


def mix(difference: Data, before: Data, name: str, component: str) -> Data:
    """Of each channel a learned share of the token and the rest of the one before."""
    return before + ops.multiply_vector(difference, name, component, 1, 1, before.shape[-1])


def time_mixing(c: Any, x: Data, prefix: str) -> Data:
    """Source: arXiv:2305.13048, section 3.1."""
    before = ops.token_before(x)
    difference = x + ops.scale_by(before, -1.0, "negate")

    def stream(name: str) -> Data:
        y = mix(difference, before, f"{prefix}time_mix_{name}", "mixer.mix")
        return ops.linear(y, prefix + name, "mixer." + name, c.d_inner)

    k, v, r = stream("key"), stream("value"), ops.activate(stream("receptance"), "sigmoid")
    weights = tuple(ops.Weight(prefix + name, "mixer.state", (c.d_inner,)) for name in ("time_decay", "time_first"))
    y = Data(ops.ExponentialMean(c.d_inner), (k, v), v.shape, weights)
    return ops.linear(r * y, prefix + "output", "mixer.out", x.shape[-1])


def channel_mixing(c: Any, x: Data, prefix: str) -> Data:
    before = ops.token_before(x)
    difference = x + ops.scale_by(before, -1.0, "negate")
    k = mix(difference, before, prefix + "time_mix_key", "mlp.mix")
    r = mix(difference, before, prefix + "time_mix_receptance", "mlp.mix")
    k = ops.activate(ops.linear(k, prefix + "key", "mlp.up", c.d_ff), c.activation)
    r = ops.activate(ops.linear(r, prefix + "receptance", "mlp.gate", x.shape[-1]), "sigmoid")
    return r * ops.linear(k, prefix + "value", "mlp.down", x.shape[-1])
