"""Mistral Small 4: latent attention whose queries grow with their position, and experts that a softmax chooses."""

from collections.abc import Mapping
from typing import Any

from paramcount.architectures.ministral3 import growth, growth_is_stated, growth_step
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, describe_value

SCALED = {  # the reference's default of rope_parameters
    "rope_type": "yarn", "rope_theta": 10_000.0, "factor": 128.0, "original_max_position_embeddings": 8192,
    "beta_fast": 32.0, "beta_slow": 1.0, "mscale_all_dim": 1.0, "mscale": 1.0, "llama_4_scaling_beta": 0.1,
}  # fmt: skip


def angles_fill(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The angles fill the rotated part of a head. The reference computes unscaled ones for the whole head."""
    rope = sizes.find_parameters(js, SCALED)
    kind = sizes.find_kind(rope)
    d_head = c["d_nope"] + c["d_rope"]
    share = 1.0 if kind == "default" else rope.get("partial_rotary_factor", c["d_rope"] / d_head)
    n_pairs = (sizes.part_of(js.get("head_dim", d_head), share) + 1) // 2
    is_broadcast = n_pairs == 1 and js.get("rope_interleave", True)
    if 2 * n_pairs != c["d_rope"] and not is_broadcast:
        raise ParamcountError(
            f"= {describe_value(kind)} rotates {2 * n_pairs} values of a head, qk_rope_head_dim = {c['d_rope']}",
            where="rope_parameters.rope_type",
            expected="yarn, or another one whose partial_rotary_factor is the rotated share of a head",
        )


def read_scale(config: Mapping[str, Any], c: Any) -> float | None:
    has_rope = config.get("rope_scaling") or config.get("rope_parameters")
    return sizes.scale_with_yarn(config if has_rope else {"rope_parameters": SCALED}, c)


class Mistral4(parts.LatentMixture):
    """Source: modeling_mistral4.py of the reference."""

    reference = "Mistral4ForCausalLM"
    gguf = "mistral4"
    task_heads = "GENERIC"
    adapts_experts = False
    conditions = (
        sizes.grouped_routing(1, 1),
        sizes.latent_heads_stay_whole(32),
        sizes.padding_in_table(11),
        growth_is_stated(SCALED),
        angles_fill,
    )

    n_dense_layers: sizes.Natural = sizes.hf(at_most="n_layers")
    n_routed_experts: sizes.Positive = sizes.hf("num_local_experts", "n_routed_experts")
    n_active_experts: sizes.Natural = sizes.hf(null=sizes.unvisited, late=True)
    n_shared_experts: sizes.Natural = sizes.hf()

    rope = sizes.unchecked(sizes.rotary(positions=1_048_576, absent=SCALED))
    attention_scale = sizes.setting(default=read_scale)
    beta = growth(SCALED)
    original_length = growth_step(1_048_576, SCALED)
    kinds = parts.dense_first

    def attend(c, x: Data) -> Data:
        return parts.latent_attention(c, x, "self_attn.", bias=c.attention_bias, q=c.queries(x))

    def queries(c, x: Data) -> Data:
        """They grow with the logarithm of the position, in steps."""
        q = parts.queries(c, x, "self_attn.", bias=c.attention_bias)
        return ops.scale_in_steps(q, c.original_length, c.beta)

    def moe(c, x: Data) -> Data:
        weights = c.choose(ops.linear(x, "mlp.gate", "router", c.n_routed_experts))
        return parts.stacked_experts(c, x, weights, "mlp.experts.") + parts.shared_experts(c, x, "mlp.")

    def choose(c, logits: Data) -> Data:
        """Source: Mistral4TopkRouter."""
        return parts.choose_in_groups(c, logits, scoring="softmax")
