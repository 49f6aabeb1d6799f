"""`compare --plot`: the numbers are read back from the picture."""

from __future__ import annotations

import itertools
import math
import re
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import paramcount as pc
import paramcount.zoo as zoo
from paramcount.counting.components import COMPONENTS
from tests.running import Runner

matplotlib = pytest.importorskip("matplotlib")

from paramcount.api import plot  # noqa: E402
from paramcount.drawing.bars import plot_rows  # noqa: E402
from paramcount.drawing.colours import COLOURS  # noqa: E402
from paramcount.drawing.figures import ENDINGS  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"
UNITS = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}
COMPONENT_OF = {colour: name for name, colour in COLOURS.items()}
HOSTILE = [
    "<script>alert(1)</script>",
    "a & b \"c\" 'd'",
    "$\\frac{1}{0}$ $x^2$",
    "\x1b[31m\u202ered\nline",
    "]]>--><!--",
    "模型 🦙",
    "%s {0} \\N{DIGIT ONE}",
]
pytestmark = pytest.mark.usefixtures("_in_an_empty_directory")


class Bars(NamedTuple):
    """A picture as measured with a ruler."""

    bars: list[dict[str, float]]  # from the top down, each {component: its width}
    ends: list[float]  # where each of them ends, from the axis
    dots: list[tuple[float, bool]]  # from the top down, (place from the axis, whether it is filled)
    whole: float  # where 100 % is, from the axis
    ticks: list[tuple[float, int]]  # (place from the axis, the number there)
    texts: list[str]
    names: list[tuple[float, str]]  # (height on the page, model), from the top down
    height: float


def read_bars(svg: bytes) -> Bars:
    root = ET.fromstring(svg)  # noqa: S314
    boxes: list[tuple[float, float, float, str]] = []
    for path in root.iter(f"{SVG}path"):
        colour = re.search(r"fill: (#\w{6})", path.get("style", ""))
        points = [float(n) for n in re.findall(r"-?[\d.]+(?:e-?\d+)?", path.get("d", ""))]
        if colour and colour[1] in COMPONENT_OF and path.get("clip-path"):  # the legend's patches are not clipped
            boxes.append((min(points[1::2]), min(points[::2]), max(points[::2]), COMPONENT_OF[colour[1]]))
    axis = min(left for _, left, _, _ in boxes)
    dots = []
    for path in root.iter(f"{SVG}path"):
        colour = re.search(r"fill: (#1f2328|#ffffff); stroke: #1f2328", path.get("style", ""))
        if colour:
            points = [float(n) for n in re.findall(r"-?[\d.]+(?:e-?\d+)?", path.get("d", ""))]
            x = (min(points[::2]) + max(points[::2])) / 2 - axis
            dots.append((min(points[1::2]), x, colour[1] == "#1f2328"))
    bars = [
        sorted(group, key=lambda box: box[1]) for _, group in itertools.groupby(sorted(boxes), key=lambda box: box[0])
    ]
    texts = [(element, "".join(element.itertext())) for element in root.iter(f"{SVG}text")]
    ticks = {}
    for element, text in texts:
        if (match := re.fullmatch(r"([\d.,]+) ?([KMBT]?)", text)) and "middle" in element.get("style", ""):
            ticks[float(element.get("x", "")) - axis] = round(float(match[1].replace(",", "")) * UNITS[match[2]])
    return Bars(
        bars=[{name: right - left for _, left, right, name in bar} for bar in bars],
        ends=[max(box[2] for box in bar) - axis for bar in bars],
        dots=[(x, is_filled) for _, x, is_filled in sorted(dots)],
        whole=next((float(element.get("x", "")) - axis for element, text in texts if text == "100%"), 0.0),
        ticks=sorted(ticks.items()),
        texts=[text for _, text in texts],
        names=sorted((float(e.get("y", "")), text) for e, text in texts if "text-anchor: end" in e.get("style", "")),
        height=float(root.get("viewBox", "").split()[3]),
    )


