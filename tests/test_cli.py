"""The commands: their output, its stream, and the exit code."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from html.parser import HTMLParser
from pathlib import Path

import pytest

import paramcount as pc
import paramcount.zoo as zoo
from paramcount import __version__
from paramcount.cli.commands import COMMANDS
from paramcount.cli.docs import ALIASES, render_markdown
from tests import refresh_index
from tests.batches import in_batches
from tests.few_models import use_models
from tests.running import Runner, run_process
from tests.structures import ZOO, pick_structures
from tests.test_package import command_code, list_loaded_modules

HEADER = (
    "id,total,active,non_embedding,active_non_embedding,language_model,reference_total,embedding,other_embedding,position,qkv,output_projection,mlp,router,experts,"
    "shared_experts,mixer,norm,lm_head,other,vision,audio,projector,buffers,mtp,bytes_fp32,bytes_bf16,n_layers,d_model,n_heads,n_kv_heads,d_head,d_ff,"
    "n_routed_experts,n_active_experts,n_shared_experts,d_expert,d_shared_expert,vocab_size,context_length,tied,name,family,publisher,released,hf,architecture,verified,"
    "estimate,claimed_total"
)


def test_the_modules_of_the_component_other_are_named(run: Runner) -> None:
    assert "\nother: sinks\n" in run("gpt-oss-20b").out
    assert "\nother: cross_attn_attn_gate and cross_attn_mlp_gate\n" in run("llama-3.2-11b-vision").out
    assert "other" not in run("llama-3.1-8b").out


def test_an_unverified_entry_is_marked(run: Runner) -> None:
    assert "unverified" in run("qwen-1.8b").out.splitlines()[0]
    assert run("verify", "qwen-1.8b").code == 0


@pytest.mark.parametrize("id", pick_structures(ZOO, every=10))
@in_batches("width", [80, 120], size=50)
def test_every_model_is_readable_within_the_width(
    run: Runner, id: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    done = run("show", id)
    assert (done.code, done.err) == (0, "")
    assert max(map(len, done.out.splitlines())) <= width


def test_csv_has_the_golden_header_and_exact_integers(run: Runner) -> None:
    out = run("compare", "gpt", "deepseek", "--csv").out
    assert out.splitlines()[0] == HEADER
    texts = {"id", "name", "family", "publisher", "released", "hf", "architecture", "claimed_total"}
    flags = {"tied", "verified", "estimate"}
    for row in csv.DictReader(io.StringIO(out)):
        for name, value in row.items():
            if name in flags:
                assert value in ("true", "false")
            elif name not in texts and (name, value) != ("context_length", ""):
                assert value.isdigit()
    assert "gpt-4" not in out


def test_an_estimate_in_csv_has_no_number_but_its_claims(run: Runner) -> None:
    rows = {
        row["id"]: row
        for row in csv.DictReader(io.StringIO(run("compare", "gpt-4", "gpt2-small", "--estimates", "--csv").out))
    }
    assert (rows["gpt-4"]["total"], rows["gpt-4"]["estimate"], rows["gpt2-small"]["estimate"]) == ("", "true", "false")
    assert rows["gpt-4"]["claimed_total"].startswith("1.8T (")


def test_an_estimate_in_a_table_is_marked(run: Runner) -> None:
    out = run("compare", "gpt", "--estimates").out
    assert "~1.8T" in out and "~ third-party estimate, not a count" in out
    assert "third-party estimates; its sizes are unpublished" in run("gpt-4", "--estimates").out
    assert run("gpt-4").code == 2


def test_several_names_a_family_and_a_wildcard_are_compared(run: Runner) -> None:
    assert run("gpt2-small", "gpt2-xl").out == run("compare", "gpt2-small", "gpt2-xl").out
    assert run("mistral", "--csv").out == run("compare", "mistral", "--csv").out
    assert run("gpt2-*", "--sort", "-total", "--csv").out == run("compare", "gpt2-*", "--sort", "-total", "--csv").out


def test_one_model_with_an_option_of_compare_is_compared(run: Runner) -> None:
    for line in (
        ["gpt2-small", "--columns", "total"],
        ["--columns=total", "gpt2-small"],
        ["gpt2-small", "--transpose"],
    ):
        assert run(*line) == run("compare", *line)
        assert run(*line).code == 0


def test_transposed_models_are_columns(run: Runner) -> None:
    lines = run("compare", "gpt2-small", "llama-3.1-8b", "--transpose").out.splitlines()
    assert lines[0].split() == ["gpt2-small", "llama-3.1-8b"]
    assert lines[2].split() == ["total", "124,439,808", "8,030,261,248"]
    csv_lines = run(
        "compare", "gpt2-small", "llama-3.1-8b", "--transpose", "--csv", "--columns", "total"
    ).out.splitlines()
    assert csv_lines == ["column,gpt2-small,llama-3.1-8b", "total,124439808,8030261248"]


class Cells(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.texts.append(data.strip())


def test_every_format_has_the_same_total(run: Runner) -> None:
    for command in (
        ["show", "llama-3.1-8b"],
        ["compare", "llama-3.1-8b", "gpt2-small"],
        ["list", "llama"],
        ["verify", "llama-3.1-8b"],
    ):
        for format in ("table", "markdown", "latex"):
            assert "8,030,261,248" in run(*command, "--format", format).out
        if command[0] != "show":  # whose rows sum to it
            assert "8030261248" in run(*command, "--csv").out
        assert "8030261248" in json.dumps(json.loads(run(*command, "--json").out))
        parser = Cells()
        parser.feed(run(*command, "--format", "html").out)
        assert any("8,030,261,248" in text for text in parser.texts)


def test_json_of_a_verified_checkpoint_has_bits_per_value_as_a_number(run: Runner, tmp_path: Path) -> None:
    saved = json.loads((Path(__file__).parent / "data" / "headers" / "llama-GPTQ.json").read_text(encoding="utf-8"))
    (tmp_path / "config.json").write_text(json.dumps(saved["config"]), encoding="utf-8")
    (tmp_path / "header.json").write_text(json.dumps(saved["header"]), encoding="utf-8")
    totals = json.loads(run("verify", str(tmp_path), str(tmp_path / "header.json"), "--json").out)["totals"]
    assert totals["bits"] == round(8 * totals["bytes"] / totals["values"], 4)


def test_json_of_a_comparison_has_a_schema_version_and_plain_values(run: Runner) -> None:
    data = json.loads(run("compare", "gpt2-small", "deepseek-v3", "--json").out)
    assert data["schema_version"] == 2
    assert [model["total"] for model in data["models"]] == [124439808, 671026404352]
    assert ",".join(data["models"][0]) == HEADER


def test_markup_in_names_is_escaped_in_markdown_and_html(run: Runner, tmp_path: Path) -> None:
    source = (zoo.CONFIGS / "gpt/gpt2-small.yaml").read_text(encoding="utf-8")
    path = tmp_path / "evil.yaml"
    path.write_text(
        source.replace("name: GPT-2 small", 'name: "<script>alert(1)</script>|[x](javascript:y)"'), encoding="utf-8"
    )
    for format in ("markdown", "html"):
        out = run("show", str(path), "--format", format).out
        assert "<script" not in out
        if format == "markdown":
            assert r"\[x" in out  # an escaped bracket begins no link
    assert "\x1b" not in run("show", str(path)).out


def test_verify_exits_with_1_if_a_published_figure_does_not_match(run: Runner) -> None:
    done = run("verify", "qwen2.5-32b")
    assert (done.code, done.err) == (1, "")
    assert "differs" in done.out


def test_list_names_every_model_once(run: Runner) -> None:
    rows = list(csv.DictReader(io.StringIO(run("list", "--csv").out)))
    assert sorted(row["id"] for row in rows) == sorted(ZOO)


@pytest.mark.usefixtures("own_zoo")
@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_help_ends_with_an_example_that_runs(
    run: Runner, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if command == "export":  # a family; exhaustive tests fill all tables for every model
        models = [zoo.load_entry(id) for id in zoo.list_ids("gpt")]
        use_models(monkeypatch, models)
        monkeypatch.setenv("PARAMCOUNT_CACHE", "")
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}', encoding="utf-8")
    (tmp_path / "claims.csv").write_text("model,params\ngpt2-small,124M\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    run("add", "config.json", "--id", "entry-to-check", "--into", "configs/")
    done = run(command, "--help")
    example = done.out.strip().splitlines()[-1].strip()
    assert example.startswith("Example: paramcount ")
    assert run(*shlex.split(example)[2:]).code == 0


def test_help_lists_every_command_and_version_is_that_of_the_package(run: Runner) -> None:
    out = run("--help").out
    assert all(command in out for command in COMMANDS)
    assert run("--version").out == f"paramcount {__version__}\n"


def complete_words(shell: str, *words: str) -> str:
    """The completions of the last of these words. fish passes the word itself, other shells its index."""
    place = words[-1] if shell == "fish" else str(len(words))
    line = {"COMP_WORDS": " ".join(("paramcount", *words)), "COMP_CWORD": place}
    return run_process(_PARAMCOUNT_COMPLETE=f"{shell}_complete", **line).stdout.decode()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion_offers_commands_families_and_models(shell: str) -> None:
    first = complete_words(shell, "g")
    assert "gpt2-small" in first and "gpt-oss" in first
    assert "verify" in complete_words(shell, "ver")
    second = complete_words(shell, "compare", "deepseek-v")
    assert "deepseek-v3" in second and "gpt2" not in second
    assert b"_PARAMCOUNT_COMPLETE" in run_process(_PARAMCOUNT_COMPLETE=f"{shell}_source").stdout


@pytest.mark.parametrize(
    "words",
    [
        ["./mod"],
        ["verify", "./mod"],
        ["verify", "gpt2-small", "mod"],
        ["why", "gpt2-small", "./mod"],
        ["audit", "mod"],
        ["show", "modl"],
    ],
)
def test_shell_completion_falls_back_to_file_names(words: list[str]) -> None:
    assert complete_words("bash", *words).split() == [f"file,{words[-1]}"]


def test_a_pipe_gets_the_same_text_as_a_terminal_of_80_columns(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run("gpt2-small").out
    monkeypatch.delenv("COLUMNS")
    assert run_process("gpt2-small").stdout.decode() == expected


# ---- guides


def test_docs_lists_the_guides_and_shows_each(run: Runner) -> None:
    titles = dict(line.split(maxsplit=1) for line in run("docs").out.splitlines())
    guides = (Path(pc.__file__).parent / "docs").glob("*.md")
    assert list(titles) == sorted(path.stem for path in guides if path.stem != "index")
    for topic, title in titles.items():
        done = run("docs", topic)
        assert (done.code, done.err) == (0, "")
        assert done.out.splitlines()[0] == title
        assert re.findall(r"```|<!--|\]\(|\x1b|\*\*\w[^*]*\*\*", done.out) == []


def test_a_guide_is_found_by_what_it_explains(run: Runner) -> None:
    for name, topic in ALIASES.items():
        assert run("docs", name).out == run("docs", topic).out != ""
    assert run("docs", "mla").out.startswith("Attention")


def test_a_guide_is_rendered_as_plain_text_that_fits_the_width() -> None:
    text = (
        "# Title\n\nA **bold** word and\na [link](page.md) to [a site](https://example.org).\n\n"
        "```\ncode  `x`\n```\n\n- item\n\n| a | b |\n|---|---|\n| 1 | x\\|y |\n"
    )
    assert list(render_markdown(text, 40)) == [
        "Title",
        "",
        "A bold word and a link to a site",
        "(https://example.org).",
        "",
        "    code  `x`",
        "",
        "- item",
        "",
        "a  b",
        "─  ───",
        "1  x|y",
    ]


# ---- architectures


def test_the_index_has_what_the_classes_and_modules_state() -> None:
    for path, content in refresh_index.list_files().items():
        assert path.read_text(encoding="utf-8") == content, f"{path.name} is old: run python -m tests.refresh_index"


def test_the_keys_of_an_architecture_have_the_defaults_of_its_config_class(run: Runner) -> None:
    """LlamaConfig and LlamaRMSNorm of transformers 5.23."""
    rows = {row["name"]: row for row in json.loads(run("architectures", "llama", "--keys", "--json").out)["keys"]}
    assert rows["d_ff"] == {"name": "d_ff", "keys": ["intermediate_size"], "missing": "default", "default": 11008}
    assert (rows["d_head"]["missing"], rows["norm_eps"]["default"]) == ("computed", 1e-6)
    assert run("architectures", "--keys").err.startswith("error: --keys requires a model type")
    assert run("architectures", "lama").err.startswith("error: unknown architecture lama ")


def test_the_table_of_architectures_imports_none_of_them() -> None:
    loaded = list_loaded_modules(command_code(["architectures"]))
    assert [name for name in loaded if name.startswith("paramcount.architectures.")] == []


def test_a_fused_tensor_is_shown_under_the_component_of_all_its_parts(run: Runner) -> None:
    first, *lines = run("gpt2-small", "--by", "tensor").out.splitlines()
    assert first == "GPT-2 small   124,439,808 parameters"
    assert [line.split()[-1] for line in lines if line.startswith("h.{layer}.attn.c_attn.")][-2:] == ["qkv", "qkv"]
    assert ",qkv.q," in run("gpt2-small", "--by", "tensor", "--csv").out  # where the column stays as it was
