"""DeepSeek-OCR 2: SAM's encoder and Qwen 2's layers, in which learned queries read what it sees one after the other,
before DeepSeek's layers of plain attention.
"""

from typing import NoReturn

from paramcount.architectures.unlimited_ocr import SAM_NAMES, OcrDecoder, UnlimitedOcrSam, channels
from paramcount.errors import ParamcountError
from paramcount.flow import Data, Weight, attend, block, class_token, later_rows, linear, rms_norm, rope
from paramcount.parts.feed_forward import gated_mlp
from paramcount.parts.vision import VisionEncoder
from paramcount.sizes import (
    ABSENT,
    ConfigJson,
    FieldValues,
    Indices,
    Natural,
    Positive,
    d_model_per_head,
    derived,
    equal_to,
    hf,
    rotary,
    setting,
)
from paramcount.sizes.conditions import groups_by_method, padding_in_table
from paramcount.sizes.derivations import times_mlp_ratio
from paramcount.sizes.layer_types import dense_by_type, needed
from paramcount.sizes.rules import check_divides, check_heads_fill

QUERIES = {"query_768": 144, "query_1024": 256}  # for images of so many pixels a side


def without_types(js: ConfigJson, c: FieldValues) -> NoReturn:
    raise ParamcountError("is missing", where="mlp_layer_types", expected="dense or sparse for each layer")


class DeepseekOcr2Sam(UnlimitedOcrSam):
    config_class = "DeepseekOcr2SamVisionConfig"
    d_ff: Natural = hf("mlp_dim", absent=times_mlp_ratio(4.0), null=ABSENT)
    d_half: Positive = derived(channels(0, (512, 896)))
    d_narrow: Positive = derived(channels(1, (512, 896)))


class DeepseekOcr2Encoder(VisionEncoder):
    """Patches see one another, and queries see all patches and the queries before them. Images fit if SAM's last
    convolution returns vectors of d_model.
    """

    config_class = "DeepseekOcr2VisionEncoderConfig"

    section = "vision_config.encoder_config"
    unused_keys = ("vocab_size", "sliding_window", "max_window_layers")

    n_kv_heads: Positive = hf(null=equal_to("n_heads"))
    d_head: Positive = hf(absent=d_model_per_head)

    activation = setting("hidden_act", default="silu")
    norm_eps = setting("rms_norm_eps", default=1e-6)
    rope = rotary(positions=32768)

    def query(c, x: Data) -> Data:
        """Vectors of patches to those of queries, of which there are as many as patches."""
        tables = tuple(Weight(f"{name}.weight", "other", (n, c.d_model)) for name, n in QUERIES.items())
        both = Data("queries by resolution", (x,), (x.shape[0], c.d_model), tables)
        marks = Data("mark patches", (x, both), (x.shape[0],))
        y = c.norm(c.encode(both, marks, name="model.model.layers.{layer}."), "model.model.norm")
        return later_rows(y, x)

    def layer(c, x: Data, *reads: Data) -> Data:
        (marks,) = reads
        h, prefix = c.norm(x, "input_layernorm"), "self_attn."
        q = linear(h, prefix + "q_proj", "qkv.q", (c.n_heads, c.d_head), bias=True)
        k, v = (linear(h, f"{prefix}{name}_proj", f"qkv.{name}", (c.n_kv_heads, c.d_head), bias=True) for name in "kv")
        a = attend(rope(q, c.rope), rope(k, c.rope), v, cached=(), causal=True, marked=marks)
        x = x + linear(a, prefix + "o_proj", "output_projection", c.d_model)
        h = c.norm(x, "post_attention_layernorm")
        return x + gated_mlp(h, "mlp.", "mlp", c.d_ff, activation=c.activation)

    def norm(c, x: Data, name: str) -> Data:
        return rms_norm(x, name, c.norm_eps)

    def check(c) -> None:
        check_divides(c, "n_kv_heads", "n_heads")


class DeepseekOcr2(OcrDecoder):
    """Source: modeling_deepseek_ocr2.py of the reference."""

    reference = "DeepseekOcr2ForConditionalGeneration"
    reference_names = {
        "model.sam_model.blocks.": "model.vision_tower.sam_encoder.layers.",
        "model.sam_model.patch_embed.proj.": "model.vision_tower.sam_encoder.patch_embed.projection.",
        "model.sam_model.neck.0.": "model.vision_tower.sam_encoder.neck.conv1.",
        "model.sam_model.neck.2.": "model.vision_tower.sam_encoder.neck.conv2.",
        "model.qwen2_model.model.model.": "model.vision_tower.vision_encoder.",
        "model.multi_modal_projector.": "model.multi_modal_projector.",
        "model.": "model.language_model.",
    }
    base_model = "DeepseekOcr2Model"
    conditions = (padding_in_table(None), groups_by_method(None))
    defaults = {"vocab_size": 102400, "d_model": 4096, "n_layers": 32, "n_heads": 32}

    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=equal_to("n_heads"))
    d_ff: Natural = hf()
    dense_layers: Indices = derived(dense_by_type(without_types, checked=False))
    d_expert: Natural = hf()
    n_routed_experts: Natural = hf("num_experts", "n_routed_experts", null=needed("num_experts"))
    n_active_experts: Natural = hf(absent=needed("num_experts_per_tok"), null=needed("num_experts_per_tok"))
    sam: DeepseekOcr2Sam
    vision: DeepseekOcr2Encoder

    rope = rotary(positions=2048)

    def see(c) -> Data:
        """An image to vectors of queries; a learned one ends it."""
        x = block(c.sam.image(), "model.sam_model.", c.sam.forward, part="vision", renamed=SAM_NAMES)
        x = block(x, "model.qwen2_model.", c.vision.query, part="vision")
        return block(x, "model.", c.project, part="projector")

    def project(c, x: Data) -> Data:
        x = linear(x, "projector.layers", "projector", c.d_model, bias=True)
        return class_token(x, "view_seperator", component="projector", last=True)  # spelled so

    def check(c) -> None:
        check_heads_fill(c)
