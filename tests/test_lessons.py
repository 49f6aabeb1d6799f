"""The texts that teach: one for every operation, short, with a paper whose title and identifier stand in a source."""

from __future__ import annotations

import json
import re

import paramcount as pc
from paramcount.explaining.lessons import FILE, find_lesson, list_operations, read_lessons
from paramcount.flow.operation import Move
from tests.batches import in_batches
from tests.running import Runner
from tests.structures import pick_structures

LONGEST = 200  # characters of a sentence


def test_every_operation_has_a_lesson() -> None:
    missing = [each.__name__ for each in list_operations() if find_lesson(each.__name__) is None]
    assert missing == [Move.__name__]  # which is no step, but what some steps are


def test_every_lesson_is_that_of_an_operation() -> None:
    names = {each.__name__ for each in list_operations()}
    assert {key.partition(": ")[0] for key in read_lessons()} <= names


def test_a_lesson_has_two_short_sentences_and_no_jargon_of_the_package() -> None:
    for key, lesson in read_lessons().items():
        for sentence in (lesson.what, lesson.why):
            assert 0 < len(sentence) <= LONGEST, key
            assert re.fullmatch(r"[A-Z].*\.", sentence), key
            assert not re.search(r"\b(tower|glance|visits|look at)\b", sentence), key


def test_papers_are_links_to_arxiv_with_a_title_and_a_source() -> None:
    import yaml

    papers = yaml.safe_load(FILE.read_text(encoding="utf-8"))["papers"]
    for name, paper in papers.items():
        assert set(paper) == {"arxiv", "title", "seen_in"}, name
        assert re.fullmatch(r"[0-9]{4}\.[0-9]{4,5}", paper["arxiv"]), name
    used = {lesson.url.rpartition("/")[2] for lesson in read_lessons().values() if lesson.url}
    assert used == {paper["arxiv"] for paper in papers.values()}


def test_the_identifiers_of_papers_are_those_that_the_operations_name() -> None:
    # The docstrings of operations cite these papers: (operation, identifier)
    for operation, arxiv in (
        ("Rotary", "2104.09864"), ("Alibi", "2108.12409"), ("GroupNorm", "1803.08494"), ("XIELU", "2411.13010"),
        ("Snake", "2006.08195"), ("Fourier", "2105.03824"), ("Pseudoinverse", "2102.03902"),
        ("Retention", "2307.08621"),
        ("GatedState", "2312.06635"), ("SummedState", "2006.16236"), ("ChannelState", "2311.04823"),
        ("PredictStreams", "2301.13310"), ("BlockSums", "2112.07916"), ("ClassToken", "2010.11929"),
        ("BonusState", "2404.05892"), ("StepDecay", "2405.21060"),
    ):  # fmt: skip
        (cls,) = (each for each in list_operations() if each.__name__ == operation)
        assert arxiv in (cls.__doc__ or ""), operation
        lesson = find_lesson(operation)
        assert lesson is not None
        assert lesson.url == f"https://arxiv.org/abs/{arxiv}"


@in_batches("id", pick_structures(every=10))
def test_every_step_of_a_trace_has_a_lesson(id: str) -> None:
    for step in pc.trace(id).steps:
        assert find_lesson(step.operation, step.text, step.note), step.text


def test_a_trace_explains_each_kind_of_step_once(run: Runner) -> None:
    done = run("trace", "mistral-7b-v0.1", "--explain")
    assert (done.code, done.err) == (0, "")
    text = " ".join(done.out.split())
    assert text.count("norm: Rescales each vector to a common size and multiplies it by learned weights.") == 1
    assert "Root Mean Square Layer Normalization: https://arxiv.org/abs/1910.07467" in text
    assert "mask: Sets the scores of tokens outside a sliding window to −∞." in text
    assert "Rescales each vector" not in run("trace", "mistral-7b-v0.1").out
    data = json.loads(run("trace", "gpt2-small", "--explain", "--json").out)
    assert "q, k and v" not in [lesson["step"] for lesson in data["lessons"]]  # listed as its parts
    assert {lesson["key"] for lesson in data["lessons"]} <= set(read_lessons())
