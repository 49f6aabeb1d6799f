"""The page of `paramcount explore` in a browser: its numbers are those of Python, digit for digit."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import re
import shlex
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import paramcount as pc
from paramcount.costs.devices import VERDICTS
from paramcount.costs.gpus import list_gpus
from paramcount.costs.requests import find_longest_context
from paramcount.counting.sum_weights import list_flows
from paramcount.drawing.colours import measure_luminance
from paramcount.drawing.pictures import draw_body
from paramcount.explore import build_page
from paramcount.explore.drawings import CONTEXT, trace_decoding
from paramcount.explore.packings import Packings
from paramcount.explore.page import ZOO
from paramcount.explore.structures import export_structure
from paramcount.flow.positions import count_positions
from paramcount.formats.strict_yaml import parse_yaml
from paramcount.tracing.run import choose_length
from paramcount.zoo import Model, load_all, load_entry
from paramcount.zoo.what_if import change_sizes, get_size
from tests.browser.chromium import Browser
from tests.running import Runner
from tests.structures import RANKS, pick_smallest

pytestmark = pytest.mark.browser
WHOLE = "EXAMPLES" in os.environ  # the page of the whole zoo, which takes minutes, not of a model per operation
STATES = 80
FITS = 3000 if WHOLE else 500
COMMANDS = 10
LONGEST_WAIT = 30  # seconds


@pytest.fixture(scope="module")
def models() -> list[Model]:
    if WHOLE:
        return [model for model in load_all() if not model.estimate]
    smallest = pick_smallest()
    return [load_entry(smallest[name]) for name in RANKS]


@pytest.fixture(scope="module")
def many(models: list[Model], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "explore.html"
    path.write_text(build_page(models), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def page(many: Path, browser: Browser) -> Browser:
    """A browser that shows the page of these models."""
    open_page(browser, many)
    browser.value(HELPERS)
    return browser


def open_page(browser: Browser, path: Path, **options: Any) -> None:
    browser.open(path, **options)
    deadline = time.monotonic() + LONGEST_WAIT
    while not browser.value("!!window.paramcount"):
        assert time.monotonic() < deadline, browser.complaints()


# What the page computes for a model, as JSON. Sizes that are not given keep their value.
HELPERS = """
window.toJson = (all) => JSON.stringify(all, (_, value) => (typeof value === "bigint" ? value.toString() : value));
window.fit = (id, sizes, options) => {
  const { data, findErrors, readChoice, measure, findLongest, findMostUsers, findFewest, writeCommands } = paramcount;
  const model = data.byId.get(id);
  const { structure, values: published } = model;
  if (!structure.caches) return "null";
  const values = structure.sizes.map(([path], i) => (path in sizes ? BigInt(sizes[path]) : published[i]));
  const isChanged = Object.keys(sizes).length > 0;
  const found = findErrors(structure, values);
  if (found.length) return toJson({ errors: found });
  const { choice, subject, errors, dtype } = readChoice(data, model, structure, values, isChanged, options, new Map());
  if (errors.length) return toJson({ errors });
  const command = writeCommands(data, model, { choice, dtype }).memory;
  const limits = [findLongest, findMostUsers].map((find) => find(data, subject, choice));
  const fewest = findFewest(data, subject, choice);
  return toJson({ ...measure(data, subject, choice), limits, fewest: fewest && fewest.gpus, command });
};
window.measure = (id, sizes, context) => {
  const { data, count, countCache, countFlops, findErrors, countWeights, formatYaml, formatConfig } = paramcount;
  const model = data.byId.get(id);
  const { structure, values: published } = model;
  const values = structure.sizes.map(([path], i) => (path in sizes ? BigInt(sizes[path]) : published[i]));
  const errors = findErrors(structure, values);
  if (errors.length) return JSON.stringify({ errors: errors.map(({ text }) => text) });
  const all = {
    count: count(structure, values),
    cache: countCache(structure, values, BigInt(context)),
    flops: countFlops(structure, values, BigInt(context)),
    bytes: data.dtypes.map((_, dtype) => countWeights(structure, values, dtype)),
    entry: formatYaml(model, model.variants[0], Object.entries(sizes)),
    config: formatConfig(model, model.variants[0], Object.entries(sizes)),
  };
  return toJson(all);
};
"""


def measure(page: Browser, model: Model, sizes: dict[str, int], context: int) -> dict[str, Any]:
    arguments = ", ".join(json.dumps(value) for value in (model.id, {p: str(n) for p, n in sizes.items()}, context))
    found: dict[str, Any] = json.loads(page.value(f"measure({arguments})"))
    return found


def compare(found: dict[str, Any], model: Model, context: int) -> list[str]:
    """What the page says of a model that Python does not."""
    count = pc.count(model)
    memory = pc.memory(model, context=context, dtype="bf16")
    memories = [pc.memory(model, dtype=dtype, context=context) for dtype in ("fp32", "bf16", "fp8", "int8", "int4")]
    expected: dict[str, Any] = {
        "total": count.total,
        "active": count.active,
        "activeMin": count.active_min,
        "buffers": count.buffers,
        **({} if count.mtp is None else {"mtp": count.mtp}),  # the page does not show it
        **{f"components.{name}": n for name, n in count.components.items()},
    }
    counted = found["count"]
    shown: dict[str, Any] = {name: int(counted[name]) for name in ("total", "active", "activeMin", "buffers", "mtp")}
    shown |= {f"components.{name}": int(n) for name, n in counted["components"].items()}
    expected["bytes"] = [memory.weights_bytes for memory in memories]
    shown["bytes"] = [int(n) for n in found["bytes"]]
    if found["cache"] is not None:
        expected["cache"] = (memory.kv_bytes_per_token, memory.kv_cache_bytes, memory.state_bytes)
        shown["cache"] = tuple(int(found["cache"][name]) for name in ("perToken", "bytes", "states"))
    if found["flops"] is not None:
        flops = pc.flops(model, context=context)
        expected["flops"] = flops.prefill_flops if flops.flops_per_token is None else flops.flops_per_token
        shown["flops"] = int(found["flops"]["total"])
    return [f"{name}: {shown[name]} instead of {n}" for name, n in expected.items() if shown[name] != n]


def compare_copies(found: dict[str, Any], count: pc.Count) -> Iterator[str]:
    """What a model's copies, as an entry and as a config.json, count otherwise, as far as there are such copies."""
    if found["entry"] is not None and (total := pc.count(parse_yaml(found["entry"])).total) != count.total:
        yield f"{total} in the entry instead of {count.total}"
    if "text" in found["config"]:
        with suppress(pc.ParamcountError):  # a key that is no size keeps its default, and may not fit
            # The reference decides what a config.json means, also where the released files differ from it.
            total = pc.count(json.loads(found["config"]["text"])).total
            if total != count.reference_total:
                yield f"{total} in the config.json instead of {count.reference_total}"


