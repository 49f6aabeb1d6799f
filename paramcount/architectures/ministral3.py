"""Ministral 3: Mistral with heads of a width of their own and queries that grow with their position."""

from collections.abc import Mapping
from typing import Any

from paramcount.architectures.mistral import Mistral
from paramcount.declare import Data, ops, sizes
from paramcount.errors import ParamcountError

BETA = "llama_4_scaling_beta"
SCALED = {  # the reference's default of rope_parameters
    "rope_type": "yarn", "rope_theta": 1_000_000.0, "factor": 16.0, "original_max_position_embeddings": 16384,
    "beta_fast": 32.0, "beta_slow": 1.0, "mscale_all_dim": 1.0, "mscale": 1.0, "llama_4_scaling_beta": 0.1,
}  # fmt: skip


def growth(absent: Mapping[str, Any] = SCALED) -> Any:
    """The setting of how fast queries grow. `absent`: the default of rope_parameters."""
    return sizes.setting(default=lambda config, c: sizes.find_parameters(config, absent)[BETA])


def growth_step(positions: int, absent: Mapping[str, Any] = SCALED) -> Any:
    """The setting of the number of positions after which queries grow.

    `positions`: the default of max_position_embeddings.
    """

    def read(config: Mapping[str, Any], c: Any) -> Any:
        block = sizes.find_parameters(config, absent)
        if sizes.find_kind(block) not in sizes.FROM_ORIGINAL:
            return block[sizes.ORIGINAL]
        inner, usual = block.get(sizes.ORIGINAL), config.get("max_position_embeddings", positions)
        return config.get(sizes.ORIGINAL) or inner or usual

    return sizes.setting(default=read)


@sizes.options_first
def growth_is_stated(js: sizes.ConfigJson, c: sizes.FieldValues, absent: Mapping[str, Any] = SCALED) -> None:
    """rope_parameters that are stated have no defaults for the growth of queries."""
    block = sizes.find_parameters(js, absent)
    if not isinstance(block, Mapping) or not c["n_layers"]:
        return
    for key in (BETA, sizes.ORIGINAL):
        is_filled = key == sizes.ORIGINAL and sizes.find_kind(block) in sizes.FROM_ORIGINAL
        if block.get(key) is None and not is_filled:
            where = "rope_scaling" if js.get("rope_scaling") else "rope_parameters"
            raise ParamcountError("is missing", where=f"{where}.{key}", expected="a number")


class Ministral3(Mistral):
    """Source: modeling_ministral3.py of the reference."""

    reference = "Ministral3ForCausalLM"
    gguf = "mistral3 llama"
    task_heads = "GENERIC_SPAN"
    conditions = (sizes.padding_in_table(11), sizes.one_mask(), growth_is_stated())
    defaults = {"vocab_size": 131072, "n_layers": 34, "window": None}

    d_head: sizes.Positive = sizes.hf()

    rope = sizes.rotary(absent=SCALED)
    beta = growth()
    original_length = growth_step(262144)

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), window=c.window, prepare=c.prepare)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))

    def prepare(c, q: Data, k: Data) -> tuple[Data, Data]:
        """Queries grow with the logarithm of the position, in steps."""
        return ops.scale_in_steps(ops.rope(q, c.rope), c.original_length, c.beta), ops.rope(k, c.rope)
