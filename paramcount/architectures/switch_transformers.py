"""Switch Transformers: T5 with a mixture of experts in some layers, of which a token visits one."""

from collections.abc import Sequence

from paramcount.architectures.t5 import OF_AN_ENCODER, T5, decoder_layers
from paramcount.flow import Data, Unreachable, experts, linear, route
from paramcount.parts.classic import unread_table
from paramcount.parts.feed_forward import plain_mlp
from paramcount.sizes import (
    ConfigJson,
    Derivation,
    FieldValues,
    Flag,
    Natural,
    Positive,
    Words,
    derived,
    flag,
    hf,
    per_layer,
)
from paramcount.sizes.layer_types import check_no_types
from paramcount.sizes.rules import check_layer_types
from paramcount.sizes.setting_fields import setting

KINDS = ("dense", "sparse")


def every_so_often(field: str, layers_key: str, sparse_key: str, step_key: str) -> Derivation:
    """A sparse layer in every `step`, the second of them.

    The step is worked out before an alias overrides num_layers; without a sparse layer it is as long as the stack, so
    that the reference builds one all the same. Where config.json has the step, it counts.
    """

    def kinds(js: ConfigJson, c: FieldValues) -> tuple[str, ...]:
        n = (
            check_no_types(js, layers_key, 12)
            if js.get(layers_key, 12) is not None
            else check_no_types(js, "num_layers", 12)
        )
        n_sparse = js.get(sparse_key, 3)
        step = js.get(step_key, n // n_sparse if n_sparse > 0 else n)
        return tuple(KINDS[step > 0 and (step == 1 or i % step == 1)] for i in per_layer({"n_layers": c[field]}))

    return kinds


class SwitchTransformers(T5):
    """Source: arXiv:2101.03961, section 2."""

    reference = "SwitchTransformersForConditionalGeneration"
    linear_routers = (".router.classifier.weight", ".wi.weight", ".wo.weight")
    linear_by_component = False
    float32_if_float16 = ()

    n_decoder_layers: Natural = hf("num_decoder_layers", null=decoder_layers(12))
    d_head: Positive = hf("d_kv")
    gated: Flag = derived(lambda js, c: False)
    encoder_kinds: Words = derived(
        every_so_often("n_layers", "num_layers", "num_sparse_encoder_layers", "encoder_sparse_step")
    )
    decoder_kinds: Words = derived(
        every_so_often("n_decoder_layers", "num_decoder_layers", "num_sparse_decoder_layers", "decoder_sparse_step")
    )
    n_routed_experts: Positive = hf("num_experts")
    router_bias: Flag = hf("router_bias")
    tie_word_embeddings: Flag = hf()
    scaled: Flag = derived(lambda js, c: flag(js, "tie_word_embeddings", True))

    activation = setting("dense_act_fn", default="relu")
    capacity = setting("expert_capacity", default=64)

    def shares_table(c) -> bool:
        return c.tie_word_embeddings

    def encoder_layers(c) -> list[tuple[str, int]]:
        return first_apart(c.encoder_kinds)

    def decoder_layers(c) -> list[tuple[str, int]]:
        return first_apart(c.decoder_kinds)

    def feed_forward(c, x: Data, prefix: str, kind: str) -> Data:
        if kind.endswith("dense"):
            return c.mlp(x, prefix + "mlp.", "mlp")
        logits = linear(x, prefix + "mlp.router.classifier", "router", c.n_routed_experts, bias=c.router_bias)
        weights = route(logits, 1, "softmax", capacity=c.capacity)
        name = prefix + "mlp.experts.expert_{expert}."
        return experts(x, weights, name, c.n_routed_experts, 1, lambda x: c.mlp(x, "", "experts"))

    def mlp(c, x: Data, prefix: str, component: str) -> Data:
        return plain_mlp(x, (prefix + "wi", prefix + "wo"), component, c.d_ff, activation=c.activation)

    def unreachable(c, tokens: Data) -> tuple[Unreachable, ...]:
        return () if c.tie_word_embeddings else unread_table(c, tokens, "shared.weight", c.vocab_size)

    def check(c) -> None:
        check_layer_types(c, "encoder_kinds", "n_layers", KINDS)
        check_layer_types(c, "decoder_kinds", "n_decoder_layers", KINDS)


class SwitchTransformersEncoder(SwitchTransformers):
    """The encoder alone."""

    reference = "SwitchTransformersEncoderModel"
    model_types = ("switch_transformers.SwitchTransformersEncoderModel",)
    conditions = OF_AN_ENCODER

    def forward(c, tokens: Data) -> Data:
        return c.encode(tokens)


def first_apart(kinds: Sequence[str]) -> list[tuple[str, int]]:
    """The first layer is a kind of its own: it has the table of relative positions."""
    return [(kind if i else "first " + kind, 1) for i, kind in enumerate(kinds)]