def list_kept(model: Model) -> Iterator[str]:
    """What the page says of changes that it does not show: those that make another flow of the model."""
    for tree in export_structure(model, Packings())["checks"]:
        for error in find_errors(tree):
            if " changes the tensors " in (text := "".join(map(str, error["text"]))):
                yield text


def find_errors(tree: Any) -> Iterator[Any]:
    if isinstance(tree, dict):
        yield tree
    elif isinstance(tree, list):
        for item in tree:
            yield from find_errors(item)


def list_reasons(model: Model, sizes: dict[str, int]) -> Iterator[str]:
    """Why each of the sizes is refused alone, of which the page may name another than Python."""
    for path, value in sizes.items():
        try:
            change_sizes(model, {path: value})
        except pc.ParamcountError as error:
            yield str(error)


def test_every_number_of_every_model_is_that_of_python(page: Browser, models: list[Model]) -> None:
    wrong = []
    for model in models:
        limits = model.context_length, count_positions(next(iter(list_flows(model.sizes)))[0])
        context = min([8192, *(n for n in limits if n is not None)])
        wrong += [f"{model.id}: {text}" for text in compare(measure(page, model, {}, context), model, context)]
    assert wrong == []


def test_random_sliders_count_as_python_does(page: Browser, models: list[Model]) -> None:
    generator = random.Random(8)  # noqa: S311
    wrong = []
    valid = copied = 0
    for i in range(STATES):
        model = models[i % len(models)]
        sizes = move_sliders(model, generator)
        found = measure(page, model, sizes, 64)
        try:
            changed = change_sizes(model, sizes)
        except pc.ParamcountError as error:
            reasons = [str(error), *list_reasons(model, sizes)]
            if not any(text.partition(" (")[0] in reason for text in found.get("errors", ()) for reason in reasons):
                wrong.append(f"{model.id} {sizes}: {found} instead of {error}")
            continue
        if "errors" in found:
            if set(found["errors"]) <= set(list_kept(model)):
                continue
            wrong.append(f"{model.id} {sizes}: {found['errors']} although it is valid")
            continue
        valid += 1
        if getattr(changed.sizes, "n_positions", 64) >= 64:
            wrong += [f"{model.id} {sizes}: {text}" for text in compare(found, changed, 64)]
        copied += "text" in found["config"]
        wrong += [f"{model.id} {sizes}: {text}" for text in compare_copies(found, pc.count(changed))]
    assert wrong == []
    assert valid > STATES / 3
    assert copied > valid * 0.5


