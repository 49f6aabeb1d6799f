"""Granite 4 Vision: a vision encoder, a Q-Former for each of its views, and Granite.

A Q-Former asks the patches of each window by themselves. What it finds is added in front of a layer of Granite.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial, reduce
from typing import Any, ClassVar, NamedTuple

from paramcount.architectures.encoders import find_part
from paramcount.architectures.granite import Granite
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError, describe_value

QFORMER = "blip_2_qformer"
N_CORNERS = 4  # of a square of 2 × 2 patches, each of which has a projector of its own
D_HEAD = 64


class Adding(NamedTuple):
    """The kind of a layer in front of which the output of a projector is added."""

    projector: int


class Granite4VisionText(Granite):
    """Source: Granite4VisionTextModel of the reference."""

    reference = "Granite4VisionForConditionalGeneration"
    model_types = ("granite4_vision_text",)
    is_section_type = False
    reference_names = {"model.": ""}
    base_model = "Granite4VisionTextModel"
    conditions = (sizes.padding_in_table(None),)


def of_qformer(key: str, absent: int, without_section: int) -> Any:
    """A key of the Q-Former. The reference has other defaults if the whole section is missing."""

    def find_absent(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
        return without_section if js.get("qformer_config") is None else absent

    return sizes.hf(f"qformer_config.{key}", absent=find_absent)


def qformer_setting(key: str, default: Any) -> Any:
    return sizes.setting(default=lambda config, c: (config.get("qformer_config") or {}).get(key, default))


def size_of_encoder(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """The Q-Former's own hidden_size is replaced."""
    section = js.get("vision_config") or {}
    encoder = find_part(sizes.Tower, section.get("model_type", "clip_vision_model"))
    return section.get("hidden_size", sizes.get_key(encoder, "d_model").absent)


