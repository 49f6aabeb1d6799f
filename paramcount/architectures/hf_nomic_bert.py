"""Nomic BERT as it was released, with the keys of GPT-2's config: gated or plain MLPs, and experts in version 2."""

from typing import Any, ClassVar

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, describe_value

GATES = {"swiglu": "silu", "geglu": "gelu", "glu": "sigmoid"}
PLAIN = {"gelu": "gelu"} | dict.fromkeys(("gelu_new", "gelu_fast", "gelu_pytorch_tanh"), "gelu_new")
MULTIPLE = 256  # of the hidden size of a gated MLP


def size_mlp(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    gated, n = js.get("activation_function") in GATES, js.get("n_inner")
    if n is not None and type(n) is not int:
        raise sizes.make_value_error(n, "n_inner", "a positive integer or null")
    n = (8 * c["d_model"] // 3 if gated else 4 * c["d_model"]) if n is None else n
    return -(-n // MULTIPLE) * MULTIPLE if gated else n


def read_positive(js: sizes.ConfigJson, key: str, absent: int | None = None) -> int:
    value = js.get(key, absent)
    if type(value) is not int or value < 1:
        raise sizes.make_value_error(value, key, "a positive integer")
    return value


def padded_vocabulary(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    rows, multiple = read_positive(js, "vocab_size"), read_positive(js, "pad_vocab_size_multiple", 1)
    return -(-rows // multiple) * multiple


def layers_without_experts(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    every = js.get("moe_every_n_layers", 0) or 0
    if type(every) is not int:
        raise sizes.make_value_error(every, "moe_every_n_layers", "an integer or null")
    return tuple(i for i in sizes.per_layer(c) if every <= 0 or i % every != 1)


def stays_simple(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """No published model has the other forms that the code can build."""
    for key, wanted in (("prenorm", False), ("parallel_block", False), ("rotary_emb_interleaved", False)):
        if js.get(key, wanted) != wanted:
            raise sizes.make_value_error(js[key], key, "false")
    share = js.get("rotary_emb_fraction")
    if share != 1:
        raise ParamcountError(f"= {describe_value(share)}", where="rotary_emb_fraction", expected="1.0")


def transform_activation(js: sizes.ConfigJson, c: Any) -> str:
    """Of the head."""
    name = js["activation_function"]
    return "silu" if name == "swiglu" else PLAIN.get(name, "gelu")


def rotary(js: sizes.ConfigJson, c: Any) -> ops.Rope:
    factor = js.get("rotary_scaling_factor")
    scaling = ops.DynamicScaling(factor, js.get("max_trained_positions", 2048)) if factor else None
    return ops.Rope(js["rotary_emb_base"], scaling)


class HfNomicBert(parts.PositionlessEncoder):
    """Source: arXiv:2402.01613, section 4; arXiv:2502.07972, section 4.1; modeling_hf_nomic_bert.py."""

    reference = "NomicBertForPreTraining of nomic-ai/nomic-bert-2048"
    base_model = "NomicBertModel"
    released_as = {"nomic_bert": ("NomicBertForPreTraining", "modeling_hf_nomic_bert")}
    task_head_prefix = "NomicBert"
    task_heads = {"ForSequenceClassification": parts.POOLED}
    conditions = (
        sizes.padding_inside(0),
        sizes.one_of("activation_function", (*GATES, *PLAIN), ""),
        stays_simple,
    )
    prefix = "bert."
    layers_name = "encoder.layers"
    unused_keys = ("head_dim",)
    defaults: ClassVar[dict[str, Any]] = {"tie_word_embeddings": True}

    vocab_size: sizes.Positive = sizes.derived(padded_vocabulary)
    d_model: sizes.Positive = sizes.hf("n_embd", "hidden_size")
    n_layers: sizes.Natural = sizes.hf("n_layer", "num_hidden_layers")
    n_heads: sizes.Positive = sizes.hf("n_head", "num_attention_heads")
    d_ff: sizes.Natural = sizes.derived(size_mlp)
    gated: sizes.Flag = sizes.derived(lambda js, c: js.get("activation_function") in GATES)
    dense_layers: sizes.Indices = sizes.derived(layers_without_experts)
    n_routed_experts: sizes.Natural = sizes.hf("num_experts", absent=0, null=0)
    n_active_experts: sizes.Natural = sizes.hf("moe_top_k", absent=0, null=0)
    n_token_types: sizes.Natural = sizes.hf()
    has_segments: sizes.Flag = sizes.derived(lambda js, c: c["n_token_types"] > 0)
    qkv_bias: sizes.Flag = sizes.hf("qkv_proj_bias")
    up_bias: sizes.Flag = sizes.hf("mlp_fc1_bias")
    down_bias: sizes.Flag = sizes.hf("mlp_fc2_bias")
    pooled: sizes.Flag = sizes.derived(sizes.class_ends("ForSequenceClassification"))

    norm_eps = sizes.setting("layer_norm_epsilon", default=1e-5)
    activation = sizes.setting(default=lambda js, c: (GATES | PLAIN)[js["activation_function"]])
    transform_activation = sizes.setting(default=transform_activation)
    rope = sizes.setting(default=rotary)

    def embed(c, tokens: Data, *reads: Data) -> Data:
        x = parts.embed_tokens(c, tokens, reads[0] if reads else None, c.d_model, has_positions=False)
        return c.norm(x, "bert.emb_ln")

    def kinds(c) -> list[tuple[Any, ops.Size]]:
        return [*parts.layers_by_mlp(c)]

    def layer_of(c, kind: str, x: Data, *memory: Data) -> Data:
        x = c.norm(x + parts.rotary_attention(c, x, ("attn.Wqkv", "attn.out_proj"), bias=c.qkv_bias), "norm1")
        return c.norm(x + (c.moe(x) if kind == "moe" else c.mlp(x)), "norm2")

    def mlp(c, x: Data) -> Data:
        h = ops.linear(x, "mlp.fc11" if c.gated else "mlp.fc1", "mlp.up", c.d_ff, bias=c.up_bias)
        if c.gated:
            gate = ops.linear(x, "mlp.fc12", "mlp.gate", c.d_ff, bias=c.up_bias)
            h = h * ops.activate(gate, c.activation)
        else:
            h = ops.activate(h, c.activation)
        return ops.linear(h, "mlp.fc2", "mlp.down", c.d_model, bias=c.down_bias)

    def moe(c, x: Data) -> Data:
        """The matrices of all experts are stored one after the other; one bias stands behind their sum."""
        scores = ops.linear(x, "mlp.router.layer", "router", c.n_routed_experts)  # [n, experts]
        scores = ops.route(scores, c.n_active_experts, "softmax", normalise=False)
        prefix, counts = "mlp.experts.mlp.", (c.n_routed_experts, c.n_active_experts)
        y = ops.experts(x, scores, prefix, *counts, c.expert, stored="merged")
        return ops.add_vector(y, "mlp.experts.bias", "experts", c.d_model)

    def expert(c, x: Data) -> Data:
        (h,) = ops.fused(x, "w1", {"experts.up": c.d_ff}, suffixes=("", ""))
        h, out = ops.activate(h, c.activation), {"experts.down": c.d_model}
        return ops.fused(h, "w2", out, transposed=True, suffixes=("", ""))[0]  # [n, d_model]

    def head(c, x: Data) -> Data:
        names, table = "cls.predictions.", "bert.embeddings.word_embeddings.weight"
        h = ops.linear(x, names + "transform.dense", "other", c.d_model, bias=c.up_bias)
        h = c.norm(ops.activate(h, c.transform_activation), names + "transform.layer_norm")
        logits = ops.linear(h, names + "decoder", "lm_head", c.vocab_size, tied_to=table)
        return ops.add_vector(logits, names + "decoder.bias", "lm_head", c.vocab_size) if c.up_bias else logits

    def unused_fields(c) -> tuple[str, ...]:
        return ("n_routed_experts", "n_active_experts") if len(c.dense_layers) == c.n_layers else ()

    def check(c) -> None:
        super().check()
        sizes.check_flag(c, "has_segments", "n_token_types")
