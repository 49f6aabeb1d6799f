"""NLLB-MoE: M2M-100 with a mixture of experts in every fourth layer, of which a token visits two."""

from collections.abc import Mapping
from typing import Any

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError

KINDS = ("dense", "sparse")
N_ACTIVE = 2
ROUTER_DTYPES = ("float32", "float16", "bfloat16")


@sizes.options_first
def every_sparse(js: sizes.ConfigJson, c: sizes.FieldValues, field: str, key: str) -> tuple[str, ...]:
    """A sparse layer at the end of each group; `key` has the number of layers in a group, 0 for no sparse layer."""
    step = js.get(key, 4)
    return tuple(KINDS[step > 0 and (i + 1) % step == 0] for i in range(c[field]))


def share_of_expert(config: Mapping[str, Any], c: Any) -> float:
    """What an expert's output is multiplied by: in training, some are left out. Source: NllbMoeExperts."""
    if config.get("second_expert_policy", "all") != "all" or config.get("moe_eval_capacity_token_fraction", 1.0) < 1:
        raise ValueError("leaves out experts by chance or by their load")
    return 1.0 - float(config.get("moe_token_dropout", 0.2))


class NllbMoe(parts.SinusoidalSeq2Seq):
    """Source: arXiv:2207.04672, section 6.2; modeling_nllb_moe.py of the reference."""

    reference = "NllbMoeForConditionalGeneration"
    model_types = ("nllb-moe",)
    linear_routers = (".router.classifier.weight", ".fc1.weight", ".fc2.weight")
    conditions = (*parts.SinusoidalSeq2Seq.conditions, sizes.one_of("router_dtype", ROUTER_DTYPES, "float32"))

    encoder_kinds: sizes.Words = sizes.derived(every_sparse("n_encoder_layers", "encoder_sparse_step"))
    decoder_kinds: sizes.Words = sizes.derived(every_sparse("n_decoder_layers", "decoder_sparse_step"))
    n_routed_experts: sizes.Positive = sizes.hf("num_experts")
    router_bias: sizes.Flag = sizes.hf("router_bias")

    share = sizes.setting(default=share_of_expert)

    def stack(c, s: parts.Stack, x: Data, prefix: str, *memory: Data) -> Data:
        kinds = [(kind, 1) for kind in (c.decoder_kinds if memory else c.encoder_kinds)]
        x = ops.layers(x, prefix + "layers.{layer}.", kinds, lambda kind, x, *m: c.layer(s, x, kind, *m), reads=memory)
        return c.norm(x, prefix + "layer_norm")

    def layer(c, s: parts.Stack, x: Data, kind: str, *memory: Data) -> Data:
        x = x + parts.multi_head(
            s, c.norm(x, "self_attn_layer_norm"), "self_attn.", mix=parts.causally_if(bool(memory))
        )
        for m in memory:
            x = parts.crossing(
                x, "", lambda x, m: x + c.cross_attention(s, c.norm(x, "cross_attention_layer_norm"), m), m
            )
        h = c.norm(x, "ff_layer_norm")
        return x + (c.mlp(h, s, "ffn.", "mlp") if kind == "dense" else c.mixture(h, s))

    def cross_attention(c, s: parts.Stack, x: Data, memory: Data) -> Data:
        return parts.multi_head(s, x, "cross_attention.", memory=memory)

    def mlp(c, x: Data, s: parts.Stack, prefix: str, component: str) -> Data:
        names = (prefix + "fc1", prefix + "fc2")
        return parts.plain_mlp(x, names, component, s.d_ff, activation=c.activation, bias=True)

    def mixture(c, x: Data, s: parts.Stack) -> Data:
        logits = ops.linear(x, "ffn.router.classifier", "router", c.n_routed_experts, bias=c.router_bias)
        weights = ops.route(logits, N_ACTIVE, "softmax", normalise=True, factor=c.share)
        name = "ffn.experts.expert_{expert}."
        return ops.experts(x, weights, name, c.n_routed_experts, N_ACTIVE, lambda x: c.mlp(x, s, "", "experts"))

    def check(c) -> None:
        super().check()
        sizes.check_layer_types(c, "encoder_kinds", "n_encoder_layers", KINDS)
        sizes.check_layer_types(c, "decoder_kinds", "n_decoder_layers", KINDS)
        if "sparse" in (*c.encoder_kinds, *c.decoder_kinds) and c.n_routed_experts < N_ACTIVE:
            found = f"= {c.n_routed_experts}, but a token uses {N_ACTIVE} experts"
            raise ParamcountError(found, where=FieldName("n_routed_experts"), expected=f"at least {N_ACTIVE}")
