"""JetMoE: attention is a mixture too, of pairs of query and output matrices over shared keys and values."""

from paramcount.flow import Data, add_vector, attend, fused, linear, reshape, rms_norm, rope, route, to_heads
from paramcount.flow.operations.structure import experts_apart, experts_on_parts
from paramcount.parts.decoder import Decoder
from paramcount.parts.stacked import stacked_experts
from paramcount.sizes import Flag, Natural, Positive, derived, hf, rotary, setting
from paramcount.sizes.conditions import padding_in_table


class JetMoe(Decoder):
    """Source: arXiv:2404.07413, section 2. Each attention expert has n_kv_heads query heads."""

    reference = "JetMoeForCausalLM"
    is_section_type = True
    task_heads = "SCORED"
    linear_routers = (".router.layer.weight",)
    linear_by_component = False
    unused_keys = ("num_attention_heads",)
    rotated = "d_head"
    conditions = (padding_in_table(None),)

    n_kv_heads: Positive = hf()
    d_head: Positive = hf("head_dim", "kv_channels")
    d_expert: Natural = hf("intermediate_size")
    n_routed_experts: Positive = hf("num_local_experts")
    n_active_experts: Natural = hf()
    n_heads: Positive = derived(lambda js, c: c["n_kv_heads"] * c["n_active_experts"])
    tie_word_embeddings: Flag = hf()

    activation = setting("activation_function", default="silu")
    rope = rotary(positions=4096)

    def layer(c, x: Data) -> Data:
        x = x + c.attention(rms_norm(x, "input_layernorm", 1e-6))  # only the last norm has rms_norm_eps
        return x + c.moe(rms_norm(x, "post_attention_layernorm", 1e-6))

    def attention(c, x: Data) -> Data:
        """Every chosen expert has n_kv_heads queries, one for each key."""
        prefix, n, active = "self_attention.experts.", c.n_routed_experts, c.n_active_experts
        heads = (c.n_kv_heads, c.d_head)
        chosen = c.choose(linear(x, prefix + "router.layer", "router", n))
        q = experts_apart(x, chosen, prefix, n, active, lambda x: linear(x, "input_linear", "qkv.q", heads))
        k, v = fused(x, "self_attention.kv_proj", {"qkv.k": heads, "qkv.v": heads})
        a = attend(rope(to_heads(q, c.n_heads, c.d_head), c.rope), rope(k, c.rope), v)
        y = experts_on_parts(
            reshape(a, c.n_kv_heads, active * c.d_head), c.d_head, chosen, prefix, n, active,
            lambda a: linear(a, "output_linear", "output_projection", c.d_model),
        )  # fmt: skip
        return add_vector(y, prefix + "bias", "output_projection", c.d_model)

    def moe(c, x: Data) -> Data:
        chosen = c.choose(linear(x, "mlp.router.layer", "router", c.n_routed_experts))
        y = stacked_experts(c, x, chosen, "mlp.", ("input_linear.weight", "output_linear.weight"))
        return add_vector(y, "mlp.bias", "experts.down", c.d_model)

    def choose(c, logits: Data) -> Data:
        return route(logits, c.n_active_experts, "softmax over chosen")
