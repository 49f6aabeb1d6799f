"""Two checkouts of paramcount, compared by everything that a user can observe of many models.

`python -m tests.compare_checkouts BASE NEW` runs the commands of each checkout on zoo entries, on the frozen cases, on
each model type alone, on configs with one key left out, and on disturbed configs; it prints where code, output or
logits differ. Nothing of the package is imported but its command line and `run`, so that a checkout may be built
otherwise than the other one. `--show INPUT ASPECT` prints one difference as a diff.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import hashlib
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
FILE, DRAWING = "config.json", "drawing.svg"
COMMANDS: dict[str, list[str]] = {  # of each aspect; the model's name stands behind the first word
    "show": ["show", "--json"],
    "text": ["show"],
    "keys": ["show", "--keys", "--json"],
    "tensors": ["show", "--by", "tensor", "--json"],
    "layers": ["show", "--by", "layer", "--json"],
    "explain": ["explain", "--json"],
    "why": ["why", "--json"],
    "flops": ["flops", "--context", "3000", "--json"],
    "memory": ["memory", "--context", "3000", "--batch", "2", "--json"],
    "lora": ["lora", "--json"],
    "training": ["training", "--context", "512", "--json"],
    "trace": ["trace", "--json"],
    "decode": ["trace", "--decode", "--past", "9", "--json"],
    "draw": ["draw", "-o", DRAWING],
}
FEW = ("show",)
READ = ("show", "keys")
TOKENS = (3, 1, 4, 1, 5, 9, 2, 6)
TOLERANCE = 1e-4  # of logits, relative to the largest
CHUNK = 200  # inputs that one process observes
LARGEST_RUN = 20_000_000  # parameters
PER_TYPE = 2  # frozen cases of which every aspect is compared

Input = tuple[str, Any, tuple[str, ...]]  # key, a zoo name or a config, aspects


def list_inputs(sets: Sequence[str], n_random: int) -> Iterator[Input]:
    """What is compared; it comes from the files of this checkout alone."""
    paths = sorted((HERE / "tests/data/types").glob("*.json"))
    files = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    cases: dict[str, list[dict[str, Any]]] = {file["model_type"]: file["cases"] for file in files if "cases" in file}
    every = tuple(COMMANDS)
    if "zoo" in sets:
        for path in sorted((HERE / "configs").glob("**/*.yaml")):
            yield f"zoo:{path.stem}", path.stem, every
    accepted = {name: [case["config"] for case in found if "refused" not in case] for name, found in cases.items()}
    if "cases" in sets:
        for name, found in cases.items():
            for i, case in enumerate(found):
                is_full = any(case["config"] is config for config in accepted[name][:PER_TYPE])
                yield f"case:{name}:{i}", case["config"], (*every, "logits") if is_full else FEW
    if "defaults" in sets:
        for name in cases:
            yield f"alone:{name}", {"model_type": name.partition(".")[0]}, READ
        for name, configs in accepted.items():
            for place, config in leave_out(configs[0]) if configs else ():
                yield f"without:{name}:{place}", config, READ
    if "random" in sets:
        draw = random.Random(0)  # noqa: S311 it keeps no secret
        flat = [(name, case["config"]) for name, found in cases.items() for case in found]
        for i in range(n_random):
            name, config = draw.choice(flat)
            yield f"random:{i}:{name}", disturb(config, draw), FEW


def leave_out(config: Mapping[str, Any], place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """(path of a key, the config without it) of every key, in sections too."""
    for key, value in config.items():
        yield place + key, {other: v for other, v in config.items() if other != key}
        if isinstance(value, dict):
            for path, section in leave_out(value, f"{place}{key}."):
                yield path, {**config, key: section}


def disturb(config: Mapping[str, Any], draw: random.Random) -> dict[str, Any]:
    """The config with one to three changes, many of which a reader has to refuse."""
    found: dict[str, Any] = json.loads(json.dumps(config))
    for _ in range(draw.randint(1, 3)):
        sections = [found, *(value for value in found.values() if isinstance(value, dict))]
        section = draw.choice(sections)
        if not section:
            continue
        key = draw.choice(list(section))
        value = section[key]
        kind = draw.random()
        if kind < 0.2:
            del section[key]
        elif kind < 0.3:
            section[key] = draw.choice([None, "x", [], {}, -1, 0, 1.5, True, [1, 2]])
        elif isinstance(value, bool):
            section[key] = not value
        elif isinstance(value, int):
            section[key] = draw.choice([value * 2, value * 3, value + 1, max(0, value - 1), value // 2, 1, 7])
        elif isinstance(value, list) and value:
            section[key] = draw.choice([value[:-1], [*value, value[0]], value[::-1]])
        elif kind < 0.4:
            section[draw.choice(["num_hidden_layers", "hidden_size", "sliding_window", "head_dim"])] = draw.choice(
                [2, 4, None]
            )
    return found


def run_command(args: Sequence[str]) -> str:
    """Exit code, output and messages of a command."""
    from paramcount.cli import main

    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(list(args))
        except SystemExit as leaving:
            code = leaving.code
        except Exception as error:  # what a user would see as a traceback
            code = f"traceback: {type(error).__name__}: {error}"
    return f"exit code {code or 0}\n{out.getvalue()}\n{err.getvalue()}"


def run_logits(config: Mapping[str, Any]) -> list[float] | str:
    """Some logits of a small model with weights that its tensors' names decide; or why it does not run."""
    import numpy as np

    from paramcount import count, run
    from paramcount.errors import ParamcountError
    from tests.small_models import make_arrays

    weights = {}
    try:
        if count(config).total > LARGEST_RUN:
            return "too large to run here"
        for name, array in make_arrays(config).items():
            rng = np.random.default_rng(zlib.crc32(name.encode()))
            weights[name] = rng.normal(0, 0.1, array.shape).astype(np.float32) + (array.ndim == 1)
        first = run(config, weights, TOKENS[:5])
        logits = np.concatenate((first.logits, first.append(TOKENS[5:]).logits))
    except (ParamcountError, KeyError, ValueError, FloatingPointError) as error:
        return f"{type(error).__name__}: {error}"
    return [float(x) for x in logits.reshape(len(logits), -1)[:, :4].ravel()]


