"""OpenMoE: Llama's layers with heads of any size and scores that are not scaled; every few layers have experts, and
another MLP behind them. Gates are SwiGLU of twice the width.
"""

from functools import partial

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import describe_value


def list_layer_types(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    """The last of every `moe_layer_interval` layers has experts."""
    every = js.get("moe_layer_interval")
    if type(every) is not int or every < 1:
        raise sizes.make_value_error(every, "moe_layer_interval", "a positive integer")
    return tuple("moe" if (i + 1) % every == 0 else "dense" for i in sizes.per_layer(c))


def as_built(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The authors' code reads neither key, and builds gated experts of which two are chosen."""
    for key, value in (("topk", 2), ("gated", True)):
        if js.get(key, value) != value:
            raise sizes.make_value_error(js[key], key, describe_value(value))


class OpenMoe(parts.RoutedExperts, parts.AttentionDecoder):
    """Tokens beyond an expert's capacity, which the authors' code drops, are not.

    Source: arXiv:2402.01739, section 3; modeling_openmoe.py of hpcaitech/ColossalAI, which reads LlamaConfig.
    """

    reference = "OpenMoeForCausalLM of hpcaitech/ColossalAI"
    config_class = "LlamaConfig"
    base_model = "OpenMoeModel"
    released_as = {"llama": ("OpenMoe",)}
    is_section_type = False
    required_keys = ("head_dim", "num_experts", "moe_layer_interval")
    conditions = (
        sizes.one_of("hidden_act", ("swiglu",), "silu"),
        as_built,
    )

    d_expert: sizes.Natural = sizes.hf("intermediate_size")
    n_active_experts = sizes.constant(2)  # whatever the key says
    layer_types: sizes.Words = sizes.derived(list_layer_types)

    activation = "silu"
    norm_eps = sizes.setting("rms_norm_eps", default=1e-6)
    rope = ops.Rope(10_000.0)
    kinds = parts.layers_by_type

    def layer(c, x: Data, kind: str) -> Data:
        mix = partial(ops.attend_causally, scale=1.0)
        x = x + c.self_attention(c.norm(x, "input_layernorm"), mix=mix)
        h = c.norm(x, "post_attention_layernorm")
        if kind == "dense":
            return x + c.mlp(h, "mlp.")
        x = x + c.moe(h)
        return x + c.mlp(c.norm(x, "pre_extra_mlp_layernorm"), "extra_mlp.")

    def mlp(c, x: Data, prefix: str) -> Data:
        gate = ops.linear(x, prefix + "gate_proj", "mlp.gate", 2 * c.d_ff)  # [n, 2 · d_ff]
        up = ops.linear(x, prefix + "up_proj", "mlp.up", c.d_ff)  # [n, d_ff]
        return ops.linear(c.swish(gate, c.d_ff) * up, prefix + "down_proj", "mlp.down", c.d_model)

    def moe(c, x: Data) -> Data:
        n, active = c.n_routed_experts, c.n_active_experts
        (logits,) = ops.fused(x, "mlp.gate_weight", {"router": n}, suffixes=("", ""))
        scores = ops.route(logits, active, "softmax")  # [n, experts]
        return ops.experts(x, scores, "mlp.experts.", n, active, c.expert, stored="stacked")

    def expert(c, x: Data) -> Data:
        """Stored [in, out]."""

        def stored(x: Data, name: str, share: str, width: ops.Size) -> Data:
            return ops.fused(x, name, {f"experts.{share}": width}, transposed=True, suffixes=("", ""))[0]

        gate, up = stored(x, "wi_gate", "gate", 2 * c.d_expert), stored(x, "wi_up", "up", c.d_expert)
        return stored(c.swish(gate, c.d_expert) * up, "wo", "down", c.d_model)

    def swish(c, gate: Data, width: ops.Size) -> Data:
        """The first half of a gate, gated by the second."""
        first, second = ops.split(gate, width, width)
        return first * ops.activate(second, c.activation)