def read_axis(found: Bars, place: float, scale: str) -> float:
    """The number at a position on the axis, interpolated between the nearest ticks."""
    (x0, n0), (x1, n1) = found.ticks[-2:]
    share = (place - x0) / (x1 - x0)
    return n0 + share * (n1 - n0) if scale == "linear" else n0 * (n1 / n0) ** share


@pytest.mark.parametrize("scale", ["linear", "log"])
@pytest.mark.parametrize(
    "models", [["gpt2-small"], ["gpt2-small", "deepseek-v3", "mixtral-8x7b"], ["llama-3.2-11b-vision", "gpt2-xl"]]
)
def test_lengths_and_dots_are_sums_and_components_have_their_shares(models: list[str], scale: Any) -> None:
    """On a linear scale a bar ends at its sum; on a log scale, where lengths do not add up, all bars are 100%."""
    found = read_bars(plot(models, scale=scale))
    expected = []
    for count in map(pc.count, models):
        expected.append((count.total, count.components))
        if count.active != count.total:
            expected.append((count.active, count.active_components))
    assert len(found.bars) == len(expected)
    assert [is_filled for _, is_filled in found.dots] == (
        [whole in {pc.count(model).total for model in models} for whole, _ in expected] if scale == "log" else []
    )
    places = [x for x, _ in found.dots] if scale == "log" else found.ends
    if scale == "log":
        assert found.ends == pytest.approx([found.whole] * len(expected), abs=0.01)
    for widths, end, place, (whole, parts) in zip(found.bars, found.ends, places, expected, strict=True):
        assert sum(widths.values()) == pytest.approx(end, abs=0.01)
        assert read_axis(found, place, scale) == pytest.approx(whole, rel=1e-3)
        for name, width in widths.items():
            assert width / end == pytest.approx(parts[name] / whole, abs=1e-3)
        hidden = sum(n for name, n in parts.items() if name not in widths)
        assert hidden / whole < 1e-3


def test_ticks_of_a_log_scale_are_equidistant_decades() -> None:
    found = read_bars(plot(["gpt2-small", "deepseek-v3"], scale="log"))
    assert [n for _, n in found.ticks] == [10**7, 10**8, 10**9, 10**10, 10**11, 10**12][: len(found.ticks)]
    steps = {round(b - a, 2) for (a, _), (b, _) in itertools.pairwise(found.ticks)}
    assert max(steps) - min(steps) < 0.02
    assert {"parameters (log scale)", "components", "0%", "50%", "100%"} <= set(found.texts)


def test_the_legend_lists_exactly_the_drawn_components() -> None:
    texts = set(read_bars(plot(["gpt2-small", "llama-3.1-8b"])).texts)
    assert texts & set(COMPONENTS) == {"embedding", "position", "qkv", "output_projection", "mlp", "norm", "lm_head"}


def test_bars_are_in_the_order_of_the_table(run: Runner) -> None:
    done = run("compare", "gpt2-*", "--sort", "-total", "--plot", "out.svg", "--csv")
    assert [line.partition(",")[0] for line in done.out.splitlines()[1:]] == [
        "gpt2-xl",
        "gpt2-large",
        "gpt2-medium",
        "gpt2-small",
    ]
    assert [name for _, name in read_bars(Path("out.svg").read_bytes()).names] == [
        "gpt2-xl",
        "gpt2-large",
        "gpt2-medium",
        "gpt2-small",
    ]


def test_an_estimate_has_a_text_instead_of_a_bar(run: Runner) -> None:
    done = run("compare", "gpt-4", "gpt2-small", "--estimates", "--plot", "out.svg")
    assert done.code == 0
    found = read_bars(Path("out.svg").read_bytes())
    assert len(found.bars) == 1
    assert [name for _, name in found.names] == ["gpt-4", "gpt2-small"]
    assert sum(text.startswith("third-party estimate: 1.8T (SemiAnalysis") for text in found.texts) == 1


