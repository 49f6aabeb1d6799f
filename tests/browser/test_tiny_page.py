"""The view in which a tiny model runs: letters in, an answer out, and what is on the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paramcount as pc
from paramcount.tiny import ALPHABET, NAMES, encode, find_folder
from tests.browser.chromium import Browser
from tests.browser.exploring import open_page, press, wait_until

pytestmark = pytest.mark.browser
ANSWER = "[...document.querySelectorAll('article')].map((one) => one.querySelector('.tokens').textContent)"


def open_run(browser: Browser, explored: Path, address: str, **options: Any) -> None:
    open_page(browser, explored, **options)
    browser.value(f"location.hash = {json.dumps(address)}")
    wait_until(browser, "document.querySelector('.tokens')")


def test_the_three_models_sort_side_by_side(browser: Browser, explored: Path) -> None:
    open_run(browser, explored, f"#run/{','.join(NAMES)}?text=dbca")
    assert browser.value(ANSWER) == ["dbca|abcd."] * 3
    assert browser.value("document.querySelectorAll('p.right').length") == 3
    assert browser.complaints() == []


@pytest.mark.parametrize("name", NAMES)
def test_the_probabilities_are_those_of_numpy(browser: Browser, explored: Path, name: str) -> None:
    open_run(browser, explored, f"#run/{name}?text=wxyzab&at=2")
    logits = pc.run(name, find_folder(name) or "", encode("wxy")).logits[-1].astype(np.float64)
    powers = np.exp(logits - logits.max())
    likeliest = np.argsort(-powers, kind="stable")[:5]
    expected = [[ALPHABET[i], f"{100 * powers[i] / powers.sum():.1f}%"] for i in likeliest]
    found = browser.value("[...document.querySelectorAll('.next tr')].map((row) => row.innerText.trim().split(/\\s+/))")
    assert found == expected


def test_letters_can_be_typed_and_others_are_left_out(browser: Browser, explored: Path) -> None:
    open_run(browser, explored, "#run/tiny-gpt2")
    browser.value(
        "(() => { const field = document.querySelector('.letters input');"
        "field.value = 'Hi 5!'; field.dispatchEvent(new Event('input', { bubbles: true })); })()"
    )
    wait_until(browser, "location.hash.includes('text=hi')")
    wait_until(browser, f"({ANSWER})[0].startsWith('hi|')")
    assert browser.value("document.querySelector('.letters input').value") == "hi"


def test_a_head_that_is_switched_off_stands_in_the_address_and_changes_the_picture(
    browser: Browser, explored: Path
) -> None:
    open_run(browser, explored, "#run/tiny-gpt2?text=dbca")
    browser.value("document.querySelectorAll('.switch input')[1].click()")
    wait_until(browser, "location.hash.includes('off=0.1')")
    wait_until(browser, "document.querySelector('.isOff')")
    assert "Switched off: head 1 of layer 0." in browser.value("document.querySelector('article').innerText")


def test_keys_step_through_tokens_and_operations(browser: Browser, explored: Path) -> None:
    open_run(browser, explored, "#run/tiny-mamba?text=dbca&at=2")
    browser.value(
        "[...document.querySelectorAll('main button')].find((one) => one.textContent.startsWith('Next token')).focus()"
    )
    press(browser, "Enter")
    wait_until(browser, "location.hash.includes('at=3')")
    browser.value("document.querySelector('.steps li button').focus()")
    press(browser, "Enter")
    wait_until(browser, "location.hash.includes('step=0')")
    browser.value("[...document.querySelectorAll('.steps nav button')][1].click()")
    wait_until(browser, "location.hash.includes('step=1')")
    browser.value("document.querySelector('.steps li button').focus()")
    press(browser, "ArrowDown")
    wait_until(browser, "location.hash.includes('step=2')")
    wait_until(browser, "document.activeElement.getAttribute('aria-pressed') === 'true'")


def test_an_unknown_model_is_named_with_those_that_there_are(browser: Browser, explored: Path) -> None:
    open_run(browser, explored, "#run/tiny-gpt3")
    assert browser.value("document.querySelector('[role=alert]').textContent") == (
        "There is no tiny model tiny-gpt3. There are tiny-gpt2, tiny-mixtral, tiny-mamba."
    )


def test_what_cannot_be_switched_off_is_named(browser: Browser, explored: Path) -> None:
    open_run(browser, explored, "#run/tiny-mamba?text=dbca&off=0.state,0.7")
    assert browser.value("document.querySelector('[role=alert]').textContent") == (
        "tiny-mamba has no 0.7 to switch off. It has 0.state, 1.state."
    )
    assert "Switched off: state of layer 0." in browser.value("document.querySelector('article').innerText")