def known_qformer(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if (name := (js.get("qformer_config") or {}).get("model_type", QFORMER)) != QFORMER:
        raise sizes.make_value_error(name, "qformer_config.model_type", QFORMER)


def sized_image(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The reference asks every encoder for its image_size, which SigLIP 2 has none of."""
    section = js.get("vision_config") or {}
    if section.get("model_type") == "siglip2_vision_model" and type(section.get("image_size")) is not int:
        raise ParamcountError("is missing", where="vision_config.image_size", expected="an integer")


@sizes.options_first
def side(js: sizes.ConfigJson, c: sizes.FieldValues, index: int) -> int:
    """The numerator or the denominator of downsample_rate."""
    rate = js.get("downsample_rate")
    shares = rate.split("/") if isinstance(rate, str) else ()
    if len(shares) != 2 or not all(part.strip().isdecimal() and int(part) for part in shares):
        problem = "is missing" if rate is None else f"= {describe_value(rate)}"
        raise ParamcountError(problem, where="downsample_rate", expected="a fraction such as 4/8")
    return int(shares[index])


def layer_pairs(js: sizes.ConfigJson) -> list[tuple[int, int]]:
    """(layer of the encoder, layer of the language model) of each view."""
    found = js.get("deepstack_layer_map")
    pairs: Any = found if isinstance(found, (list, tuple)) else [None]
    if not all(isinstance(pair, (list, tuple)) and [*map(type, pair)] == [int, int] for pair in pairs):
        problem = "is missing" if found is None else f"= {describe_value(found)}"
        expected = "a list of pairs: a layer of the vision encoder, a layer of the language model"
        raise ParamcountError(problem, where="deepstack_layer_map", expected=expected)
    return [(view, layer) for view, layer in pairs]


def corner_layers(js: sizes.ConfigJson) -> tuple[int, ...]:
    found = js.get("spatial_target_layers")
    layers: tuple[int, ...] = tuple((12, 15, 18, 21) if found is None else found)
    if len(layers) > N_CORNERS:  # Granite4VisionModel has as many spatial_projectors and indexes them
        raise sizes.make_value_error(found, "spatial_target_layers", f"at most {N_CORNERS} layers")
    return layers


def target_layers(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """The layer of the language model that each projector's output is added in front of, or their number."""
    n = c["language"].n_layers
    targets = (*(layer for _, layer in layer_pairs(js)), *corner_layers(js))
    return tuple(layer if 0 <= layer < n else n for layer in targets)


def viewed_layers(config: Mapping[str, Any], c: Any) -> tuple[int, ...] | ops.Unknown:
    """The states that the projectors read; all corners are of the last one. Unknown in an entry without settings."""
    if config.get("deepstack_layer_map") is None:
        return ops.Unknown("viewed_layers")
    return (*(view for view, _ in layer_pairs(config)), config.get("spatial_vision_layer", -1))


class WindowQFormer(parts.Blip2QFormer):
    """The Q-Former of a projector, as large as the vision encoder; its queries meet the patches of their own window."""

    section = None
    conditions = (known_qformer,)

    d_model: sizes.Positive = sizes.derived(size_of_encoder)
    n_layers: sizes.Natural = of_qformer("num_hidden_layers", 12, 1)
    n_heads: sizes.Positive = sizes.derived(lambda js, c: c["d_model"] // D_HEAD)
    d_ff: sizes.Natural = sizes.hf("qformer_config.intermediate_size", absent=3072)
    cross_every: sizes.Positive = of_qformer("cross_attention_frequency", 2, 1)
    has_text_mlp: sizes.Flag = sizes.hf("qformer_config.use_qformer_text_input", absent=False)

    activation = qformer_setting("hidden_act", "gelu")
    norm_eps = qformer_setting("layer_norm_eps", 1e-12)

    def fill(c, queries: Data, memory: Data, *windows: Data) -> Data:
        """`windows`: that of each query and that of each patch."""
        return c.encode(c.norm(queries, "layernorm"), memory, *windows)

    def layer(c, kind: str, x: Data, memory: Data, *windows: Data) -> Data:
        of_queries, of_patches = windows
        h = parts.multi_head(
            c, x, "attention.", parts.qformer.NAMES, mix=partial(ops.attend, mask=ops.Groups(of_queries))
        )
        x = c.norm(x + h, "attention.output.LayerNorm")
        if kind == "cross":
            x = ops.block(x, "crossattention.", c.ask, reads=(memory, of_queries, of_patches))
        return c.feed_forward(x, "_query")

    def ask(c, x: Data, memory: Data, of_queries: Data, of_patches: Data) -> Data:
        mix = partial(ops.attend, mask=ops.Groups(of_queries, of_patches))
        h = parts.multi_head(c, x, "", parts.qformer.NAMES, memory=memory, mix=mix)
        return c.norm(x + h, "output.LayerNorm")


class Granite4Vision(parts.Composite):
    """Source: modeling_granite4_vision.py of the reference. An image is one tile.

    `query_side`, `window_side`: of a window, in queries and in patches. `target_layers`: the layer of the language
    model in front of which the output of each projector is added; the number of layers if there is no such layer.
    """

    reference = "Granite4VisionForConditionalGeneration"
    sections = sizes.Sections(
        "granite4_vision_text",
        ignores_model_type=True,
        default_encoder="clip_vision_model",
        other_sections=("vision_config", "qformer_config"),
    )
    conditions = (sized_image,)

    language: sizes.Sizes
    vision: sizes.Tower
    qformer: WindowQFormer
    query_side: sizes.Positive = sizes.derived(side(0))
    window_side: sizes.Positive = sizes.derived(side(1))
    n_views: sizes.Natural = sizes.derived(lambda js, c: len(layer_pairs(js)))
    target_layers: sizes.Indices = sizes.derived(target_layers)

    image_token = sizes.setting("image_token_index", "image_token_id")
    views = sizes.setting(default=viewed_layers)
    selection: ClassVar = sizes.setting("vision_feature_select_strategy")

    def forward(c: Any, tokens: Data, head: bool = True) -> Data:
        n, d, image = len(c.target_layers), c.language.d_model, c.see()
        x = c.embed_text(tokens)
        x = ops.insert(x, tokens, ops.scale_by(ops.split(image, *[d] * n)[0], 0.0), c.image_token)
        return c.read_text(x, tokens, ops.reshape(image, n, d), head=head)

    def see(c: Any) -> Data:
        """An image to the outputs of all projectors side by side, and a learned vector at its end."""
        pixels = c.vision.image()
        states = ops.block(pixels, "model.vision_tower.", c.encode, part="vision")
        states = states if c.selection == "full" else ops.other_tokens(states)
        *views, last = ops.split(states, *[c.vision.d_model] * (c.n_views + 1)) if c.n_views else (states,)
        windows = c.find_windows(pixels)
        found: list[Data] = []
        for name, corner in c.projectors():
            view = last if corner is not None else views[len(found)]
            found.append(c.apply(view, name, corner, windows))
        return ops.block(found[0], "", c.gather, reads=found[1:], part="projector")

    def gather(c: Any, *outputs: Data) -> Data:
        """The outputs of all projectors side by side, with a learned vector behind each."""
        d = c.language.d_model
        newline = ops.learned_rows("model.image_newline", "projector", 1, d, stored=(d,))
        return reduce(ops.join, [ops.put_in_front(x, newline) for x in outputs])

    def find_windows(c: Any, pixels: Data) -> tuple[Data, ...]:
        """Where patches stand; the window of each and its place in there; the same for squares of 2 x 2 patches."""
        size, merged = c.vision.patch_size, 2 * c.vision.patch_size
        window = size * c.window_side
        return (
            ops.patch_places(pixels, size, size),
            ops.patch_windows(pixels, size, window),
            ops.places_in_windows(pixels, size, window),
            ops.patch_windows(pixels, merged, window, rows="image"),
            ops.places_in_windows(pixels, merged, window, rows="image"),
        )

    def apply(c, x: Data, name: str, corner: int | None, windows: tuple[Data, ...]) -> Data:
        """A projector. `name`: its prefix."""
        return ops.block(
            x, name, lambda x, *reads: c.apply_to_windows(x, corner, *reads), reads=windows, part="projector"
        )

    def projectors(c) -> Iterator[tuple[str, int | None]]:
        """The prefix of each projector, and which corner of each square it reads; None: the mean of the square."""
        for i in range(c.n_views):
            yield f"model.layerwise_projectors.{i}.", None
        for i in range(len(c.target_layers) - c.n_views):
            yield f"model.spatial_projectors.{i}.", i

    def encode(c: Any, pixels: Data) -> Data:
        return c.vision.forward(pixels, (c.views, c.n_views + 1))

    def apply_to_windows(c: Any, x: Data, corner: int | None, grid: Data, *windows: Data) -> Data:
        """Patches to the filled queries of their windows, as many as there are squares of 2 x 2 patches."""
        window, place, query_window, query_place = windows
        d = c.vision.d_model
        x = ops.layer_norm(x, "norm", 1e-6)
        patches = x + ops.lookup(place, "image_positions", "other", 1, c.window_side * c.window_side, d)
        merged = (
            ops.mean_of_squares(x, 4, grid)
            if corner is None
            else ops.split(ops.merge_squares(x, 4, grid), d, d, d, d)[corner]
        )
        queries = ops.lookup(query_place, "query", "other", 1, c.query_side * c.query_side, d) + merged
        filled = ops.block(queries, "qformer.", c.qformer.fill, reads=(patches, query_window, window))
        return ops.linear(filled, "out_linear", "projector", c.language.d_model, bias=True)

    def transform(c: Any, x: Data, *reads: Data) -> Data:
        """Embedded tokens to hidden states. `reads`: the tokens and the image.

        Of two projectors for one layer, the later one is added.
        """
        language = c.language
        added = {layer: i for i, layer in enumerate(c.target_layers) if layer < language.n_layers}

        def layer(kind: Adding | str, x: Data, tokens: Data, image: Data) -> Data:
            if isinstance(kind, Adding):
                x = ops.insert_sum(x, tokens, ops.select_part(image, kind.projector), c.image_token)
            return language.layer(x)

        kinds: list[tuple[Adding | str, ops.Size]] = []
        reached = 0
        for index in sorted(added):
            kinds += [("", index - reached), (Adding(added[index]), 1)]
            reached = index + 1
        kinds.append(("", language.n_layers - reached))
        x = language.to_first_layer(x, reads[0])
        return language.last(ops.layers(x, "model.layers.{layer}.", kinds, layer, reads=reads))

    def unreachable(c: Any, tokens: Data) -> tuple[ops.Unreachable, ...]:
        found = []
        n_corners = len(c.target_layers) - c.n_views
        pixels = c.vision.image()
        for corner in range(n_corners, N_CORNERS):
            x = ops.given("patches", "patches", c.vision.d_model)
            idle = c.apply(x, f"model.spatial_projectors.{corner}.", corner, c.find_windows(pixels))
            found.append(ops.Unreachable(idle, "spatial_target_layers names fewer layers than there are corners"))
        if c.qformer.has_text_mlp:
            last = [f"model.spatial_projectors.{corner}." for corner in range(n_corners, N_CORNERS)]
            for name in [*(name for name, _ in c.projectors()), *last]:
                x = ops.given("queries", "image", c.qformer.d_model)
                idle = ops.block(x, name + "qformer.", c.qformer.read_text, part="projector")
                found.append(ops.Unreachable(idle, "the Q-Former reads no text"))
        return tuple(found)

    def check(c: Any) -> None:
        if c.qformer.d_model != c.vision.d_model:
            raise sizes.make_value_error(c.qformer.d_model, FieldName("qformer.d_model"), f"{c.vision.d_model}")
        if not c.target_layers:
            expected = "a layer, or one in deepstack_layer_map"
            raise ParamcountError("= []", where="spatial_target_layers", expected=expected)
        n = len(c.target_layers)
        if not n - N_CORNERS <= c.n_views <= n:
            expected = f"a number from {max(0, n - N_CORNERS)} to {n}, because target_layers has {n} layers"
            raise sizes.make_value_error(c.n_views, FieldName("n_views"), expected)
