"""--download against a Hub of our own: what it answers, well or badly, and that nothing but config.json is asked
for.
"""

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
HTML = b"<!DOCTYPE html><title>Sign in to the network</title>"


class Hub(BaseHTTPRequestHandler):
    """A repository of each kind of answer: /KIND/x/resolve/main/config.json."""

    asked: list[str]

    def answer(self, *, body: bool) -> None:
        asked.append(self.path)
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
        }.get(kind, (500, b"", {}))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if body:
            self.wfile.write(text)

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def log_message(self, *_: object) -> None:
        pass


asked: list[str] = []


@pytest.fixture(scope="module")
def hub() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def run_process(hub: str, home: Path, *args: str, wait: int = 30) -> subprocess.CompletedProcess[str]:
    """A process of its own: the Hub's library reads its address as it is imported."""
    environment = {
        **os.environ,
        "HF_ENDPOINT": hub,
        "HF_HOME": str(home),
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_ETAG_TIMEOUT": "1",
    }
    code = f"import paramcount.huggingface.locate as f; f.RESPONSE_TIMEOUT = 1; f.DOWNLOAD_TIMEOUT = {wait}\nimport time; time.sleep = lambda _: None\nfrom paramcount.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *args], capture_output=True, text=True, env=environment, timeout=120, check=False
    )


def test_config_json_alone_is_fetched_counted_and_kept_in_the_cache(
    hub: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked.clear()
    done = run_process(hub, tmp_path, "good/x", "--download", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["total"] == TOTAL
    assert {path for path in asked if not path.startswith("/api/")} == {"/good/x/resolve/main/config.json"}
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    assert pc.count("good/x").total == TOTAL


def test_nothing_is_fetched_without_being_asked(hub: str, tmp_path: Path) -> None:
    asked.clear()
    done = run_process(hub, tmp_path, "good/x")
    assert (done.returncode, asked) == (2, [])


def find_error(stderr: str, address: str) -> str:
    """The one line of an error, behind a note where it took longer than a second."""
    *notes, message = stderr.splitlines()
    assert [note.partition(f"{address}, at most ")[0] for note in notes] in ([], ["note: waiting for "])
    assert message.startswith(("error: ", "error: "))
    assert_one_line(message)
    return message


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ("gated", "is gated"),
        ("private", "does not exist or is private"),
        ("missing", "does not exist or is private"),
        ("empty", "has no config.json"),
        ("forbidden", ""),
        ("broken", ""),
        ("html", ""),
        ("slow", ""),
        ("page", "invalid JSON"),
    ],
)
def test_what_the_hub_answers_badly_is_one_line(hub: str, tmp_path: Path, kind: str, problem: str) -> None:
    done = run_process(hub, tmp_path, f"{kind}/x", "--download")
    assert (done.returncode, done.stdout) == (2, "")
    message = find_error(done.stderr, hub)
    assert problem in message
    assert problem == "invalid JSON" or f"{kind}/x on the Hub" in message


def test_a_missing_extra_is_named_with_its_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(pc.ParamcountError) as caught:
        pc.count("nobody/nothing", download=True)
    assert str(caught.value) == "--download needs the [hub] extra: pip install 'paramcount[hub]'"


def test_a_server_that_stays_silent_is_given_up_with_a_sign_of_life_before(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        done = run_process(address, tmp_path, "good/x", "--download", wait=3)
    assert (done.returncode, done.stdout) == (2, "")
    note, _ = done.stderr.splitlines()
    assert note == f"note: waiting for {address}, at most 3 seconds"
    assert "good/x on the Hub: no response within 3 seconds" in find_error(done.stderr, address)


def test_no_download_waits_longer_than_half_a_minute() -> None:
    assert config_files.DOWNLOAD_TIMEOUT <= 30


def test_a_damaged_cache_is_fetched_anew(hub: str, tmp_path: Path) -> None:
    (tmp_path / "hub/models--good--x/snapshots").mkdir(parents=True)
    (tmp_path / "hub/models--good--x/refs").mkdir()
    (tmp_path / "hub/models--good--x/refs/main").write_text("c" * 40, encoding="utf-8")
    assert "points to revision" in run_process(hub, tmp_path, "good/x").stderr
    done = run_process(hub, tmp_path, "good/x", "--download", "--json")
    assert (done.returncode, json.loads(done.stdout)["total"]) == (0, TOTAL)
