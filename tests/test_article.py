"""The article about a model: the facts of the commands, escaped, with commands that work."""

from __future__ import annotations

import shlex
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

import paramcount as pc
from paramcount.explore.article import render_article
from paramcount.explore.article.relatives import find_predecessor
from paramcount.output.numbers import format_bytes
from paramcount.zoo import Model, load_entry
from paramcount.zoo.entries import Published, Source
from tests.running import Runner

MODELS = (
    "gpt2-small", "qwen3-8b", "deepseek-v3", "bert-base-uncased", "llama-3.2-11b-vision", "mamba-130m", "t5-small",
)  # fmt: skip
HOSTILE = "<script>alert(1)</script>\"'&\x1b[31m"


def parse(article: str) -> ET.Element:
    """The article, which is well-formed."""
    return ET.fromstring(article)  # noqa: S314 our own


def read_text(element: ET.Element) -> str:
    return " ".join("".join(element.itertext()).split())


@pytest.mark.parametrize("id", MODELS)
def test_an_article_is_well_formed_and_has_the_numbers_of_the_commands(id: str) -> None:
    article = parse(render_article(load_entry(id)))
    count, memory = pc.count(id), pc.memory(id)
    lead = article.find(".//p[@class='lead']")
    assert lead is not None and lead[0].get("data-copy") == str(count.total)
    text = read_text(article)
    for name, n in count.components.items():
        assert not n or f"{name}{n:,}" in text.replace(" ", ""), name
    for cost in memory.formats:
        assert f"{cost.dtype}{format_bytes(cost.weights_bytes)}" in text
    for at in memory.contexts:
        assert f"{at.context:,}{format_bytes(at.kv_cache_bytes)}" in text


@pytest.mark.parametrize("id", MODELS)
def test_every_command_in_an_article_works(id: str, run: Runner) -> None:
    article = parse(render_article(load_entry(id)))
    lines = {read_text(code) for code in article.iter("code") if code.get("class") == "command"}
    assert len(lines) > 3
    for line in sorted(lines):
        program, *words = shlex.split(line)
        assert program == "paramcount"
        words += ["-o", "-"] if words[0] == "map" else []
        done = run(*words)
        unexplained = words[0] == "why" and "unexplained" in done.out  # which the command reports by 1
        assert done.code == unexplained, (line, done)


def test_names_and_sources_are_escaped() -> None:
    entry = load_entry("gpt2-small").entry
    assert entry is not None
    source = Source.model_construct(id="x", kind="paper", ref=HOSTILE, accessed=entry.sources[0].accessed)
    figure = Published.model_construct(what="total", value="1B", exact=False, source="x")
    changed = entry.model_copy(
        update={
            "name": HOSTILE, "publisher": HOSTILE, "notes": (HOSTILE,), "sources": (source,), "published": (figure,),
            "hf": HOSTILE, "id": HOSTILE, "settings": {HOSTILE: HOSTILE}, "family": HOSTILE,
        }
    )  # fmt: skip
    model: Model = replace(load_entry("gpt2-small"), entry=changed, name=HOSTILE, id=HOSTILE)
    html = render_article(model)
    assert "<script" not in html
    assert "\x1b" not in html
    article = parse(html)
    assert {element.tag for element in article.iter()}.isdisjoint({"script", "img", "iframe", "style"})
    assert not [key for element in article.iter() for key in element.attrib if key.startswith("on")]
    assert all(link.get("href", "").startswith(("https://", "#model/")) for link in article.iter("a"))


@pytest.mark.parametrize(
    ("id", "predecessor"),
    [  # by the dates of the publishers' announcements
        ("deepseek-v3", "deepseek-v2"),
        ("llama-3.1-8b", "llama-3-8b"),
        ("gpt2-small", "gpt-1"),
        ("gpt-1", None),
    ],
)
def test_the_predecessor_is_the_latest_earlier_release_of_a_similar_size(id: str, predecessor: str | None) -> None:
    found = find_predecessor(load_entry(id))
    assert (found and found.id) == predecessor


def test_the_citation_has_the_lines_of_the_command(run: Runner) -> None:
    pre = parse(render_article(load_entry("gpt2-small"))).find(".//pre")
    assert pre is not None
    printed = run("cite", "gpt2-small").out
    lines = "".join(pre.itertext()).splitlines()
    assert lines[-1] == "}"
    assert printed.splitlines()[: len(lines)] == lines
