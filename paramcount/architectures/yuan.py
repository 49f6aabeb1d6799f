"""Yuan 2: Llama's layers, with two convolutions over neighbouring tokens in front of attention."""

from typing import Any, ClassVar

from paramcount.declare import Data, ops, parts, sizes


def filters_locally(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """No release shares queries and keys instead."""
    if sizes.flag(js, "use_shareqk", False):
        raise sizes.make_value_error(True, "use_shareqk", "false")


class Yuan(parts.EqualHeads, parts.AttentionDecoder):
    """Source: arXiv:2311.15786, section 3.1; megatron/model/yuan_hf_model.py of github IEIT-Yuan/Yuan-2.0."""

    reference = "YuanForCausalLM of IEITYuan/Yuan2-2B-hf"
    conditions = (filters_locally,)
    defaults: ClassVar[dict[str, Any]] = {
        "vocab_size": 135040, "d_model": 2048, "n_layers": 24, "n_heads": 32, "d_ff": 8192, "tie_word_embeddings": True,
    }  # fmt: skip
    n_kv_heads = sizes.constant(None)

    d_filter: sizes.Natural = sizes.derived(lambda js, c: c["d_model"] // 2)

    rope = ops.Rope(10_000.0)

    def layer(c, x: Data) -> Data:
        h = c.filter_locally(c.norm(x, "input_layernorm"))
        heads = (c.n_heads, c.d_head)
        q, k, v = (ops.linear(h, f"self_attn.{name}_proj", f"qkv.{name}", heads) for name in "qkv")
        a = ops.attend_causally(c.rotate(q), c.rotate(k), v)  # [n, n_heads, d_head]
        x = x + ops.linear(a, "self_attn.o_proj", "output_projection", c.d_model)
        names = ("up_proj", "gate_proj", "down_proj")  # the one that is called up is the gate
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"), names=names)

    def filter_locally(c, x: Data) -> Data:
        """Two convolutions over a token and the one before it, then a norm whose epsilon is fixed."""
        h = c.convolve(c.convolve(x, "conv1", c.d_filter), "conv2", c.d_model)
        return ops.rms_norm(x + h, "self_attn.lf_gate.output_layernorm", 1e-6)

    def convolve(c, x: Data, name: str, channels: ops.Size) -> Data:
        name, component = f"self_attn.lf_gate.{name}", "mixer.convolution"
        kernel = ops.Weight(f"{name}.weight", component, (channels, x.shape[-1], 2, 1))
        bias = ops.Weight(f"{name}.bias", component, (channels,))
        return Data("convolution over a token and the one before it", (x,), (x.shape[0], channels), (kernel, bias))

    def legacy_buffers(c) -> sizes.Buffers:
        return (("model.layers.{layer}.self_attn.rotary_emb.inv_freq", (c.d_head // 2,), c.n_layers),)
