"""The walk of a token through one layer: its pictures follow the steps of the flow, and last ten seconds."""

from __future__ import annotations

import io
import re
from functools import cache
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree

import pytest

import paramcount as pc
from paramcount.drawing import animation, films
from paramcount.drawing.animation import CAPTION, Film, make_film, render_frames
from paramcount.drawing.render import convert_to_png
from paramcount.errors import format_shape
from paramcount.loading import load
from paramcount.tracing.sentences import explain_step
from tests.refresh_docs import IMAGES, list_animations
from tests.refusing import Refuse
from tests.running import Runner
from tests.structures import ZOO, pick_structures

SVG = "{http://www.w3.org/2000/svg}"
# The first layer of the commonest kind. DeepSeek-V3 begins with 3 dense layers; every second layer of Jamba, from 1, is
# Mamba with experts, of the others 4 attend.
LAYERS = {"gpt2-small": 0, "llama-3.1-8b": 0, "deepseek-v3": 3, "bert-base-cased": 0, "jamba-v0.1": 1, "mamba-130m": 0}


@cache
def film(name: str) -> Film:
    return make_film(load(name))


@cache
def frames(name: str) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(svg) for svg in render_frames(film(name))]  # noqa: S314


def texts(frame: ElementTree.Element) -> list[str]:
    """The caption of a picture."""
    return ["".join(text.itertext()) for text in frame.findall(f"{SVG}text")]


@pytest.mark.parametrize(("name", "layer"), LAYERS.items())
def test_the_pictures_follow_the_steps_of_the_layer(name: str, layer: int) -> None:
    steps = pc.trace(name, tokens=film(name).drawing.tokens).steps
    stacks = [list(group) for scopes, group in groupby(steps, key=lambda step: step.layers) if scopes]
    (expected,) = [
        stack for stack in stacks if any(first <= layer < first + length for first, length in stack[0].layers[-1].runs)
    ]
    assert film(name).drawing.layer == layer
    captions = [texts(frame) for frame in frames(name)]
    assert [caption[2] for caption in captions] == [step.text for step in expected]
    assert [caption[3].rpartition("→ ")[2] for caption in captions] == [format_shape(step.out) for step in expected]
    n = len(expected)
    title = film(name).drawing.title
    assert [caption[0] for caption in captions] == [f"{title} · layer {layer} · step {i + 1} of {n}" for i in range(n)]


@pytest.mark.parametrize("name", LAYERS)
def test_each_picture_marks_the_step_where_the_drawing_has_it_and_dims_later_ones(name: str) -> None:
    drawing, indices = film(name).drawing, film(name).indices
    for number, (i, frame) in enumerate(zip(indices, frames(name), strict=True)):
        (camera,) = frame.findall(f"{SVG}svg")
        boxes = list(camera.iter(f"{SVG}rect"))
        marks = [box for box in boxes if box.get("fill") == "none"]
        expected = [(place.x, place.y) for place in drawing.places if i in place.steps]
        assert [(float(box.attrib["x"]) + 6, float(box.attrib["y"]) + 6) for box in marks] == [
            pytest.approx(corner, abs=0.01) for corner in expected
        ]
        dimmed = [box for box in boxes if box.get("fill-opacity")]
        assert len(dimmed) == sum(set(place.steps) <= set(indices[number + 1 :]) for place in drawing.places)
        left, top, width, height = map(float, camera.attrib["viewBox"].split())
        first = marks[0].attrib
        assert left == 0 and width >= drawing.width - 2  # even sizes
        assert top <= float(first["y"]) and float(first["y"]) + float(first["height"]) <= top + height
    assert not dimmed


@pytest.mark.parametrize("name", pick_structures(set(ZOO) - {"xmod-base"}, every=20))  # too many steps, see below
def test_every_step_of_a_layer_has_a_place_inside_the_drawing(name: str) -> None:
    drawing, _, indices = film(name)
    assert set(indices) <= {i for place in drawing.places for i in place.steps}
    for x, y, width, height, _ in drawing.places:
        assert 0 <= x <= x + width <= drawing.width and 0 <= y <= y + height <= drawing.height


