"""MoBA: each token attends to its own block of keys and to those blocks whose mean keys fit its query best."""

from typing import Any

from paramcount.architectures.transformer import FlaTransformer
from paramcount.declare import Data, ops, parts, sizes


class Moba(FlaTransformer):
    """Source: arXiv:2502.13189; MoBA in fla/layers/moba.py of fla-org/flash-linear-attention."""

    reference = "MoBAForCausalLM of fla-org/flash-linear-attention"
    unused_keys = (*FlaTransformer.unused_keys, "use_flash_moba")

    block_size: sizes.Positive = sizes.hf("moba_chunk_size", absent=256)
    n_chosen_blocks: sizes.Positive = sizes.hf("moba_topk", absent=4)
    output_gate: sizes.Flag = sizes.hf("use_output_gate", absent=False)

    def mixer(c: Any, x: Data, prefix: str, *reads: Data) -> Data:
        q, k, v = c.project_heads(x, prefix, bias=c.attention_bias)  # [n, heads, d_head]
        q, k = c.prepare(q, k)
        chosen = Data("choose blocks by their mean keys", (q, k), (q.shape[0], c.n_chosen_blocks))
        mask = ops.Causal() & ops.Chosen(chosen, c.block_size)
        a = ops.attend(q, ops.cache(k), ops.cache(v), mask=mask)  # [n, n_heads, d_head]
        a = ops.rms_norm(a, prefix + "o_norm", 1e-6)
        if c.output_gate:
            rank = ops.linear(x, prefix + "g_proj.0", "mixer.gate", c.d_head)
            gate = ops.linear(rank, prefix + "g_proj.1", "mixer.gate", (c.n_heads, c.d_head))
            a = a * ops.activate(gate, "sigmoid")
        return parts.project_output(a, prefix + "o_proj", x.shape[-1])