def move_sliders(model: Model, generator: random.Random) -> dict[str, int]:
    """Other values of some sizes, most of them multiples of what they were."""
    paths = [size[0] for size in export_structure(model, Packings())["sizes"] if len(size) > 1]
    chosen = generator.sample(paths, min(len(paths), generator.randint(1, 3)))
    sizes = {}
    for path in chosen:
        value = get_size(model.sizes, path)
        sizes[path] = generator.choice([2 * value, max(1, value // 2), 3 * value, value + generator.randint(-2, 9)])
    return sizes


# ---- what fits


def choose_options(generator: random.Random, model: Model) -> dict[str, str]:
    """Choices as the address has them, of which some are left to their defaults."""
    limit = find_longest_context(model) or 65536
    options = {
        "gpu": generator.choice(list_gpus()).name,
        "n": str(generator.choice([1, 2, 4, 8, generator.randint(1, 8)])),
        "dtype": generator.choice(["fp32", "bf16", "fp8", "int8", "int4"]),
        "kv": generator.choice(["bf16", "fp8", "int8", "f32"]),
        "context": str(generator.randint(1, limit)),
        "users": str(generator.choice([1, 7, 64, 5000])),
    }
    return {name: value for name, value in options.items() if generator.random() < 0.8}


def fit(page: Browser, model: Model, sizes: dict[str, int], options: dict[str, str]) -> Any:
    arguments = (model.id, {path: str(n) for path, n in sizes.items()}, options)
    return json.loads(page.value(f"fit({', '.join(map(json.dumps, arguments))})"))


def measure_fit(model: Model, options: dict[str, str]) -> tuple[dict[str, Any], str]:
    """What Python says of the same choices, and the verdict."""
    gpu = f"{options.get('n', '1')}x{options.get('gpu', 'H100 SXM')}"
    memory = pc.memory(
        model,
        gpu=gpu,
        dtype=options.get("dtype"),
        kv_dtype=options.get("kv", "bf16"),
        context=int(options["context"]) if "context" in options else None,
        batch=int(options.get("users", "1")),
    )
    found = memory.fit
    assert found is not None
    share = found.fullest
    numbers = {
        "weights": share.weights_bytes,
        "kv": share.kv_cache_bytes,
        "states": share.state_bytes,
        "overhead": found.overhead_bytes,
        "margin": found.margin_bytes,
        "needed": found.needed_bytes,
        "free": found.free_bytes,
        "budget": found.memory_bytes,
    }
    fewest = found.fewest_devices if (found.fewest_devices or 9) <= 8 else None
    limits = [found.longest_context, found.largest_batch]
    return {name: str(n) for name, n in numbers.items()} | {"limits": limits, "fewest": fewest}, found.verdict


def move_to_limit(model: Model, options: dict[str, str]) -> dict[str, str]:
    """The same choices with one token more than fits for certain, if the model can read so many."""
    with suppress(pc.ParamcountError):
        longest = measure_fit(model, options)[0]["limits"][0]
        if longest and longest < (find_longest_context(model) or 65536):
            return options | {"context": str(longest + 1)}
    return options


def test_what_fits_is_what_memory_says_to_the_byte(page: Browser, models: list[Model]) -> None:
    generator = random.Random(15)  # noqa: S311
    wrong, verdicts, refused = [], dict.fromkeys(VERDICTS, 0), 0
    for i in range(FITS):
        model = models[i % len(models)]
        options = choose_options(generator, model)
        options = move_to_limit(model, options) if i % 10 == 0 else options
        sizes = move_sliders(model, generator) if i % 3 == 2 and "dtype" in options else {}
        found = fit(page, model, sizes, options)
        if found is None:  # its cache depends on another input than text
            continue
        try:
            expected, verdict = measure_fit(change_sizes(model, sizes) if sizes else model, options)
        except pc.ParamcountError:
            refused += 1
            if "errors" not in found:
                wrong.append(f"{model.id} {sizes} {options}: {found} although Python refuses it")
            continue
        if "errors" in found:
            texts = [error["text"] for error in found["errors"]]
            if not sizes or not set(texts) <= set(list_kept(model)):
                wrong.append(f"{model.id} {sizes} {options}: {texts} although it is valid")
            continue
        verdicts[verdict] += 1
        command = found.pop("command")
        assert shlex.split(command)[:3] == ["paramcount", "memory", model.id]
        shown = {name: found[name] for name in expected}
        if (shown, found["verdict"]) != (expected, verdict):
            wrong.append(f"{model.id} {sizes} {options}: {shown} {found['verdict']} instead of {expected} {verdict}")
    assert wrong == []
    assert refused > 0
    assert min(verdicts.values()) > FITS // 100, verdicts


def test_the_command_of_a_fit_says_the_same(page: Browser, models: list[Model], run: Runner) -> None:
    generator = random.Random(3)  # noqa: S311
    compared = 0
    for model in models:
        found = fit(page, model, {}, choose_options(generator, model))
        if found is None or "errors" in found:
            continue
        said = json.loads(run(*shlex.split(found["command"])[1:], "--json").out)["fit"]
        assert (said["verdict"], str(said["free_bytes"])) == (found["verdict"], found["free"]), found["command"]
        compared += 1
        if compared == COMMANDS:
            return


# ---- the page as people use it

FEW = ["gpt2-small", "deepseek-v3", "gemma-3-27b", "t5-small", "mamba-130m", "qwen2-vl-2b"]
ADDRESSES = {
    "#": "start", "#start": "start", "#model/deepseek-v3": "model", "#model/t5-small": "model",
    "#browse": "browse", "#browse?q=deep&sort=-total&columns=name,total,cache": "browse",
    "#compare/gpt2-small,deepseek-v3,mamba-130m": "compare", "#fit/deepseek-v3": "fit",
    "#fit/deepseek-v3?n=8&users=4": "fit", "#fit/gpt2-small?gpu=h1000&n=5&context=2000": "fit",
    "#compare/gpt2-small,deepseek-v3?context=x": "compare",
    "#change/deepseek-v3?n_layers=70&context=100000": "change", "#change/gpt2-small?n_heads=7": "change",
    "#change/gemma-3-27b": "change", "#inside/deepseek-v3": "inside", "#inside/t5-small?at=decoder": "inside",
    "#run": "run", "#run/tiny-mixtral?text=paramcount&off=0.1,1.e3&step=25": "run",
    "#run/tiny-gpt2,tiny-mixtral,tiny-mamba?text=paramcount&at=13": "run",
    "#inside/gpt3-small": "missing", "#modle/gpt2": "missing", "#nothing/%E0%A4%A?x": "missing",
}  # fmt: skip
WAIT = "new Promise((done) => setTimeout(() => done(1), 100))"
AXE = Path(pc.__file__).parent / "explore" / "node_modules" / "axe-core" / "axe.min.js"
VIOLATIONS = """axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => JSON.stringify(
  violations.map(({ id, nodes }) => [id, nodes.slice(0, 3).map(({ html }) => html.slice(0, 200))])))"""
WIDE = """[...document.body.querySelectorAll("*")]
  .filter((node) => !node.closest(".scroll, .sheet, svg, .hidden, datalist"))
  .filter((node) => node.getBoundingClientRect().right > innerWidth + 0.5)
  .map((node) => node.outerHTML.slice(0, 120))"""


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("few") / "explore.html"
    path.write_text(pc.explore_page(FEW), encoding="utf-8")
    return path


def go(browser: Browser, address: str) -> None:
    """Follow an address in the page, and wait until it is shown."""
    browser.value(f"location.hash = {json.dumps(address)}")
    view = ADDRESSES.get(address) or address[1:].partition("/")[0].partition("?")[0]
    shown = f"document.querySelector('main').dataset.view === {json.dumps(view)}"
    wait_for(
        browser,
        f"""new Promise((done) => {{
      const look = () => ({shown} ? setTimeout(() => done(1), 100) : setTimeout(look, 20));
      setTimeout(look, 20);
    }})""",
    )


def wait_for(browser: Browser, promise: str) -> Any:
    answer = browser.ask("Runtime.evaluate", expression=promise, awaitPromise=True, returnByValue=True)
    assert "exceptionDetails" not in answer, answer
    return answer["result"].get("value")


@pytest.mark.skipif(not WHOLE, reason="takes minutes: EXAMPLES=1")
def test_the_page_of_the_whole_zoo_is_small(many: Path) -> None:
    assert ZOO.stat().st_size < 3_000_000
    assert many.stat().st_size < 5_000_000  # as text, with the program and the weights of the tiny models


def test_a_page_of_a_few_models_is_small(few: Path) -> None:
    assert few.stat().st_size < 500_000 + 1_000_000  # with the weights of the tiny models


@pytest.mark.parametrize("width", [360, 800, 1280, 2560])
def test_every_view_fits_its_screen_and_asks_for_nothing(browser: Browser, few: Path, width: int) -> None:
    open_page(browser, few, width=width)
    for address in ADDRESSES:
        go(browser, address)
        assert browser.value(WIDE) == [], address
    assert browser.complaints() == []
    assert [url for url in browser.requests() if not url.startswith(("file:", "data:"))] == []


@pytest.mark.skipif(not AXE.is_file(), reason="needs axe-core: npm ci in paramcount/explore")
@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_no_violation(browser: Browser, few: Path, dark: bool) -> None:
    open_page(browser, few, dark=dark)
    browser.value(AXE.read_text(encoding="utf-8") + ";1")
    for address in ADDRESSES:
        go(browser, address)
        assert (address, json.loads(wait_for(browser, VIOLATIONS))) == (address, [])


MISSING = {
    "#inside/gpt3-small": ("This page has no model gpt3-small.", {"#inside/gpt2-small"}),
    "#compare/gpt2-small,deepseek-v4": ("This page has no model deepseek-v4.", {"#compare/gpt2-small,deepseek-v3"}),
    "#modle/gpt2": ("This page has no view modle.", {"#model/gpt2"}),
    "#deepseek-v3": ("This page has no view deepseek-v3.", {"#model/deepseek-v3"}),
    "#zzzzzzzzzzz": ("This page has no view zzzzzzzzzzz.", set()),
}


@pytest.mark.parametrize("address", MISSING)
def test_an_address_that_the_page_does_not_have_says_so_with_the_nearest_ones(
    browser: Browser, few: Path, address: str
) -> None:
    open_page(browser, few)
    browser.value(f"location.hash = {json.dumps(address)}")
    wait_for(browser, WAIT)
    sentence, links = MISSING[address]
    assert sentence in browser.value("document.querySelector('main').innerText").replace("“", "").replace("”", "")
    found = browser.value("[...document.querySelectorAll('main a')].filter((a) => a.offsetParent).map((a) => a.hash)")
    assert set(found) - {"#start", "#browse"} == links
    assert browser.value("document.title") == "Not found · paramcount"


def test_the_title_of_the_window_follows_the_address(browser: Browser, few: Path) -> None:
    open_page(browser, few)
    titles = {
        "#start": "paramcount", "#model/deepseek-v3": "DeepSeek-V3 · paramcount", "#browse": "All models · paramcount",
        "#compare/gpt2-small,t5-small": "Compare · GPT-2 small, T5 Small · paramcount",
    }  # fmt: skip
    for address, title in titles.items():
        go(browser, address)
        assert browser.value("document.title") == title


def test_names_and_notes_are_inert(browser: Browser, tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>${alert(3)}{{alert(4)}}"
    model = dataclasses.replace(pc.load("gpt2-small"), id=evil, name=evil)
    path = tmp_path / "evil.html"
    path.write_text(build_page([model]), encoding="utf-8")
    open_page(browser, path)
    for view in ("browse", "model/", "compare/", "change/", "inside/"):
        go(browser, f"#{view}{quote(evil) if view.endswith('/') else ''}")
        assert evil in browser.value("document.body.textContent"), view
    assert browser.value("document.querySelectorAll('main img, main script').length") == 0
    assert browser.complaints() == []


def test_without_scripts_the_page_is_a_table(browser: Browser, few: Path) -> None:
    browser.ask("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(few)
        text = browser.ask("DOM.getOuterHTML", nodeId=browser.ask("DOM.getDocument", depth=-1)["root"]["nodeId"])
        table = text["outerHTML"].partition("<noscript>")[2].partition("</noscript>")[0]
        assert "<td>671,026,404,352</td>" in table.replace("&lt;", "<").replace("&gt;", ">")
    finally:
        browser.ask("Emulation.setScriptExecutionDisabled", value=False)


def press(browser: Browser, key: str) -> None:
    codes = {"Tab": 9, "Enter": 13, "Escape": 27, "Home": 36, "ArrowRight": 39, "ArrowDown": 40}
    code = codes.get(key, ord(key[0]))
    text = {"text": "\r"} if key == "Enter" else {}
    for kind in ("keyDown", "keyUp"):
        browser.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)


def test_the_keyboard_reaches_every_control(browser: Browser, few: Path) -> None:
    open_page(browser, few)
    for address in ("#browse", "#change/gpt2-small", "#inside/gpt2-small"):
        go(browser, address)
        browser.value("document.activeElement.blur(); window.reached = new Set(); 1")
        controls = "document.querySelectorAll('a[href], button:not(:disabled), input, select, summary, [tabindex]')"
        visible = f"[...{controls}].filter((node) => node.checkVisibility() && node.tabIndex >= 0)"
        for _ in range(browser.value(f"{visible}.length") + 5):
            press(browser, "Tab")
            browser.value("reached.add(document.activeElement); 1")
        missed = browser.value(
            f"{visible}.filter((node) => !reached.has(node)).map((node) => node.outerHTML.slice(0, 100))"
        )
        assert (address, missed) == (address, [])


STEP = "[...document.querySelectorAll('.drawing [role=button]')].find((step) => step.ariaLabel.startsWith({}))"
DETAILS = "document.querySelector('.details').innerText"


def test_a_step_of_the_drawing_shows_its_shapes_and_its_sentence(browser: Browser, few: Path) -> None:
    open_page(browser, few)
    go(browser, "#inside/gpt2-small")
    browser.value(
        f"{STEP.format(json.dumps('attention: keys'))}.dispatchEvent(new MouseEvent('click', {{ bubbles: true }})); 1"
    )
    wait_for(browser, WAIT)
    details = browser.value(DETAILS)
    assert "Takes the keys out of the q, k and v." in details
    assert "Computes a key for each token and KV head: what this token offers to others." in details
    assert "Why: Heads may share keys" in details
    (link,) = browser.value("[...document.querySelectorAll('.details a')].map(({ href }) => href)")
    assert link == "https://arxiv.org/abs/2305.13245"
    assert "1 × 12 × 64" in details
    pressed = "[...document.querySelectorAll('.drawing [aria-pressed=true]')].map((step) => step.ariaLabel)"
    assert browser.value(pressed) == ["attention: keys, 1 × 12 × 64"]
    browser.value(f"{STEP.format(json.dumps('MLP: up'))}.focus(); 1")
    press(browser, "Enter")
    wait_for(browser, WAIT)
    details = browser.value(DETAILS)
    assert "Multiplies the output of norm by a weight matrix and adds a bias." in details
    assert f"up: 768 × 3,072 = {768 * 3072:,} parameters × 12 copies = {12 * 768 * 3072:,}" in details
    assert "h.{layer}.mlp.c_fc.weight" in details
    assert f"2 · {768 * 3072:,} · 12 layers = {24 * 768 * 3072:,}" in details
    browser.value(
        "[...document.querySelectorAll('.details button')].find((b) => b.innerText === 'Previous step').click()"
    )
    wait_for(browser, WAIT)
    assert browser.value(pressed) == ["norm, 1 × 768"]
    assert browser.complaints() == []


VIEW = "document.querySelector('.drawing').getAttribute('viewBox').split(' ').map(Number)"


def test_a_step_is_in_the_address_and_arrows_go_from_step_to_step(browser: Browser, few: Path) -> None:
    open_page(browser, few)
    go(browser, "#inside/gpt2-small?step=8")
    heading = "document.querySelector('.details h3').innerText.trim()"
    assert browser.value(heading) == "attention: keys"
    browser.value("document.querySelector('.drawing [tabindex=\"0\"]').focus(); 1")
    press(browser, "ArrowDown")
    wait_for(browser, WAIT)
    assert browser.value(heading) != "attention: keys"
    assert browser.value("document.activeElement.getAttribute('aria-pressed')") == "true"
    assert browser.value("location.hash") != "#inside/gpt2-small?step=8"
    press(browser, "Home")
    wait_for(browser, WAIT)
    assert browser.value("location.hash") == "#inside/gpt2-small?step=1"
    assert browser.complaints() == []


def test_a_drawing_is_zoomed_and_moved_by_buttons_keys_and_wheel(browser: Browser, few: Path) -> None:
    open_page(browser, few)
    go(browser, "#inside/gpt2-small")
    before = browser.value(VIEW)
    browser.value("document.querySelector('[aria-label=\"Zoom in\"]').click(); 1")
    wait_for(browser, WAIT)
    near = browser.value(VIEW)
    assert near[2] == pytest.approx(before[2] / 1.3)
    browser.value("document.querySelector('.drawing [tabindex=\"0\"]').focus(); 1")
    press(browser, "-")
    wait_for(browser, WAIT)
    assert browser.value(VIEW)[2] == pytest.approx(before[2])
    wheel = "document.querySelector('.sheet').dispatchEvent(new WheelEvent('wheel', {}))"
    assert browser.value(wheel.format("{ deltaY: 100, cancelable: true }")) is False  # the page does not scroll as well
    wait_for(browser, WAIT)
    assert browser.value(VIEW)[1] == pytest.approx(
        before[1] + 100 * before[2] / browser.value("document.querySelector('.drawing').clientWidth")
    )
    assert browser.value(wheel.format("{ deltaY: -1e6, cancelable: true }")) is False
    wait_for(browser, WAIT)
    assert browser.value(wheel.format("{ deltaY: -100, cancelable: true }")) is True  # at the edge it does
    press(browser, "0")
    wait_for(browser, WAIT)
    width, height = pc_size(browser)
    assert browser.value(VIEW)[2] >= width
    assert browser.value(VIEW)[3] >= height


def pc_size(browser: Browser) -> list[float]:
    return list(browser.value("paramcount.data.byId.get('gpt2-small').drawing.size"))


@pytest.mark.parametrize("dark", [False, True])
def test_the_map_has_labels_that_people_read_in_colours_that_they_see(browser: Browser, few: Path, dark: bool) -> None:
    browser.open(few, dark=dark)
    for id in FEW:
        go(browser, f"#inside/{id}")
        labels = browser.value("""[...document.querySelectorAll('.map .label')].map((label) =>
          [label.textContent, ...['rect', 'text'].map((name) => getComputedStyle(label.querySelector(name)).fill)])""")
        assert labels
        for text, ground, ink in labels:
            assert not re.search(r"_|\.weight|[{}]", text)
            light, deep = sorted((measure_luminance(read_colour(fill)) for fill in (ground, ink)), reverse=True)
            assert (light + 0.05) / (deep + 0.05) >= 4.3, (text, ground)  # white on the blue of embeddings
    titles = browser.value("[...document.querySelectorAll('.map .leaf title')].map((title) => title.textContent)")
    assert any(title.endswith(".weight") for title in titles)


def read_colour(fill: str) -> str:
    """The colour "rgb(1, 2, 3)" in hexadecimal."""
    return "#" + "".join(f"{int(n):02x}" for n in re.findall("[0-9]+", fill))


def test_enter_opens_a_group_of_the_map_and_escape_closes_it(browser: Browser, few: Path) -> None:
    open_page(browser, few)
    go(browser, "#inside/gpt2-small")
    name = "ariaLabel.replace(/: [0-9,]+ parameters.*/, '')"
    groups = f"[...document.querySelectorAll('.map [tabindex]')].map((group) => group.{name})"
    top = browser.value(groups)
    assert {"token embedding", "layers × 12"} <= set(top)
    browser.value("document.querySelectorAll('.map [tabindex]')[0].focus(); 1")
    press(browser, "ArrowRight")
    wait_for(browser, WAIT)
    focused = f"document.activeElement.{name}"
    assert browser.value(focused) != top[0]
    while browser.value(focused) != "layers × 12":
        press(browser, "ArrowDown")
        wait_for(browser, WAIT)
    press(browser, "Enter")
    wait_for(browser, WAIT)
    assert {"attention: q, k, v", "MLP"} <= set(browser.value(groups))
    assert browser.value("location.hash").startswith("#inside/gpt2-small?at=")
    press(browser, "Escape")
    wait_for(browser, WAIT)
    assert browser.value(groups) == top
    assert browser.complaints() == []


def test_the_steps_are_where_the_drawing_of_python_has_them(browser: Browser, few: Path) -> None:
    open_page(browser, few)
    for id in FEW:
        model = pc.load(id)
        go(browser, f"#inside/{id}")
        group = draw_body(trace_decoding(model, choose_length(model, CONTEXT)), id).group
        left, top, *_ = group.box
        found = browser.value("""[...document.querySelectorAll(".drawing [role=button]")].map((step) => {
          const { x, y, width, height } = step.getBBox();
          return [x, y, width, height];
        })""")
        margin = 12 - 4  # around the drawing, and of the area around a step
        expected = [[p.x - left + margin, p.y - top + margin, p.width + 8, p.height + 8] for p in group.places]
        assert len(found) == len(expected)
        for area, place in zip(found, expected):
            assert area == pytest.approx(place, abs=1), id


def test_an_arrow_key_moves_a_slider_and_the_address_follows(browser: Browser, few: Path) -> None:
    open_page(browser, few)
    go(browser, "#change/gpt2-small")
    browser.value("document.querySelector('[aria-label^=\"n_layers, slider\"]').focus(); 1")
    press(browser, "ArrowRight")
    wait_for(browser, WAIT)
    n = int(browser.value("document.getElementById('size-n_layers').value"))
    assert n == 13
    assert browser.value("location.hash") == "#change/gpt2-small?n_layers=13"
    total = pc.count("gpt2-small", set={"n_layers": n}).total
    assert f"{total:,}" in browser.value("document.querySelector('.answer').textContent")