def test_the_token_is_a_row_of_data_up_to_the_diagonal_of_a_mask() -> None:
    drawing = film("gpt2-small").drawing
    (weights,) = [r for r in drawing.rectangles if r.label == "attention weights"]
    (keys,) = [r for r in drawing.rectangles if r.label == "Kᵀ"]
    assert animation.draw_token(keys, 1024) == ""
    y = weights.y + 0.7 * weights.height
    row = animation.draw_token(weights, 1024)
    left, top, right = map(float, re.findall(r"[\d.]+", row))
    assert (left, top, right) == pytest.approx((weights.x, y, weights.x + 0.7 * weights.width), abs=0.01)
    windowed = animation.draw_token(weights._replace(window=512), 1024)  # half of the tokens
    left, _, right = map(float, re.findall(r"[\d.]+", windowed))
    share = (left - weights.x) / weights.width, (right - weights.x) / weights.width
    assert share == pytest.approx((0.2, 0.7), abs=0.001)


def test_the_sentences_say_what_steps_do() -> None:
    steps = pc.trace("gpt2-small", tokens=8).steps
    sentences = [explain_step(steps, i) for i in range(len(steps))]
    assert sentences[3:6] == [
        "Adds the position embedding to the token embedding.",
        "Layer norm, ε = 1e-5. Reads the layer's input.",
        "Multiplies the output of norm by a weight matrix and adds a bias.",
    ]
    assert sentences[14] == "Adds the output projection to the layer's input."
    assert sentences[22] == "Multiplies the last position by a weight matrix. Tied to wte.weight."
    steps = pc.trace("deepseek-v3", tokens=8).steps
    sentences = [explain_step(steps, i) for i in range(len(steps))]
    assert "Adds the sum to an earlier sum." in sentences
    assert "Concatenates a part of the queries and the output of rope." in sentences
    assert "Adds the outputs of the active experts. 8 of 256 experts per token, weighted by the router." in sentences


# ---- files


@pytest.fixture
def small_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames that are drawn in little time."""
    monkeypatch.setattr(animation, "WIDEST", 240)
    monkeypatch.setattr(animation, "TALLEST", int(CAPTION) + 124)


@pytest.mark.usefixtures("small_frames")
@pytest.mark.parametrize("ending", ["gif", "webp"])
def test_an_animation_has_one_picture_per_step_and_lasts_ten_seconds(ending: str, tmp_path: Path, run: Runner) -> None:
    image = pytest.importorskip("PIL.Image")
    pytest.importorskip("resvg_py")
    path = tmp_path / f"layer.{ending}"
    assert run("draw", "gpt2-small", "--animate", str(path), "--layer", "7") == (0, "", "")
    with image.open(path) as opened:
        assert (opened.format, opened.size) == (ending.upper(), (240, 280))
        assert opened.n_frames == 16
        durations = []
        for i in range(opened.n_frames):
            opened.seek(i)
            opened.load()
            durations.append(opened.info["duration"])
    assert sum(durations) == 10_000
    assert max(durations) - min(durations) <= 10


@pytest.mark.usefixtures("small_frames")
def test_a_video_lasts_ten_seconds(tmp_path: Path, run: Runner) -> None:
    imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")
    path = tmp_path / "layer.mp4"
    assert run("draw", "gpt2-small", "--animate", str(path)) == (0, "", "")
    assert imageio_ffmpeg.count_frames_and_secs(str(path)) == (250, 10.0)


@pytest.mark.parametrize("n", [1, 7, 16, 100])
def test_the_durations_add_up_to_ten_seconds(n: int) -> None:
    assert sum(films.list_durations(n)) == 10_000
    assert all(duration % 10 == 0 for duration in films.list_durations(n))  # a GIF counts hundredths


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", list_animations())
def test_the_animations_of_the_documents_are_those_of_their_models(name: str) -> None:
    image = pytest.importorskip("PIL.Image")
    expected = list(render_frames(film("gpt2-small")))
    with image.open(IMAGES / name) as opened:
        assert opened.n_frames == len(expected)
        for i in (0, 9):
            opened.seek(i)
            with image.open(io.BytesIO(convert_to_png(expected[i], zoom=1))) as drawn:
                assert opened.convert("RGB").tobytes() == drawn.convert("RGB").tobytes()


# ---- errors


def test_an_error_leaves_the_file_as_it_was(refuse: Refuse) -> None:
    Path("x.gif").write_bytes(b"before")
    message = refuse("draw", "gpt2-small", "--animate", "x.gif", "--layer", "12")
    assert message == "gpt2-small: layer 12 does not exist (expected 0–11)"
    assert Path("x.gif").read_bytes() == b"before"


def test_a_layer_with_too_many_steps_is_an_error() -> None:
    """X-MOD has one adapter per language in each layer: 81 of them."""
    with pytest.raises(pc.ParamcountError, match=r"^xmod-base: 260 steps in one layer .*\(expected at most 100\)$"):
        make_film(load("xmod-base"))
