"""I-BERT: RoBERTa whose matrices and activations can be integers of 8 bits, whose scales and values it stores.

In full precision, as the reference runs it by default, what is stored for integers is not read.
"""

from collections.abc import Mapping
from typing import Any

from paramcount.declare import Data, ops, parts, sizes


def full_precision(config: Any, c: Any) -> str:
    """What an activation goes through besides its own function."""
    if config.get("quant_mode"):
        raise ValueError("integer arithmetic is not described")
    return "linear"


class IBert(parts.LikeRoberta, parts.MaskedEncoder):
    """Source: arXiv:2101.01321, sections 3 and 4; modeling_ibert.py of the reference."""

    reference = "IBertForMaskedLM"
    task_heads = "ROBERTA"
    conditions = (*parts.LikeRoberta.conditions, sizes.one_of("hidden_act", ("gelu",), "gelu"))
    prefix = "ibert."
    has_other_linear_layers = True  # QuantLinear is no linear layer to those who look for these
    linear_by_component = False

    d_ff: sizes.Positive = sizes.hf()  # ranges are found in it
    n_token_types: sizes.Positive = sizes.hf("type_vocab_size")
    pooled: sizes.Flag = sizes.derived(sizes.class_ends("Model", "ForMultipleChoice"))
    tie_word_embeddings: sizes.Flag = sizes.hf()

    rounding = sizes.setting(default=full_precision)

    def embed(c, tokens: Data, *reads: Data) -> Data:
        names = "ibert.embeddings."
        x = c.table(tokens, names + "word_embeddings", "embedding", c.vocab_size)
        x = x + c.table(reads[0], names + "token_type_embeddings", "other_embedding", c.n_token_types)
        x = c.quantise(x, names + "embeddings_act1")
        positions = ops.lookup_position(
            tokens, names + "position_embeddings.weight", c.n_positions, c.d_model, offset=c.first_position
        )
        x = x + store_table(positions, names + "position_embeddings")
        x = c.quantise(x, names + "embeddings_act2")  # it is the first that the reference uses again
        return c.quantise(c.norm(x, names + "LayerNorm"), names + "output_activation")

    def table(c, x: Data, name: str, component: str, rows: int) -> Data:
        return store_table(ops.lookup(x, name + ".weight", component, rows, c.d_model), name)

    def layer(c, x: Data, *memory: Data) -> Data:
        q, k, v = (c.project(x, name) for name in ("query", "key", "value"))
        a = c.quantise(ops.attend(q, k, v), "attention.self.softmax.act", "attention.self.output_activation")
        a = c.linear(a, "attention.output.dense", "output_projection", c.d_model)
        x = c.quantise(x + a, "attention.output.ln_input_act")
        x = c.quantise(c.norm(x, "attention.output.LayerNorm"), "attention.output.output_activation")
        h = c.linear(c.quantise(x, "pre_intermediate_act"), "intermediate.dense", "mlp.up", c.d_ff)
        h = c.quantise(ops.activate(h, c.activation), "intermediate.output_activation", "pre_output_act")
        y = c.linear(h, "output.dense", "mlp.down", c.d_model)
        x = c.norm(c.quantise(x + y, "output.ln_input_act"), "output.LayerNorm")
        return c.quantise(x, "output.output_activation")

    def project(c, x: Data, name: str) -> Data:
        h = c.linear(x, "attention.self." + name, "qkv." + name[0], (c.n_heads, c.d_head))
        return c.quantise(h, f"attention.self.{name}_activation")

    def linear(c, x: Data, name: str, component: str, width: Any) -> Data:
        y = ops.linear(x, name, component, width, bias=True)
        matrix, bias = y.weights
        scales = {".weight_integer": matrix.shape, ".fc_scaling_factor": bias.shape, ".bias_integer": bias.shape}
        return store(y, {name + end: shape for end, shape in scales.items()})

    def quantise(c, x: Data, *names: str) -> Data:
        """x as it is, in full precision; with the range of its values, which training sees."""
        ends = ("x_min", "x_max", "act_scaling_factor")
        return store(ops.activate(x, c.rounding), {f"{name}.{end}": (1,) for name in names for end in ends})

    def norm(c, x: Data, name: str) -> Data:
        """The LM head's norm is no integer."""
        y = ops.layer_norm(x, name, c.norm_eps)
        if name == parts.ROBERTA_HEAD[1]:
            return y
        return c.quantise(store(y, {name + ".shift": (1,)}), name + ".activation")


def store_table(x: Data, name: str) -> Data:
    (table,) = x.weights
    return store(x, {name + ".weight_scaling_factor": (1,), name + ".weight_integer": table.shape})


def store(x: Data, buffers: Mapping[str, tuple[ops.Size, ...]]) -> Data:
    """x, with the shapes of what a file has besides the weights that its operation reads."""
    stored = tuple(ops.Weight(name, "other", shape, role="buffer") for name, shape in buffers.items())
    return Data(x.operation, x.inputs, x.shape, x.weights + stored)
