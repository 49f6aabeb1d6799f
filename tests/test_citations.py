"""BibTeX of models and of paramcount, and the links of their sources."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from paramcount.errors import ParamcountError
from paramcount.zoo import count_model, load_all, load_entry
from paramcount.zoo.checks import run_checks
from paramcount.zoo.citations import Citation, cite_model, cite_paramcount, make_key, render_bibtex
from paramcount.zoo.entries import parse_entry
from paramcount.zoo.links import find_link, link_source
from paramcount.zoo.model import make_model
from tests.running import Runner

ROOT = Path(__file__).parent.parent
KEY = re.compile(r"[A-Za-z0-9._:+-]+")
HOSTILE = 'a}{b \\end{document} % $x_1^2 & #1 "q" ~ @misc{z, \\input{/etc/passwd} it\'s 100 %'
ENTRY = {
    "id": "hostile-1b",
    "name": HOSTILE,
    "publisher": "Smith & Sons {Labs}",
    "architecture": "gpt2",
    "config": yaml.safe_load((ROOT / "configs/gpt/gpt2-small.yaml").read_text(encoding="utf-8"))["config"],
    "sources": [{"id": "a b{c", "kind": "secondary", "ref": f"https://x.org/a%7D{HOSTILE}", "accessed": "2026-01-02"}],
    "published": [{"what": "total", "value": "124M", "exact": False, "source": "a b{c"}],
}
# Sources that no address says where to find. The list may only shrink.
WITHOUT_LINK = 20


@pytest.mark.parametrize(
    ("ref", "url"),
    [
        ("github openai/gpt-2@242aac8d54b7:model_card.md", "https://github.com/openai/gpt-2/blob/242aac8d54b7/model_card.md"),
        ("a/B: github x/y.z@0123abc:docs/a.md: \"text\"", "https://github.com/x/y.z/blob/0123abc/docs/a.md"),
        ("github x/y@23807ced5162 of 2025-01-20, \"Release\"", "https://github.com/x/y/commit/23807ced5162"),
        ("github x/y:README.md (a copy)", "https://github.com/x/y/blob/HEAD/README.md"),
        ("huggingface.co/a/B/blob/refs%2Fpr%2F1/config.json (x)", "https://huggingface.co/a/B/blob/refs%2Fpr%2F1/config.json"),
        ("HF page a/B@53c021a:c/config.json (copy)", "https://huggingface.co/a/B/blob/53c021a/c/config.json"),
        ("HF commit Qwen/QwQ-32B@7d911991f94d, README.md", "https://huggingface.co/Qwen/QwQ-32B/commit/7d911991f94d"),
        ("HF safetensors total of a/B via llmfit", "https://huggingface.co/a/B"),
        ("arXiv:2005.14165 Table 2.1", "https://arxiv.org/abs/2005.14165"),
        ("keras-hub 0.32.0 (wheel on PyPI): keras_hub/x.py", "https://pypi.org/project/keras-hub/0.32.0/"),
        ("transformers 5.23.0 XGLMConfig defaults", "https://pypi.org/project/transformers/5.23.0/"),
        ("php.cn, \"GPT-4\", php.cn/faq/579106.html", "https://php.cn/faq/579106.html"),
        ("https://x.org/a?b=1, c", "https://x.org/a?b=1"),
        ("config.json and model.py of someone", None),
        ("javascript:alert(1) data:text/html,x file:///etc/passwd", None),
    ],
)  # fmt: skip
def test_a_source_is_linked_as_it_is_cited(ref: str, url: str | None) -> None:
    assert link_source(ref) == url


def test_every_source_of_the_zoo_has_a_link_or_is_one_of_few() -> None:
    refs = [source.ref for entry in load_all() for source in entry.sources]
    links = [find_link(ref) for ref in refs]
    assert len(refs) > 1600
    assert sum(link is None for link in links) <= WITHOUT_LINK
    for link in links:
        if link is not None:
            parts = urlsplit(link.url)
            assert parts.scheme == "https" and "." in parts.netloc and link.url.isascii(), link
            assert not set(link.url) & set(" \"'<>{}\\^`|"), link
            assert link.owner and link.commit in link.url, link


def parse_bibtex(text: str) -> dict[str, dict[str, str]]:
    """{key: fields}, read by counting braces as BibTeX does, which knows no escaped ones."""
    entries: dict[str, dict[str, str]] = {}
    for body in re.split(r"^@misc\{", text, flags=re.MULTILINE)[1:]:
        key, _, rest = body.partition(",\n")
        assert KEY.fullmatch(key) and key not in entries
        assert rest.rstrip().endswith("}")
        fields: dict[str, str] = {}
        for line in rest.rstrip()[:-1].splitlines():
            name, value = re.fullmatch(r"  ([a-z]+) = (.*),", line).groups()  # type: ignore[union-attr]
            depths = [value[: i + 1].count("{") - value[: i + 1].count("}") for i in range(len(value))]
            assert depths[-1] == 0, line
            if name != "month":
                assert min(depths[:-1]) > 0, line
            fields[name] = value
        entries[key] = fields
    return entries


def test_a_model_and_each_of_its_sources_is_an_entry_with_its_figures(run: Runner) -> None:
    entries = parse_bibtex(run("cite", "deepseek-v3").out)
    assert entries["deepseek-v3"]["url"] == "{https://huggingface.co/deepseek-ai/DeepSeek-V3}"
    assert entries["deepseek-v3"]["year"] == "{2024}" and entries["deepseek-v3"]["month"] == "dec"
    assert "671,026,404,352 parameters, 37,552,282,624 of them active" in entries["deepseek-v3"]["note"]
    card = entries["deepseek-v3:card"]
    assert card["note"].startswith(
        "{states 671B total, 37B active, 685B values in the released files; github deepseek-ai"
    )
    assert card["url"] == "{https://github.com/deepseek-ai/DeepSeek-V3/blob/06dbd30b096f/README.md}"
    assert card["urldate"] == "{2026-11-21}" and card["author"] == "{{deepseek-ai}}"
    assert list(entries)[-1] == "paramcount"


def test_a_bibliography_of_all_models_has_unique_keys_and_is_latex(tmp_path: Path, run: Runner) -> None:
    walker = pytest.importorskip("pylatexenc.latexwalker")
    path = tmp_path / "refs.bib"
    run("cite", "gpt", "qwen", "llama", "--estimates", "-o", str(path))
    entries = parse_bibtex(path.read_text(encoding="utf-8"))
    assert len(entries) > 300
    for fields in entries.values():
        for name in {"title", "author", "note"} & set(fields):
            walker.LatexWalker(fields[name], tolerant_parsing=False).get_latex_nodes()


def test_a_hostile_entry_cannot_leave_its_field() -> None:
    walker = pytest.importorskip("pylatexenc.latexwalker")
    citations = cite_model(make_model(parse_entry(ENTRY)))
    entries = parse_bibtex(render_bibtex(citations))
    assert len(entries) == 2
    macros = set()
    for fields in entries.values():
        for name in {"title", "author", "note"} & set(fields):
            walker.LatexWalker(fields[name], tolerant_parsing=False).get_latex_nodes()
            macros |= set(re.findall(r"\\([a-z]+)", fields[name]))
    assert macros <= {"textbackslash", "textbraceleft", "textbraceright", "textasciitilde", "textasciicircum"}
    assert entries[citations[1].key]["url"] == "{https://x.org/a%7Da}"


def test_keys_of_different_names_differ() -> None:
    names = ["a{b", "a}b", "a-b", "a b", "é", "e", "通", "义", "-"]
    keys = [make_key(name) for name in names]
    assert len(set(keys)) == len(names)
    assert all(KEY.fullmatch(key) for key in keys)


def test_without_a_model_it_cites_paramcount_as_its_citation_file_does(run: Runner) -> None:
    cff = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    citation: Citation = cite_paramcount()
    entries = parse_bibtex(run("cite").out)
    assert entries == {"paramcount": parse_bibtex(render_bibtex([citation]))["paramcount"]}
    fields = citation.fields
    assert (fields["title"], fields["author"], fields["version"]) == (
        cff["title"],
        cff["authors"][0]["name"],
        cff["version"],
    )
    assert (fields["year"], fields["month"]) == (f"{cff['date-released']:%Y}", f"{cff['date-released']:%b}".lower())


def test_a_config_file_has_no_sources(run: Runner, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "gpt2"}', encoding="utf-8")
    found = run("cite", str(path))
    assert found.code == 2 and "has no sources to cite" in found.err


@pytest.mark.parametrize(("model", "wrong", "right"), [("gpt2-small", "117M", "124M"), ("gpt2-medium", "345M", "355M")])
def test_a_figure_that_its_publisher_corrected_is_a_published_error(
    model: str, wrong: str, right: str, run: Runner
) -> None:
    found = run("why", model, wrong)
    assert found.code == 0
    assert f"{wrong}: a published error, corrected by its publisher" in found.out
    text = " ".join(found.out.split())
    assert "corrected in github openai/gpt-2@f35fa1d920e9:README.md (2019-08-20)" in text
    assert right in text
    entry = load_entry(model)
    checks = run_checks(entry, count_model(entry))
    assert [check.text for check in checks if check.verdict == "corrected"] == [wrong]
    assert [check.text for check in checks if check.ok is False] == []


def test_a_correction_cites_a_source_of_the_entry() -> None:
    published = [ENTRY["published"][0] | {"corrected": "nowhere"}]
    with pytest.raises(ParamcountError, match=r"published\.0\.corrected = 'nowhere'"):
        parse_entry(ENTRY | {"published": published})
