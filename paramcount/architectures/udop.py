"""UDOP: T5 whose encoder reads a page: its text, where each token stands, and an image."""

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import ClassVar

from paramcount.architectures.t5 import T5, decoder_layers
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, describe_value, list_names

EDGES = {"left": "x", "upper": "y", "right": "x", "lower": "y"}  # {edge of a token's box: its table}
BIASES = ("1d", "horizontal", "vertical")
N_BUCKETS, FARTHEST = 32, 128  # of the encoder, whatever config.json says


def find_biases(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    """The kinds of distance that the encoder's relative positions are of."""
    entries = js.get("relative_bias_args")
    if entries is None:
        return BIASES
    if not isinstance(entries, list) or not entries:
        raise sizes.make_value_error(entries, "relative_bias_args", 'a list such as [{"type": "1d"}]')
    for i, entry in enumerate(entries):
        where = f"relative_bias_args.{i}"
        if not isinstance(entry, dict) or set(entry) != {"type"}:
            raise ParamcountError(f"= {describe_value(entry)} is not supported", where=where, expected='{"type": "1d"}')
        if entry["type"] not in BIASES:
            found = describe_value(entry["type"])
            raise ParamcountError(f"= {found}", where=f"{where}.type", expected=list_names(BIASES, str(entry["type"])))
    return tuple(entry["type"] for entry in entries)


class Udop(T5):
    """Source: arXiv:2212.02623, section 3; modeling_udop.py of the reference."""

    reference = "UdopForConditionalGeneration"
    base_model: ClassVar[str | None] = ""  # UdopModel does not tie the tables of relative positions
    unused_keys = ("image_size",)

    n_layers: sizes.Positive = sizes.hf("num_hidden_layers", "num_layers")  # the reference needs one
    n_decoder_layers: sizes.Natural = sizes.hf("num_decoder_layers", absent=decoder_layers(24), null=decoder_layers(24))
    d_head: sizes.Positive = sizes.hf("d_kv")
    scaled: sizes.Flag = sizes.derived(lambda js, c: True)
    biases: sizes.Words = sizes.derived(find_biases)
    n_page_positions: sizes.Positive = sizes.hf("max_2d_position_embeddings")
    n_image_channels: sizes.Positive = sizes.hf("num_channels")
    patch_size: sizes.Positive = sizes.hf("patch_size")

    def encode(c, tokens: Data, change: Callable[..., Data] | None = None, *reads: Data) -> Data:
        """Token ids to states, with those of the patches of an image that have no token."""
        pixels = ops.given("pixels", c.n_image_channels, "height", "width")
        image = ops.block(pixels, "patch_embed.", c.cut, part="vision")
        edges = (ops.given(edge, "source and patches") for edge in EDGES)
        return ops.block(tokens, "", c.read_page, reads=(image, *edges), part="encoder")

    def cut(c, pixels: Data) -> Data:
        return parts.embed_patches(pixels, "proj", c.d_model, c.patch_size, bias=True)

    def read_page(c, tokens: Data, image: Data, *edges: Data) -> Data:
        x = ops.lookup(tokens, "shared.weight", "embedding", c.vocab_size, c.d_model)
        x = Data("add the patch of each token", (x, image, *edges), x.shape)
        x = ops.stack_rows(
            x, Data("patches without a token", (image, *edges), image.shape), length="source and patches"
        )
        tables = set[str]()
        for place, axis in zip(edges, EDGES.values(), strict=True):
            name = f"encoder.cell_2d_embedding.{axis}_position_embeddings.weight"
            tied_to = name if axis in tables else None
            x = x + ops.lookup(place, name, "position", c.n_page_positions, c.d_model, tied_to=tied_to)
            tables.add(axis)
        body = [("layer", c.n_layers)]
        bias = c.bias_of_page(x, *edges)
        x = ops.layers(x, "encoder.block.{layer}.", body, lambda kind, x, bias: c.layer(x, kind, bias), reads=(bias,))
        return c.norm(x, "encoder.final_layer_norm")

    def bias_of_page(c, x: Data, left: Data, upper: Data, right: Data, lower: Data) -> Data:
        """The sum of a bias for each kind of distance."""
        edges = {"horizontal": (left, right), "vertical": (upper, lower)}
        found = []
        for i, kind in enumerate(c.biases):
            buckets = ops.bucket_distances(x, N_BUCKETS, FARTHEST, causal=False)
            if kind in edges:
                buckets = Data("distances on the page", edges[kind], buckets.shape)
            name = f"relative_bias.biases.{i}" if i else "block.0.layer.0.SelfAttention"
            rows = N_BUCKETS if i else c.n_buckets
            name = f"encoder.{name}.relative_attention_bias.weight"
            found.append(ops.lookup(buckets, name, "position", rows, c.n_heads))
        return reduce(add, found)

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        tables = [
            ops.lookup(
                tokens,
                f"decoder.relative_bias.biases.{i}.relative_attention_bias.weight",
                "position",
                N_BUCKETS,
                c.n_heads,
            )
            for i in range(1, len(c.biases))
        ]
        pixels = ops.given("pixels", c.n_image_channels, "height", "width")
        idle = ops.block(pixels, "decoder.embed_patches.", c.cut, part="vision")
        return (
            ops.Unreachable(idle, "the decoder sees no image"),
            *(ops.Unreachable(table, "the decoder's relative positions are of its first layer") for table in tables),
        )

    def check(c) -> None:
        """The encoder's first table is that of its first layer, which has as many rows as config.json says."""
        super().check()
        if c.n_buckets < N_BUCKETS:
            raise sizes.make_value_error(c.n_buckets, "relative_attention_num_buckets", f"at least {N_BUCKETS}")
