"""--expect: the size of a model in a test of its repository. Published figures are those of their model cards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.running import Runner

RIGHT = [  # (options, the line)
    ("total=671026404352", "DeepSeek-V3: total is 671,026,404,352"),
    ("params=671B", "DeepSeek-V3: total is 671,026,404,352: 671B, matches when rounded"),
    ("buffers=14,848", "DeepSeek-V3: buffers is 14,848"),
]
WRONG = [
    ("600B", "total is 671,026,404,352, not 600B; unexplained, 71B less than total"),
    (
        "37B",
        "total is 671,026,404,352, not 37B; 37B is active, truncated; or active minus one embedding matrix (input or "
        "LM head) 926,679,040, matches when rounded",
    ),
    ("active=671B", "active is 37,552,282,624, not 671B; 671B is total, matches when rounded"),
    (
        "684,531,386,000",
        "total is 671,026,404,352, not 684,531,386,000; 684,531,386,000 is total plus buffers 14,848 plus MTP layer "
        "13,463,426,304 (own tensors, buffers, duplicate embedding and LM head) plus FP8 scales 41,540,496, exact",
    ),
]


def ask(*figures: str) -> list[str]:
    return ["deepseek-v3", *(word for figure in figures for word in ("--expect", figure))]


@pytest.mark.parametrize(("figure", "line"), RIGHT)
def test_a_model_of_the_expected_size_is_one_line_per_count(figure: str, line: str, run: Runner) -> None:
    assert run(*ask(figure)) == (0, f"{line}\n", "")


@pytest.mark.parametrize(("figure", "text"), WRONG)
def test_another_size_is_one_line_that_says_what_the_number_counts(figure: str, text: str, run: Runner) -> None:
    done = run(*ask(figure))
    assert (done.code, done.out, done.err) == (1, f"DeepSeek-V3: {text}\n", "")


def test_explanations_that_fit_equally_well_have_a_line_each(run: Runner) -> None:
    """50,257 rows of 768 padded to 50 · 1024, to 99 · 512 and to 197 · 256."""
    done = run("gpt2-small", "--expect", "125M")
    paddings = [(n, multiple, (n * multiple - 50_257) * 768) for n, multiple in ((50, 1024), (99, 512), (197, 256))]
    assert done.out.splitlines() == [
        "GPT-2 small: total is 124,439,808, not 125M; 3 explanations fit equally well:",
        *(
            f"  total plus vocabulary padded to {n * multiple:,} {more:,} (next multiple of {multiple})"
            for n, multiple, more in paddings
        ),
    ]


def test_a_config_is_checked_with_its_changes_and_its_warnings(run: Runner, tmp_path: Path) -> None:
    """124,439,808 + a layer of 12 · 768² + 13 · 768 = 7,087,872."""
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"model_type": "gpt2", "n_layres": 13}), encoding="utf-8")
    done = run(str(config), "--set", "n_layers=13", "--expect", "131527680")
    assert (done.code, "n_layres" in done.err) == (0, True)
    assert run(str(config), "--strict", "--expect", "124M").code == 2
    figures = json.loads(run(str(config), "--expect", "1B", "--json").out)
    assert (figures["ok"], figures["expectations"][0]["computed"]) == (False, 124_439_808)
