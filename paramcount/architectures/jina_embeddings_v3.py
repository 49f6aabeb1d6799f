"""Jina Embeddings v3, Nomic BERT, GTE: BERT's post-norm layers with rotary positions instead of learned ones."""

from typing import Any, ClassVar

from paramcount.declare import Data, ops, parts, sizes

SELF_ATTENTION = (".self_attn.q_proj", ".self_attn.k_proj", ".self_attn.v_proj")


class JinaEmbeddingsV3(parts.PositionlessEncoder):
    """XLM-RoBERTa with rotary positions. Its adapters for tasks are not part of the reference.

    Source: arXiv:2409.10173, section 4; JinaEmbeddingsV3Layer of the reference.
    """

    reference = "JinaEmbeddingsV3ForMaskedLM"
    task_heads = {
        "ForSequenceClassification": parts.tasks.FIRST,
        "ForTokenClassification": parts.TOKENS,
        "ForQuestionAnswering": parts.SPAN_OF_LABELS,
    }
    reference_names = {"roberta.encoder.": "roberta."}
    rotated = "d_head"
    conditions: ClassVar[tuple[sizes.Condition, ...]] = (sizes.padding_in_table(1), sizes.positions_from(0))
    prefix = "roberta."
    modules = {".mixer.Wqkv": SELF_ATTENTION, ".mixer.out_proj": (".self_attn.o_proj",)}
    layers_name = "encoder.layers"
    matrices: ClassVar[tuple[str, str]] = ("mixer.Wqkv", "mixer.out_proj")
    norms: ClassVar[tuple[str, str, str]] = ("emb_ln", "norm1", "norm2")  # of embeddings, attention, MLP
    attention_bias: ClassVar[bool] = True
    head_names: ClassVar[Any] = parts.ROBERTA_HEAD
    head_activation: ClassVar[str | None] = "gelu"

    d_head: sizes.Positive = sizes.hf(absent=sizes.d_model_per_head)
    n_token_types: sizes.Positive = sizes.hf()
    pooled: sizes.Flag = sizes.derived(sizes.class_ends("Model"))
    tie_word_embeddings: sizes.Flag = sizes.hf()

    rope = sizes.rotary(20_000, 8194)

    def embed(c, tokens: Data, *reads: Data) -> Data:
        x = parts.embed_tokens(c, tokens, reads[0] if reads else None, c.d_model, has_positions=False)
        return c.norm(x, c.prefix + c.norms[0])

    def layer(c, x: Data) -> Data:
        x = c.norm(x + parts.rotary_attention(c, x, c.matrices, bias=c.attention_bias), c.norms[1])
        return c.norm(x + c.mlp(x), c.norms[2])

    def mlp(c, x: Data) -> Data:
        return parts.plain_mlp(x, ("mlp.fc1", "mlp.fc2"), "mlp", c.d_ff, activation=c.activation, bias=True)

    unreachable: ClassVar[Any] = parts.MaskedEncoder.unreachable

    def check(c) -> None:
        """The heads need not fill d_model."""


class Gte(JinaEmbeddingsV3):
    """With a gated MLP, of which only the last matrix has a bias. Some releases have no segments.

    Source: arXiv:2407.19669, section 3.1; GteLayer of the reference.
    """

    reference = "GteForMaskedLM"
    model_types = ("gte",)
    task_heads = {"ForSequenceClassification": parts.POOLED, "ForTokenClassification": parts.TOKENS}
    reference_names = {"gte.encoder.layer.": "gte.layers."}
    conditions: ClassVar[tuple[sizes.Condition, ...]] = (sizes.padding_in_table(1),)
    prefix = "gte."
    modules = {
        ".attention.qkv_proj": SELF_ATTENTION,
        ".attention.o_proj": (".self_attn.o_proj",),
        ".mlp.up_gate_proj": (".mlp.up_proj", ".mlp.gate_proj"),
    }
    layers_name = "encoder.layer"
    matrices = ("attention.qkv_proj", "attention.o_proj")
    norms = ("embeddings.LayerNorm", "attn_ln", "mlp_ln")
    head_names = ("lm_head.dense", "lm_head.norm", "lm_head.decoder", "lm_head.decoder.bias")

    n_token_types: sizes.Natural = sizes.hf()
    has_segments: sizes.Flag = sizes.derived(lambda js, c: c["n_token_types"] > 0)
    pooled: sizes.Flag = sizes.derived(sizes.class_ends("ForSequenceClassification"))

    rope = sizes.rotary(160_000, 8192)

    def mlp(c, x: Data) -> Data:
        up, gate = ops.fused(x, "mlp.up_gate_proj", {"mlp.up": c.d_ff, "mlp.gate": c.d_ff})
        return ops.linear(ops.activate(gate, c.activation) * up, "mlp.down_proj", "mlp.down", c.d_model, bias=True)

    unreachable = sizes.Sizes.unreachable

    def check(c) -> None:
        sizes.check_flag(c, "has_segments", "n_token_types")


class NomicBert(JinaEmbeddingsV3):
    """With a gated MLP and without biases in its layers.

    Source: arXiv:2402.01613, section 4; NomicBertLayer of the reference.
    """

    reference = "NomicBertForMaskedLM"
    model_types = ("nomic_bert",)
    task_heads = {"ForSequenceClassification": parts.POOLED, "ForTokenClassification": parts.TOKENS}
    reference_names = {"nomic_bert.encoder.": "nomic_bert."}
    copied_modules = ("modeling_hf_nomic_bert",)
    unused_keys = ("pad_vocab_size_multiple",)
    conditions = (sizes.padding_inside(0), sizes.positions_from(0))
    prefix = "nomic_bert."
    modules = {
        ".attn.Wqkv": SELF_ATTENTION,
        ".attn.out_proj": (".self_attn.o_proj",),
        ".mlp.fc11": (".mlp.up_proj",),
        ".mlp.fc12": (".mlp.gate_proj",),
        ".mlp.fc2": (".mlp.down_proj",),
    }
    matrices = ("attn.Wqkv", "attn.out_proj")
    attention_bias = False
    head_names = tuple(name.replace("LayerNorm", "layer_norm") for name in parts.BERT_HEAD)
    head_activation = None

    d_head: sizes.Positive = sizes.hf(absent=sizes.d_model_per_head, null=sizes.d_model_per_head)
    n_token_types: sizes.Positive = sizes.hf()
    pooled: sizes.Flag = sizes.derived(sizes.class_ends("ForSequenceClassification"))
    tie_word_embeddings: sizes.Flag = sizes.hf(absent=True, null=False)

    rope = sizes.rotary(1000, 2048)

    def mlp(c, x: Data) -> Data:
        return parts.gated_mlp(x, "mlp.", "mlp", c.d_ff, activation=c.activation, names=("fc12", "fc11", "fc2"))
