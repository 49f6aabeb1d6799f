"""README.md and the guides are true: their commands print what they show, and their Python runs."""

from __future__ import annotations

import itertools
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

import paramcount as pc
import paramcount.zoo as zoo
from paramcount.architectures import ARCHITECTURES, split_name
from paramcount.cli.commands import COMMANDS
from paramcount.database import store
from tests.refresh_docs import (
    DOCS,
    DOCUMENTS,
    IMAGES,
    PYTHON,
    README,
    REFERENCE,
    SHOWN,
    list_animations,
    list_commands,
    list_pictures,
    prepare_directory,
    run_command,
    run_python,
    show,
)
from tests.structures import ZOO
from tests.test_package import LEVEL

AFTER = "run `python -m tests.refresh_docs` and read the diff"
TEXTS = {path: path.read_text(encoding="utf-8") for path in DOCUMENTS}
RUNS = {run: f"{path.stem}: {run[0]}" for path, text in TEXTS.items() for run in list_commands(text)}
EXAMPLES = {run: f"{path.stem}-{i}" for path, text in TEXTS.items() for i, run in enumerate(PYTHON.findall(text))}
SHOWS = [(path, match["source"], match["text"]) for path, text in TEXTS.items() for match in SHOWN.finditer(text)]
QUOTES = {(source, text): f"{path.stem}: {source}" for path, source, text in SHOWS}
PICTURES = {*list_pictures()}
MESSAGES = ("error: ", "warning: ", "note: ")
ACCURACY = DOCS / "accuracy.md"
LINK = re.compile(r"""(?:\]\(|src="|href=")([^)"#]+)""")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("examples") / "my-model"
    made.mkdir()
    prepare_directory(made)
    return made


