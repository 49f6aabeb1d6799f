"""The resampler of Qwen-VL and MiniCPM-V: learned queries attend to the patches of an image.

Source: arXiv:2308.12966, section 2.1; Resampler of visual.py of Qwen/Qwen-VL and of resampler.py of
openbmb/MiniCPM-V-2_6.
"""

from __future__ import annotations

from typing import NamedTuple

from paramcount import flow as ops
from paramcount.flow import Data

D_HEAD = 128  # of all of them


class Resampler(NamedTuple):
    """Its sizes. `widens`: a matrix leads from patches to d_model. `has_table`: it holds the places of its queries,
    which are computed but are parameters.
    """

    n_queries: ops.Size
    n_heads: ops.Size
    d_model: ops.Size
    widens: bool = True
    has_table: bool = False


def resample(c: Resampler, x: Data) -> Data:
    """Patches to as many vectors as there are queries, [queries, d_model]."""
    width, heads = c.d_model, (c.n_heads, D_HEAD)
    memory = ops.norm(ops.linear(x, "kv_proj", "projector", width) if c.widens else x, "ln_kv", bias=True)
    query = Data("query", (x,), ("image", width), (ops.Weight("query", "projector", (c.n_queries, width)),))
    query = ops.norm(query, "ln_q", bias=True)
    if c.has_table:
        query = ops.elementwise(query, "positions", "pos_embed", "position", c.n_queries, width)
    thirds = {"qkv.q": heads, "qkv.k": heads, "qkv.v": heads}
    q, _, _ = ops.fused(query, "attn.in_proj_", thirds, bias=True, suffixes=("weight", "bias"))
    k, v = (Data("split", (q.inputs[0], memory), (memory.shape[0], *heads)) for _ in "kv")
    return ops.linear(ops.attend(q, k, v), "attn.out_proj", "output_projection", width, bias=True)