def test_unverified_models_are_marked() -> None:
    unchecked = next(
        id for id in zoo.list_ids() if zoo.load_entry(id).checked == "unverified" and not zoo.load_entry(id).estimate
    )
    found = read_bars(plot([unchecked, "gpt2-small"]))
    assert [name for _, name in found.names] == [f"{unchecked} *", "gpt2-small"]
    assert "* unverified: not checked against a reference implementation" in found.texts


def test_a_what_if_states_the_changes(run: Runner) -> None:
    assert run("compare", "gpt2-small", "--set", "n_layers=40", "--plot", "out.svg").code == 0
    assert {"323M", "changed to n_layers = 40"} <= set(read_bars(Path("out.svg").read_bytes()).texts)


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_sixty_models_make_a_taller_picture_without_overlaps(scale: Any) -> None:
    models = [id for id in zoo.list_ids() if not zoo.load_entry(id).estimate][:60]
    found = read_bars(plot(models, scale=scale))
    assert [name.removesuffix(" *") for _, name in found.names] == models
    assert min(b - a for (a, _), (b, _) in itertools.pairwise(found.names)) > 16  # points, of letters 8 points high
    assert found.height > 60 * 16
    assert read_bars(plot(models[:2])).height < 200


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_sizes_beyond_every_unit_are_drawn(scale: Any) -> None:
    wide = {
        "model_type": "llama",
        "hidden_size": 10**9,
        "num_hidden_layers": 10**6,
        "num_attention_heads": 1,
        "intermediate_size": 10**9,
    }
    found = read_bars(plot([wide, "gpt2-small"], scale=scale))
    place = found.dots[0][0] if scale == "log" else found.ends[0]
    assert read_axis(found, place, scale) == pytest.approx(pc.count(wide).total, rel=1e-2)


# ---- colours

