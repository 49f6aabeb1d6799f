"""`paramcount draw` and `pc.draw`: every matrix as a rectangle to scale, in the order of the forward pass."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
from paramcount.api import draw
from paramcount.architectures import split_name
from paramcount.drawing.colours import measure_luminance
from paramcount.drawing.pictures import draw_model
from paramcount.drawing.render import DARK, LIGHT, find_fonts, render_svg
from paramcount.drawing.route import simplify_path
from paramcount.drawing.search import RIGHT, find_path
from paramcount.drawing.shapes import BOLD, Drawing, Text
from paramcount.loading import load
from paramcount.tracing.trace import Shape, Step
from paramcount.zoo import Model
from tests.batches import in_batches
from tests.drawings import (
    assert_all_inside,
    assert_flows,
    assert_on_grid,
    assert_shapes_are_printed,
    assert_to_scale,
    count_crossings,
    count_drawn_weights,
    count_traced_weights,
    find_overlaps,
    list_texts,
    parse_svg,
    trace_drawing,
)
from tests.golden import assert_golden
from tests.model_types import MODEL_TYPES
from tests.running import Runner
from tests.structures import ZOO, keep_every, pick_structures
from tests.test_package import command_code, list_loaded_packages

GOLDEN = ("gpt2-small", "llama-3.1-8b", "mixtral-8x7b", "deepseek-v3", "jamba-v0.1")
# Drawn once: blocks that are run several times, and layers whose steps look alike: two kinds of Pegasus-X's encoder,
# those before and behind the middle of Granite Speech's, and Idefics' layers between its cross-attentions. In Swin's
# encoder, which CLAP's, Donut's and Nougat's are, every second layer shifts its windows, arXiv:2103.14030, section 3.2.
FOLDED = {
    "clap",
    "clap_audio_model",
    "clap_audio_model.ClapAudioModelWithProjection",
    "granite_speech",
    "granite_speech_plus",
    "hrm_text",
    "idefics",
    "pegasus_x",
    "qwen2_5_omni",
    "zamba",
    "zamba2",
}
FOLDED_MODELS = {
    "deberta-v2-xlarge",  # only the first layer has a convolution beside it
    "deberta-v2-xxlarge",
    "donut-base",
    "nougat-base",
}
CROSSINGS = 2  # arrows that may cross a shape; of most models none does
DRAWN = [*pick_structures(every=48), *keep_every(120, MODEL_TYPES)]
HOSTILE = "<script>alert('1')</script> & \"]]><img src=x onerror=alert(2)>\x1b[31m\u202e"


@cache
def load_model(name: str) -> Model:
    """An entry of the zoo, or the default config of a model type."""
    if name in ZOO:
        return load(name)
    facts = MODEL_TYPES[name]
    return pc.load({"model_type": split_name(name)[0], "architectures": [facts.cls], **facts.vary.get("=", {})})


@cache
def draw_layer(name: str, layer: int | None = None) -> Drawing:
    return draw_model(load_model(name), layer=layer)


def list_weights(drawing: Drawing) -> list[tuple[str, str]]:
    """The weights without biases and norms."""
    return [(r.label, r.shape) for r in drawing.rectangles if r.role == "weight" and r.label]


# ---- what is drawn


def test_a_window_is_a_band_below_the_diagonal() -> None:
    """gpt-oss: every other layer attends to the last 128 tokens."""
    sliding, full = (next(r for r in draw_layer("gpt-oss-20b", layer).rectangles if r.mask) for layer in (0, 1))
    assert (sliding.window, sliding.label) == (128, "attention weights, window 128")
    assert (full.window, full.label) == (None, "attention weights")


def test_image_patches_have_an_embedding() -> None:
    """Gemma 3: SigLIP's convolution over patches of 14 or 16 pixels is not a token embedding."""
    labels = [label for label, _ in list_weights(draw_layer("gemma3"))]
    assert (labels.count("patch embedding"), labels.count("token embedding")) == (1, 1)


