"""Where a config.json is found: a file, a directory, standard input, the local Hugging Face cache, and, where asked for, the Hub."""

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

LARGEST_FILE = 4 << 20  # bytes: the longest config.json known, one block for each layer, has a twentieth of it
CONFIG = "a model's config.json"
REPO = re.compile(r"[A-Za-z0-9][\w.\-]{0,95}/[A-Za-z0-9][\w.\-]{0,95}")
MOST_LISTED = 4
PATIENCE = 10  # seconds that the Hub has for its first answer
LONGEST_WAIT = 30  # seconds for the whole download, whatever the network library tries again
NOTE_AFTER = 1  # seconds until a line on stderr says what takes so long
CHECKPOINTS = (".safetensors", ".gguf", ".bin", ".pt", ".pth")

CONFIG_OF_CHECKPOINT = "the config.json beside it; `paramcount PATH` alone counts what a checkpoint stores"

# What else lies about under the name *.json: (keys that give it away, what it is, what to pass instead).
OTHER_FILES: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (("peft_type",), "an adapter's config", "the config.json of the model it adapts"),
    (("_diffusers_version",), "a diffusion pipeline's config", CONFIG),
    (("_class_name",), "a diffusion pipeline's config", CONFIG),
    (("weight_map",), "the index of a checkpoint's shards", CONFIG_OF_CHECKPOINT),
    (("tokenizer_class",), "a tokenizer's config", "the config.json beside it"),
    (("added_tokens", "model"), "a tokenizer", "the config.json beside it"),
    (("added_tokens_decoder",), "a tokenizer's config", "the config.json beside it"),
    (("processor_class",), "a processor's config", "the config.json beside it"),
    (("image_processor_type",), "an image processor's config", "the config.json beside it"),
    (("feature_extractor_type",), "a feature extractor's config", "the config.json beside it"),
    (("_from_model_config",), "a generation config", "the config.json beside it"),
    (("eos_token_id", "temperature"), "a generation config", "the config.json beside it"),
    (("dim", "n_layers", "n_heads"), "params.json of an original release", "the config.json of its Hugging Face form"),
    (("train_batch_size",), "a training config", CONFIG),
    (("__metadata__",), "the header of a safetensors file", CONFIG_OF_CHECKPOINT),
)


class Document(NamedTuple):
    """A parsed config file."""

    content: dict[str, Any]
    place: str  # where it was found, as errors name it
    name: str  # what the model is called, from where it was found


def check_is_config(document: Mapping[str, Any]) -> None:
    """Raises: ParamcountError that says what a file is that has no `model_type` and names no class in `architectures`."""
    for keys, what, instead in OTHER_FILES:
        if all(key in document for key in keys):
            base = document.get("base_model_name_or_path")
            of = f" of {make_printable(base, 80)}" if keys == ("peft_type",) and isinstance(base, str) else ""
            raise ParamcountError(f"is {what}{of}", expected=instead)
    if get_class_name(document):
        return
    if "auto_map" in document:
        raise ParamcountError("is missing; auto_map names its author's code, which is not run", where="model_type", expected="see `paramcount architectures`")
    raise ParamcountError("is missing", where="model_type", expected="a config.json with model_type, or a zoo entry with architecture and config")


def parse_document(text: str, place: str, name: str = "") -> Document:
    """A config.json from its text; errors name `place`."""
    try:
        return Document(parse_json(text), place, name)
    except ParamcountError as error:
        raise error.at(place) from None


def read_stdin() -> Document:
    """The config.json that is piped in."""
    try:
        data = sys.stdin.buffer.read(LARGEST_FILE + 1)
    except (OSError, AttributeError):  # closed, or none at all
        raise ParamcountError("cannot be read", where="standard input", expected=f"{CONFIG}, piped in") from None
    try:
        text = decode_text(data, CONFIG, LARGEST_FILE)
    except ParamcountError as error:
        raise error.at("standard input") from None
    return parse_document(text, "standard input")


def read_path(path: Path) -> Document:
    """The config.json at a path, or in the directory there."""
    if os.path.isdir(path):
        path = find_in_directory(path)
    if path.suffix.lower() in CHECKPOINTS:
        raise ParamcountError("is a checkpoint, not a config", where=make_printable(path), expected=CONFIG_OF_CHECKPOINT)
    return parse_document(read_text(path, CONFIG, LARGEST_FILE), make_printable(path), make_printable(name_model(path), 100))


def name_model(path: Path) -> str:
    """What a config file is called: the repository of a cache, else the directory it lies in."""
    for parent in path.parents:
        if parent.name.startswith("models--"):
            return parent.name.removeprefix("models--").replace("--", "/")
    return (path.resolve().parent.name if path.name == "config.json" else path.stem) or "config.json"


