"""Ling 1 and 2: fused q, k and v with grouped-query attention, fine-grained experts with shared ones.

Version 2 normalizes queries and keys and routes as DeepSeek-V3 does.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, describe_value


class BailingMoe(parts.AttentionDecoder):
    """Source: arXiv:2503.05139; configuration_bailing_moe.py and modeling_bailing_moe.py of github
    inclusionAI/Ling@5ccaeae073d6.
    """

    reference = "BailingMoeForCausalLM of inclusionAI/Ling-lite"
    rotated = None
    conditions: ClassVar[tuple[sizes.Condition, ...]] = (sizes.padding_in_table(126081),)
    defaults = {"vocab_size": 30592, "d_model": 1024, "n_layers": 24, "n_heads": 16}

    n_kv_heads: sizes.Positive = sizes.hf()
    # Null and 0 stand for d_model / n_heads.
    d_head: sizes.Positive = sizes.derived(lambda js, c: js.get("head_dim") or sizes.d_model_per_head(js, c))
    d_rope: sizes.Positive = sizes.derived(sizes.equal_to("d_head"))
    n_dense_layers: sizes.Natural = sizes.hf(absent=0, at_most="n_layers")
    d_expert: sizes.Natural = sizes.hf()
    n_routed_experts: sizes.Positive = sizes.hf("num_experts", absent=16)
    n_active_experts: sizes.Natural = sizes.hf(absent=2)
    n_shared_experts: sizes.Natural = sizes.hf("num_shared_experts", absent=0, null=0)
    qkv_bias: sizes.Flag = sizes.hf("use_qkv_bias", absent=False)
    o_bias: sizes.Flag = sizes.hf("use_bias", absent=True)

    names = ("word_embeddings", "layers", "norm")
    norm_eps = sizes.setting("rms_norm_eps", default=1e-5)
    rope = sizes.rotary(positions=16384)
    norm_topk_prob = sizes.setting("norm_topk_prob", default=True)
    kinds = parts.dense_first

    def layer(c, x: Data, kind: str) -> Data:
        x = x + c.attention(c.norm(x, "input_layernorm"))
        h = c.norm(x, "post_attention_layernorm")
        if kind == "moe":
            return x + parts.shared_mixture(c, h, "mlp.", choose=c.choose)
        return x + c.gated_mlp(h)

    def attention(c, x: Data) -> Data:
        heads, few = (c.n_heads, c.d_head), (c.n_kv_heads, c.d_head)
        shares = {"qkv.q": heads, "qkv.k": few, "qkv.v": few}
        q, k, v = ops.fused(x, "attention.query_key_value", shares, bias=c.qkv_bias)
        q, k = c.prepare(q, k)
        a = ops.attend_causally(parts.partial_rope(q, c.d_rope, c.rope), parts.partial_rope(k, c.d_rope, c.rope), v)
        return ops.linear(a, "attention.dense", "output_projection", c.d_model, bias=c.o_bias)

    def prepare(c, q: Data, k: Data) -> tuple[Data, Data]:
        """What q and k go through before the rotation."""
        return q, k

    def choose(c, logits: Data) -> Data:
        return ops.route(logits, c.n_active_experts, "softmax", normalise=c.norm_topk_prob)

    def check(c) -> None:
        sizes.check_even(c, "d_rope")


def without_mtp(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if js.get("num_nextn_predict_layers", 0):
        found = f"= {describe_value(js['num_nextn_predict_layers'])} is not supported"
        raise ParamcountError(found, where="num_nextn_predict_layers", expected="0")


def stated(name: str) -> Callable[[Mapping[str, Any], Any], Any]:
    """The value of a key whose default is not published."""
    return lambda config, c: config[name]


def stated_rope(config: Mapping[str, Any], c: Any) -> ops.Rope:
    scaling = config.get("rope_scaling") or {}
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    return sizes.make_rope(kind, config["rope_theta"], scaling, config, 32768)


class BailingMoeV2(BailingMoe):
    """Source: arXiv:2510.22115; configuration_bailing_moe_v2.py and modeling_bailing_moe_v2.py of github
    inclusionAI/Ling-V2@af8837e677a1.
    """

    reference = "BailingMoeV2ForCausalLM of inclusionAI/Ling-mini-2.0"
    model_types = ("bailing_moe_v2",)
    conditions = (sizes.padding_in_table(156892), sizes.grouped_routing(8, 4), without_mtp)
    defaults = {
        "vocab_size": 157184, "d_model": 2048, "n_layers": 20, "n_kv_heads": 4, "d_ff": 5120, "n_dense_layers": 1,
        "d_expert": 512,
        "n_routed_experts": 256, "n_active_experts": 8, "n_shared_experts": 1, "o_bias": False,
    }  # fmt: skip

    d_head: sizes.Positive = sizes.derived(lambda js, c: js.get("head_dim", 128) or sizes.d_model_per_head(js, c))
    d_rope: sizes.Positive = sizes.derived(sizes.rotary_dimension(1.0, paired=False))
    qk_norm: sizes.Flag = sizes.hf("use_qk_norm", absent=True)

    norm_eps = sizes.setting(
        "rms_norm_eps", default=stated("rms_norm_eps"), kind=sizes.LEAST_ZERO._replace(takes_null=False)
    )
    rope = sizes.setting(default=stated_rope)
    routed_scale = sizes.setting(
        "routed_scaling_factor", default=stated("routed_scaling_factor"), kind=sizes.NUMBER._replace(takes_null=False)
    )
    n_groups = sizes.setting("n_group", default=8)
    n_active_groups = sizes.setting("topk_group", default=4)

    def prepare(c, q: Data, k: Data) -> tuple[Data, Data]:
        if not c.qk_norm:
            return q, k
        return c.norm(q, "attention.query_layernorm"), c.norm(k, "attention.key_layernorm")

    def choose(c, logits: Data) -> Data:
        return parts.choose_in_groups(c, logits, parts.routing_bias(c, "mlp.gate.expert_bias"), normalise=True)
