"""What `paramcount explore` exports and writes. tests/browser has the page itself."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import accumulate, product
from math import prod
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
from paramcount.drawing.pictures import draw_body
from paramcount.explore import build_page
from paramcount.explore.conditions import NoConditionsError, derive_conditions, follow_all
from paramcount.explore.copies import export_config
from paramcount.explore.drawings import BROKEN_ROWS, CONTEXT, ROLES, Drawings, find_steps, make_key, trace_decoding
from paramcount.explore.packings import FORMATS, Packings
from paramcount.explore.page import expand
from paramcount.explore.structures import export_structure
from paramcount.huggingface.validity import list_all_checks
from paramcount.output.layer_kinds import describe_kind
from paramcount.sizes import build_as_reference
from paramcount.sizes.rules import check_consistent
from paramcount.symbolic.polynomials import make_symbols
from paramcount.symbolic.trees import Literal, to_json
from paramcount.tracing.run import choose_length
from paramcount.tracing.sentences import explain_step
from paramcount.tracing.trace import Step
from paramcount.zoo import Model, count_model
from paramcount.zoo.what_if import get_size, list_paths
from tests.batches import in_batches
from tests.running import Runner
from tests.structures import ZOO, pick_structures

OPERATORS: dict[str, Callable[..., Any]] = {
    "+": lambda *numbers: sum(numbers), "*": lambda *numbers: prod(numbers), "power": lambda a, b: a**b, "min": min,
    "//": lambda a, b: a // b if b else None, "%": lambda a, b: a % b if b else None,
    "=": lambda a, b: a == b, "<": lambda a, b: a < b,
}  # fmt: skip


def evaluate(tree: Any, values: Mapping[str, Any]) -> Any:
    """The value of an expression, as the page has it."""
    if not isinstance(tree, list):
        return values[tree] if isinstance(tree, str) else tree
    match tree:
        case ["integer", digits]:
            return int(digits)
        case ["share", size, share]:
            return int(evaluate(size, values) * share)
        case ["if", condition, yes, no]:
            return evaluate(yes if evaluate(condition, values) else no, values)
    numbers = [evaluate(operand, values) for operand in tree[1:]]
    return None if None in numbers else OPERATORS[tree[0]](*numbers)


def get_sizes(model: Model, structure: Mapping[str, Any]) -> dict[str, int]:
    return {path: get_size(model.sizes, path) for path, *_ in structure["sizes"]}


# ---- what is exported


@pytest.mark.parametrize("id", pick_structures(every=40))
def test_the_counts_and_tensors_have_the_sums_of_the_count(id: str) -> None:
    model = pc.load(id)
    count, structure = count_model(model), export_structure(model, Packings())
    sizes = get_sizes(model, structure)
    counts = structure["counts"]
    for name in ("total", "active", "active_min", "buffers"):
        assert evaluate(counts[name], sizes) == getattr(count, name), name
    assert {name: evaluate(n, sizes) for name, n in counts["components"].items()} == dict(count.components)
    active = {**counts["components"], **counts["active_components"]}
    assert {name: evaluate(n, sizes) for name, n in active.items()} == dict(count.active_components)
    counted = [tensor for tensor in structure["tensors"] if "component" in tensor]
    assert sum(evaluate(tensor["elements"], sizes) for tensor in counted) == count.total
    for tensor in counted:
        shape = [evaluate(n, sizes) for n in tensor["shape"]]
        assert evaluate(tensor["elements"], sizes) == evaluate(tensor["copies"], sizes) * prod(shape)


@pytest.mark.parametrize("id", [*pick_structures(every=40), "albert-base-v2", "gpt-oss-20b", "deepseek-v3"])
def test_the_packings_of_tensors_sum_to_the_weights(id: str) -> None:
    model, packings = pc.load(id), Packings()
    structure = export_structure(model, packings)
    sizes = get_sizes(model, structure)
    trees = packings.list_all()
    for i, name in enumerate(FORMATS):
        total = 0
        for tensor in structure["tensors"]:
            shape = {str(j): evaluate(n, sizes) for j, n in enumerate(tensor.get("stored", tensor["shape"]))}
            copies = evaluate(tensor.get("files", tensor["copies"]), sizes)
            if "component" in tensor and copies and all(shape.values()):
                total += copies * evaluate(trees[tensor["packings"][i]], shape)
        assert total == pc.memory(model, dtype=name).weights_bytes, name


@pytest.mark.parametrize("id", ["gpt2-small", "llama-3.1-8b", "deepseek-v3", "gemma-3-27b", "falcon-h1-0.5b"])
def test_the_trees_of_checks_refuse_what_the_checks_refuse(id: str) -> None:
    model = pc.load(id)
    structure = export_structure(model, Packings())
    free = [path for path, *limits in structure["sizes"] if limits]
    published = get_sizes(model, structure)
    generator = random.Random(id)  # noqa: S311
    refused = 0
    for _ in range(100):
        sizes = published | {path: generator.randint(1, 64) for path in generator.sample(free, 2)}
        errors = [error for tree in structure["checks"] if (error := evaluate(tree, sizes))]
        changed = model.sizes
        for path, value in sizes.items():
            *blocks, name = path.split(".")
            if not blocks:
                changed = changed.replace(**{name: value})
            else:
                part = getattr(changed, blocks[0]).replace(**{name: value})
                changed = changed.replace(**{blocks[0]: part})
        reason = find_reason(changed)
        assert bool(errors) == (reason is not None), (sizes, errors, reason)
        if reason:
            text = "".join(str(evaluate(p[0], sizes)) if isinstance(p, list) else p for p in errors[0]["text"])
            assert reason.startswith(text), (reason, text)
            refused += 1
    assert refused > 5


def find_reason(sizes: Any) -> str | None:
    try:
        check_consistent(sizes)
    except pc.ParamcountError as error:
        return str(error)
    return None


@pytest.mark.parametrize("id", pick_structures(set(ZOO) - {"xmod-base"}, every=30))  # it is too large, see below
def test_a_drawing_has_all_steps_of_the_flow(id: str) -> None:
    model = pc.load(id)
    exported = export_structure(model, Packings())["flow"]
    flow = [make_key(step["text"], [scope[3] for scope in step["scopes"]]) for step in exported["steps"]]
    steps = trace_decoding(model, choose_length(model, CONTEXT)).steps
    drawings = Drawings()
    assert drawings.add(model, flow) == 0
    (drawing,), words = drawings.drawings.list_all(), drawings.words.list_all()
    found = [i for i, sentence in enumerate(drawing["sentences"]) if sentence is not None]
    drawn = {i for _, _, _, _, *indices in drawing["places"] for i in indices}
    assert drawn == {i for i in found if flow[i][0] != "image places"}  # which only say where a row goes
    assert [flow[i][0] for i in found] == [step.text for step in steps]
    assert [words[drawing["sentences"][i]] for i in found] == [explain_step(steps, i) for i in range(len(steps))]


@pytest.mark.parametrize(("id", "context"), [("rwkv-4-169m", 1024), ("deepseek-v3.2", 8192), ("gemma-3n-e2b", 100_000)])
def test_the_steps_of_a_flow_that_branches_have_the_flops(id: str, context: int) -> None:
    """RWKV divides by a number that grows with the layer, DeepSeek chooses tokens, Gemma shares keys and values."""
    model = pc.load(id)
    structure = export_structure(model, Packings())
    flow, sizes = structure["flow"], get_sizes(model, structure)
    values = {**sizes, "context": context}
    values |= {name: evaluate(n, values) for name, n in flow["windows"].items()}
    flops = pc.flops(model, context=context)
    total = flops.flops_per_token
    assert evaluate(flow["flops"]["total"], values) == total
    assert evaluate(flow["flops"]["expanded"], values) == (flops.expanded_flops_per_token or total)
    assert sum(evaluate(n, values) for n in flow["flops"]["components"].values()) == total
    for step in flow["steps"]:
        layers = [evaluate(copies, values) for axis, copies, *_ in step["scopes"] if axis == "layer"]
        assert evaluate(step["flops"], values) == 2 * evaluate(step["products"], values) * prod(layers)
    assert flow.get("only") == (sizes if id == "rwkv-4-169m" else None)


def list_keys(steps: Sequence[Step]) -> list[tuple[str, ...]]:
    return [make_key(step.text, (describe_kind(scope.kind) for scope in step.scopes)) for step in steps]


def test_steps_of_layers_that_a_model_has_none_of_are_left_out() -> None:
    """Ling-lite has no dense layers; a variant with one has the steps of both kinds."""
    steps = trace_decoding(pc.load("ling-lite"), 64).steps
    keys = list_keys(steps)
    assert find_steps(steps, keys) == list(range(len(steps)))
    first = next(i for i, step in enumerate(steps) if step.text == "router")
    with_dense = [*keys[:first], ("up", "dense"), *keys[first:]]
    assert find_steps(steps, with_dense) == [*range(first), *range(first + 1, len(steps) + 1)]
    assert find_steps(steps, keys[1:]) is None


def test_a_drawing_is_the_layout_of_draw_in_integers() -> None:
    model = pc.load("deepseek-v3")
    drawings = Drawings()
    trace = trace_decoding(model, 4096)
    drawings.add(model, list_keys(trace.steps))
    (drawing,) = drawings.drawings.list_all()
    words = drawings.words.list_all()
    body = draw_body(trace, "deepseek-v3")
    left, top, right, bottom = body.group.box
    assert drawing["scale"] == body.scale == 64
    assert drawing["size"] == [round(right - left) + 24, round(bottom - top) + 24]

    def list_corners(shapes: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
        return list(zip(accumulate(shape[0] for shape in shapes), accumulate(shape[1] for shape in shapes)))

    for name, expected in (
        ("boxes", body.group.rectangles), ("texts", body.group.texts), ("signs", body.group.signs),
        ("frames", body.group.frames), ("places", body.group.places),
    ):  # fmt: skip
        corners = [(round(shape.x - left + 12), round(shape.y - top + 12)) for shape in expected]
        assert list_corners(drawing[name]) == corners
    assert [(ROLES[text[2]], words[text[3]]) for text in drawing["texts"]] == [
        (t.role, t.text) for t in body.group.texts
    ]
    ways = [way for line in drawing["lines"] for way in zip(line[1::2], line[2::2])]
    points = [(round(x - left + 12), round(y - top + 12)) for arrow in body.group.arrows for x, y in arrow.points]
    assert list_corners(ways) == points
    heads = [i for i, (box, r) in enumerate(zip(drawing["boxes"], body.group.rectangles)) if r.label == "queries"]
    # 128 heads of 1,536 × 192, of which 12 are drawn: a weight, not cut off
    assert [drawing["boxes"][i][2:] for i in heads] == [[3, 24, 0, 12, 26]] * 2
    embedding = next(box for box, r in zip(drawing["boxes"], body.group.rectangles) if r.label == "token embedding")
    assert embedding[2:] == [112, 210, BROKEN_ROWS]  # 7,168 / 64, and 129,280 rows cut off


def test_a_model_whose_drawing_is_too_large_has_none() -> None:
    """X-MOD has one adapter per language in each layer: 81 of them."""
    model = pc.load("xmod-base")
    assert Drawings().add(model, list_keys(trace_decoding(model, 64).steps)) is None


def test_a_function_that_uses_a_value_is_no_tree() -> None:
    def use(sizes: Any) -> None:
        if list(range(sizes.n_layers)):
            raise pc.ParamcountError("has layers")
        if sizes.n_heads > 3:
            raise pc.ParamcountError("has heads")

    sizes = pc.load("gpt2-small").sizes
    error = derive_conditions(use, sizes, frozenset({"n_heads"}))
    assert error == Literal({"where": "", "text": ["has layers"]})

    def pass_after_use(sizes: Any) -> None:
        list(range(sizes.n_layers))

    with pytest.raises(NoConditionsError, match="n_layers"):
        derive_conditions(pass_after_use, sizes, frozenset({"n_layers"}))


def test_all_ways_through_a_function_are_followed_once() -> None:
    def choose(a: Any, b: Any) -> int:
        if a > 2 * b:
            return 1 if a % 2 == 0 else a // 2
        return 2 if not a - 1 else min(3 * a, b + 4)

    a, b = make_symbols("a b")
    tree = to_json(follow_all(lambda run: run.make_tree(choose(a, b))))
    for pair in product(range(8), range(4)):
        assert evaluate(tree, dict(zip("ab", pair))) == choose(*pair)


def test_a_function_may_not_use_a_symbol_in_another_way() -> None:
    (a,) = make_symbols("a")
    uses: list[Callable[[], Any]] = [
        lambda: a / 2, lambda: a & 1, lambda: float(a), lambda: 2**a, lambda: int(a * 0.5), lambda: a < 0.5,
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(NoConditionsError, match=r"^a$"):
            follow_all(lambda run, use=use: Literal(use()))  # type: ignore[misc]


@in_batches("id", pick_structures(every=40), size=20)
def test_checks_of_a_structure_are_trees(id: str) -> None:
    sizes = pc.load(id).sizes
    paths = frozenset(path for path, *limits in export_structure(pc.load(id), Packings())["sizes"] if limits)
    for check in list_all_checks(sizes):
        derive_conditions(check, sizes, paths)


# ---- the page


@cache
def build_small_page() -> str:
    return pc.explore_page(["gpt2-small"])


def read_data(page: str) -> dict[str, Any]:
    (data,) = read_all_data(page)
    return data


def read_all_data(page: str) -> list[dict[str, Any]]:
    """The data of each script element."""
    texts = re.findall(r'<script type="application/octet-stream" class="data">([^<]*)</script>', page)
    return [expand(base64.b85decode(text.translate(str.maketrans(",:.", "<>&")))) for text in texts]


def test_the_page_allows_its_own_scripts_alone_and_links_to_itself_alone() -> None:
    page = build_small_page()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    assert policy.startswith(f"default-src 'none'; script-src {allowed};")
    html = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    links = re.findall(r"""(?:src|href)=["']?([^"'{$\s>]+)""", html)
    assert {"data:,", "#browse", "#model/gpt2-small"} <= set(links)
    assert [link for link in links if not link.startswith("#")] == ["data:,"]


def test_the_data_of_the_page_are_those_of_python() -> None:
    data = read_data(pc.explore_page(["gpt2-small", "deepseek-v3"]))
    assert [(model["id"], model["total"], model["active"]) for model in data["models"]] == [
        ("gpt2-small", 124_439_808, 124_439_808), ("deepseek-v3", 671_026_404_352, 37_552_282_624),
    ]  # fmt: skip
    flags = [variant["label"] for variant in data["models"][0]["variants"]]
    assert flags == ["cross_attention = true", "tie_word_embeddings = false"]


@pytest.mark.parametrize(
    ("id", "place", "value", "total"),
    [
        # 32 · 4,096 · 14,336 · 3 = 5,637,144,576 of the MLPs twice
        ("llama-3.1-8b", "intermediate_size", 2 * 14_336, 8_030_261_248 + 5_637_144_576),
        # one more token of 2,048 values, tied
        ("qwen3-vl-2b", "text_config.vocab_size", 151_937, 2_127_532_032 + 2_048),
    ],
)
def test_a_copied_config_json_is_the_model_and_takes_changes(id: str, place: str, value: int, total: int) -> None:
    copied = copy_config(pc.load(id))
    document = copied["document"]
    assert pc.count(document).total == pc.count(id).total
    assert place.split(".") in copied["keys"].values()
    *at, key = place.split(".")
    section = document[at[0]] if at else document
    assert section["rms_norm_eps"] in (1e-5, 1e-6)
    section[key] = value
    assert pc.count(document).total == total


def test_a_copied_entry_has_no_day_before_it_is_copied() -> None:
    """The page of the whole zoo is kept for days; its program has the day of the copy."""
    (text,) = [model["yaml"] for model in read_data(build_small_page())["models"]]
    assert re.findall("accessed: ([0-9-]*)", text) == ["0001-01-01"]
    assert '"accessed: 0001-01-01"' in (Path(pc.__file__).parent / "explore" / "page.js").read_text(encoding="utf-8")


def copy_config(model: Model) -> dict[str, Any]:
    return export_config(model, [path for path in list_paths(model.sizes) if type(get_size(model.sizes, path)) is int])


# Their config.json needs keys that no size says; the page gives the reason in its place. The list may only shrink.
UNCOPIED = {
    "delta-net-1.3b", "gated-deltanet-1.3b", "gla-1.3b", "gsa-1.3b", "hgrn2-1.3b", "llava-v1.5-7b",
    "nomic-embed-text-v2-moe", "unispeech-1350-en-353-fr", "wav2vec2-conformer-rope-large-960h",
    "wav2vec2-xls-r-300m-en-to-15", "wavlm-large",
}  # fmt: skip


@in_batches("id", pick_structures(every=8), size=40)
def test_a_copied_config_json_counts_as_its_model(id: str) -> None:
    model = pc.load(id)
    model = replace(model, config=build_as_reference(model.sizes))  # a config.json is read as the reference does
    copied = copy_config(model)
    assert ("reason" in copied) == (id in UNCOPIED)
    if id in UNCOPIED:
        return
    read, count = pc.count(json.loads(json.dumps(copied["document"]))), count_model(model)
    for name in ("total", "active", "active_min", "components", "parts", "buffers"):
        assert getattr(read, name) == getattr(count, name), name
    sizes = {path: get_size(model.sizes, path) for path in list_paths(model.sizes)}
    assert {path: evaluate(tree, sizes) for path, tree in copied["derived"].items()} == {
        path: sizes[path] for path in copied["derived"]
    }


@pytest.mark.parametrize(
    ("id", "changes", "derived"),
    [
        ("bert-base-uncased", {"num_attention_heads": 24}, {"d_head": 32}),
        ("phi-2", {"head_dim": 160}, {"d_rope": 64}),  # 0.4 of a head
        ("pythia-70m", {"num_attention_heads": 16}, {"d_head": 32, "d_rope": 8}),  # a quarter
        ("llava-1.5-7b", {"vision_config.patch_size": 28}, {"vision.n_patches": 144}),  # 336 / 28 = 12
    ],
)
def test_a_derived_size_is_a_tree_over_sizes_with_keys(
    id: str, changes: dict[str, int], derived: dict[str, int]
) -> None:
    model = pc.load(id)
    copied = copy_config(model)
    places = {".".join(place): path for path, place in copied["keys"].items()}
    sizes = {path: get_size(model.sizes, path) for path in list_paths(model.sizes)}
    sizes |= {places[key]: n for key, n in changes.items()} | derived
    assert {path: evaluate(copied["derived"][path], sizes) for path in derived} == derived


def test_a_size_whose_key_changes_another_is_not_copied_alone() -> None:
    """ALBERT's num_hidden_groups also decides which layers share their weights."""
    copied = copy_config(pc.load("albert-base-v2"))
    assert copied["coupled"] == {"n_layers": "layer_groups", "n_layer_groups": "layer_groups"}
    assert "n_layer_groups" not in copied["keys"]


def test_a_hostile_name_is_text_wherever_it_is() -> None:
    evil = "</script></noscript><script>alert(1)</script>{{data}}"
    model: Model = replace(pc.load("gpt2-small"), id=evil, name=evil)
    page = build_page([model])
    assert page.count("<script") == build_page([pc.load("gpt2-small")]).count("<script")
    assert evil not in page
    assert f"<td>{html.escape(evil)}</td>" in page


# ---- the command


def test_the_command_writes_a_page_and_opens_it_if_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Runner
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    path = tmp_path / "models.html"
    assert run("explore", "gpt2-small", "-o", str(path)) == (0, "", f"note: wrote {path}\n")
    assert (path.read_text(encoding="utf-8"), opened) == (build_small_page(), [])
    assert run("explore", "gpt2-small", "-o", str(path), "--open").code == 0
    assert opened == [path.as_uri()]
    assert run("explore", "gpt2-small").code == 0
    assert opened[1].endswith("/explore.html")
    assert run("explore", "gpt2-small", "--no-open").code == 0
    assert len(opened) == 2


@pytest.mark.parametrize(
    ("id", "decodes"),
    [("bert-base-uncased", False), ("diffusiongemma-26b-a4b", False), ("gpt2-small", True), ("t5-small", True)],
)
def test_a_flow_says_whether_it_decodes(id: str, decodes: bool) -> None:
    assert export_structure(pc.load(id), Packings())["flow"]["decodes"] is decodes
    assert (pc.flops(id).flops_per_token is not None) is decodes
