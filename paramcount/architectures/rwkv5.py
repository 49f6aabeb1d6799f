"""RWKV-5: time mixing with a matrix as the state of each head, a learned decay and a gate; channel mixing."""

from typing import Any

from paramcount.architectures.rwkv import mix
from paramcount.declare import Data, ops, parts


class Rwkv5(parts.RwkvWorld):
    """Source: arXiv:2404.05892, section 3; modeling_rwkv5.py of RWKV/rwkv-5-world-1b5."""

    reference = "Rwkv5ForCausalLM of RWKV/rwkv-5-world-1b5"

    def mix_time(c: Any, x: Data, prefix: str) -> Data:
        before = ops.token_before(x)
        difference = x + ops.scale_by(before, -1.0, "negate")
        names = ("receptance", "key", "value", "gate")
        r, k, v, g = (mix(difference, before, f"{prefix}time_mix_{name}", "mixer.mix") for name in names)
        heads = (c.n_heads, c.d_head)
        held = tuple(ops.Weight(prefix + name, "mixer.state", heads) for name in ("time_decay", "time_faaaa"))
        r, k, v, g = c.project(prefix, r, k, v, g)
        return c.mix_out(Data(ops.LearnedBonusState(*heads, c.d_head, False), (r, k, v), v.shape, held), g, prefix)

    def mix_channels(c: Any, x: Data, prefix: str) -> Data:
        before = ops.token_before(x)
        difference = x + ops.scale_by(before, -1.0, "negate")
        k = mix(difference, before, prefix + "time_mix_key", "mlp.mix")
        r = mix(difference, before, prefix + "time_mix_receptance", "mlp.mix")
        return c.gate_channels(k, r, prefix)