def find_in_directory(folder: Path) -> Path:
    """The config.json of a model's directory, or of one repository of a Hugging Face cache.

    Raises: ParamcountError where there is none or more than one.
    """
    place = make_printable(folder)
    if os.path.lexists(folder / "config.json"):
        return folder / "config.json"
    if os.path.isdir(folder / "snapshots"):
        return find_snapshot(folder)
    try:
        os.stat(os.path.join(folder, "."))  # a directory may be listed by whoever may not look into it
        below = sorted(child.name for child in folder.iterdir() if os.path.isfile(child / "config.json") or os.path.isdir(child / "snapshots"))
        others = sorted(child.name for child in folder.iterdir() if child.suffix in (".json", *CHECKPOINTS))
    except OSError as error:
        raise ParamcountError(f"cannot be read: {error.strerror}", where=place) from None
    if below:
        listed = ", ".join([*(make_printable(name, 40) for name in below[:MOST_LISTED]), *(["…"] if len(below) > MOST_LISTED else [])])
        raise ParamcountError(
            f"holds no config.json but {len(below)} directories with one: {listed}", where=place, expected="one of them, or `paramcount scan`"
        )
    found = f", only {', '.join(make_printable(name, 40) for name in others[:MOST_LISTED])}" if others else ""
    raise ParamcountError(f"holds no config.json{found}", where=place, expected="the directory of a model")


def find_snapshot(repository: Path, revision: str = "main") -> Path:
    """config.json of a revision of a cached repository: a branch, a tag or a commit; of the only one there is if `main` is not named."""
    place = make_printable(repository)
    try:
        revisions = sorted(child for child in (repository / "snapshots").iterdir() if os.path.lexists(child / "config.json"))
    except OSError as error:
        raise ParamcountError(f"cannot be read: {error.strerror}", where=place) from None
    reference = repository / "refs" / revision
    is_named = os.path.isfile(reference)
    commit = read_text(reference, "the name of a revision", 200).strip() if is_named else revision
    if named := next((child for child in revisions if child.name == commit), None):
        return named / "config.json"
    if is_named:
        expected = f"one of {format_revisions(revisions)}" if revisions else "a revision with config.json; --download fetches it"
        raise ParamcountError(f"names the revision {quote(commit)}, whose config.json is not in the cache", where=make_printable(reference), expected=expected)
    if revision != "main":
        raise ParamcountError(f"holds no revision {make_printable(revision, 60)}", where=place, expected="a revision in its cache; --download fetches one")
    if len(revisions) == 1:
        return revisions[0] / "config.json"
    if not revisions:
        raise ParamcountError("holds no config.json", where=place, expected="a cached repository with config.json; --download fetches it")
    raise ParamcountError(
        f"holds {len(revisions)} revisions and none is main: {format_revisions(revisions)}", where=place, expected="the directory of one of them"
    )


def format_revisions(revisions: Sequence[Path]) -> str:
    """The first revisions, shortened as git does."""
    return ", ".join([*(make_printable(child.name[:12]) for child in revisions[:MOST_LISTED]), *(["…"] if len(revisions) > MOST_LISTED else [])])


def cache_directory() -> Path:
    """The local Hugging Face cache, where its own tools look for it."""
    home = os.environ.get("HF_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.join("~", ".cache"), "huggingface")
    try:
        return expand_home(os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE") or os.path.join(home, "hub"))
    except ParamcountError as error:
        raise error.at("the Hugging Face cache") from None


def find_in_cache(repo: str, revision: str = "main") -> Path | None:
    """config.json of a repository in the local cache; None where the repository, or that revision of it, is not there."""
    folder = cache_directory() / f"models--{repo.replace('/', '--')}"
    if revision != "main":
        known = folder / "refs" / revision, folder / "snapshots" / revision
        return find_snapshot(folder, revision) if any(map(os.path.exists, known)) else None
    return find_in_directory(folder) if os.path.isdir(folder) else None


def download(repo: str, revision: str = "main") -> Path:
    """config.json of a repository on the Hub, and nothing else of it.

    Raises: ParamcountError where the [hub] extra is missing, and for every answer that is no file.
    """
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # config.json and nothing else
    try:
        from huggingface_hub import constants, hf_hub_download
        from huggingface_hub.errors import EntryNotFoundError, GatedRepoError, HfHubHTTPError, RepositoryNotFoundError
    except ImportError:
        raise ParamcountError("--download needs the [hub] extra", expected="pip install 'paramcount[hub]'") from None
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # it tells of every retry
    where = f"{repo} on the Hub"
    expected = "a public repository, or a token in HF_TOKEN"
    try:
        return Path(run_with_timeout(lambda: hf_hub_download(repo, "config.json", revision=revision, etag_timeout=PATIENCE), constants.ENDPOINT))
    except TimeoutError:
        expected = "another try later, or the config.json as a file"
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
        raise ParamcountError(f"answers {status}", where=where, expected="another try later" if status != 401 else expected) from None
    except Exception as error:  # whatever its network library raises
        raise ParamcountError(f"cannot be reached: {type(error).__name__}", where=where, expected="a network, or the config.json as a file") from None


def run_with_timeout(fetch: Callable[[], str], address: str) -> str:
    """What a download returns, with a note on stderr if it takes longer than a second.

    Raises: TimeoutError after LONGEST_WAIT seconds; the download is then left alone. Whatever the download raises.
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
        print(f"note: waiting for {make_printable(address)}, at most {LONGEST_WAIT} seconds", file=sys.stderr, flush=True)
    thread.join(LONGEST_WAIT - NOTE_AFTER)
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError
    return results[0]