def test_relative_positions_are_added_to_the_attention_scores() -> None:
    """T5: `scores += position_bias` before the softmax; the bias is [heads, queries, keys] and depends on positions
    only.
    """
    drawing = draw_layer("t5-small")
    steps = trace_drawing(load_model("t5-small"), drawing).steps
    added = [i for i, step in enumerate(steps) if step.op == "add bias"]
    signs = {sign.step: sign.text for sign in drawing.signs}
    drawn_signs = [i for i in added if i in signs]
    assert [signs[i] for i in drawn_signs] == [
        "+"
    ] * 4  # self-attention of the first and the other layers, encoder and decoder
    for i in drawn_signs:
        sources = sorted(steps[arrow.start].op for arrow in drawing.arrows if arrow.end == i)
        assert sources in (["QKᵀ", "lookup"], ["QKᵀ", "add bias"], ["QKᵀ"])
    tables = [r for r in drawing.rectangles if r.label == "relative position bias"]
    assert [(r.role, r.shape) for r in tables] == [("weight", "[32, 8]")] * 2
    biases = [
        r.shape
        for r in drawing.rectangles
        if r.role == "data" and steps[r.step].op == "lookup" and steps[r.step].text == "relative position bias"
    ]
    assert set(biases) == {"8 × [1024, 1024]"}
    distances = [i for i, step in enumerate(steps) if step.op == "relative positions"]
    assert [arrow for arrow in drawing.arrows if arrow.end in distances] == []


@pytest.mark.parametrize(
    ("name", "layer", "shape"),
    [("jamba-v0.1", 0, "[8192, 16]"), ("mamba2", 0, "128 × [64, 128]"), ("qwen3-next-80b-a3b", 0, "32 × [128, 128]")],
)
def test_a_recurrent_state_is_drawn_as_data(name: str, layer: int, shape: str) -> None:
    (state,) = [r for r in draw_layer(name, layer).rectangles if r.label == "recurrent state"]
    assert (state.role, state.shape) == ("data", shape)


def test_an_encoder_is_drawn_before_its_decoder_and_labels_the_origin_of_keys() -> None:
    texts = [text.text for text in draw_layer("t5-small").texts]
    assert texts.index("encoder · layers 1–5") < texts.index("decoder · layers 1–5")
    assert "cross-attention" in texts
    labels = [r.label for r in draw_layer("t5-small").rectangles]
    assert labels.count("from the encoder") == 2  # the cross-attention of the first layer and of the others
    assert "from the projector" in [r.label for r in draw_layer("gemma3").rectangles]


# ---- a layer


def test_a_layer_of_a_model_with_two_stacks_is_in_the_decoder() -> None:
    drawing = draw_layer("bart", 11)
    steps = trace_drawing(load_model("bart"), drawing).steps
    assert {steps[r.step].part for r in drawing.rectangles if r.role == "weight"} == {"decoder", "cross_attention"}


def test_a_layer_is_labelled_with_the_layer_before_it() -> None:
    assert [draw_layer("deepseek-v3", layer).rectangles[0].label for layer in (0, 1, 3, 60)] == [
        "from the embedding",
        "from layer 0",
        "from layer 2",
        "from layer 59",
    ]
    assert draw_layer("jamba-v0.1").rectangles[-5].label == "from layer 31"


# ---- every model


def step_shapes(step: Step) -> tuple[str, tuple[Shape, ...]]:
    return step.op, tuple(weight.shape for weight in step.weights)


