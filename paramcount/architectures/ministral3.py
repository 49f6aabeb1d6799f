"""Ministral 3: Mistral with heads of a width of their own and queries that grow with their position."""

from collections.abc import Mapping
from typing import Any

from paramcount.architectures.mistral import Mistral
from paramcount.flow import Data, rope, scale_by_position
from paramcount.sizes import Positive, hf, rotary, setting
from paramcount.sizes.conditions import padding_in_table

SCALED = {  # the reference's default of rope_parameters
    "rope_type": "yarn", "rope_theta": 1_000_000.0, "factor": 16.0, "original_max_position_embeddings": 16384,
    "beta_fast": 32.0, "beta_slow": 1.0, "mscale_all_dim": 1.0, "mscale": 1.0, "llama_4_scaling_beta": 0.1,
}  # fmt: skip


def read_rope_parameter(name: str, absent: Mapping[str, Any] = SCALED) -> Any:
    """The setting of a key of rope_parameters, whose default is `absent`."""

    def read(config: Mapping[str, Any], c: Any) -> Any:
        return (config.get("rope_scaling") or config.get("rope_parameters") or absent)[name]

    return setting(default=read)


class Ministral3(Mistral):
    """Source: modeling_ministral3.py of the reference."""

    reference = "Ministral3ForCausalLM"
    conditions = (padding_in_table(11),)
    defaults = {"vocab_size": 131072, "n_layers": 34, "window": None}

    d_head: Positive = hf(absent=128)

    norm_eps = setting("rms_norm_eps", default=1e-5)
    rope = rotary(positions=262144, absent=SCALED)
    beta = read_rope_parameter("llama_4_scaling_beta")
    original_length = read_rope_parameter("original_max_position_embeddings")

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), window=c.window, prepare=c.prepare)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))

    def prepare(c, q: Data, k: Data) -> tuple[Data, Data]:
        """Queries grow with the logarithm of the position, in steps."""
        return scale_by_position(rope(q, c.rope), "steps", c.original_length, c.beta), rope(k, c.rope)