def observe(value: Any, aspect: str, folder: Path) -> str | list[float]:
    """What one aspect of an input shows. Configs are read from a file of the same name in every checkout."""
    name = value
    if not isinstance(value, str):
        (folder / FILE).write_text(json.dumps(value), encoding="utf-8")
        name = f"./{FILE}"
    if aspect == "logits":
        return run_logits(value)
    first, *options = COMMANDS[aspect]
    (folder / DRAWING).unlink(missing_ok=True)
    text = run_command([first, name, *options])
    return text + (folder / DRAWING).read_text(encoding="utf-8") if (folder / DRAWING).exists() else text


def enter(scratch: Path) -> Path:
    """A working directory of a constant name, which outputs show."""
    (scratch / "model").mkdir()
    os.chdir(scratch / "model")
    return scratch / "model"


def collect(inputs: Path, output: Path, first: int = 0) -> None:
    """Observe all inputs with the package of the working directory's checkout, one line of JSON each.

    A process observes some of them and starts the next one, because what the package remembers takes much memory.
    """
    lines = inputs.read_text(encoding="utf-8").splitlines()
    checkout = Path.cwd()
    with tempfile.TemporaryDirectory() as scratch, output.open("a", encoding="utf-8") as file:
        model = enter(Path(scratch))
        warnings.simplefilter("ignore")
        for line in lines[first : first + CHUNK]:
            key, value, aspects = json.loads(line)
            found: dict[str, Any] = {}
            for aspect in aspects:
                seen = observe(value, aspect, model)
                found[aspect] = hashlib.sha256(seen.encode()).hexdigest()[:16] if isinstance(seen, str) else seen
            file.write(json.dumps([key, found]) + "\n")
        os.chdir(checkout)
    if first + CHUNK < len(lines):
        here = str(Path(__file__).resolve())
        args = [sys.executable, here, "--collect", str(inputs), str(output), str(first + CHUNK)]
        os.execv(sys.executable, args)  # noqa: S606


def start(checkout: Path, *args: str) -> subprocess.Popen[bytes]:
    """This program within another checkout, whose package and tests it imports."""
    environment = os.environ | {
        "PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "COLUMNS": "80", "NO_COLOR": "1",
        "PARAMCOUNT_CONFIGS": str(checkout / "no-such-folder"), "HF_HOME": str(checkout / "no-such-folder"),
    }  # fmt: skip
    return subprocess.Popen([sys.executable, str(Path(__file__).resolve()), *args], env=environment, cwd=checkout)


