"""Stick-breaking attention in flame: the nearest keys first take their share of what is left, without positions."""

from paramcount.architectures.transformer import FlaTransformer
from paramcount.declare import Data, ops, parts, sizes


class StickBreaking(FlaTransformer):
    """Source: arXiv:2410.17980, section 3; SBA in custom_models/sba/sba_layer.py of fla-org/flame, which reads no
    window and no base of positions."""

    reference = "SBAForCausalLM of fla-org/flame"
    rotated = None
    unused_keys = ("hidden_ratio", "window_size", "rope_theta", "attention_bias")
    qk_norm = sizes.constant(False)
    window = sizes.constant(None)
    rope = None

    def mixer(c, x: Data, prefix: str, *reads: Data) -> Data:
        q, k, v = c.project_heads(x, prefix, bias=c.attention_bias)  # [n, n_heads, d_head]
        k, v = ops.cache(k, ops.Causal()), ops.cache(v, ops.Causal())
        a = ops.weighted_sum(ops.break_sticks(ops.scores(q, k)), v)  # [n, n_heads, d_head]
        return parts.project_output(a, prefix + "o_proj", x.shape[-1])

    def check(c) -> None:
        sizes.check_heads_fill(c)
        if c.n_kv_heads != c.n_heads:  # its kernel reads a key of each head
            raise sizes.make_value_error(c.n_kv_heads, "num_kv_heads", f"null or num_heads = {c.n_heads}")
