"""NSA: attention to compressed blocks, to chosen blocks and to a window, which gates of each head add up."""

from paramcount.architectures.transformer import FlaTransformer
from paramcount.declare import Data, ops, parts, sizes


class Nsa(FlaTransformer):
    """Source: arXiv:2502.11089, section 3; NativeSparseAttention in fla/layers/nsa.py of
    fla-org/flash-linear-attention."""

    reference = "NSAForCausalLM of fla-org/flash-linear-attention"

    n_heads: sizes.Positive = sizes.hf("num_heads", absent=64)
    n_kv_heads: sizes.Positive = sizes.hf("num_kv_heads", absent=4, null=sizes.equal_to("n_heads"))
    d_head: sizes.Positive = sizes.hf("head_dim", absent=32)
    qk_norm = sizes.constant(False)
    block_size: sizes.Positive = sizes.hf("block_size", absent=64)
    n_chosen_blocks: sizes.Positive = sizes.hf("block_counts", absent=16)
    window: sizes.Positive = sizes.hf("window_size", absent=512)

    def mixer(c, x: Data, prefix: str, *reads: Data) -> Data:
        q, k, v = c.project_heads(x, prefix, bias=c.attention_bias)  # [n, heads, d_head]
        q, k = c.prepare(q, k)
        gates = ops.activate(ops.linear(x, prefix + "g_proj", "mixer.gate", 3 * c.n_heads), "sigmoid")
        k, v = ops.cache(k), ops.cache(v)
        blocks = ops.mean_of_blocks(k, c.block_size), ops.mean_of_blocks(v, c.block_size)
        chosen = Data("choose blocks", (q, blocks[0]), (q.shape[0], c.n_chosen_blocks))
        attended = (
            ops.attend(q, *blocks, mask=ops.CompressedBlocks(c.block_size)),
            ops.attend(q, k, v, mask=ops.Causal() & ops.Chosen(chosen, c.block_size)),
            ops.attend(q, k, v, mask=ops.Causal() & ops.Window(c.window)),
        )
        a = Data("sum, each times a gate for each head", (*attended, gates), q.shape)  # [n, n_heads, d_head]
        return parts.project_output(a, prefix + "o_proj", x.shape[-1])

    def check(c) -> None:
        sizes.check_divides(c, "n_kv_heads", "n_heads")
        n = c.n_heads // c.n_kv_heads
        if n < 16 or n & (n - 1):  # its kernels take no other number
            raise sizes.make_value_error(c.n_kv_heads, "num_kv_heads", "a 16th, 32nd, 64th or so of num_heads")
