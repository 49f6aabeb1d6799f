"""`paramcount scan`: every config below a directory; an invalid config does not stop the scan."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import paramcount as pc
import paramcount.zoo as zoo
from paramcount.architectures import split_name
from paramcount.loading import load_path
from paramcount.views.scan import scan_folder
from tests.refusing import Refuse
from tests.running import Run, Runner
from tests.test_config_files import TOTAL, write_cache, write_config

# GPT-2 small as released: 124,439,808 parameters
GPT2 = {"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12}


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    yield
    subprocess.run(["rm", "-rf", *map(str, tmp_path.iterdir())], check=True)  # noqa: S607 # deeper than pytest's clean-up can go


def test_every_config_below_a_directory_is_a_row(run: Runner) -> None:
    write_config("store/Qwen3-8B/config.json")
    write_config("store/deep/er/gpt2/config.json", GPT2)
    write_cache("a/b", "aaa", home="store")
    done = run("scan", "store", "--csv")
    assert (done.code, done.err) == (0, "")
    rows = {row["id"]: int(row["total"]) for row in csv.DictReader(io.StringIO(done.out))}
    assert rows == {"Qwen3-8B": TOTAL, "deep/er/gpt2": 124_439_808, "hub/models--a--b/snapshots/aaa": TOTAL}


def test_configs_that_cannot_be_counted_are_listed_and_the_exit_code_is_1(run: Runner) -> None:
    write_config("s/good/config.json", GPT2)
    write_config("s/broken/config.json", "{")
    write_config("s/vae/config.json", {"_class_name": "AutoencoderKL", "_diffusers_version": "0.30"})
    Path("s/gone").mkdir()
    Path("s/gone/config.json").symlink_to("nowhere")
    done = run("scan", "s")
    assert done.code == 1
    assert done.out.splitlines()[2].split() == ["good", "124,439,808", "124,439,808", "249", "MB", "gpt2"]
    assert done.err.splitlines() == [
        "error: broken/config.json: line 1 column 2: invalid JSON: unexpected end of file (expected a JSON object)",
        "error: gone/config.json is a broken link",
        "error: vae/config.json is a diffusion pipeline's config (expected a model's config.json)",
        "error: 3 of 4 configs cannot be counted",
    ]


def test_columns_and_sort_work_as_in_a_comparison(run: Runner) -> None:
    write_config("s/a/config.json", GPT2)
    write_config("s/b/config.json")
    done = run("scan", "s", "--columns", "total,n_layers", "--sort", "-total", "--csv")
    assert done == Run(0, f"id,total,n_layers\nb,{TOTAL},36\na,124439808,12\n", "")
    assert json.loads(run("scan", "s", "--json").out)["models"][0]["total"] == 124_439_808


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["nowhere"], "nowhere is not a directory (expected a directory with config.json files below it)"),
        ([""], "the name of the directory is empty (expected a directory with config.json files below it)"),
        (
            ["empty"],
            "empty contains no config.json, and neither do its subdirectories (expected a directory with models, for "
            "example a Hugging Face cache)",
        ),
        (["s", "--columns", "totl"], "unknown column 'totl' (expected "),
    ],
)
def test_a_directory_that_cannot_be_scanned_is_an_error(args: list[str], message: str, refuse: Refuse) -> None:
    Path("empty").mkdir()
    write_config("s/a/config.json", GPT2)
    assert refuse("scan", *args).startswith(message)


def test_circular_links_and_unreadable_files_do_not_stop_a_scan() -> None:
    write_config("s/a/config.json")
    Path("s/a/again").symlink_to("..")
    os.mkfifo("s/pipe")
    Path("s/dir").mkdir()
    Path("s/dir/config.json").mkdir()
    found = scan_folder(Path("s"), load_path)
    assert [row["id"] for row in found.rows] == ["a"]
    assert (found.errors, found.unreadable) == ([], [])
    assert found.skipped == [("a/again", "is a symbolic link to a directory")]


def test_skipped_directories_are_listed_up_to_twenty(run: Runner) -> None:
    write_config("s/a/config.json", GPT2)
    write_config("s/refs/config.json", GPT2)
    write_config("s/blobs/config.json", GPT2)
    write_config("s/a/.git/config.json", GPT2)
    Path("s/.no_exist").mkdir()
    for i in range(30):
        Path(f"s/link{i:02}").symlink_to("a")
    done = run("scan", "s", "--csv", "--columns", "total")
    assert (done.code, done.out) == (0, "id,total\na,124439808\nblobs,124439808\nrefs,124439808\n")
    lines = done.err.splitlines()
    assert lines[:2] == [
        "note: .no_exist: skipped, because it contains the Hugging Face cache's records of missing files",
        "note: a/.git: skipped, because it contains Git's own files",
    ]
    assert lines[2:-1] == [
        f"note: link{i:02}: skipped, because it is a symbolic link to a directory" for i in range(18)
    ]
    assert lines[-1] == "note: 12 more; --json lists all of them"
    assert len(json.loads(run("scan", "s", "--json").out)["skipped"]) == 32


def test_a_thousand_nested_directories_are_scanned() -> None:
    here = Path.cwd()
    try:
        for _ in range(1000):
            Path("d").mkdir()
            os.chdir("d")
        write_config("config.json", GPT2)
    finally:
        os.chdir(here)
    found = scan_folder(Path("d"), load_path)
    assert [row["total"] for row in found.rows] == [124_439_808]
    assert (found.errors, found.unreadable) == ([], [])


def test_a_path_that_is_too_long_is_listed_and_the_exit_code_is_1(run: Runner) -> None:
    write_config("s/a/config.json", GPT2)
    here = Path.cwd()
    try:
        os.chdir("s")
        for _ in range(25):
            Path("d" * 200).mkdir()
            os.chdir("d" * 200)
        write_config("config.json", GPT2)
    finally:
        os.chdir(here)
    done = run("scan", "s", "--columns", "total", "--csv")
    assert (done.code, done.out) == (1, "id,total\na,124439808\n")
    path, limit = done.err.splitlines()
    assert path.startswith("error: ddd")
    assert path.endswith(" cannot be read: File name too long")
    assert limit == "error: 1 directory cannot be read"


@pytest.fixture
def run_as_nobody() -> Iterator[Callable[..., Run]]:
    """Run the command line as a user who may only read world-readable files."""
    if os.geteuid() != 0:
        pytest.skip("needs root to change the user")
    home = Path(tempfile.mkdtemp())
    home.chmod(0o755)

    def run_command(*args: str, code: str = "from paramcount.cli import main; main()") -> Run:
        # Run once as root first: nobody may not be allowed to read the modules that the command imports.
        program = f"""
