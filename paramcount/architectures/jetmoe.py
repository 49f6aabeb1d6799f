"""JetMoE: attention is a mixture too, of pairs of query and output matrices over shared keys and values."""

from paramcount.declare import Data, ops, parts, sizes


class JetMoe(parts.Decoder):
    """Source: arXiv:2404.07413, section 2. Each attention expert has n_kv_heads query heads."""

    reference = "JetMoeForCausalLM"
    is_section_type = True
    task_heads = "SCORED"
    linear_routers = (".router.layer.weight",)
    linear_by_component = False
    unused_keys = ("num_attention_heads",)
    rotated = "d_head"
    conditions = (sizes.padding_in_table(None),)

    n_kv_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.hf("head_dim", "kv_channels")
    d_expert: sizes.Natural = sizes.hf("intermediate_size")
    n_routed_experts: sizes.Positive = sizes.hf("num_local_experts")
    n_active_experts: sizes.Natural = sizes.hf()
    n_heads: sizes.Positive = sizes.derived(lambda js, c: c["n_kv_heads"] * c["n_active_experts"])

    activation = sizes.setting("activation_function")
    rope = sizes.rotary()

    def layer(c, x: Data) -> Data:
        x = x + c.attention(ops.rms_norm(x, "input_layernorm", 1e-6))  # only the last norm has rms_norm_eps
        return x + c.moe(ops.rms_norm(x, "post_attention_layernorm", 1e-6))

    def attention(c, x: Data) -> Data:
        """Every chosen expert has n_kv_heads queries, one for each key."""
        prefix, n, active = "self_attention.experts.", c.n_routed_experts, c.n_active_experts
        heads = (c.n_kv_heads, c.d_head)
        chosen = c.choose(ops.linear(x, prefix + "router.layer", "router", n))  # [n, experts], 0 if not chosen
        q = ops.experts_apart(x, chosen, prefix, n, active, lambda x: ops.linear(x, "input_linear", "qkv.q", heads))
        k, v = ops.fused(x, "self_attention.kv_proj", {"qkv.k": heads, "qkv.v": heads})
        a = ops.attend_causally(ops.rope(ops.to_heads(q, c.n_heads, c.d_head), c.rope), ops.rope(k, c.rope), v)
        y = ops.experts_on_parts(
            ops.reshape(a, c.n_kv_heads, active * c.d_head), c.d_head, chosen, prefix, n, active,
            lambda a: ops.linear(a, "output_linear", "output_projection", c.d_model),
        )  # fmt: skip
        return ops.add_vector(y, prefix + "bias", "output_projection", c.d_model)

    def moe(c, x: Data) -> Data:
        chosen = c.choose(ops.linear(x, "mlp.router.layer", "router", c.n_routed_experts))
        y = parts.stacked_experts(c, x, chosen, "mlp.", ("input_linear.weight", "output_linear.weight"))
        return ops.add_vector(y, "mlp.bias", "experts.down", c.d_model)

    def choose(c, logits: Data) -> Data:
        return ops.softmax_of_top(logits, c.n_active_experts)