@pytest.fixture(autouse=True)
def _in_the_folder_of_the_examples(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def fill_little(example: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query about one model fills its tables for the family of that model alone."""
    if model := re.search("WHERE model = '(.*?)'", example):
        ids = list(zoo.list_ids(zoo.load_entry(model[1]).family))
        monkeypatch.setenv("PARAMCOUNT_CACHE", "")
        monkeypatch.setattr(store, "list_ids", lambda own=True: ids)


@pytest.mark.parametrize("run", RUNS, ids=RUNS.values())
def test_a_command_prints_what_the_document_shows(
    run: tuple[str, str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A picture that the documents show is what the command draws."""
    command, expected = run
    fill_little(command, monkeypatch)
    assert run_command(command) == expected, AFTER
    for name in PICTURES.intersection(command.split()):
        assert (folder / name).read_bytes() == (IMAGES / name).read_bytes(), AFTER


@pytest.mark.parametrize("example", EXAMPLES, ids=EXAMPLES.values())
def test_a_python_example_prints_what_the_document_shows(example: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_little(example, monkeypatch)
    assert run_python(example) == example, AFTER


@pytest.mark.parametrize("quote", QUOTES, ids=QUOTES.values())
def test_a_quotation_is_its_source(quote: tuple[str, str]) -> None:
    assert show(*quote) == quote[1], AFTER


def test_every_picture_is_shown_and_has_its_command() -> None:
    screenshots = {path.name for path in IMAGES.iterdir()} - {*PICTURES, *list_animations()}
    assert screenshots == {"explore.png"}  # of what `paramcount explore` opens, taken in Chromium
    assert "images/explore.png" in TEXTS[README]
    assert {word for command, _ in RUNS for word in command.split()} >= PICTURES


def test_the_readme_is_short_and_has_examples_of_each_kind() -> None:
    text = TEXTS[README]
    assert len(text.splitlines()) < 250
    assert len(list_commands(text)) >= 8
    assert len(PYTHON.findall(text)) == 1
    assert [source.split()[:2] for path, source, _ in SHOWS if path == README] == [["paramcount", "why"]]


def test_the_readme_says_how_many_models_and_model_types_there_are() -> None:
    text = " ".join(TEXTS[README].split())
    assert f"{len(ZOO)} models from {len(zoo.list_families())} families" in text
    known = {split_name(name)[0] for name in ARCHITECTURES}
    assert f"{len(known)} model types as transformers does" in text
    # and in the guide on accuracy: model types in the mappings of transformers, and the others
    guide = " ".join(TEXTS[ACCURACY].split())
    (whole,) = re.findall(r"counts (\d+) in full", guide)
    (unmapped,) = re.findall(r"also counts (\d+) model types", guide)
    assert int(whole) + int(unmapped) == len(known)


def test_the_guide_on_commands_has_the_help_of_every_command() -> None:
    shown = [command for command, _ in list_commands(TEXTS[REFERENCE])]
    assert [name for name in COMMANDS if f"paramcount {name} --help" not in shown] == []


def test_the_guide_on_terms_has_every_word_of_a_count_and_no_other() -> None:
    table = TEXTS[DOCS / "terms.md"]
    count = pc.count("gpt2-small")
    words = "total active active_min non_embedding buffers legacy_buffers mtp checkpoint unreachable tied parts scope"
    assert {word for word in {*words.split(), *count.components} if f"`{word}`" not in table} == set()
    cells = re.findall(r"^\| (`[^|]*) \|", table.partition("## Sizes")[0], re.MULTILINE)
    defined = {word for cell in cells for word in re.findall(r"`(\w+)`", cell)}
    assert {word for word in defined if word not in count.components and not hasattr(count, word)} == set()


# A command line of an engine, continued on indented lines.
ENGINE_LINE = re.compile(r"(?:vllm serve|llama-server|sglang\.launch_server)\b.*(?:\n {2,}.*)*")


def test_every_option_in_the_documents_exists() -> None:
    """Options of pip, pytest, engines and the project's own scripts aside."""
    main_help, *helps = (run_command(f"paramcount {name} --help") for name in ("", *COMMANDS))
    known = {"--examples", *re.findall(r"--[a-z][a-z-]*", main_help + "".join(helps))}
    texts = [ENGINE_LINE.sub("", text) for text in TEXTS.values()]
    named = {option for text in texts for option in re.findall(r"(?<=[`\s])--[a-z][a-z-]*", text)}
    assert named - known == set()


def test_the_commands_that_prose_and_scripts_name_exist() -> None:
    """Those whose output is not shown. Words in capitals are placeholders."""
    for path, text in TEXTS.items():
        scripts = "\n".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL))
        lines = re.findall(r"`(paramcount [^`\n]+)`", text) + re.findall(r"^ *(paramcount .+)$", scripts, re.MULTILINE)
        for word in {line.split()[1] for line in lines}:
            names = word in COMMANDS or word in zoo.list_ids()
            assert names or word.startswith(("-", "./")) or word.isupper(), f"{path.name}: {word}"
        for module in re.findall(r"python -m (tests[\w.]+)", text):
            assert find_spec(module), f"{path.name}: {module}"


def test_the_guide_on_design_has_every_package_and_its_level() -> None:
    rows = re.findall(r"^\| (`[^|]*) \|", TEXTS[DOCS / "design.md"], re.MULTILINE)
    levels = [{LEVEL[name] for name in re.findall(r"`(\w+)`", row)} for row in rows]
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == set(LEVEL) - {"__init__", "__main__"}
    assert [(above, below) for above, below in itertools.pairwise(levels) if min(above) <= max(below)] == []


def test_the_index_lists_every_guide_and_the_readme_links_to_it() -> None:
    guides = {path.name for path in DOCS.glob("*.md")} - {"index.md"}
    assert set(re.findall(r"\(([\w-]+\.md)\)", TEXTS[DOCS / "index.md"])) == guides
    assert set(re.findall(r"\(paramcount/docs/([\w-]+\.md)\)", TEXTS[README])) == guides


def test_every_link_to_a_file_leads_somewhere() -> None:
    links = [(path, link) for path, text in TEXTS.items() for link in LINK.findall(text) if "://" not in link]
    assert len(links) > len(DOCUMENTS)
    assert [link for path, link in links if not (path.parent / link).exists()] == []


def test_no_line_of_an_example_is_wider_than_80_columns() -> None:
    for command, output in RUNS:
        for line in output.splitlines():
            is_whole = line.startswith(MESSAGES) or "--markdown" in command  # a message and a paragraph are one line
            assert len(line) <= 80 or is_whole, f"{command}: {line}"
