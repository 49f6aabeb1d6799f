"""SqueezeBERT: BERT whose matrices are convolutions over single tokens, each in groups of channels."""

from typing import ClassVar

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, Size, Unreachable, activate, attend, convolve_tokens, layer_norm, reshape, to_heads
from paramcount.parts.classic import second_bias
from paramcount.parts.encoders import MaskedEncoder
from paramcount.sizes import ConfigJson, Derivation, FieldValues, Flag, Positive, derived, hf
from paramcount.sizes.rules import check_equal


def channels_per_group(key: str, absent: int, inside: str = "d_model", outside: str = "d_model") -> Derivation:
    """The channels that each output of a group reads. `inside`, `outside`: sizes of what is read and given."""

    def derive(js: ConfigJson, c: FieldValues) -> int:
        groups = js.get(key, absent)
        if type(groups) is not int or groups < 1 or c[inside] % groups or c[outside] % groups:
            expected = f"a divisor of {c[inside]}" + (f" and {c[outside]}" if inside != outside else "")
            raise ParamcountError(f"= {describe_value(groups)}", where=key, expected=expected)
        return int(c[inside] // groups)

    return derive


class SqueezeBert(MaskedEncoder):
    """Source: arXiv:2006.11316, section 3; SqueezeBertModule of the reference."""

    reference = "SqueezeBertForMaskedLM"
    task_heads = "BERT"
    prefix = "transformer."
    layers_name = "encoder.layers"
    pooled: ClassVar[bool] = True

    d_embedding: Positive = hf()
    n_token_types: Positive = hf()
    d_q_group: Positive = derived(channels_per_group("q_groups", 4))
    d_k_group: Positive = derived(channels_per_group("k_groups", 4))
    d_v_group: Positive = derived(channels_per_group("v_groups", 4))
    d_o_group: Positive = derived(channels_per_group("post_attention_groups", 1))
    d_up_group: Positive = derived(channels_per_group("intermediate_groups", 4, "d_model", "d_ff"))
    d_down_group: Positive = derived(channels_per_group("output_groups", 4, "d_ff", "d_model"))
    tie_word_embeddings: Flag = hf()

    def layer(c, x: Data) -> Data:
        """Norms have an epsilon of their own."""
        x = layer_norm(x + c.attend(x), "post_attention.layernorm", 1e-12)
        h = convolve_tokens(x, "intermediate.conv1d", c.d_ff, 1, group=c.d_up_group, component="mlp.up")
        h = activate(h, c.activation)
        y = convolve_tokens(h, "output.conv1d", c.d_model, 1, group=c.d_down_group, component="mlp.down")
        return layer_norm(x + y, "output.layernorm", 1e-12)

    def attend(c, x: Data) -> Data:
        q, k, v = (c.project(x, name) for name in ("query", "key", "value"))
        a = reshape(attend(q, k, v, cached=()), c.d_model)
        name, component = "post_attention.conv1d", "output_projection"
        return convolve_tokens(a, name, c.d_model, 1, group=c.d_o_group, component=component)

    def project(c, x: Data, name: str) -> Data:
        groups: dict[str, Size] = {"query": c.d_q_group, "key": c.d_k_group, "value": c.d_v_group}
        options = {"group": groups[name], "component": f"qkv.{name[0]}"}
        return to_heads(convolve_tokens(x, f"attention.{name}", c.d_model, 1, **options), c.n_heads, c.d_head)

    def unreachable(c, tokens: Data) -> tuple[Unreachable, ...]:
        return second_bias(c, tokens, "cls.predictions.bias")

    def check(c) -> None:
        super().check()
        check_equal(c, "d_embedding", "d_model")
