"""--download from a local server: good and bad responses; only config.json is downloaded."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import paramcount as pc
from paramcount.huggingface import locate as config_files
from tests.refusing import assert_one_line
from tests.test_config_files import QWEN, TOTAL

pytest.importorskip("huggingface_hub")

BODY = json.dumps(QWEN).encode()
LARGE = b"{" + b" " * (64 << 20)
HTML = b"<!DOCTYPE html><title>Sign in to the network</title>"


class Hub(BaseHTTPRequestHandler):
    """A repository for each kind of response: /KIND/x/resolve/main/config.json."""

    requested_paths: list[str]

    def answer(self, *, body: bool) -> None:
        requested_paths.append(self.path)
        kind = self.path.split("/")[1]
        if kind == "slow":
            time.sleep(2)
        status, text, headers = {
            "good": (200, BODY, {"X-Repo-Commit": "a" * 40, "ETag": '"abc"'}),
            "gated": (401, b"", {"X-Error-Code": "GatedRepo"}),
            "private": (401, b"", {"X-Error-Code": "RepoNotFound"}),
            "missing": (404, b"", {"X-Error-Code": "RepoNotFound"}),
            "empty": (404, b"", {"X-Error-Code": "EntryNotFound"}),
            "forbidden": (403, b"", {}),
            "html": (200, HTML, {"Content-Type": "text/html"}),
            "page": (200, HTML, {"Content-Type": "text/html", "X-Repo-Commit": "b" * 40, "ETag": '"def"'}),
            "slow": (200, BODY, {}),
            "outside": (200, BODY, {"X-Repo-Commit": "c" * 40, "ETag": '"../../../../outside"'}),
            "commit": (200, BODY, {"X-Repo-Commit": "../../../../outside", "ETag": '"c"'}),
            "large": (200, LARGE, {"X-Repo-Commit": "d" * 40, "ETag": '"large"'}),
        }.get(kind, (500, b"", {}))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if kind == "large":
            self.close_connection = True  # it does not say how long it is
        else:
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if body:
            for start in range(0, len(text), 1 << 16):
                self.wfile.write(text[start : start + (1 << 16)])
                sent[kind] = start

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def log_message(self, *_: object) -> None:
        pass


requested_paths: list[str] = []
sent: dict[str, int] = {}  # {kind: bytes}


@pytest.fixture(scope="module")
def hub() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def run_process(hub: str, home: Path, *args: str, wait: int = 30) -> subprocess.CompletedProcess[str]:
    """Run the command in its own process: huggingface_hub reads the address of the Hub when it is imported."""
    environment = {
        **os.environ,
        "HF_ENDPOINT": hub,
        "HF_HOME": str(home),
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_ETAG_TIMEOUT": "1",
    }
    code = (
        f"import paramcount.huggingface.locate as f; f.RESPONSE_TIMEOUT = 1; f.DOWNLOAD_TIMEOUT = {wait}\n"
        "import time; time.sleep = lambda _: None\n"
        "from paramcount.cli import main; main()"
    )
    return subprocess.run(
        [sys.executable, "-c", code, *args], capture_output=True, text=True, env=environment, timeout=120, check=False
    )


def test_only_config_json_is_downloaded_and_cached(hub: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requested_paths.clear()
    done = run_process(hub, tmp_path, "good/x", "--download", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["total"] == TOTAL
    assert {path for path in requested_paths if not path.startswith("/api/")} == {"/good/x/resolve/main/config.json"}
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    assert pc.count("good/x").total == TOTAL


def test_nothing_is_downloaded_without_the_option(hub: str, tmp_path: Path) -> None:
    requested_paths.clear()
    done = run_process(hub, tmp_path, "good/x")
    assert (done.returncode, requested_paths) == (2, [])


def find_error(stderr: str, address: str) -> str:
    """The line of an error, which follows a note if it took longer than a second."""
    *notes, message = stderr.splitlines()
    assert [note.partition(f"{address}, at most ")[0] for note in notes] in ([], ["note: waiting for "])
    assert message.startswith("error: ")
    assert_one_line(message)
    return message


@pytest.mark.parametrize(
    ("kind", "place", "problem"),
    [
        ("gated", "gated/x on the Hub", "is gated"),
        pytest.param("private", "private/x on the Hub", "does not exist or is private", marks=pytest.mark.exhaustive),
        ("missing", "missing/x on the Hub", "does not exist or is private"),
        ("empty", "empty/x on the Hub", "has no config.json"),
        ("forbidden", "forbidden/x on the Hub", ""),
        pytest.param("html", "html/x on the Hub", "", marks=pytest.mark.exhaustive),
        pytest.param("slow", "slow/x on the Hub", "", marks=pytest.mark.exhaustive),  # waits for a timeout
        ("page", "/config.json", "invalid JSON"),
    ],
)
def test_a_bad_response_of_the_hub_is_an_error_of_one_line(
    hub: str, tmp_path: Path, kind: str, place: str, problem: str
) -> None:
    done = run_process(hub, tmp_path, f"{kind}/x", "--download")
    assert (done.returncode, done.stdout) == (2, "")
    message = find_error(done.stderr, hub)
    assert place in message
    assert problem in message


def test_the_error_for_a_missing_extra_shows_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(pc.ParamcountError) as caught:
        pc.count("nobody/nothing", download=True)
    assert str(caught.value) == "download=True needs the [hub] extra: pip install 'paramcount[hub]'"


def test_a_silent_server_causes_a_note_and_then_a_timeout(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        done = run_process(address, tmp_path, "good/x", "--download", wait=2)
    assert (done.returncode, done.stdout) == (2, "")
    note, _ = done.stderr.splitlines()
    assert note == f"note: waiting for {address}, at most 2 seconds"
    assert "good/x on the Hub: no response within 2 seconds" in find_error(done.stderr, address)


def test_a_download_times_out_after_at_most_30_seconds() -> None:
    assert config_files.DOWNLOAD_TIMEOUT <= 30


def test_a_damaged_cache_is_downloaded_again(hub: str, tmp_path: Path) -> None:
    (tmp_path / "hub/models--good--x/snapshots").mkdir(parents=True)
    (tmp_path / "hub/models--good--x/refs").mkdir()
    (tmp_path / "hub/models--good--x/refs/main").write_text("c" * 40, encoding="utf-8")
    assert "points to revision" in run_process(hub, tmp_path, "good/x").stderr
    done = run_process(hub, tmp_path, "good/x", "--download", "--json")
    assert (done.returncode, json.loads(done.stdout)["total"]) == (0, TOTAL)


@pytest.mark.parametrize("kind", ["outside", "commit"])
def test_headers_that_name_a_file_outside_of_the_cache_are_refused(hub: str, tmp_path: Path, kind: str) -> None:
    home = tmp_path / "a" / "b" / "c" / "home"
    done = run_process(hub, home, f"{kind}/x", "--download")
    assert done.returncode == 2
    assert f"error: {kind}/x on the Hub responded with an invalid " in done.stderr
    assert [path for path in tmp_path.rglob("*outside*") if "models--" not in path.name] == []


def test_a_download_stops_at_the_size_limit(hub: str, tmp_path: Path) -> None:
    done = run_process(hub, tmp_path, "large/x", "--download")
    assert done.returncode == 2
    problem = "is too large (expected a model's config.json of at most 4,194,304 bytes)"
    assert f"error: large/x on the Hub {problem}" in done.stderr
    assert sent["large"] < len(LARGE) // 2
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) <= 5 << 20


def test_a_server_error_is_named_by_its_status(hub: str, tmp_path: Path) -> None:
    done = run_process(hub, tmp_path, "broken/x", "--download")
    assert (done.returncode, done.stderr) == (
        2,
        "error: broken/x on the Hub responded with HTTP 500; try again later\n",
    )
