"""LayoutLMv2: words with places on a page and cells of its image, which a ResNeXt with a feature pyramid reads."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paramcount.architectures.layoutlm import BOX
from paramcount.architectures.layoutlmv3 import PageEncoder
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError, describe_value

PREFIX = "layoutlmv2."
ARGUMENTS = "detectron2_config_args"
PARAMETERS = "weight", "bias", "running_mean", "running_var"  # of a frozen norm, which are all buffers
BLOCKS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}  # {depth: blocks of each stage}
STAGES = ["res2", "res3", "res4", "res5"]
# {argument: its value in detectron2, where other arguments are stated and it is not}; sizes of the backbone
SIZES = {
    "MODEL.RESNETS.DEPTH": 50, "MODEL.RESNETS.NUM_GROUPS": 1, "MODEL.RESNETS.WIDTH_PER_GROUP": 64,
    "MODEL.RESNETS.STEM_OUT_CHANNELS": 64, "MODEL.RESNETS.RES2_OUT_CHANNELS": 256, "MODEL.FPN.OUT_CHANNELS": 256,
}  # fmt: skip
# {argument: the one value that is supported}; what the reference takes where config.json states no arguments
FIXED = {
    "MODEL.MASK_ON": True, "MODEL.PIXEL_STD": [57.375, 57.12, 58.395],
    "MODEL.BACKBONE.NAME": "build_resnet_fpn_backbone", "MODEL.FPN.IN_FEATURES": STAGES,
    "MODEL.ANCHOR_GENERATOR.SIZES": [[32], [64], [128], [256], [512]],
    "MODEL.RPN.IN_FEATURES": ["p2", "p3", "p4", "p5", "p6"], "MODEL.RPN.PRE_NMS_TOPK_TRAIN": 2000,
    "MODEL.RPN.PRE_NMS_TOPK_TEST": 1000, "MODEL.RPN.POST_NMS_TOPK_TRAIN": 1000, "MODEL.POST_NMS_TOPK_TEST": 1000,
    "MODEL.ROI_HEADS.NAME": "StandardROIHeads", "MODEL.ROI_HEADS.NUM_CLASSES": 5,
    "MODEL.ROI_HEADS.IN_FEATURES": ["p2", "p3", "p4", "p5"], "MODEL.ROI_BOX_HEAD.NAME": "FastRCNNConvFCHead",
    "MODEL.ROI_BOX_HEAD.NUM_FC": 2, "MODEL.ROI_BOX_HEAD.POOLER_RESOLUTION": 14,
    "MODEL.ROI_MASK_HEAD.NAME": "MaskRCNNConvUpsampleHead", "MODEL.ROI_MASK_HEAD.NUM_CONV": 4,
    "MODEL.ROI_MASK_HEAD.POOLER_RESOLUTION": 7, "MODEL.RESNETS.SIZES": [[32], [64], [128], [256], [512]],
    "MODEL.RESNETS.ASPECT_RATIOS": [[0.5, 1.0, 2.0]], "MODEL.RESNETS.OUT_FEATURES": STAGES,
    "MODEL.RESNETS.STRIDE_IN_1X1": False,
}  # fmt: skip
RELEASED = {"MODEL.RESNETS.DEPTH": 101, "MODEL.RESNETS.NUM_GROUPS": 32, "MODEL.RESNETS.WIDTH_PER_GROUP": 8}


def read_arguments(js: sizes.ConfigJson) -> Mapping[str, int]:
    """{argument: value} of the sizes of the backbone.

    Raises: ParamcountError if another argument has no value, or one that is not supported.
    """
    given = js.get(ARGUMENTS)
    if given is None:
        return SIZES | RELEASED
    if not isinstance(given, Mapping):
        raise sizes.make_value_error(given, ARGUMENTS, "a JSON object")
    for key, value in given.items():
        where = f"{ARGUMENTS}.{key}"
        if key == "MODEL.RESNETS.DEPTH" and value not in tuple(BLOCKS):
            raise sizes.make_value_error(value, where, "50, 101 or 152")
        if key in SIZES and (type(value) is not int or value < 1):
            raise sizes.make_value_error(value, where, "a positive integer")
        if key not in SIZES and key not in FIXED:
            raise ParamcountError("is not supported", where=where, expected="no such key")
        if key in FIXED and value != FIXED[key]:
            found = f"= {describe_value(value)} is not supported"
            raise ParamcountError(found, where=where, expected=describe_value(FIXED[key]))
    for key, value in FIXED.items():
        if key not in given:
            raise ParamcountError("is missing", where=f"{ARGUMENTS}.{key}", expected=describe_value(value))
    return {key: given.get(key, value) for key, value in SIZES.items()}


def backbone_size(key: str) -> sizes.Derivation:
    return lambda js, c: read_arguments(js)[f"MODEL.{key}"]


def read_pooled_shape(js: sizes.ConfigJson, c: sizes.FieldValues) -> Sequence[int]:
    """Rows, columns and channels of the image that the layers read."""
    shape = js.get("image_feature_pool_shape", (7, 7, 256))
    ok = isinstance(shape, (list, tuple)) and len(shape) in (2, 3) and all(type(n) is int and n > 0 for n in shape)
    if not ok or (len(shape) == 3 and shape[2] != c["d_pyramid"]):
        expected = f"rows, columns and {c['d_pyramid']} channels"
        raise sizes.make_value_error(shape, "image_feature_pool_shape", expected)
    return tuple(shape)


def count_cells(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    rows, columns = read_pooled_shape(js, c)[:2]
    return rows * columns


def marks_image(js: sizes.ConfigJson, c: sizes.FieldValues) -> bool:
    """Whether a learned vector is added to all cells: the class that answers questions has one, whatever the key is."""
    answers = (js.get("architectures") or [""])[0] == "LayoutLMv2ForQuestionAnswering"
    return answers or sizes.flag(js, "has_visual_segment_embedding", absent=False)


def places_are_in_tables(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """Cells have positions from 0 on, and edges from 0 to 1000."""
    for field, least in (("n_positions", c["n_cells"]), ("n_page_positions", 1001)):
        if c[field] < least:
            raise sizes.make_value_error(c[field], FieldName(field), f"at least {least:,}")


def buckets_reach(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if c["text_biases"]:
        sizes.buckets_reach("rel_pos_bins", "max_rel_pos", 128, one_sided=False)(js, c)
    if c["page_biases"]:
        found = {**c, "n_buckets": c["n_page_buckets"]}
        sizes.buckets_reach("rel_2d_pos_bins", "max_rel_2d_pos", 256, one_sided=False)(js, found)


def classify_page(c: Any, x: Data) -> Data:
    """The first token beside the means of all cells before and after the layers."""
    means = [ops.pool_text(cells, "mean") for cells in (ops.second_value(x, c.d_model), ops.last_tokens(x, c.n_cells))]
    return ops.linear(
        ops.join(ops.join(ops.first_token(x), means[0]), means[1]), "classifier", "other", c.n_labels, bias=True
    )


def label_words(name: str) -> parts.task_heads.Build:
    """Every word, without the cells of the image behind them."""

    def build(c: Any, x: Data) -> Data:
        words = Data(ops.Undescribed("words alone"), (x,), ("tokens", c.d_model))
        return ops.linear(words, name, "other", c.n_labels, bias=True)

    return build


class LayoutLMv2(PageEncoder):
    """Source: arXiv:2012.14740, section 2; LayoutLMv2Model of the reference; resnet.py and fpn.py of detectron2."""

    reference = "LayoutLMv2Model"
    task_head_prefix = "LayoutLMv2"
    published_heads = "LAYOUTLMV2"
    task_heads = {
        "ForSequenceClassification": parts.TaskHead(classify_page, parts.tasks.LABELS),
        "ForTokenClassification": parts.TaskHead(label_words("classifier"), parts.tasks.LABELS),
        "ForQuestionAnswering": parts.TaskHead(
            label_words("qa_outputs"), parts.tasks.LABELS, (parts.tasks.two_labels,)
        ),
    }
    prefix = PREFIX
    unused_keys: ClassVar = ("convert_sync_batchnorm",)
    conditions: ClassVar[tuple[sizes.Condition, ...]] = (
        sizes.padding_in_table(0), places_are_in_tables, buckets_reach,
    )  # fmt: skip

    fused_qkv: sizes.Flag = sizes.hf("fast_qkv")
    marks_image: sizes.Flag = sizes.derived(marks_image)
    depths: sizes.Widths = sizes.derived(lambda js, c: BLOCKS[read_arguments(js)["MODEL.RESNETS.DEPTH"]])
    n_conv_groups: sizes.Positive = sizes.derived(backbone_size("RESNETS.NUM_GROUPS"))
    d_conv_group: sizes.Positive = sizes.derived(backbone_size("RESNETS.WIDTH_PER_GROUP"))
    d_stem: sizes.Positive = sizes.derived(backbone_size("RESNETS.STEM_OUT_CHANNELS"))
    d_first_stage: sizes.Positive = sizes.derived(backbone_size("RESNETS.RES2_OUT_CHANNELS"))
    first_stage_widens: sizes.Flag = sizes.derived(lambda js, c: c["d_stem"] != c["d_first_stage"])
    d_pyramid: sizes.Positive = sizes.derived(backbone_size("FPN.OUT_CHANNELS"))
    n_cells: sizes.Positive = sizes.derived(count_cells)

    def embed(c, tokens: Data, *reads: Data) -> Data:
        """Words and cells of the image of their page."""
        segments, *box = reads[: 1 + len(BOX)]
        x = parts.embed_tokens(c, tokens, segments, c.d_model)
        x = c.norm(x + c.embed_box(box), PREFIX + "embeddings.LayerNorm")
        return ops.stack_rows(
            x, c.embed_cells(ops.block(reads[-1], PREFIX + "visual.backbone.", c.see, part="vision")), length="tokens"
        )

    def embed_cells(c, x: Data) -> Data:
        """Cells of the image with their position and box, by the tables of the words."""
        name = PREFIX + "embeddings.position_embeddings.weight"
        box = [Data(ops.Undescribed("boxes of cells"), (x,), x.shape[:1]) for _ in BOX]
        y = ops.block(
            x, "", lambda x: ops.linear(x, PREFIX + "visual_proj", "projector", c.d_model, bias=True), part="projector"
        )
        y = y + ops.lookup_position(box[0], name, c.n_positions, c.d_model, tied_to=name) + c.embed_box(box, again=True)
        if c.marks_image:
            y = ops.add_vector(y, PREFIX + "visual_segment_embedding", "other_embedding", c.d_model)
        return c.norm(y, PREFIX + "visual_LayerNorm")

    def see(c, pixels: Data) -> Data:
        """An image to cells of its largest feature map [n_cells, d_pyramid]."""
        x = ops.reshape(ops.cut(pixels, 1, 1), 3)
        x = ops.activate(convolve(x, "bottom_up.stem.conv1", c.d_stem, 7, 2), "relu")
        x = Data(ops.Undescribed("max pool"), (x,), x.shape)
        stages = []
        for i, depth in enumerate(c.depths):
            name = f"bottom_up.res{i + 2}."
            widens = i > 0 or c.first_stage_widens
            x = ops.block(
                x, name + "0.", lambda x, i=i, widens=widens: c.bottleneck(x, i, widens=widens, stride=2 if i else 1)
            )
            kinds = [("block", depth - 1)]
            x = ops.layers(x, name + "{layer}.", kinds, lambda kind, x, i=i: c.bottleneck(x, i), first=1)
            stages.append(x)
        maps: list[Data] = []
        merged = None
        for i, x in reversed([*enumerate(stages, start=2)]):
            lateral = ops.convolve_image(x, f"fpn_lateral{i}", "mixer", c.d_pyramid, 1, bias=True)
            merged = lateral if merged is None else lateral + ops.enlarge(merged)
            zeros = ops.Zeros(1)
            maps.append(ops.convolve_image(merged, f"fpn_output{i}", "mixer", c.d_pyramid, 3, padding=zeros, bias=True))
        # The smaller maps are computed, and nothing reads them.
        return Data(ops.Undescribed("mean of each cell"), (maps.pop(), *maps), (c.n_cells, c.d_pyramid))

    def bottleneck(c, x: Data, stage: int, *, widens: bool = False, stride: int = 1) -> Data:
        """Source: arXiv:1611.05431, section 3."""
        d, d_group = c.d_first_stage * 2**stage, c.d_conv_group * 2**stage
        y = ops.activate(convolve(x, "conv1", c.n_conv_groups * d_group, 1), "relu")
        y = ops.activate(convolve_groups(y, "conv2", d_group, 3, stride), "relu")
        x = convolve(x, "shortcut", d, 1, stride) if widens else x
        return ops.activate(convolve(y, "conv3", d, 1) + x, "relu")

    def attend(c, x: Data, *biases: Data) -> Data:
        """q, k and v from one matrix, where k has no bias, or from three."""
        if not c.fused_qkv:
            return super().attend(x, *biases)
        q, k, v = parts.fused_qkv(c, x, "attention.self.qkv_linear", bias=False)  # [n, n_heads, d_head]
        q, v = (
            ops.add_vector(y, f"attention.self.{name}_bias", f"qkv.{name}", 1, 1, c.d_model)
            for y, name in ((q, "q"), (v, "v"))
        )
        a = ops.attend(q, k, v, *biases)  # [n, n_heads, d_head]
        return ops.linear(a, "attention.output.dense", "output_projection", c.d_model, bias=True)

    def encode(c, x: Data, *biases: Data) -> Data:
        """Hidden states, and beside them the cells of the image before the layers, and a pooled vector."""
        y = super().encode(x, *biases)
        pooled = ops.linear(ops.first_token(y), PREFIX + "pooler.dense", "other", c.d_model, bias=True)
        return ops.bundle(y, ops.last_tokens(x, c.n_cells), ops.activate(pooled, "tanh"))

    def list_images(c) -> list[Data]:
        return [ops.given("pixels", 3, "height", "width")]

    def check(c) -> None:
        super().check()
        if c.first_stage_widens != (c.d_stem != c.d_first_stage):
            raise ParamcountError("contradicts the sizes", where="first_stage_widens", expected="the other value")


def convolve(x: Data, name: str, channels: ops.Size, width: int, stride: int = 1) -> Data:
    y = ops.convolve_image(x, name, "mixer", channels, width, stride=stride, padding=ops.Zeros(width // 2))
    return normalise(y, name)


def convolve_groups(x: Data, name: str, d_group: ops.Size, width: int, stride: int) -> Data:
    """As many groups of channels as fill x, each with a matrix of its own."""
    kernel = ops.Weight(name + ".weight", "mixer", (x.shape[-1], d_group, width, width))
    operation = ops.ImageConvolution(width, stride, ops.Zeros(width // 2), grouped=True)
    return normalise(Data(operation, (x,), ("image", x.shape[-1]), (kernel,)), name)


def normalise(x: Data, name: str) -> Data:
    """A batch norm whose values are all fixed."""
    stored = tuple(ops.Weight(f"{name}.norm.{end}", "norm", x.shape[-1:], role="buffer") for end in PARAMETERS)
    return Data(ops.BatchNorm(1e-5), (x,), x.shape, stored)
