"""OLMo 2 and 3: norms behind attention and MLP instead of before them, a norm over all queries and one over all keys.

In OLMo 3 three layers of four look back over a window.
"""

from functools import partial

from paramcount.architectures.olmo import Olmo
from paramcount.declare import Data, ops, parts, sizes


class Olmo2(Olmo):
    """Source: arXiv:2501.00656, section 2."""

    reference = "Olmo2ForCausalLM"
    gguf = "olmo2"
    gguf_names = {"post_attention_layernorm": "post_attention_norm"}
    task_heads = "SCORED"
    linear_by_component = True

    norm_eps = sizes.setting("rms_norm_eps")

    def layer(c, x: Data, kind: str = "full_attention") -> Data:
        x = x + c.norm(c.attend(x, kind), "post_attention_layernorm")
        h = c.gated_mlp(x)
        return x + c.norm(h, "post_feedforward_layernorm")

    norms_heads = "wide"

    def attend(c, x: Data, kind: str) -> Data:
        return c.self_attention(x, bias=c.attention_bias)

    def norm(c, x: Data, name: str) -> Data:
        return ops.rms_norm(x, name, c.norm_eps)


class Olmo3(parts.SlidingLayers, Olmo2):
    """Source: modeling_olmo3.py of the reference."""

    reference = "Olmo3ForCausalLM"
    model_types = ("olmo3",)
    gguf = "olmo2"
    task_heads = "SCORED"

    layer_types: sizes.Words = sizes.hf(absent=sizes.full_every(4), null=sizes.ABSENT)
    window: sizes.Positive = sizes.hf()  # the reference refuses null even if no layer uses it

    rope = sizes.filled_rotary("full_attention", 500_000)
    local_rope = sizes.filled_rotary("sliding_attention", 500_000, key="", scaled=False)

    def attend(c, x: Data, kind: str) -> Data:
        angles, window = (c.local_rope, c.window) if kind == "sliding_attention" else (c.rope, None)
        prepare = c.prepare_by(partial(ops.rope, settings=angles))
        return c.self_attention(x, bias=c.attention_bias, prepare=prepare, window=window)
