"""Finding a config.json: a file, a directory, standard input, the local Hugging Face cache or, on request, the Hub."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

from paramcount.errors import ParamcountError, make_printable, quote
from paramcount.formats.files import decode_text, expand_home, read_text
from paramcount.formats.strict_json import parse_json
from paramcount.huggingface.config import get_class_name

LARGEST_FILE = 4 << 20  # bytes; the longest known config.json, with one block per layer, has a twentieth of it
CONFIG = "a model's config.json"
REPO = re.compile(r"[A-Za-z0-9][\w.\-]{0,95}/[A-Za-z0-9][\w.\-]{0,95}")
MOST_LISTED = 4
PATIENCE = 10  # seconds until the Hub has to respond
LONGEST_WAIT = 30  # seconds for the whole download, including retries
NOTE_AFTER = 1  # seconds until a note on stderr says what takes long
CHECKPOINTS = (".safetensors", ".gguf", ".bin", ".pt", ".pth")

CONFIG_OF_CHECKPOINT = "the config.json in the same directory; `paramcount PATH` counts a checkpoint"

# Other kinds of *.json files: (keys that identify it, what it is, what to pass instead).
OTHER_FILES: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (("peft_type",), "an adapter's config", "the config.json of the model it adapts"),
    (("_diffusers_version",), "a diffusion pipeline's config", CONFIG),
    (("_class_name",), "a diffusion pipeline's config", CONFIG),
    (("weight_map",), "the index of a checkpoint's shards", CONFIG_OF_CHECKPOINT),
    (("tokenizer_class",), "a tokenizer's config", "the config.json in the same directory"),
    (("added_tokens", "model"), "a tokenizer", "the config.json in the same directory"),
    (("added_tokens_decoder",), "a tokenizer's config", "the config.json in the same directory"),
    (("processor_class",), "a processor's config", "the config.json in the same directory"),
    (("image_processor_type",), "an image processor's config", "the config.json in the same directory"),
    (("feature_extractor_type",), "a feature extractor's config", "the config.json in the same directory"),
    (("_from_model_config",), "a generation config", "the config.json in the same directory"),
    (("eos_token_id", "temperature"), "a generation config", "the config.json in the same directory"),
    (
        ("dim", "n_layers", "n_heads"),
        "params.json of an original release",
        "the config.json of the Hugging Face version",
    ),
    (("train_batch_size",), "a training config", CONFIG),
    (("__metadata__",), "the header of a safetensors file", CONFIG_OF_CHECKPOINT),
)


class Document(NamedTuple):
    """A parsed config file."""

    content: dict[str, Any]
    place: str  # its location in errors
    name: str  # the name of the model, derived from the location


def check_is_config(document: Mapping[str, Any]) -> None:
    """Check that a file without `model_type` names a class in `architectures`.

    Raises: ParamcountError that says what kind of file it is instead.
    """
    for keys, what, instead in OTHER_FILES:
        if all(key in document for key in keys):
            base = document.get("base_model_name_or_path")
            of = f" of {make_printable(base, 80)}" if keys == ("peft_type",) and isinstance(base, str) else ""
            raise ParamcountError(f"is {what}{of}", expected=instead)
    if get_class_name(document):
        return
    if "auto_map" in document:
        raise ParamcountError(
            "is missing, and auto_map names custom modeling code, which paramcount does not run",
            where="model_type",
            expected="a model type from `paramcount architectures`",
        )
    raise ParamcountError(
        "is missing",
        where="model_type",
        expected="a config.json with model_type, or a zoo entry with architecture and config",
    )


def parse_document(text: str, place: str, name: str = "") -> Document:
    """A parsed config.json; errors name `place`."""
    try:
        return Document(parse_json(text), place, name)
    except ParamcountError as error:
        raise error.add_location(place) from None


def read_stdin() -> Document:
    """The config.json on standard input."""
    try:
        data = sys.stdin.buffer.read(LARGEST_FILE + 1)
    except (OSError, AttributeError):  # closed or missing
        raise ParamcountError("cannot be read", where="standard input", expected=f"{CONFIG}, piped in") from None
    try:
        text = decode_text(data, CONFIG, LARGEST_FILE)
    except ParamcountError as error:
        raise error.add_location("standard input") from None
    return parse_document(text, "standard input")


def read_path(path: Path) -> Document:
    """The config.json at a path, or in the directory there."""
    if os.path.isdir(path):
        path = find_in_directory(path)
    if path.suffix.lower() in CHECKPOINTS:
        raise ParamcountError(
            "is a checkpoint, not a config", where=make_printable(path), expected=CONFIG_OF_CHECKPOINT
        )
    return parse_document(
        read_text(path, CONFIG, LARGEST_FILE), make_printable(path), make_printable(name_model(path), 100)
    )


def name_model(path: Path) -> str:
    """The name of a model from its config file: the repository in a cache, else the directory."""
    for parent in path.parents:
        if parent.name.startswith("models--"):
            return parent.name.removeprefix("models--").replace("--", "/")
    return (path.resolve().parent.name if path.name == "config.json" else path.stem) or "config.json"


def find_in_directory(folder: Path) -> Path:
    """The config.json of a model directory, or of a repository in a Hugging Face cache.

    Raises: ParamcountError if there is none or more than one.
    """
    place = make_printable(folder)
    if os.path.lexists(folder / "config.json"):
        return folder / "config.json"
    if os.path.isdir(folder / "snapshots"):
        return find_snapshot(folder)
    try:
        os.stat(os.path.join(folder, "."))  # a listable directory may still not be accessible
        below = sorted(
            child.name
            for child in folder.iterdir()
            if os.path.isfile(child / "config.json") or os.path.isdir(child / "snapshots")
        )
        others = sorted(child.name for child in folder.iterdir() if child.suffix in (".json", *CHECKPOINTS))
    except OSError as error:
        raise ParamcountError(f"cannot be read: {error.strerror}", where=place) from None
    if below:
        listed = ", ".join(
            [*(make_printable(name, 40) for name in below[:MOST_LISTED]), *(["…"] if len(below) > MOST_LISTED else [])]
        )
        raise ParamcountError(
            f"has no config.json, but {len(below)} of its directories do: {listed}",
            where=place,
            expected="one of them, or `paramcount scan`",
        )
    found = f" (found {', '.join(make_printable(name, 40) for name in others[:MOST_LISTED])})" if others else ""
    raise ParamcountError(f"has no config.json{found}", where=place, expected="the directory of a model")


def find_snapshot(repository: Path, revision: str = "main") -> Path:
    """The config.json of a cached revision: a branch, a tag or a commit. For `main`, the only revision may have any name."""
    place = make_printable(repository)
    try:
        revisions = sorted(
            child for child in (repository / "snapshots").iterdir() if os.path.lexists(child / "config.json")
        )
    except OSError as error:
        raise ParamcountError(f"cannot be read: {error.strerror}", where=place) from None
    reference = repository / "refs" / revision
    is_named = os.path.isfile(reference)
    commit = read_text(reference, "the name of a revision", 200).strip() if is_named else revision
    if named := next((child for child in revisions if child.name == commit), None):
        return named / "config.json"
    if is_named:
        expected = (
            f"one of {format_revisions(revisions)}"
            if revisions
            else "a revision with config.json; --download fetches it"
        )
        raise ParamcountError(
            f"names the revision {quote(commit)}, whose config.json is not in the cache",
            where=make_printable(reference),
            expected=expected,
        )
    if revision != "main":
        raise ParamcountError(
            f"has no revision {make_printable(revision, 60)}", where=place, expected="a cached revision, or --download"
        )
    if len(revisions) == 1:
        return revisions[0] / "config.json"
    if not revisions:
        raise ParamcountError("has no config.json", where=place, expected="a cached config.json, or --download")
    raise ParamcountError(
        f"has {len(revisions)} revisions, none of them main: {format_revisions(revisions)}",
        where=place,
        expected="the directory of one of them",
    )


def format_revisions(revisions: Sequence[Path]) -> str:
    """The first revisions, shortened as git does."""
    return ", ".join(
        [
            *(make_printable(child.name[:12]) for child in revisions[:MOST_LISTED]),
            *(["…"] if len(revisions) > MOST_LISTED else []),
        ]
    )


def cache_directory() -> Path:
    """The local Hugging Face cache, found like huggingface_hub finds it."""
    home = os.environ.get("HF_HOME") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.join("~", ".cache"), "huggingface"
    )
    try:
        return expand_home(
            os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE") or os.path.join(home, "hub")
        )
    except ParamcountError as error:
        raise error.add_location("the Hugging Face cache") from None


def find_in_cache(repo: str, revision: str = "main") -> Path | None:
    """The config.json of a repository in the local cache; None if the repository or the revision is not cached."""
    folder = cache_directory() / f"models--{repo.replace('/', '--')}"
    if revision != "main":
        known = folder / "refs" / revision, folder / "snapshots" / revision
        return find_snapshot(folder, revision) if any(map(os.path.exists, known)) else None
    return find_in_directory(folder) if os.path.isdir(folder) else None


def download(repo: str, revision: str = "main") -> Path:
    """The downloaded config.json of a repository on the Hub. Downloads nothing else.

    Raises: ParamcountError if the [hub] extra is missing, or if the download fails.
    """
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    try:
        from huggingface_hub import constants, hf_hub_download
        from huggingface_hub.errors import EntryNotFoundError, GatedRepoError, HfHubHTTPError, RepositoryNotFoundError
    except ImportError:
        raise ParamcountError("--download needs the [hub] extra", expected="pip install 'paramcount[hub]'") from None
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # it logs every retry
    where = f"{repo} on the Hub"
    expected = "a public repository, or a token in HF_TOKEN"
    try:
        return Path(
            run_with_timeout(
                lambda: hf_hub_download(repo, "config.json", revision=revision, etag_timeout=PATIENCE),
                constants.ENDPOINT,
            )
        )
    except TimeoutError:
        expected = "a later retry, or the config.json as a file"
        raise ParamcountError(f"no answer within {LONGEST_WAIT} seconds", where=where, expected=expected) from None
    except GatedRepoError:
        raise ParamcountError("is gated", where=where, expected=expected) from None
    except RepositoryNotFoundError:
        raise ParamcountError("does not exist or is private", where=where, expected=expected) from None
    except EntryNotFoundError as error:
        problem = "cannot be reached" if "ocal" in type(error).__name__ else "has no config.json"
        raise ParamcountError(problem, where=where, expected=expected) from None
    except HfHubHTTPError as error:
        status = getattr(error.response, "status_code", "an error")
        raise ParamcountError(
            f"responded with {status}", where=where, expected="a later retry" if status != 401 else expected
        ) from None
    except Exception as error:  # the network library may raise anything
        raise ParamcountError(
            f"cannot be reached: {type(error).__name__}",
            where=where,
            expected="a network connection, or the config.json as a file",
        ) from None


def run_with_timeout(fetch: Callable[[], str], address: str) -> str:
    """The result of a download, with a note on stderr if it takes longer than a second.

    Raises: TimeoutError after LONGEST_WAIT seconds, without stopping the download; any exception of the download.
    """
    results: list[str] = []
    errors: list[Exception] = []

    def run() -> None:
        try:
            results.append(fetch())
        except Exception as error:
            errors.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(NOTE_AFTER)
    if thread.is_alive() and sys.stderr:
        print(
            f"note: waiting for {make_printable(address)}, at most {LONGEST_WAIT} seconds", file=sys.stderr, flush=True
        )
    thread.join(LONGEST_WAIT - NOTE_AFTER)
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError
    return results[0]
