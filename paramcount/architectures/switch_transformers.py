"""Switch Transformers: T5 with a mixture of experts in some layers, of which a token visits one."""

from collections.abc import Sequence

from paramcount.architectures.t5 import T5, EncoderAlone, decoder_layers
from paramcount.declare import Data, ops, parts, sizes

KINDS = ("dense", "sparse")


@sizes.options_first
def every_so_often(
    js: sizes.ConfigJson, c: sizes.FieldValues, field: str, layers_key: str, sparse_key: str, step_key: str
) -> tuple[str, ...]:
    """A sparse layer in every `step`, the second of them.

    The step is worked out before an alias overrides num_layers; without a sparse layer it is as long as the stack, so
    that the reference builds one all the same. Where config.json has the step, it counts.
    """
    n = (
        sizes.check_no_types(js, layers_key, 12)
        if js.get(layers_key, 12) is not None
        else sizes.check_no_types(js, "num_layers", 12)
    )
    n_sparse = js.get(sparse_key, 3)
    step = js.get(step_key, n // n_sparse if n_sparse > 0 else n)
    return tuple(KINDS[step > 0 and (step == 1 or i % step == 1)] for i in sizes.per_layer({"n_layers": c[field]}))


class SwitchTransformers(T5):
    """Source: arXiv:2101.03961, section 2."""

    reference = "SwitchTransformersForConditionalGeneration"
    linear_routers = (".router.classifier.weight", ".wi.weight", ".wo.weight")
    linear_by_component = False
    float32_if_float16 = ()

    n_decoder_layers: sizes.Natural = sizes.hf("num_decoder_layers", null=decoder_layers(12))
    d_head: sizes.Positive = sizes.hf("d_kv")
    gated: sizes.Flag = sizes.derived(lambda js, c: False)
    encoder_kinds: sizes.Words = sizes.derived(
        every_so_often("n_layers", "num_layers", "num_sparse_encoder_layers", "encoder_sparse_step")
    )
    decoder_kinds: sizes.Words = sizes.derived(
        every_so_often("n_decoder_layers", "num_decoder_layers", "num_sparse_decoder_layers", "decoder_sparse_step")
    )
    n_routed_experts: sizes.Positive = sizes.hf("num_experts")
    router_bias: sizes.Flag = sizes.hf("router_bias")
    tie_word_embeddings: sizes.Flag = sizes.hf()
    scaled: sizes.Flag = sizes.derived(lambda js, c: sizes.flag(js, "tie_word_embeddings", True))

    activation = sizes.setting("dense_act_fn")
    capacity = sizes.setting("expert_capacity")

    def shares_table(c) -> bool:
        return c.tie_word_embeddings

    def encoder_layers(c) -> list[tuple[str, int]]:
        return first_apart(c.encoder_kinds)

    def decoder_layers(c) -> list[tuple[str, int]]:
        return first_apart(c.decoder_kinds)

    def feed_forward(c, x: Data, prefix: str, kind: str) -> Data:
        if kind.endswith("dense"):
            return c.mlp(x, prefix + "mlp.", "mlp")
        logits = ops.linear(x, prefix + "mlp.router.classifier", "router", c.n_routed_experts, bias=c.router_bias)
        weights = ops.limit_capacity(ops.route(logits, 1, "softmax"), c.capacity)
        name = prefix + "mlp.experts.expert_{expert}."
        return ops.experts(x, weights, name, c.n_routed_experts, 1, lambda x: c.mlp(x, "", "experts"))  # [n, d_model]

    def mlp(c, x: Data, prefix: str, component: str) -> Data:
        return parts.plain_mlp(x, (prefix + "wi", prefix + "wo"), component, c.d_ff, activation=c.activation)

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        return () if c.tie_word_embeddings else parts.unread_table(c, tokens, "shared.weight", c.vocab_size)

    def check(c) -> None:
        sizes.check_layer_types(c, "encoder_kinds", "n_layers", KINDS)
        sizes.check_layer_types(c, "decoder_kinds", "n_decoder_layers", KINDS)


class SwitchTransformersEncoder(EncoderAlone, SwitchTransformers):
    reference = "SwitchTransformersEncoderModel"
    model_types = ("switch_transformers.SwitchTransformersEncoderModel",)


def first_apart(kinds: Sequence[str]) -> list[tuple[str, int]]:
    """The first layer is a kind of its own: it has the table of relative positions."""
    return [(kind if i else "first " + kind, 1) for i, kind in enumerate(kinds)]
