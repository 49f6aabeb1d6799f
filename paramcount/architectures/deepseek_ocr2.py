"""DeepSeek-OCR 2: SAM's encoder and Qwen 2's layers, in which learned queries read what it sees one after the other,
before DeepSeek's layers of plain attention.
"""

from typing import Any, NoReturn

from paramcount.architectures.unlimited_ocr import OcrDecoder, OcrSight, UnlimitedOcrSam, channels, stored_names
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError

QUERIES = {"query_768": 144, "query_1024": 256}  # for images of so many pixels a side


def without_types(js: sizes.ConfigJson, c: sizes.FieldValues) -> NoReturn:
    raise ParamcountError("is missing", where="mlp_layer_types", expected="dense or sparse for each layer")


class DeepseekOcr2Sam(UnlimitedOcrSam):
    config_class = "DeepseekOcr2SamVisionConfig"
    d_ff: sizes.Natural = sizes.hf("mlp_dim", absent=sizes.times_mlp_ratio(4.0), null=sizes.ABSENT)
    d_half: sizes.Positive = sizes.derived(channels(0, (512, 896)))
    d_narrow: sizes.Positive = sizes.derived(channels(1, (512, 896)))


class DeepseekOcr2Encoder(parts.VisionEncoder):
    """Patches see one another, and queries see all patches and the queries before them. Images fit if SAM's last
    convolution returns vectors of d_model.
    """

    config_class = "DeepseekOcr2VisionEncoderConfig"

    section = "vision_config.encoder_config"
    unused_keys = ("vocab_size", "sliding_window", "max_window_layers")

    n_kv_heads: sizes.Positive = sizes.hf(null=sizes.equal_to("n_heads"))
    d_head: sizes.Positive = sizes.hf(absent=sizes.d_model_per_head)

    norm_eps = sizes.setting("rms_norm_eps")
    rope = sizes.rotary(positions=32768)

    def query(c, x: Data) -> Data:
        """Vectors of patches to those of queries, of which there are as many as patches."""
        tables = tuple(ops.Weight(f"{name}.weight", "other", (n, c.d_model)) for name, n in QUERIES.items())
        both = Data("queries by resolution", (x,), (x.shape[0], c.d_model), tables)
        marks = Data("mark patches", (x, both), (x.shape[0],))
        y = c.norm(c.encode(both, marks, name="model.model.layers.{layer}."), "model.model.norm")
        return ops.later_rows(y, x)

    def layer(c, x: Data, *reads: Data) -> Data:
        (marks,) = reads
        h, prefix = c.norm(x, "input_layernorm"), "self_attn."
        q = ops.linear(h, prefix + "q_proj", "qkv.q", (c.n_heads, c.d_head), bias=True)  # [n, n_heads, d_head]
        k, v = (
            ops.linear(h, f"{prefix}{name}_proj", f"qkv.{name}", (c.n_kv_heads, c.d_head), bias=True) for name in "kv"
        )
        a = ops.attend(ops.rope(q, c.rope), ops.rope(k, c.rope), v, mask=ops.Causal() | ops.GlobalTokens(marks))
        x = x + ops.linear(a, prefix + "o_proj", "output_projection", c.d_model)
        h = c.norm(x, "post_attention_layernorm")
        return x + parts.gated_mlp(h, "mlp.", "mlp", c.d_ff, activation=c.activation)

    norm = parts.use_rms_norm

    def check(c) -> None:
        sizes.check_divides(c, "n_kv_heads", "n_heads")


class SeenByQueries(OcrSight):
    """Learned queries read what SAM's layers have seen. A subclass has `sam` and `vision`."""

    def see(c: Any) -> Data:
        """An image to vectors of queries; a learned one ends it."""
        x = ops.block(c.see_first(), "model.qwen2_model.", c.vision.query, part="vision")
        return ops.block(x, "model.", c.project, part="projector")


class DeepseekOcr2(SeenByQueries, OcrDecoder):
    """Source: modeling_deepseek_ocr2.py of the reference."""

    reference = "DeepseekOcr2ForConditionalGeneration"
    reference_names = stored_names("model.qwen2_model.model.model.", "")
    base_model = "DeepseekOcr2Model"
    conditions = (sizes.padding_in_table(None), sizes.groups_by_method(None))
    defaults = {"vocab_size": 102400, "d_model": 4096, "n_layers": 32, "n_heads": 32}

    n_kv_heads: sizes.Positive = sizes.hf(absent=sizes.equal_to("n_heads"), null=sizes.equal_to("n_heads"))
    dense_layers: sizes.Indices = sizes.derived(sizes.dense_by_type(without_types, checked=False))
    n_routed_experts: sizes.Natural = sizes.hf("num_experts", "n_routed_experts", null=sizes.needed("num_experts"))
    n_active_experts: sizes.Natural = sizes.hf(
        absent=sizes.needed("num_experts_per_tok"), null=sizes.needed("num_experts_per_tok")
    )
    sam: DeepseekOcr2Sam
    vision: DeepseekOcr2Encoder

    rope = sizes.rotary(positions=2048)

    check = sizes.check_heads_fill
