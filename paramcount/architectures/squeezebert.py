"""SqueezeBERT: BERT whose matrices are convolutions over single tokens, each in groups of channels."""

from typing import ClassVar

from paramcount.declare import Data, ops, parts, sizes


@sizes.options_first
def channels_per_group(
    js: sizes.ConfigJson, c: sizes.FieldValues, key: str, absent: int, inside: str = "d_model", outside: str = "d_model"
) -> int:
    """The channels that each output of a group reads. `inside`, `outside`: sizes of what is read and given."""
    groups = js.get(key, absent)
    if type(groups) is not int or groups < 1 or c[inside] % groups or c[outside] % groups:
        expected = f"a divisor of {c[inside]}" + (f" and {c[outside]}" if inside != outside else "")
        raise sizes.make_value_error(groups, key, expected)
    return int(c[inside] // groups)


class SqueezeBert(parts.MaskedEncoder):
    """Source: arXiv:2006.11316, section 3; SqueezeBertModule of the reference."""

    reference = "SqueezeBertForMaskedLM"
    task_heads = "BERT"
    prefix = "transformer."
    layers_name = "encoder.layers"
    pooled: ClassVar[bool] = True

    d_embedding: sizes.Positive = sizes.hf()
    n_token_types: sizes.Positive = sizes.hf()
    d_q_group: sizes.Positive = sizes.derived(channels_per_group("q_groups", 4))
    d_k_group: sizes.Positive = sizes.derived(channels_per_group("k_groups", 4))
    d_v_group: sizes.Positive = sizes.derived(channels_per_group("v_groups", 4))
    d_o_group: sizes.Positive = sizes.derived(channels_per_group("post_attention_groups", 1))
    d_up_group: sizes.Positive = sizes.derived(channels_per_group("intermediate_groups", 4, "d_model", "d_ff"))
    d_down_group: sizes.Positive = sizes.derived(channels_per_group("output_groups", 4, "d_ff", "d_model"))
    tie_word_embeddings: sizes.Flag = sizes.hf()

    def layer(c, x: Data) -> Data:
        """Norms have an epsilon of their own."""
        x = ops.layer_norm(x + c.attend(x), "post_attention.layernorm", 1e-12)
        h = ops.convolve_tokens(x, "intermediate.conv1d", c.d_ff, 1, group=c.d_up_group, component="mlp.up")
        h = ops.activate(h, c.activation)
        y = ops.convolve_tokens(h, "output.conv1d", c.d_model, 1, group=c.d_down_group, component="mlp.down")
        return ops.layer_norm(x + y, "output.layernorm", 1e-12)

    def attend(c, x: Data) -> Data:
        q, k, v = (c.project(x, name) for name in ("query", "key", "value"))
        a = ops.reshape(ops.attend(q, k, v), c.d_model)
        name, component = "post_attention.conv1d", "output_projection"
        return ops.convolve_tokens(a, name, c.d_model, 1, group=c.d_o_group, component=component)

    def project(c, x: Data, name: str) -> Data:
        groups: dict[str, ops.Size] = {"query": c.d_q_group, "key": c.d_k_group, "value": c.d_v_group}
        options = {"group": groups[name], "component": f"qkv.{name[0]}"}
        return ops.to_heads(ops.convolve_tokens(x, f"attention.{name}", c.d_model, 1, **options), c.n_heads, c.d_head)

    def check(c) -> None:
        super().check()
        sizes.check_equal(c, "d_embedding", "d_model")
