"""The page of `paramcount explore` in a browser: its numbers are those of Python, digit for digit."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
from paramcount.explore import build_page
from paramcount.explore.structures import export_structure
from paramcount.zoo import Model, load_all
from paramcount.zoo.what_if import change_sizes, get_size
from tests.browser.chromium import Browser, run_browser

pytestmark = pytest.mark.browser
STATES = 2000
LONGEST_WAIT = 30  # seconds


@pytest.fixture(scope="module")
def models() -> list[Model]:
    return [model for model in load_all() if not model.estimate]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with run_browser(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.fixture(scope="module")
def page(models: list[Model], browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Browser:
    """A browser that shows the page of the whole zoo."""
    path = tmp_path_factory.mktemp("page") / "explore.html"
    path.write_text(build_page(models), encoding="utf-8")
    open_page(browser, path)
    browser.value(HELPERS)
    return browser


def open_page(browser: Browser, path: Path, **options: Any) -> None:
    browser.open(path, **options)
    deadline = time.monotonic() + LONGEST_WAIT
    while not browser.value("!!window.paramcount"):
        assert time.monotonic() < deadline, browser.complaints()


# What the page computes for a model, as JSON. Sizes that are not given keep their value.
HELPERS = """
window.measure = (id, sizes, context) => {
  const { data, count, countCache, countFlops, findErrors, countWeights, fitGpus, DTYPES } = paramcount;
  const { structure, values: published } = data.byId.get(id);
  const values = structure.sizes.map(([path], i) => (path in sizes ? BigInt(sizes[path]) : published[i]));
  const errors = findErrors(structure, values);
  if (errors.length) return JSON.stringify({ errors: errors.map(({ text }) => text) });
  const all = {
    count: count(structure, values, data.components),
    cache: countCache(structure, values, BigInt(context)),
    flops: countFlops(structure, values, BigInt(context)),
    bytes: DTYPES.map((dtype) => countWeights(structure, values, dtype)),
    gpus: structure.caches && fitGpus(structure, values, BigInt(context), BigInt(data.gpus[0].usable)),
  };
  return JSON.stringify(all, (_, value) => (typeof value === "bigint" ? value.toString() : value));
};
"""


def measure(page: Browser, model: Model, sizes: dict[str, int], context: int) -> dict[str, Any]:
    arguments = ", ".join(json.dumps(value) for value in (model.id, {p: str(n) for p, n in sizes.items()}, context))
    found: dict[str, Any] = json.loads(page.value(f"measure({arguments})"))
    return found


def compare(found: dict[str, Any], model: Model, context: int) -> list[str]:
    """What the page says of a model that Python does not."""
    count = pc.count(model)
    memory = pc.memory(model, context=context, source=None)
    memories = [pc.memory(model, dtype=dtype, context=context) for dtype in ("fp32", "bf16")]
    expected: dict[str, Any] = {
        "total": count.total,
        "active": count.active,
        "activeMin": count.active_min,
        "buffers": count.buffers,
        "mtp": count.mtp,
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
        expected["flops"] = pc.flops(model, context=context).flops_per_token
        shown["flops"] = int(found["flops"]["total"])
    return [f"{name}: {shown[name]} instead of {n}" for name, n in expected.items() if shown[name] != n]


def test_every_number_of_every_model_is_that_of_python(page: Browser, models: list[Model]) -> None:
    wrong = []
    for model in models:
        context = min(8192, model.context_length or 8192, getattr(model.sizes, "n_positions", None) or 8192)
        wrong += [f"{model.id}: {text}" for text in compare(measure(page, model, {}, context), model, context)]
    assert wrong == []


def test_random_sliders_count_as_python_does(page: Browser, models: list[Model]) -> None:
    generator = random.Random(8)  # noqa: S311
    wrong = []
    valid = 0
    for i in range(STATES):
        model = models[i % len(models)]
        sizes = move_sliders(model, generator)
        found = measure(page, model, sizes, 64)
        try:
            changed = change_sizes(model, sizes)
        except pc.ParamcountError as error:
            reason = str(error)
            if not any(text.partition(" (")[0] in reason for text in found.get("errors", ())):
                wrong.append(f"{model.id} {sizes}: {found} instead of {reason}")
            continue
        if "errors" in found:
            wrong.append(f"{model.id} {sizes}: {found['errors']} although it is valid")
            continue
        valid += 1
        if getattr(changed.sizes, "n_positions", 64) >= 64:
            wrong += [f"{model.id} {sizes}: {text}" for text in compare(found, changed, 64)]
    assert wrong == []
    assert valid > STATES / 3


def move_sliders(model: Model, generator: random.Random) -> dict[str, int]:
    """Other values of some sizes, most of them multiples of what they were."""
    paths = [size[0] for size in export_structure(model)["sizes"] if len(size) > 1]
    chosen = generator.sample(paths, min(len(paths), generator.randint(1, 3)))
    sizes = {}
    for path in chosen:
        value = get_size(model.sizes, path)
        sizes[path] = generator.choice([2 * value, max(1, value // 2), 3 * value, value + generator.randint(-2, 9)])
    return sizes
