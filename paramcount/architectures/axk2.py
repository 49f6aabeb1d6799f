"""A.X K2: DeepSeek-V3.2's sparse attention with a gate from the query latent, and norms with a low-rank gate."""

from paramcount.architectures.deepseek_v32 import DeepseekV32
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, describe_value


def groups_are_sound(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """Asked by the reference whether a layer has experts or not."""
    groups, kept = js.get("n_group"), js.get("topk_group")
    if (groups is None) != (kept is None):
        raise ParamcountError(
            f"= {describe_value(groups)}, but topk_group = {describe_value(kept)}",
            where="n_group",
            expected="both integers or both null",
        )
    if groups is not None and js.get("num_local_experts", 0) is None:
        raise ParamcountError(
            "= null, but n_group is set", where="num_local_experts", expected="an integer, or n_group = null"
        )
    if groups is not None and (c["n_routed_experts"] % groups or kept > groups):
        raise ParamcountError(
            f"= {describe_value(groups)}, with topk_group = {describe_value(kept)} and {c['n_routed_experts']} experts",
            where="n_group",
            expected="a divisor of the number of experts that is at least topk_group",
        )


class AXK2(DeepseekV32):
    """Source: modeling_axk2.py of the reference, AXK2DecoderLayer. `d_norm_gate`: the waist of a norm's gate."""

    reference = "AXK2ForCausalLM"
    task_heads = "GENERIC"
    modules = {
        ".self_attn.q_b_proj": (".self_attn.q_gate_proj",), ".W_down": (".mlp.fc1",), ".W_up": (".mlp.fc2",),
    }  # fmt: skip
    adapts_experts = False
    conditions = (
        groups_are_sound,
        sizes.grouped_routing(None, None, optional=True),
        sizes.latent_heads_stay_whole(32, masked=True),
        sizes.padding_in_table(None),
        sizes.not_null("n_routed_experts", "num_key_value_heads"),
    )
    defaults = {"vocab_size": 163840, "d_model": 2048, "n_layers": 48}  # fmt: skip

    dense_layers: sizes.Indices = sizes.derived(sizes.dense_by_type(sizes.every_sparse))
    n_routed_experts: sizes.Natural = sizes.hf(
        "num_local_experts", "n_routed_experts", null=sizes.needed("num_local_experts"), late=True
    )
    n_mtp_layers: sizes.Natural = sizes.derived(lambda js, c: 0)  # how a release stores them is not known
    d_norm_gate: sizes.Positive = sizes.hf("gated_norm_rank")

    def layer(c, x: Data, kind: str) -> Data:
        x = x + c.attention(c.gated_norm(x, "input_layernorm."), "self_attn.")
        if kind == "moe":
            h = c.gated_norm(x, "post_attention_layernorm.")
            return x + c.moe(h)
        return x + c.mlp(c.norm(x, "post_attention_layernorm"))

    def gated_norm(c, x: Data, prefix: str) -> Data:
        y = c.norm(x, prefix + "norm")
        waist = ops.activate(ops.linear(y, prefix + "W_down", "other", c.d_norm_gate), "silu")
        return y * ops.activate(ops.linear(waist, prefix + "W_up", "other", c.d_model), "sigmoid")

    def attention(c, x: Data, prefix: str) -> Data:
        """Queries and gate come out of one matrix over the latent, normed and as it was."""
        raw = ops.linear(x, prefix + "q_a_proj", "qkv.q_down", c.d_q_lora, bias=c.attention_bias)
        latent = ops.rms_norm(raw, prefix + "q_a_layernorm", parts.LATENT_EPS)
        heads = (c.n_heads, c.d_nope + c.d_rope + c.d_v)
        both = ops.linear(ops.join(latent, raw), prefix + "q_b_proj", "qkv.q_up", heads)
        q, gate = ops.split(both, c.d_nope + c.d_rope, c.d_v)
        chosen = parts.index_tokens(c, x, latent, prefix + "indexer.")
        return parts.latent_attention(
            c, x, prefix, bias=c.attention_bias, q=q, chosen=chosen, gate=lambda x, a: a * ops.activate(gate, "sigmoid")
        )

    def choose(c, logits: Data) -> Data:
        """DeepSeek-V3's rule, but an expert of another group is chosen if the biased scores are negative."""
        return parts.choose_in_groups(c, logits, parts.routing_bias(c, c.routing_bias), excluded=0.0)

    def mtp(c, tokens: Data) -> Data | None:
        return None
