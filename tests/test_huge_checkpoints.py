"""The largest checkpoints, as sparse files: their headers are read in memory that does not grow with their values."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import paramcount as pc
from tests.headers import total_bytes
from tests.huge import SHARDS, write_deepseek

PEAK = 250_000  # KiB; the interpreter with the libraries takes 40,000, and the headers are 12 MB of text
MEASURED = """
import re, sys
from paramcount.cli import main
try:
    main(sys.argv[1:])
finally:
    print(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1], file=sys.stderr)
"""


@pytest.fixture(scope="module")
def deepseek(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """DeepSeek-V3 as released, in FP8 with its scales and its MTP layer: 689 GB that take 12 MB on disk."""
    folder = tmp_path_factory.mktemp("deepseek-v3")
    try:
        tensors = write_deepseek(folder)
    except OSError as error:
        pytest.skip(f"no file of 4 GB with holes can be made here: {error}")
    files = list(folder.glob("*.safetensors"))
    assert len(files) == SHARDS
    assert sum(path.stat().st_size for path in files) > total_bytes(tensors) > 688 * 10**9
    if sum(path.stat().st_blocks for path in files) * 512 > 10**9:
        pytest.skip("this file system knows no holes")
    return folder


@pytest.mark.exhaustive
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of a process is read from /proc")
@pytest.mark.parametrize("command", [("verify", "deepseek-v3"), ("why", "deepseek-v3")], ids=["verify", "why"])
def test_a_checkpoint_of_689_gb_is_read_in_little_memory(command: tuple[str, ...], deepseek: Path) -> None:
    line = [sys.executable, "-c", MEASURED, *command, f"{deepseek}/", "--json"]
    found = {**os.environ, "PYTHONPATH": str(Path(pc.__file__).parent.parent)}
    done = subprocess.run(line, capture_output=True, text=True, check=True, env=found, timeout=300)
    assert int(done.stderr) < PEAK
    said = json.loads(done.stdout)
    if command[0] == "verify":
        assert (said["ok"], said["files"], said["tensors"], said["faults"]) == (True, SHARDS, 91_991, [])
        assert sum(said["found"].values()) == 671_026_404_352
        assert said["size"]["predicted"] == said["size"]["found"]
    else:
        (file,) = said["files"]
        assert (file["values"], file["verdict"], file["files"]) == (684_531_386_000, "exact", SHARDS)


# ---- GGUF: a vocabulary is a long header
