"""MiniCPM-V 4.6 and 4.7 and MiniCPM-OCR: SigLIP's encoder, in whose middle windows of patches are merged, and Qwen 3.5.

Images are read at a sixteenth of their patches, `downsample_mode` 16x.
"""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes


def layers_before(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """How many layers there are before windows are merged; 0 if they never are."""
    last = js.get("insert_layer_id", 6)
    return last + 1 if 0 <= last < c["n_layers"] else 0


def window(axis: int) -> Any:
    return sizes.derived(lambda js, c: js.get("window_kernel_size", (2, 2))[axis])


class MiniCPMV46Vision(parts.PatchVision):
    """Source: MiniCPMV4_6VisionModel of the reference."""

    config_class = "MiniCPMOcrVisionConfig"

    n_patches: sizes.Natural = sizes.derived(lambda js, c: (js.get("image_size", 224) // c["patch_size"]) ** 2)
    window_rows: sizes.Positive = window(0)
    window_columns: sizes.Positive = window(1)
    n_layers_before: sizes.Natural = sizes.derived(layers_before, at_root=True)

    def forward(c, pixels: Data) -> Data:
        """One image to vectors of its merged patches."""
        places = ops.patch_places(pixels, c.patch_size, c.patch_size)
        x = parts.embed_patches(pixels, "embeddings.patch_embedding", c.d_model, c.patch_size, bias=True)
        table = "embeddings.position_embedding.weight"
        x = x + ops.lookup_in_grid(places, table, c.n_patches, c.d_model, stretch="nearest")
        n = c.n_layers_before
        if n:
            x = c.run_layers(x, n)
            windows = ops.patch_windows(pixels, c.patch_size, c.window_rows * c.patch_size)
            x = ops.block(x, "vit_merger.", c.shrink, reads=(windows, places))
        return c.norm(c.run_layers(x, c.n_layers - n, first=n), "post_layernorm")

    def run_layers(c, x: Data, n: Any, first: Any = 0) -> Data:
        return ops.layers(x, "encoder.layers.{layer}.", [("layer", n)], lambda kind, x: c.layer(x), first=first)

    def shrink(c, x: Data, windows: Data, places: Data) -> Data:
        """Patches of a window attend to each other; two matrices merge them, and their mean is added."""
        n = c.window_rows * c.window_columns
        heads = (c.n_heads, c.d_head)
        h = c.norm(x, "layer_norm1")
        q, k, v = (ops.linear(h, f"self_attn.{name}_proj", f"qkv.{name}", heads, bias=True) for name in "qkv")
        a = ops.attend(q, k, v, mask=ops.Groups(windows))  # [n, n_heads, d_head]
        x = x + ops.linear(a, "self_attn.out_proj", "output_projection", c.d_model, bias=True)
        h = c.norm(ops.merge_squares(x, n, places), "pre_norm")
        h = ops.activate(ops.linear(h, "linear_1", "mlp.up", n * c.d_ff, bias=True), "gelu_pytorch_tanh")
        return ops.linear(h, "linear_2", "mlp.down", c.d_model, bias=True) + ops.mean_of_squares(x, n, places)


class MiniCPMV46(parts.Multimodal):
    """Source: modeling_minicpmv4_6.py of the reference."""

    reference = "MiniCPMV4_6ForConditionalGeneration"
    sections = sizes.Sections("qwen3_5_text")
    unused_keys = ("image_size", "merge_kernel_size")
    projector_prefix = "model.merger."

    vision: MiniCPMV46Vision
    n_merges: sizes.Positive = sizes.hf("merger_times")

    image_token = sizes.setting("image_token_id", default=None)

    def places(c: Any, pixels: Data) -> tuple[Data, ...]:
        """The rows and columns before each merge."""
        side = c.vision.patch_size * (c.vision.window_rows if c.vision.n_layers_before else 1)
        found = []
        for _ in range(c.n_merges):
            found.append(ops.patch_places(pixels, side, side))
            side = side * 2
        return tuple(found)

    def project(c: Any, x: Data, *places: Data) -> Data:
        """Squares of four patches through two matrices, as often as the config says."""
        for i, place in enumerate(places):
            last, prefix = i == len(places) - 1, f"mlp.{i}."
            x = ops.layer_norm(ops.merge_squares(x, 4, place), prefix + "pre_norm", 1e-6)
            x = ops.activate(ops.linear(x, prefix + "linear_1", "projector", x.shape[-1], bias=True), "gelu")
            width = c.language.d_model if last else c.vision.d_model
            x = ops.linear(x, prefix + "linear_2", "projector", width, bias=True)
        return x

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        if c.vision.n_layers_before:
            return ()
        x, windows, places = (
            ops.given("patches", "patches", c.vision.d_model),
            ops.given("", "patches"),
            ops.given("", "patches", 2),
        )
        merger = ops.block(x, "model.vision_tower.vit_merger.", c.vision.shrink, reads=(windows, places), part="vision")
        return (ops.Unreachable(merger, "no layer has the number insert_layer_id"),)


class MiniCPMV47(MiniCPMV46):
    """Positions are times, rows and columns on a canvas of an image and its slices.

    Source: modeling_minicpmv4_7.py of the reference.
    """

    reference = "MiniCPMV4_7ForConditionalGeneration"
    model_types = ("minicpmv4_7",)
    sections = sizes.Sections("qwen3_5_text")

    def forward(c: Any, tokens: Data, head: bool = True) -> Data:
        if not hasattr(c.language, "axes"):
            return super().forward(tokens, head)
        image = c.see()
        x = ops.insert(c.embed_text(tokens), tokens, image, c.image_token)
        places, pixels = ops.text_places(tokens), c.vision.image()
        places = Data(ops.Undescribed("places on a canvas", of_prompt=True), (places, pixels), places.shape)
        return c.read_text(x, places, head=head)


class MiniCPMOcr(MiniCPMV46):
    """Source: modeling_minicpm_ocr.py of the reference."""

    reference = "MiniCPMOcrForConditionalGeneration"
    model_types = ("minicpm_ocr",)
    sections = sizes.Sections("qwen3_5_text", default_tie=True)