# Machado, Oliveira and Fernandes 2009, "A physiologically-based model for simulation of color vision deficiency",
# severity 1.0.
VISION = {
    "usual": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
XYZ = (
    (0.4124564, 0.3575761, 0.1804375),
    (0.2126729, 0.7151522, 0.0721750),
    (0.0193339, 0.1191920, 0.9503041),
)  # sRGB, IEC 61966-2-1


def cie_lab(colour: str, vision: str) -> tuple[float, float, float]:
    """The CIE 1976 L*a*b* coordinates of a colour."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    light = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    light = [min(max(sum(m * c for m, c in zip(row, light)), 0.0), 1.0) for row in VISION[vision]]
    white = (0.95047, 1.0, 1.08883)
    x, y, z = (sum(m * c for m, c in zip(row, light)) / w for row, w in zip(XYZ, white))
    fx, fy, fz = (math.cbrt(t) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116 for t in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


@pytest.mark.parametrize("vision", VISION)
def test_colours_differ_for_colour_blind_readers(vision: str) -> None:
    usual = (
        "embedding",
        "qkv",
        "output_projection",
        "mlp",
        "experts",
        "shared_experts",
        "mixer",
        "lm_head",
    )  # what takes room, side by side
    for a, b in itertools.combinations([*COMPONENTS, "paper"], 2):
        apart = math.dist(*(cie_lab({**COLOURS, "paper": "#ffffff"}[name], vision) for name in (a, b)))
        assert apart > (13 if a in usual and b in usual else 9), f"{a} and {b}: {apart:.1f}"


def test_every_component_has_its_own_colour() -> None:
    names = (
        "embedding", "other_embedding", "position", "qkv", "output_projection", "mlp", "router", "experts",
        "shared_experts", "mixer", "norm", "lm_head", "other", "vision", "audio", "projector",
    )  # fmt: skip
    assert tuple(COLOURS) == names == COMPONENTS
    assert len(set(COLOURS.values())) == len(COMPONENTS)


# ---- hostile names


def hostile_row(name: str) -> dict[str, Any]:
    """A row of a model with this name."""
    from paramcount.views.compare import make_rows

    return make_rows([pc.load("gpt2-small")])[0] | {"id": name}


def test_hostile_names_are_escaped() -> None:
    estimate = {"estimate": True, "claimed_total": "<script>$x^2$</script>"}
    svg = plot_rows([*map(hostile_row, HOSTILE), hostile_row("x") | estimate])
    expected = [name.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e").replace("\n", "\\n") for name in HOSTILE]
    found = read_bars(svg)
    assert [text for _, text in found.names] == [*expected, "x"]
    assert "third-party estimate: <script>$x^2$</script>" in found.texts
    root = ET.fromstring(svg)  # noqa: S314
    usual = ET.fromstring(plot_rows([hostile_row("gpt2"), hostile_row("x") | estimate]))  # noqa: S314
    assert {element.tag for element in root.iter()} == {element.tag for element in usual.iter()}
    assert {key for element in root.iter() for key in element.attrib} == {
        key for element in usual.iter() for key in element.attrib
    }


@pytest.mark.parametrize("format", ["png", "pdf"])
def test_hostile_names_are_drawn_without_warnings(format: Any, capfd: pytest.CaptureFixture[str]) -> None:
    rows = list(map(hostile_row, [*HOSTILE, "字" * 200, "W" * 200]))
    assert len(plot_rows(rows, format=format)) > 1000
    assert capfd.readouterr() == ("", "")


def test_letters_that_the_font_lacks_are_escaped() -> None:
    escaped = plot_rows([hostile_row("\\u6a21\\u578b é")], format="png")
    assert plot_rows([hostile_row("模型 é")], format="png") == escaped


# ---- the same picture everywhere


@pytest.mark.parametrize("format", ENDINGS.values())
def test_the_same_models_give_the_same_bytes_in_every_matplotlib_style(format: Any) -> None:
    first = plot(["gpt2-small", "mixtral-8x7b"], format=format)
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.fonttype": "path"}):
        assert plot(["gpt2-small", "mixtral-8x7b"], format=format) == first
        assert (matplotlib.rcParams["font.size"], matplotlib.rcParams["svg.fonttype"]) == (30, "path")
    assert not re.search(rb"20\d\d-\d\d-\d\d|D:20\d\d|Matplotlib v", first)


def test_no_window_opens_and_a_broken_style_of_the_user_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "matplotlibrc").write_text("nonsense: 3\nfont.size: abc\n", encoding="utf-8")
    code = (
        "from paramcount.cli import main\n"
        "try: main(['compare', 'gpt2-small', '--csv', '--plot', 'out.svg'])\n"
        "finally:\n import sys; print('matplotlib.pyplot' in sys.modules)"
    )
    env = {"PYTHONPATH": str(Path(pc.__file__).parents[1]), "MPLBACKEND": "nonsense", "MPLCONFIGDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=env)
    assert (done.returncode, done.stdout.splitlines()[-1:], done.stderr) == (0, ["False"], "")
    assert Path("out.svg").read_bytes() == plot(["gpt2-small"])


def test_plot_still_prints_the_table_and_the_extension_selects_the_format(run: Runner) -> None:
    usual = run("compare", "gpt2-small", "mixtral-8x7b")
    for name in ("out.svg", "out.PNG", "out.pdf"):
        assert run("compare", "gpt2-small", "mixtral-8x7b", "--plot", name) == usual
    assert run("gpt2-small", "--plot", "one.svg").code == 0
    assert Path("out.svg").read_bytes().startswith(b"<?xml")
    assert Path("out.pdf").read_bytes().startswith(b"%PDF-")
    png = Path("out.PNG").read_bytes()
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png[16:24])
    assert (width, 200 < height < 600) == (1350, True)