@in_batches("name", DRAWN, size=8, grouped=True)
def test_every_model_is_drawn_to_scale_without_overlaps(name: str) -> None:
    drawing = draw_layer(name)
    model = load_model(name)
    trace = trace_drawing(model, drawing)
    assert_to_scale(drawing)
    assert_shapes_are_printed(drawing)
    assert list(find_overlaps(drawing)) == []
    assert_all_inside(drawing)
    assert_on_grid(drawing)
    assert_flows(drawing, trace)
    assert count_crossings(drawing) <= CROSSINGS
    found, expected = count_drawn_weights(drawing), count_traced_weights(trace)
    assert found == {i: expected[i] for i in found}
    undrawn = set(expected) - set(found)
    assert (undrawn != set()) == (model.architecture in FOLDED or name in FOLDED_MODELS)
    assert {step_shapes(trace.steps[i]) for i in undrawn} <= {step_shapes(trace.steps[i]) for i in found}
    texts = list_texts(parse_svg(drawing.svg()))
    assert sorted(texts) == sorted(
        [*(t.text.replace("ᵀ", "T") for t in drawing.texts), *(sign.text for sign in drawing.signs)]
    )
    assert drawing.words


@pytest.mark.parametrize("name", [*GOLDEN, "blip2-opt-2.7b", "t5gemma2-270m-270m"])
def test_no_arrow_of_a_zoo_model_crosses_a_shape(name: str) -> None:
    assert count_crossings(draw_layer(name)) == 0


@pytest.mark.parametrize("name", [*GOLDEN, "qwen3-next-80b-a3b", "gpt-oss-120b"])
def test_the_weights_in_a_drawing_sum_to_the_parameters(name: str) -> None:
    """The areas times their repeats, without tied weights and buffers."""
    drawing, count = draw_layer(name), pc.count(name)
    steps = trace_drawing(load_model(name), drawing).steps
    total = 0
    for step, numbers in count_drawn_weights(drawing).items():
        spare = [weight for weight in steps[step].weights if weight.tied_to or weight.role != "parameter"]
        if not spare:
            copies = 1
            for scope in steps[step].scopes:
                copies *= scope.copies
            total += numbers * copies
    assert total == count.total


@pytest.mark.parametrize("name", GOLDEN)
def test_the_svg_matches_the_golden_file(name: str) -> None:
    assert_golden(f"draw/{name}.svg", draw_layer(name).svg())


# ---- the picture comes from the declaration


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("llama-3.1-8b", ["each for 4 query"]),  # 32 query heads, 8 KV heads
        ("falcon-7b", ["for all 71 query"]),  # multi-query attention
        ("llama-2-7b", []),  # 32 and 32
    ],
)
def test_a_kv_head_states_how_many_query_heads_share_it(name: str, lines: list[str]) -> None:
    notes = [text.text for text in draw_layer(name).texts if text.role == "note"]
    assert [note for note in notes if "query" in note] == lines * 2  # at keys and at values


def test_a_name_that_is_too_long_for_a_line_breaks_after_dots() -> None:
    drawing = draw_layer("deberta-v3-xsmall")
    notes = [text for text in drawing.texts if text.role == "note" and "." in text.text]
    assert "self.key_proj." in {text.text for text in notes}
    assert max(text.box[2] - text.box[0] for text in notes) < 200


def test_a_path_goes_around_what_is_in_its_way() -> None:
    wall = ((40.0, -30.0, 60.0, 30.0), 100.0, 100.0)
    xs, ys = [33.0, 67.0], [-37.0, 37.0, 50.0]
    path = simplify_path(find_path((0.0, 0.0), (100.0, 5.0), RIGHT, [wall], xs, ys))
    assert path == ((0.0, 0.0), (33.0, 0.0), (33.0, 37.0), (67.0, 37.0), (67.0, 5.0), (100.0, 5.0))
    free = simplify_path(find_path((0.0, 0.0), (100.0, 5.0), RIGHT, [], xs, ys))
    assert len(free) == 4
    assert free[-1] == (100.0, 5.0)


