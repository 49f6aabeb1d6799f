"""The page of `paramcount explore` in a browser: its numbers are those of Python, digit for digit."""

from __future__ import annotations

import json
import os
import random
import shlex
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
import paramcount.costs.memory as measuring
from paramcount.costs.devices import VERDICTS
from paramcount.costs.gpus import list_gpus
from paramcount.costs.requests import find_longest_context
from paramcount.counting.sum_weights import list_flows
from paramcount.explore import build_page
from paramcount.explore.packings import Packings
from paramcount.explore.structures import export_structure
from paramcount.flow.positions import count_positions
from paramcount.formats.strict_yaml import parse_yaml
from paramcount.zoo import Model, load_entry
from paramcount.zoo.what_if import change_sizes, get_size
from tests.browser.chromium import Browser
from tests.browser.exploring import open_page
from tests.running import Runner
from tests.structures import RANKS, ZOO, pick_smallest

pytestmark = pytest.mark.browser
WHOLE = "EXAMPLES" in os.environ  # all models of the zoo, which takes minutes, not one per operation
STATES = 2000 if WHOLE else 400
FITS = 3000 if WHOLE else 500
COMMANDS = 10
IDS = ZOO if WHOLE else [pick_smallest()[name] for name in RANKS]


@pytest.fixture(scope="module")
def models() -> list[Model]:
    return [load_entry(id) for id in IDS]


@pytest.fixture(scope="module")
def many(models: list[Model], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "explore.html"
    path.write_text(pc.explore_page() if WHOLE else build_page(models), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def page(many: Path, browser: Browser) -> Browser:
    """A browser that shows the page of these models."""
    open_page(browser, many)
    browser.value(HELPERS)
    return browser


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
    sizes = {format.dtype.partition(" ")[0]: format.weights_bytes for format in memory.formats}
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
    expected["bytes"] = [sizes[name] for name in ("FP32", "BF16", "FP8", "INT8", "INT4")]
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


@cache
def export(model: Model) -> Any:
    return export_structure(model, Packings())


def list_kept(model: Model) -> Iterator[str]:
    """What the page says of changes that it does not show: those that make another flow of the model."""
    for tree in export(model)["checks"]:
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


@pytest.mark.parametrize("id", IDS)
def test_every_number_of_a_model_is_that_of_python(page: Browser, id: str) -> None:
    model = load_entry(id)
    limits = model.context_length, count_positions(next(iter(list_flows(model.sizes)))[0])
    context = min([8192, *(n for n in limits if n is not None)])
    assert compare(measure(page, model, {}, context), model, context) == []


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
    paths = [size[0] for size in export(model)["sizes"] if len(size) > 1]
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


def test_what_fits_is_what_memory_says_to_the_byte(
    page: Browser, models: list[Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("list_formats", "list_suggestions"):  # which the page does not have
        monkeypatch.setattr(measuring, name, lambda *_, **__: ())
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
