"""LayoutLMv3: RoBERTa's layers over words with places on a page and patches of its image, whose attention is biased by
distances along the text and along both axes of the page.
"""

from typing import Any, ClassVar

from paramcount.architectures.layoutlm import BOX
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError

PREFIX = "layoutlmv3."
MANY_LABELS = "classifier.dense", "classifier.out_proj"


def count_side(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """Patches along one side of an image."""
    return int(js.get("input_size", 224) // c["patch_size"])


def reads_words(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if not sizes.flag(js, "text_embed", absent=True):
        raise ParamcountError("= false is not supported", where="text_embed", expected="true")


class PageEncoder(parts.MaskedEncoder):
    """What both versions share: boxes of words, and biases by distances along the text and on the page."""

    base_model = ""
    linear_by_component = False
    linear_routers = ("rel_pos_bias.weight", "rel_pos_x_bias.weight", "rel_pos_y_bias.weight")

    n_token_types: sizes.Positive = sizes.hf()
    n_page_positions: sizes.Positive = sizes.hf("max_2d_position_embeddings")
    d_coordinate: sizes.Positive = sizes.hf("coordinate_size")
    d_shape: sizes.Positive = sizes.hf("shape_size")
    text_biases: sizes.Flag = sizes.hf("has_relative_attention_bias")
    page_biases: sizes.Flag = sizes.hf("has_spatial_attention_bias")
    n_buckets: sizes.Positive = sizes.hf("rel_pos_bins")
    n_page_buckets: sizes.Positive = sizes.hf("rel_2d_pos_bins")

    def inputs(c) -> dict[str, int]:
        return {"segments": 0, **dict.fromkeys(BOX, 0)}

    def embed_box(c, box: list[Data], *, again: bool = False) -> Data:
        """Edges, height and width of each word, side by side; edges of one axis share their table.

        `again`: all tables have been read for other boxes before.
        """
        found, tables = list[Data](), set(BOX.values()) if again else set[str]()
        for places, axis in zip(box, BOX.values(), strict=True):
            name = f"{c.prefix}embeddings.{axis}_position_embeddings.weight"
            width = c.d_coordinate if axis in "xy" else c.d_shape
            tied_to = name if axis in tables else None
            found.append(ops.lookup(places, name, "position", c.n_page_positions, width, tied_to=tied_to))
            tables.add(axis)
        x = found[0]
        for y in found[1:]:
            x = ops.join(x, y)
        return Data(ops.Reshape(), (x,), (x.shape[0], c.d_model))

    def share(c, tokens: Data, *reads: Data) -> tuple[Data, ...]:
        """The biases of all layers: a matrix over buckets of distances along the text, and along each axis."""
        tables = [("pos", c.n_buckets)] if c.text_biases else []
        tables += [("pos_x", c.n_page_buckets), ("pos_y", c.n_page_buckets)] if c.page_biases else []
        found = []
        for name, n in tables:
            buckets = Data(ops.Undescribed("distance buckets"), (tokens, *reads), ("tokens", n))
            found.append(ops.linear(buckets, f"{c.prefix}encoder.rel_{name}_bias", "position", c.n_heads))
        shape = (c.n_heads, "tokens", "tokens")
        return (Data(ops.Undescribed("biases by distance"), tuple(found), shape),) if found else ()

    def layer(c, x: Data, *biases: Data) -> Data:
        x = c.norm(x + c.attend(x, *biases), "attention.output.LayerNorm")
        return c.norm(x + parts.bert_mlp(c, x), "output.LayerNorm")

    def attend(c, x: Data, *biases: Data) -> Data:
        return parts.multi_head(
            c, x, "attention.", parts.encoders.BERT, mix=lambda q, k, v: ops.attend(q, k, v, *biases)
        )

    def forward(c, tokens: Data, head: bool = True) -> Data:
        return c.read(tokens, [*c.list_inputs(tokens), *c.list_images()], (), head=False)

    def list_images(c) -> list[Data]:
        raise NotImplementedError

    def check(c) -> None:
        super().check()
        if (n := 4 * c.d_coordinate + 2 * c.d_shape) != c.d_model:
            found = f"= {c.d_coordinate} and shape_size = {c.d_shape} make vectors of {n} values"
            raise ParamcountError(found, where=FieldName("d_coordinate"), expected=f"{c.d_model}")


class LayoutLMv3(PageEncoder):
    """Source: arXiv:2204.08387, section 2; LayoutLMv3Model of the reference."""

    reference = "LayoutLMv3Model"
    task_head_prefix = "LayoutLMv3"
    task_heads = {
        "ForSequenceClassification": parts.tasks.FIRST,
        "ForTokenClassification": parts.TaskHead(lambda c, x: c.classify_tokens(x), parts.tasks.LABELS),
        "ForQuestionAnswering": parts.TaskHead(
            parts.task_heads.through("qa_outputs.dense", "qa_outputs.out_proj", every_token=True),
            parts.tasks.LABELS,
            (parts.tasks.two_labels,),
        ),
    }
    prefix = PREFIX
    conditions: ClassVar[tuple[sizes.Condition, ...]] = (reads_words, sizes.padding_inside(1, places=2))

    first_position = parts.first_after_padding(1)
    visual_embed: sizes.Flag = sizes.hf("visual_embed")
    n_channels: sizes.Positive = sizes.hf("num_channels")
    patch_size: sizes.Positive = sizes.hf("patch_size")
    n_patches: sizes.Positive = sizes.derived(lambda js, c: count_side(js, c) ** 2)

    def embed(c, tokens: Data, *reads: Data) -> Data:
        """Words and patches of their page."""
        segments, *box = reads[: 1 + len(BOX)]
        x = parts.embed_tokens(c, tokens, segments, c.d_model)
        x = c.norm(x + c.embed_box(box), PREFIX + "embeddings.LayerNorm")
        if not c.visual_embed:
            return x
        image = ops.block(reads[-1], "", c.embed_image, part="vision")
        return c.norm(ops.stack_rows(x, image, length="tokens"), PREFIX + "LayerNorm")

    def embed_image(c, pixels: Data) -> Data:
        x = parts.embed_patches(pixels, PREFIX + "patch_embed.proj", c.d_model, c.patch_size, bias=True)
        x = ops.class_token(x, PREFIX + "cls_token", 1, 1, c.d_model)
        x = ops.add_positions(x, PREFIX + "pos_embed", 1, c.n_patches + 1, c.d_model)
        return ops.layer_norm(x, PREFIX + "norm", 1e-6)

    def list_images(c) -> list[Data]:
        return [ops.given("pixels", c.n_channels, "height", "width")] if c.visual_embed else []

    def classify_tokens(c: Any, x: Data) -> Data:
        """Few labels by one matrix, many by two."""
        if c.n_labels < 10:
            return parts.task_heads.classify_tokens(c, x)
        return parts.task_heads.through(*MANY_LABELS, every_token=True)(c, x)
