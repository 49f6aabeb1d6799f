"""The views of the page with which people play: what fits, changed sizes, and models side by side."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import paramcount as pc
from paramcount.costs.memory import Memory
from paramcount.output.numbers import format_bytes
from paramcount.zoo.what_if import change_sizes
from tests.browser.chromium import Browser
from tests.browser.exploring import await_value, go, open_page, wait, wait_until

pytestmark = pytest.mark.browser
ANSWER = "document.querySelector('.answer').innerText"
ERRORS = "[...document.querySelectorAll('.errors li')].map((item) => item.innerText)"


@pytest.fixture(scope="module")
def whole(browser: Browser, explored: Path) -> Iterator[Browser]:
    """The page, which stays open for all tests."""
    open_page(browser, explored)
    yield browser
    assert browser.complaints() == []


def click(browser: Browser, selector: str, text: str) -> None:
    """Press the button with this text."""
    buttons = f"[...document.querySelectorAll({json.dumps(selector)})]"
    browser.value(f"{buttons}.find((button) => button.innerText === {json.dumps(text)}).click(); 1")
    wait(browser)


@pytest.mark.parametrize(
    ("id", "options", "verdict"),
    [
        ("deepseek-v3", {"gpu": "8xH200 SXM", "context": 16384, "batch": 4, "dtype": "fp8", "kv_dtype": "fp8"}, "fits"),
        ("deepseek-v3", {"gpu": "8xH100 SXM", "context": 8192, "batch": 4}, "does not fit"),
        ("gpt-oss-20b", {"gpu": "1xRTX 4080", "context": 8192, "batch": 1}, "too close to call"),
    ],
)
def test_the_answer_is_one_sentence_with_the_figures_of_memory(
    whole: Browser, id: str, options: dict[str, object], verdict: str
) -> None:
    memory: Memory = pc.memory(id, **options)  # type: ignore[arg-type]
    assert memory.fit is not None
    n, _, gpu = str(options["gpu"]).partition("x")
    chosen = {"gpu": gpu, "n": n, "context": options["context"], "users": options["batch"]}
    chosen |= {name: options[key] for name, key in (("dtype", "dtype"), ("kv", "kv_dtype")) if key in options}
    go(whole, f"#fit/{id}?" + "&".join(f"{name}={value}".replace(" ", "+") for name, value in chosen.items()))
    sentence = whole.value(ANSWER)
    each = " per GPU" if n != "1" else ""
    fit = memory.fit
    assert fit.verdict == verdict
    users = "1 user" if options["batch"] == 1 else f"{options['batch']} users"
    on = f"on {n} × {gpu} for {users} of {options['context']:,} tokens"
    needs = f"it needs {format_bytes(fit.needed_bytes)}{each}, and {format_bytes(fit.memory_bytes)} is available."
    expected = {
        "fits": f"fits {on}, with {format_bytes(fit.free_bytes)} to spare{each}.",
        "does not fit": f"does not fit {on}: {needs}",
        "too close to call": f"is too close to call {on}: {needs}",
    }
    assert sentence == f"{memory.name} in {memory.dtype} {expected[verdict]}"
    facts = whole.value("document.querySelector('main').innerText")
    assert f"weights {format_bytes(fit.fullest.weights_bytes)}" in facts
    if fit.longest_context:
        assert f"{fit.longest_context:,} tokens" in facts


def test_changed_sizes_have_the_same_fit_as_set(whole: Browser) -> None:
    go(whole, "#fit/gpt2-small?n_layers=24&context=1000&users=3&gpu=T4&dtype=fp32")
    memory = pc.memory(
        change_sizes(pc.load("gpt2-small"), {"n_layers": 24}), dtype="fp32", context=1000, batch=3, gpu="1xT4"
    )
    assert memory.fit is not None
    assert f"{format_bytes(memory.fit.free_bytes)} to spare" in whole.value(ANSWER)
    command = "paramcount memory gpt2-small --set n_layers=24 --dtype fp32 --context 1000 --batch 3 --gpu 1xT4"
    assert command in whole.value("document.querySelector('main').innerText")


def is_valid(id: str, sizes: dict[str, int]) -> bool:
    try:
        change_sizes(pc.load(id), sizes)
    except pc.ParamcountError:
        return False
    return True


def test_invalid_sizes_keep_the_last_valid_result_and_name_the_nearest_values(whole: Browser) -> None:
    id, wider = "gemma-3-27b", {"d_ff": 16384}
    go(whole, f"#change/{id}?d_ff=16384")
    whole.value("""(() => {
      const field = document.getElementById("size-n_kv_heads");
      field.value = "6";
      field.dispatchEvent(new Event("input", { bubbles: true }));
      return 1;
    })()""")
    wait(whole)
    wait_until(whole, f"location.hash === '#change/{id}?d_ff=16384&n_kv_heads=6'")
    assert len(whole.value(ERRORS)) == 1
    assert f"{pc.count(id, set=wider).total:,}" in whole.value("document.querySelector('.stale').innerText")
    below, above = (
        next(n for n in numbers if is_valid(id, {**wider, "n_kv_heads": n}))
        for numbers in (range(5, 0, -1), range(7, 100))
    )
    buttons = "[...document.querySelectorAll('[role=alert] button')].map((button) => button.innerText)"
    assert whole.value(buttons) == [str(below), str(above)]
    click(whole, "[role=alert] button", str(above))
    assert f"{pc.count(id, set={**wider, 'n_kv_heads': above}).total:,}" in whole.value(ANSWER)
    assert whole.value("document.querySelector('.stale')") is None


# Moves a slider without a pause: what is shown after each move, and what is written and drawn besides.
MOVES = """(async () => {
  const { replaceState } = history;
  const [shown, addresses] = [[], []];
  history.replaceState = (...state) => (addresses.push(state[2]), replaceState.apply(history, state));
  const others = [document.querySelector("header"), ...document.querySelectorAll(".size:not(:has(#size-n_layers))")];
  const observer = new MutationObserver(() => {});
  const everything = { subtree: true, childList: true, attributes: true, characterData: true };
  for (const other of others) observer.observe(other, everything);
  const slider = document.querySelector('[aria-label^="n_layers, slider"]');
  for (let n = 1; n <= 24; n++) {
    slider.value = n;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    await null;
    shown.push(document.querySelector(".answer b").innerText);
  }
  const changed = observer.takeRecords().map(({ target }) => target.nodeName);
  await new Promise((done) => setTimeout(done, 300));
  delete history.replaceState;
  return { shown, addresses, changed, hash: location.hash };
})()"""


def test_each_move_of_a_slider_shows_its_count_and_the_address_is_written_at_rest(whole: Browser) -> None:
    go(whole, "#change/gpt2-small")
    slider = "document.querySelector('[aria-label^=\"d_ff, slider\"]')"
    whole.value(f"{slider}.value = 6144; {slider}.dispatchEvent(new Event('input', {{ bubbles: true }})); 1")
    wait(whole)
    found = await_value(whole, MOVES)
    counts = [pc.count("gpt2-small", set={"d_ff": 6144, "n_layers": n}) for n in range(1, 25)]
    assert found["shown"] == [f"{count.total:,}" for count in counts]
    assert found["addresses"] == ["#change/gpt2-small?d_ff=6144&n_layers=24"] == [found["hash"]]
    assert found["changed"] == []


def test_the_mark_of_a_slider_is_at_the_published_value(whole: Browser) -> None:
    go(whole, "#change/deepseek-v3")
    marks = whole.value("""[...document.querySelectorAll(".slider")].map((slider) => {
      const { min, max, value } = slider.querySelector("input");
      return [Number(min), Number(max), Number(value), Number(slider.style.getPropertyValue("--published"))];
    })""")
    assert len(marks) > 10
    for least, most, value, mark in marks:
        assert mark == pytest.approx((value - least) / (most - least))
        assert least <= value <= most


def test_a_comparison_begins_with_sentences_that_are_true(whole: Browser) -> None:
    go(whole, "#compare/gpt-oss-20b,deepseek-v3")
    a, b = pc.count("deepseek-v3"), pc.count("gpt-oss-20b")
    context = 131072  # that both take
    caches = [pc.memory(id, context=context).kv_cache_bytes for id in ("deepseek-v3", "gpt-oss-20b")]
    names = "DeepSeek-V3", pc.load("gpt-oss-20b").name
    assert whole.value(ANSWER) == (
        f"{names[0]} has {round(a.total / b.total)}× the parameters of {names[1]}, "
        f"and uses {round(a.active / b.active)}× as many per token. "
        f"At {context:,} tokens, {names[0]} caches {format_bytes(caches[0])} per sequence, "
        f"and {names[1]} {format_bytes(caches[1])}."
    )