import contextlib, io, os
os.chdir({str(home)!r})
output = io.StringIO()
with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output), contextlib.suppress(SystemExit):
    exec({code!r})
os.setgid(65534)
os.setuid(65534)
exec({code!r})
"""
        command = [sys.executable, "-c", program, *args]
        environment = {**os.environ, "PYTHONPATH": str(Path(pc.__file__).parents[1]), "HOME": str(home)}
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)
        return Run(done.returncode, done.stdout, done.stderr)

    here = Path.cwd()
    os.chdir(home)
    yield run_command
    os.chdir(here)
    for path in home.rglob("*"):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)
    shutil.rmtree(home)


def test_unreadable_directories_are_listed_and_do_not_stop_a_scan(run_as_nobody: Callable[..., Run]) -> None:
    for name in ("a", "closed", "listed", "open"):
        write_config(f"s/{name}/config.json", GPT2)
    Path("s/closed").chmod(0o700)
    Path("s/listed").chmod(0o744)
    done = run_as_nobody("scan", "s", "--columns", "total", "--csv")
    assert (done.code, done.out) == (1, "id,total\na,124439808\nopen,124439808\n")
    assert done.err.splitlines() == [
        "error: listed/config.json cannot be read: Permission denied",
        "error: 1 of 3 configs cannot be counted",
        "error: closed cannot be read: Permission denied",
        "error: 1 directory cannot be read",
    ]
    Path("s").chmod(0o700)
    message = "error: s cannot be read: Permission denied (expected a directory with config.json files below it)\n"
    assert run_as_nobody("scan", "s") == Run(2, "", message)


@pytest.mark.parametrize("mode", [0o700, 0o711, 0o744])
def test_a_model_in_an_unreadable_directory_is_an_error_of_one_line(
    mode: int, run_as_nobody: Callable[..., Run]
) -> None:
    write_config("s/a/config.json", GPT2)
    Path("s").chmod(mode)
    done = run_as_nobody("./s")
    assert done == Run(2, "", "error: s cannot be read: Permission denied\n")
    count = (
        "import paramcount as pc, pathlib\n"
        "try: pc.count(pathlib.Path('s'))\n"
        "except pc.ParamcountError as error: print(error)"
    )
    assert run_as_nobody(code=count) == Run(0, "s cannot be read: Permission denied\n", "")


def test_the_error_says_that_nothing_is_readable(run_as_nobody: Callable[..., Run]) -> None:
    write_config("s/a/config.json", GPT2)
    Path("s/a").chmod(0o700)
    done = run_as_nobody("scan", "s")
    expected = (
        "error: s contains no readable config.json; 1 directory cannot be read, for example a "
        "(expected a directory with models, for example a Hugging Face cache)\n"
    )
    assert done == Run(2, "", expected)


def test_hostile_directory_names_are_escaped() -> None:
    write_config("s/\x1b[31m/config.json")
    write_config("s/\u202e/config.json", "[]")
    found = scan_folder(Path("s"), load_path)
    assert [row["id"] for row in found.rows] == [r"\x1b[31m"]
    assert found.errors == [(r"\u202e", "contains [] (expected a JSON object)")]


def test_the_id_of_a_config_in_the_directory_itself_is_a_dot() -> None:
    write_config("s/config.json")
    assert [row["id"] for row in scan_folder(Path("s"), load_path).rows] == ["."]


# ---- breakdowns of one model


def test_identical_layers_share_a_row(run: Runner) -> None:
    rows = json.loads(run("deepseek-v3", "--by", "layer", "--json").out)["by_layer"]
    assert [(row["where"], row["kind"], row["layers"], row["each"]) for row in rows] == [
        ("embedding", "", 1, 926_679_040),
        ("model.layers 0–2", "dense", 3, 583_483_392),
        ("model.layers 3–60", "moe", 58, 11_507_286_016),
        ("norm", "", 1, 7_168),
        ("lm_head", "", 1, 926_679_040),
    ]
    assert sum(row["parameters"] for row in rows) == 671_026_404_352


@pytest.mark.parametrize(
    "id",
    ["gpt2-small", "llama-3.1-8b", "gpt-oss-20b", "deepseek-v3", "llama-3.2-11b-vision", "qwen1.5-moe-a2.7b", "gpt-1"],
)
@pytest.mark.parametrize("by", ["layer", "part", "tensor"])
def test_a_breakdown_sums_to_the_total(run: Runner, id: str, by: str) -> None:
    rows = json.loads(run(id, "--by", by, "--json").out)[f"by_{by}"]
    assert sum(row["parameters"] for row in rows if row.get("part") != "mtp") == pc.count(id).total
    if by == "part":
        assert sum(row["active"] for row in rows) == pc.count(id).active
    assert run(id, "--by", by).code == 0


# ---- architectures


def test_architectures_lists_every_model_type_with_its_reference_class(run: Runner) -> None:
    from paramcount.architectures import ARCHITECTURES, architecture

    rows = json.loads(run("architectures", "--json").out)["architectures"]
    assert {name for row in rows for name in row["model_types"]} >= {split_name(name)[0] for name in ARCHITECTURES}
    for row in rows:
        if row["architecture"] in ARCHITECTURES:
            assert row["reference"] == architecture(row["architecture"]).reference
            assert row["about"]
    assert run("architectures").code == 0


def test_warnings_of_configs_are_listed_and_become_errors_with_strict(run: Runner) -> None:
    write_config("s/good/config.json", GPT2)
    write_config("s/odd/config.json", GPT2 | {"n_embed": 32})
    warning = "ignored n_embed (looks like a size, but GPT2LMHeadModel does not use it)"
    done = run("scan", "s")
    assert (done.code, done.err) == (0, f"warning: odd/config.json: {warning}\n")
    done = run("scan", "s", "--json")
    assert (done.code, done.err, json.loads(done.out)["warnings"]) == (0, "", [f"odd/config.json: {warning}"])
    done = run("scan", "s", "--strict", "--csv", "--columns", "total")
    assert (done.code, done.out) == (1, "id,total\ngood,124439808\n")
    assert done.err.splitlines()[0] == f"error: odd/config.json: strict: {warning}"


def test_a_problem_in_the_directory_itself_names_its_config(run: Runner) -> None:
    write_config("config.json", {"model_type": "gpt2", "n_layer": "12"})
    write_config("a/config.json", GPT2)
    done = run("scan", ".", "--columns", "total", "--csv")
    assert (done.code, done.out) == (1, "id,total\na,124439808\n")
    assert done.err.splitlines() == [
        "error: config.json: n_layer = '12' (expected a non-negative integer)",
        "error: 1 of 2 configs cannot be counted",
    ]


def write_mirror() -> None:
    """Forty configs in one directory each: every third is broken, every third of an unknown type."""
    for i in range(40):
        text = GPT2 | {"n_layer": i + 1}
        content = {0: GPT2 | {"n_head": 7 + 12 * i}, 1: {"model_type": "alphafold", "n": i}}.get(i % 3, text)
        write_config(f"m/{i:02d}/config.json", content)


def test_several_processes_have_the_same_results_in_the_same_order(run: Runner) -> None:
    write_mirror()
    alone, together = (run("scan", "m", "--json", "--jobs", jobs) for jobs in ("1", "3"))
    assert (alone.code, alone.out) == (together.code, together.out)
    document = json.loads(together.out)
    assert [model["id"] for model in document["models"]] == [f"{i:02d}" for i in range(2, 40, 3)]
    assert len(document["errors"]) == 27
    assert document["reasons"] == [
        {"reason": "n_embd = N is not a multiple of n_head = N", "configs": 14},
        {"reason": "model_type = alphafold is not supported", "configs": 13},
    ]


def test_jobs_print_the_rate_the_share_of_errors_and_the_commonest_reasons(run: Runner) -> None:
    write_mirror()
    lines = run("scan", "m", "--jobs", "2").err.splitlines()
    assert lines[20:22] == ["error: 7 more; --json lists all of them", "error: 27 of 40 configs cannot be counted"]
    rate, first, second = lines[22:]
    assert re.fullmatch(r"note: 40 configs in [\d.]+ s \([\d,]+ per second\), 67\.5% cannot be counted", rate)
    assert first == "note: 14 × n_embd = N is not a multiple of n_head = N"
    assert second == "note: 13 × model_type = alphafold is not supported"


def test_reasons_keep_the_commas_behind_their_numbers(run: Runner) -> None:
    for i in (50, 1_000):
        write_config(f"{i}/config.json", {"model_type": "cohere2_moe", "first_k_dense_replace": i})
    document = json.loads(run("scan", ".", "--json").out)
    assert document["reasons"] == [{"reason": "first_k_dense_replace = N, but there are N layers", "configs": 2}]


def test_a_process_that_dies_is_an_error_of_one_line(tmp_path: Path) -> None:
    write_mirror()
    with pytest.raises(pc.ParamcountError, match=r"^a process was killed, perhaps for lack of memory"):
        scan_folder(tmp_path, kill_process, jobs=2)


def kill_process(path: Path) -> zoo.Model:
    os._exit(1)