def test_a_path_may_turn_at_its_end_if_it_has_to() -> None:
    wall = ((40.0, -30.0, 98.0, 30.0), 100.0, 100.0)
    xs, ys = [33.0], [-37.0, 37.0]
    for turns_late, expected in ((False, (33.0, 5.0)), (True, (100.0, 37.0))):
        path = simplify_path(find_path((0.0, 0.0), (100.0, 5.0), RIGHT, [wall], xs, ys, turns_late))
        assert path[-2] == expected


# ---- marks


@pytest.mark.parametrize(("tokens", "thin", "broken"), [(5, True, False), (1024, False, False), (100_000, False, True)])
def test_few_tokens_are_thin_and_many_are_truncated(tokens: int, thin: bool, broken: bool) -> None:
    drawing = draw_model(load_model("llama-3.1-8b"), tokens=tokens, layer=0)
    (x, *_) = drawing.rectangles
    assert (x.rows, "rows" in x.thin, "rows" in x.broken) == (tokens, thin, broken)
    assert_to_scale(drawing)
    assert list(find_overlaps(drawing)) == []


def test_a_small_model_has_several_pixels_per_element() -> None:
    config = {
        "model_type": "llama",
        "hidden_size": 8,
        "num_attention_heads": 2,
        "head_dim": 4,
        "intermediate_size": 16,
        "vocab_size": 20,
        "num_hidden_layers": 2,
    }
    drawing = draw(config, tokens=6)
    assert drawing.scale < 1
    assert_to_scale(drawing)
    assert any("px = 1 element)" in text.text for text in drawing.texts)


def test_the_default_number_of_tokens_is_the_maximum_of_the_model_up_to_1024() -> None:
    assert [draw_layer(name).tokens for name in ("gpt2-small", "llama-3.1-8b", "bert")] == [1024, 1024, 512]


# ---- files