def are_equal(a: Any, b: Any) -> bool:
    if not isinstance(a, list) or not isinstance(b, list):
        return bool(a == b)
    largest = max(map(abs, a), default=0) or 1
    return len(a) == len(b) and all(abs(x - y) <= TOLERANCE * largest for x, y in zip(a, b))


def compare(base: Path, new: Path, inputs: Sequence[Input], folder: Path) -> int:
    """Print every input that differs, and how many do by aspect; return how many."""
    text = "".join(json.dumps(line) + "\n" for line in inputs)
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    file = folder / f"{digest}-{os.getpid()}.jsonl"  # several comparisons may run at a time
    file.write_text(text, encoding="utf-8")
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=base, capture_output=True, check=True, text=True).stdout  # noqa: S607
    stored = folder / f"{commit[:12]}-{digest}.jsonl"  # the base is observed once
    observed = folder / f"new-{os.getpid()}.jsonl"
    running = [start(new, "--collect", str(file), str(observed))]
    if not stored.exists():
        running.append(start(base, "--collect", str(file), f"{stored}.{os.getpid()}"))
    codes = [process.wait() for process in running]
    if any(codes):
        print("a checkout failed to observe the inputs")
        return 1
    if not stored.exists():
        Path(f"{stored}.{os.getpid()}").rename(stored)
    found: Counter[str] = Counter()
    pairs = zip(stored.read_text(encoding="utf-8").splitlines(), observed.read_text(encoding="utf-8").splitlines())
    for before, after in pairs:
        (key, old), (_, now) = json.loads(before), json.loads(after)
        if aspects := [aspect for aspect in old if not are_equal(old[aspect], now[aspect])]:
            print(key, *aspects)
            found.update(aspects)
    observed.unlink()
    file.unlink()
    print(f"{len(inputs):,} inputs; differing aspects: {dict(found) or 'none'}")
    return sum(found.values())


def show(base: Path, new: Path, inputs: Sequence[Input], key: str, aspect: str) -> None:
    """One aspect of one input in both checkouts, as a diff."""
    value = next((value for other, value, _ in inputs if other == key), None)
    if value is None:
        sys.exit(f"unknown input {key}")
    texts: list[list[str]] = []
    with tempfile.TemporaryDirectory() as scratch:
        for checkout in (base, new):
            file = Path(scratch) / "seen"
            start(checkout, "--observe", json.dumps([key, value, aspect]), str(file)).wait()
            texts.append(file.read_text(encoding="utf-8").splitlines())
    print("\n".join(difflib.unified_diff(texts[0], texts[1], "base", "new", lineterm="", n=2)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--sets", default="zoo,cases,defaults,random", help="which inputs (default: all four)")
    parser.add_argument("--random", type=int, default=20_000, help="number of disturbed configs")
    parser.add_argument("--every", type=int, default=1, help="take every Nth input only")
    parser.add_argument("--only", default="", help="inputs whose key contains one of these texts (A,B,…)")
    parser.add_argument("--aspects", default=",".join((*COMMANDS, "logits")), help="which aspects (default: all)")
    parser.add_argument("--show", nargs=2, metavar=("INPUT", "ASPECT"), help="print one difference")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "compare_checkouts")
    options = parser.parse_args()
    options.folder.mkdir(exist_ok=True)
    aspects, words = set(options.aspects.split(",")), options.only.split(",")
    inputs = [
        (key, value, tuple(aspect for aspect in own if aspect in aspects))
        for key, value, own in list_inputs(options.sets.split(","), options.random)
        if any(word in key for word in words)
    ][:: options.every]
    base, new = options.base.resolve(), options.new.resolve()
    if options.show:
        show(base, new, inputs, *options.show)
    else:
        sys.exit(compare(base, new, inputs, options.folder) > 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--collect"]:
        sys.path[0] = os.getcwd()
        collect(Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else 0)
    elif sys.argv[1:2] == ["--observe"]:
        sys.path[0] = os.getcwd()
        _, config, one_aspect = json.loads(sys.argv[2])
        with tempfile.TemporaryDirectory() as own:
            shown = observe(config, one_aspect, enter(Path(own)))
            text = shown if isinstance(shown, str) else "\n".join(map(str, shown))
            Path(sys.argv[3]).write_text(text, encoding="utf-8")
    else:
        main()
