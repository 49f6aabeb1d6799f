"""Florence-2: DaViT's encoder of four stages, in which windows of patches and then channels attend to one another,
before BART, among whose source tokens the image stands.
"""

from typing import Any, ClassVar

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError

SHARED = "model.shared.weight"


def stages_agree(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    n = len(c["dims"])
    for field, key in (("heads", "num_heads"), ("groups", "num_groups")):
        if len(c[field]) != n:
            raise ParamcountError(f"has {len(c[field])} values", where=key, expected=f"{n}, as embed_dim")
    padding, norms = js.get("patch_padding", (3, 1, 1, 1)), js.get("patch_prenorm", (False, True, True, True))
    lists = {"depths": c["depths"], "patch_size": c["kernels"], "patch_stride": c["strides"]}
    for key, values in {**lists, "patch_padding": padding, "patch_prenorm": norms}.items():
        if len(values) < n:
            raise ParamcountError(f"has {len(values)} values", where=key, expected=f"{n}, as embed_dim")
    if c["dims"][-1] % 2:
        raise ParamcountError(f"= {c['dims'][-1]}", where="embed_dim", expected="an even number last")


class DaViT(sizes.Sizes):
    """Of each stage: the size and how many blocks of layers it has. Source: arXiv:2204.03645, section 3."""

    config_class = "Florence2VisionConfig"

    section = "vision_config"
    conditions = (stages_agree,)

    n_channels: sizes.Positive = sizes.hf("in_channels")
    dims: sizes.Widths = sizes.hf("embed_dim")
    depths: sizes.Indices = sizes.hf("depths")
    heads: sizes.Widths = sizes.hf("num_heads")
    groups: sizes.Widths = sizes.hf("num_groups")
    kernels: sizes.Widths = sizes.hf("patch_size")
    strides: sizes.Widths = sizes.hf("patch_stride")
    pre_normed: sizes.Indices = sizes.derived(
        lambda js, c: tuple(i for i, is_so in enumerate(js.get("patch_prenorm", (False, True, True, True))) if is_so)
    )
    ff_dims: sizes.Indices = sizes.derived(
        lambda js, c: tuple(sizes.part_of(dim, js.get("mlp_ratio", 4.0), "mlp_ratio") for dim in c["dims"])
    )
    window_size: sizes.Positive = sizes.hf("window_size")
    qkv_bias: sizes.Flag = sizes.hf()

    activation = sizes.setting("activation_function")
    padding = sizes.setting("patch_padding", default=(3, 1, 1, 1))

    def image(c) -> Data:
        return ops.given("pixels", c.n_channels, "height", "width")

    def forward(c, pixels: Data) -> Data:
        """One square image to vectors of its patches, [patches, dims[-1]]."""
        x, side = ops.reshape(ops.cut(pixels, 1, 1), c.n_channels), 1
        for stage, depth in enumerate(c.depths[: len(c.dims)]):
            x, side = c.narrow(x, stage), side * c.strides[stage]
            reads = ops.padded_places(pixels, side, c.window_size * side)
            name, kinds = f"blocks.{stage}.{{layer}}.", [("layer", depth)]
            x = ops.layers(x, name, kinds, lambda kind, x, *reads, s=stage: c.layer(x, s, *reads), reads=reads)
        return x

    def narrow(c, x: Data, stage: int) -> Data:
        """A convolution to the size of a stage."""
        name, padding = f"convs.{stage}.", c.padding[stage] if isinstance(c.padding, (list, tuple)) else c.padding
        if stage in c.pre_normed:
            x = ops.layer_norm(x, name + "norm", 1e-5)
        width, step = c.kernels[stage], c.strides[stage]
        zeros = ops.Zeros(padding)
        x = ops.convolve_image(x, name + "conv", "mixer", c.dims[stage], width, stride=step, padding=zeros, bias=True)
        return x if stage in c.pre_normed else ops.layer_norm(x, name + "norm", 1e-5)

    def layer(c, x: Data, stage: int, padded: Data, windows: Data) -> Data:
        """Attention inside windows, then of channels inside groups, each with a convolution and an MLP."""
        d = c.dims[stage]
        for name, is_spatial in (("spatial_block.", True), ("channel_block.", False)):
            x = x + ops.convolve_each_channel(x, name + "conv1", d, 3, bias=True)
            h = ops.layer_norm(x, name + "norm1", 1e-5)
            x = x + (c.look(h, stage, padded, windows) if is_spatial else c.mix(h, stage))
            x = x + ops.convolve_each_channel(x, name + "conv2", d, 3, bias=True)
            names = (name + "ffn.fc1", name + "ffn.fc2")
            h = ops.layer_norm(x, name + "norm2", 1e-5)
            x = x + parts.plain_mlp(h, names, "mlp", c.ff_dims[stage], activation=c.activation, bias=True)
        return x

    def look(c, x: Data, stage: int, padded: Data, windows: Data) -> Data:
        """Patches attend to those of their window; zeros fill the last ones."""
        q, k, v = c.find_qkv(ops.pad_rows(x, padded), "spatial_block.window_attn.qkv", c.heads[stage])
        a = ops.drop_rows(ops.attend(q, k, v, mask=ops.Groups(windows)), x)
        return ops.linear(a, "spatial_block.window_attn.proj", "output_projection", x.shape[-1], bias=True)

    def mix(c, x: Data, stage: int) -> Data:
        """Channels attend to those of their group."""
        q, k, v = (ops.transpose_heads(y) for y in c.find_qkv(x, "channel_block.channel_attn.qkv", c.groups[stage]))
        a = ops.transpose_heads(ops.attend(q, k, v))
        return ops.linear(a, "channel_block.channel_attn.proj", "output_projection", x.shape[-1], bias=True)

    def find_qkv(c, x: Data, name: str, heads: int) -> list[Data]:
        if not heads:
            raise ParamcountError("has a 0", where="heads", expected="positive integers")
        d = x.shape[-1]
        shares = dict.fromkeys(("qkv.q", "qkv.k", "qkv.v"), d)
        return [ops.to_heads(y, heads, d // heads) for y in ops.fused(x, name, shares, bias=c.qkv_bias)]


class Florence2Projector(sizes.Sizes):
    """The sizes of the projector."""

    config_class = "Florence2VisionConfig"

    section = "vision_config"

    d_out: sizes.Positive = sizes.hf("projection_dim")
    n_positions: sizes.Positive = sizes.hf("max_position_embeddings")
    n_frames: sizes.Positive = sizes.hf("max_temporal_embeddings")
    d_rows: sizes.Natural = sizes.derived(lambda js, c: js.get("embed_dim", (1024,))[-1] // 2)


def weights_have_a_spread(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """BART alone does not read this key, but the reference does here."""
    found = (js.get("text_config") or {}).get("initializer_range", 0.02)
    if type(found) not in (int, float):
        raise sizes.make_value_error(found, "text_config.initializer_range", "a number")


class Florence2(parts.Headed):
    """Source: arXiv:2311.06242, section 4; modeling_florence2.py of the reference."""

    reference = "Florence2ForConditionalGeneration"
    sections = sizes.Sections("bart", tie_rule="text", supported_types=("bart",))
    conditions = (weights_have_a_spread,)

    vision: DaViT
    projector: Florence2Projector
    language: sizes.Sizes
    tie_word_embeddings: sizes.Flag = sizes.hf()

    image_token: ClassVar = sizes.setting("image_token_id")

    def forward(c: Any, tokens: Data, head: bool = True) -> Data:
        pixels = c.vision.image()
        image = ops.block(pixels, "model.vision_tower.", c.vision.forward, part="vision")
        side = 1
        for stride in c.vision.strides[: len(c.vision.dims)]:
            side = side * stride
        reads = (Data(ops.PatchPlaces(side, side), (pixels,), ("image", 2)),)
        image = ops.block(image, "model.multi_modal_projector.", c.project, reads=reads, part="projector")

        def read(tokens: Data, source: Data, image: Data) -> Data:
            x = c.language.decode(tokens, c.encode(source, image))
            tied = SHARED if c.tie_word_embeddings else None
            return ops.linear(x, "lm_head", "lm_head", c.language.vocab_size, tied_to=tied) if head else x

        inputs, moved = (ops.given("source tokens", "source"), image), ("model.", "model.language_model.")
        return ops.rename_weights(ops.as_model(ops.block(tokens, "", read, reads=inputs)), moved=moved)

    def encode(c: Any, source: Data, image: Data) -> Data:
        """The language model's encoder, which looks its tokens up in the shared embedding."""
        bart = c.language

        def encoder(source: Data, image: Data) -> Data:
            x = bart.scale(ops.lookup(source, f"/{SHARED}", "embedding", bart.vocab_size, bart.d_model))
            x = ops.insert(x, source, image, c.image_token)
            return bart.stack(parts.encoder_stack(bart), bart.place(x, source, ""), "")

        return ops.block(source, "model.encoder.", encoder, reads=(image,), part="encoder")

    def project(c: Any, x: Data, places: Data) -> Data:
        """The mean of all patches and each of them, with the positions of their columns and rows."""
        p, d = c.projector, x.shape[-1]
        row, column = (ops.reshape(y) for y in ops.split(places, 1, 1))
        tables = {"column": (column, d - p.d_rows), "row": (row, p.d_rows)}
        found = [
            ops.lookup(index, f"image_position_embed.{name}_embeddings.weight", "position", p.n_positions, width)
            for name, (index, width) in tables.items()
        ]
        x = x + ops.join(*found)
        frames = ops.Weight("visual_temporal_embed.pos_idx_to_embed", "position", (p.n_frames, d), role="buffer")
        x = x + ops.expand_to_tokens(x, Data(ops.LearnedRows(1), (), (1, d), (frames,)))
        x = ops.stack_rows(ops.pool_text(x, "mean"), x, length="image")
        return ops.layer_norm(ops.linear(x, "image_projection", "projector", p.d_out), "image_proj_norm", 1e-5)

    def unreachable(c: Any, tokens: Data) -> tuple[ops.Unreachable, ...]:
        if c.language.tie_word_embeddings:
            return ()
        name = "model.language_model.encoder.embed_tokens.weight"
        table = ops.lookup(tokens, name, "embedding", c.language.vocab_size, c.language.d_model)
        return (
            ops.Unreachable(
                ops.block(table, "", lambda x: x, part="encoder"), "the encoder reads the shared embedding"
            ),
        )