def contrast_ratio(a: str, b: str) -> float:
    """The contrast ratio of WCAG 2.1."""
    dark, light = sorted(map(measure_luminance, (a, b)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_every_text_has_enough_contrast(palette: dict[str, Any]) -> None:
    for ground in (palette["paper"], palette["inside"]):
        assert min(contrast_ratio(colour, ground) for colour in (palette["ink"], palette["soft"], *palette["k"])) >= 4.5
        assert min(contrast_ratio(palette[edge], ground) for edge in ("data-edge", "weight-edge", "line")) >= 3
    assert len(set(palette["k"])) == 12


def hostile_drawing() -> Drawing:
    """A drawing whose name and labels contain markup."""
    bad = draw_model(replace(load_model("gpt2-small"), name=HOSTILE), layer=0)
    first = bad.rectangles[0]._replace(label=HOSTILE, name=HOSTILE, shape=HOSTILE)
    texts = tuple(text._replace(text=HOSTILE) for text in bad.texts)
    return bad._replace(rectangles=(first, *bad.rectangles[1:]), texts=texts, words=(HOSTILE,))


@pytest.mark.parametrize("form", ["svg", "html"])
def test_a_hostile_name_is_escaped(form: str) -> None:
    content = getattr(hostile_drawing(), form)()
    assert "<script" not in content
    assert "<img" not in content
    assert "\x1b" not in content
    assert "\u202e" not in content
    assert "&lt;script&gt;" in content
    inner = content[content.index("<svg") : content.index("</svg>") + 6]
    root = parse_svg(inner)
    assert any("<script>alert('1')" in text for text in list_texts(root))
    assert parse_svg(draw_model(replace(load_model("gpt2-small"), name=HOSTILE)).svg()) is not None


def test_a_hostile_id_is_escaped() -> None:
    assert parse_svg(draw_layer("gpt2-small").svg(id='"><script>'))[0].attrib["id"] == "---script--title"


def test_the_html_page_is_self_contained() -> None:
    page = draw_layer("gpt2-small").html()
    assert page.startswith("<!doctype html>\n<html lang")
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in page
    assert "overflow-x:auto" in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert draw_layer("gpt2-small").svg() in page
    assert "<li>up: [1024, 768] · [768, 3072] = [1024, 3072]</li>" in page


def test_a_png_uses_the_font_of_the_plot_extra(tmp_path: Path, run: Runner) -> None:
    resvg_py = pytest.importorskip("resvg_py")
    pytest.importorskip("matplotlib")
    target = tmp_path / "block.png"
    assert run("draw", "gpt2-small", "--layer", "0", "-o", str(target)) == (0, "", "")
    content = target.read_bytes()
    drawing = draw_layer("gpt2-small", 0)
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = (int.from_bytes(content[i : i + 4], "big") for i in (16, 20))
    assert (width, height) == pytest.approx((2 * drawing.width, 2 * drawing.height), abs=2)

    def render_without_images(texts: tuple[Text, ...], files: list[str]) -> bytes:
        without = render_svg(drawing._replace(texts=texts, signs=()))
        return bytes(
            resvg_py.svg_to_bytes(
                svg_string=without, skip_system_fonts=True, font_files=files, sans_serif_family="DejaVu Sans"
            )
        )

    assert len(find_fonts()) == 2
    assert (
        render_without_images(drawing.texts, find_fonts())
        != render_without_images((), find_fonts())
        == render_without_images(drawing.texts, [])
    )


@pytest.mark.parametrize("name", GOLDEN)
def test_texts_fit_into_their_estimated_widths(name: str) -> None:
    """In DejaVu Sans, which is wider than most fonts."""
    pytest.importorskip("matplotlib")
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    for text in draw_layer(name).texts:
        font = FontProperties(family="DejaVu Sans", size=text.size, weight="bold" if text.role in BOLD else "normal")
        width, *_ = text_to_path.get_text_width_height_descent(text.text, font, ismath=False)
        assert width <= text.box[2] - text.box[0], text


# ---- the command


@pytest.mark.parametrize("ending", ["svg", "SVG", "html", "htm"])
def test_the_extension_selects_the_format(ending: str, tmp_path: Path, run: Runner) -> None:
    target = tmp_path / f"out.{ending}"
    assert run("draw", "gpt2-small", "-o", str(target)) == (0, "", "")
    drawing = draw_layer("gpt2-small")
    assert target.read_text(encoding="utf-8") == (drawing.html() if ending.startswith("htm") else drawing.svg())


def test_a_what_if_is_drawn(run: Runner) -> None:
    done = run("draw", "llama-3.1-8b", "--set", "n_layers=40", "-o", "-")
    assert (done.code, done.err) == (0, "")
    texts = list_texts(parse_svg(done.out))
    assert "40 ×" in texts
    assert any(
        text.startswith("changed n_layers 32 → 40: total 8,030,261,248 + 1,744,896,000 = 9,775,157,248")
        for text in texts
    )


def test_a_model_with_too_many_kinds_of_layers_is_an_error() -> None:
    """In a pruned model, each layer may be of its own kind."""
    attention = {"no_op": True, "replace_with_linear": False, "n_heads_in_group": None}
    blocks = [
        {"attention": attention, "ffn": {"ffn_mult": 1 + i / 10, "no_op": False, "replace_with_linear": False}}
        for i in range(120)
    ]
    config = {"model_type": "nemotron-nas", "num_hidden_layers": 120, "hidden_size": 4096, "block_configs": blocks}
    with pytest.raises(
        pc.ParamcountError,
        match=r"kinds of layers do not fit in one drawing \(expected at most 100; select one layer\)$",
    ):
        draw(config)
    assert draw(config, layer=7).rectangles


def test_svgs_and_explanations_need_no_heavy_imports() -> None:
    commands = (["draw", "gpt2-small", "-o", "-"], ["map", "gpt2-small", "-o", "-"], ["explain", "gpt2-small"])
    loaded = list_loaded_packages("\n".join(map(command_code, commands)))
    assert loaded & {"numpy", "pandas", "sympy", "torch", "matplotlib", "jinja2", "resvg_py", "tabulate"} == set()
