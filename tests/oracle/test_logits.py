"""The declared flow computes the reference's logits, for whole texts and token by token."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the oracle tests need torch: pip install torch==2.13.0")
pytest.importorskip("transformers", reason="the oracle tests need transformers: pip install transformers==5.23.0")

from tests.oracle import images, logits, passes

pytestmark = pytest.mark.oracle
RUNNING = (Path(__file__).parents[1] / "data" / "running.txt").read_text(encoding="utf-8").splitlines()

READS_TEXT_ALONE = sorted(name for name in images.CONFIGS if passes.find_class(name) not in images.ALWAYS_SEE)


@pytest.mark.parametrize("name", RUNNING)
def test_the_flow_computes_the_logits_of_the_reference(name: str) -> None:
    difference = logits.compare(name)
    assert difference.whole < logits.TOLERANCE
    assert difference.decoded < logits.TOLERANCE


@pytest.mark.parametrize("name", READS_TEXT_ALONE)
def test_a_text_without_an_image_has_the_logits_of_the_reference(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "IMAGES", {})
    difference = logits.compare(name)
    assert difference.whole < logits.TOLERANCE
    assert difference.decoded < logits.TOLERANCE


@pytest.mark.parametrize(
    "name", ["bert.ForSequenceClassification", "bert.ForNextSentencePrediction", "xmod.ForSequenceClassification",
             "roberta.ForSequenceClassification", "llama.ForSequenceClassification", "gpt2.ForSequenceClassification",
             "modernbert.ForSequenceClassification", "eurobert.ForSequenceClassification"]
)  # fmt: skip
def test_heads_of_other_tasks_compute_the_scores_of_the_reference(name: str) -> None:
    assert logits.compare_scores(*name.split(".")) < logits.TOLERANCE
