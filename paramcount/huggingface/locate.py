"""Finding a config.json: a file, a directory, standard input, the local Hugging Face cache or, on request, the Hub."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

from paramcount.errors import Argument, ParamcountError, locate_errors, make_extra_error, make_printable, quote
from paramcount.formats.files import decode_text, expand_home, read_text
from paramcount.formats.strict_json import parse_json
from paramcount.huggingface.forms import FILE_NAMES, find_form
from paramcount.huggingface.forms.refused import CONFIG, CONFIG_OF_CHECKPOINT, find_text_kind

FILE_HEADERS = ("ETag", "X-Linked-ETag", "X-Repo-Commit")  # after which huggingface_hub names files
FILE_NAME = re.compile(r'(W/)?"?[\w\-]*"?')
LARGEST_FILE = 4 << 20  # bytes; 20 times the longest known config.json, which has one block per layer
REPO = re.compile(r"[A-Za-z0-9][\w.\-]{0,95}/[A-Za-z0-9][\w.\-]{0,95}")
DOWNLOAD = Argument("download", "True")
CONFIG_NAMES = ("config.json", *FILE_NAMES)  # that say nothing of the model
MOST_LISTED, LONGEST_NAME = 4, 40  # files in a message, and characters of a name
RESPONSE_TIMEOUT = 10  # seconds until the Hub has to respond
DOWNLOAD_TIMEOUT = 30  # seconds for the whole download, including retries
NOTE_DELAY = 1  # seconds until a note on stderr says what takes long
CHECKPOINTS = (".safetensors", ".gguf", ".bin", ".pt", ".pth")


class Document(NamedTuple):
    """A parsed config file."""

    content: dict[str, Any]
    place: str  # its location in errors
    name: str  # the name of the model, derived from the location


def parse_document(text: str, place: str, name: str = "") -> Document:
    """A parsed config.json; errors name `place`, and the tool whose file it is instead."""
    with locate_errors(place):
        if error := find_text_kind(text):
            raise error
        return Document(parse_json(text), place, name)


def read_stdin() -> Document:
    """The config.json on standard input."""
    try:
        data = sys.stdin.buffer.read(LARGEST_FILE + 1)
    except (OSError, AttributeError):  # closed or missing
        raise ParamcountError("cannot be read", where="standard input", expected=f"{CONFIG}, piped in") from None
    with locate_errors("standard input"):
        text = decode_text(data, CONFIG, LARGEST_FILE)
    return parse_document(text, "standard input")


def read_path(path: Path) -> Document:
    """The config.json at a path, or in the directory there."""
    if os.path.isdir(path):
        path = find_in_directory(path)
    place = make_printable(path)
    if path.suffix.lower() in CHECKPOINTS:
        raise ParamcountError("is a checkpoint, not a config", where=place, expected=CONFIG_OF_CHECKPOINT)
    document = parse_document(read_text(path, CONFIG, LARGEST_FILE), place, make_printable(name_model(path), 100))
    return add_modelopt_config(document, path.parent) if path.name == "config.json" else document


def add_modelopt_config(document: Document, folder: Path) -> Document:
    """The document with the quantisation config of ModelOpt that lies beside it, unless it has one."""
    from paramcount.formats.quantization_config import MODELOPT, MODELOPT_FILE, find_quantization_config

    path = folder / MODELOPT_FILE
    if not os.path.isfile(path) or find_quantization_config(document.content) is not None:
        return document
    block = parse_document(read_text(path, "a quantisation config", LARGEST_FILE), make_printable(path)).content
    return document._replace(content={**document.content, "quantization_config": {"quant_method": MODELOPT, **block}})


def name_model(path: Path) -> str:
    """The name of a model, derived from the path of its config: the repository in a cache, else the directory."""
    for parent in path.parents:
        if parent.name.startswith("models--"):
            return parent.name.removeprefix("models--").replace("--", "/")
    return (path.resolve().parent.name if path.name in CONFIG_NAMES else path.stem) or "config.json"


def find_in_directory(folder: Path) -> Path:
    """The config.json of a model directory, or of a repository in a Hugging Face cache; else a file of another form."""
    place = make_printable(folder)
    if os.path.lexists(folder / "config.json"):
        return folder / "config.json"
    if os.path.isdir(folder / "snapshots"):
        return find_snapshot(folder)
    if path := find_form_file(folder):
        return path
    try:
        os.stat(os.path.join(folder, "."))  # a listable directory may still not be accessible
        children = sorted(folder.iterdir())
        models = [c for c in children if os.path.isfile(c / "config.json") or os.path.isdir(c / "snapshots")]
        files = [child for child in children if child.suffix in (".json", *CHECKPOINTS)]
    except OSError as error:
        raise ParamcountError(f"cannot be read: {error.strerror}", where=place) from None
    if models:
        do = "1 subdirectory does" if len(models) == 1 else f"{len(models):,} subdirectories do"
        raise ParamcountError(
            f"has no config.json, but {do}: {format_file_names(models)}",
            where=place,
            expected="one of them; `paramcount scan` counts all",
        )
    others = f", only {format_file_names(files)}" if files else ""
    raise ParamcountError(f"has no config.json{others}", where=place, expected="the directory of a model")


def find_config(folder: Path) -> Path | None:
    """The config.json of a directory, or the file of another form if there is none."""
    path = folder / "config.json"
    return path if os.path.lexists(path) else find_form_file(folder)


def find_form_file(folder: Path) -> Path | None:
    """The file of a directory that holds a model's sizes in another form than config.json; None if there is none."""
    paths = (folder / name for name in FILE_NAMES if os.path.isfile(folder / name))
    return next((path for path in paths if is_known_form(path)), None)


def is_known_form(path: Path) -> bool:
    """Whether a file holds sizes in another form; many tools keep a params.json that is none."""
    try:
        content = read_path(path).content
    except ParamcountError:
        return False
    return "peft_type" in content or find_form(content) is not None


def format_file_names(paths: Sequence[Path]) -> str:
    names = [make_printable(path.name, LONGEST_NAME) for path in paths[:MOST_LISTED]]
    if len(paths) > MOST_LISTED:
        names.append("…")
    return ", ".join(names)


def find_snapshot(repository: Path, revision: str = "main") -> Path:
    """The config.json of a cached revision: a branch, a tag or a commit.

    Without a branch `main`, a repository with a single revision means that one.
    """
    place = make_printable(repository)
    try:
        snapshots = sorted((repository / "snapshots").iterdir())
        configs = {snapshot: path for snapshot in snapshots if (path := find_config(snapshot))}
        revisions = list(configs)
    except OSError as error:
        raise ParamcountError(f"cannot be read: {error.strerror}", where=place) from None
    reference = repository / "refs" / revision
    is_reference = os.path.isfile(reference)
    commit = read_text(reference, "the name of a revision", 200).strip() if is_reference else revision
    for snapshot in revisions:
        if snapshot.name == commit:
            return configs[snapshot]
    names = [make_printable(revision.name[:12]) for revision in revisions[:MOST_LISTED]]  # as git abbreviates them
    commits = ", ".join([*names, "…"] if len(revisions) > MOST_LISTED else names)
    if is_reference:
        expected = f"one of {commits}" if revisions else "a revision with config.json; " + DOWNLOAD + " fetches it"
        raise ParamcountError(
            f"points to revision {quote(commit)}, whose config.json is not in the cache",
            where=make_printable(reference),
            expected=expected,
        )
    if revision != "main":
        problem = f"has no revision {make_printable(revision, 60)}"
        raise ParamcountError(problem, where=place, expected="a cached revision; " + DOWNLOAD + " fetches others")
    if not revisions:
        expected = "a cached config.json; " + DOWNLOAD + " fetches it"
        raise ParamcountError("has no config.json", where=place, expected=expected)
    if len(revisions) > 1:
        problem = f"has {len(revisions):,} revisions, but none is main: {commits}"
        raise ParamcountError(problem, where=place, expected="the directory of one of them")
    return configs[revisions[0]]


def get_cache_directory() -> Path:
    """The local Hugging Face cache, from the environment variables that huggingface_hub reads."""
    environment = os.environ
    cache = environment.get("XDG_CACHE_HOME") or os.path.join("~", ".cache")
    home = environment.get("HF_HOME") or os.path.join(cache, "huggingface")
    path = environment.get("HF_HUB_CACHE") or environment.get("HUGGINGFACE_HUB_CACHE") or os.path.join(home, "hub")
    with locate_errors("the Hugging Face cache"):
        return expand_home(path)


def find_in_cache(repo: str, revision: str = "main") -> Path | None:
    """The config.json of a repository in the local cache; None if the repository or the revision is not cached."""
    folder = get_cache_directory() / f"models--{repo.replace('/', '--')}"
    if revision != "main":
        is_cached = any(os.path.exists(folder / kind / revision) for kind in ("refs", "snapshots"))
        return find_snapshot(folder, revision) if is_cached else None
    return find_in_directory(folder) if os.path.isdir(folder) else None


def download_config(repo: str, revision: str = "main") -> Path:
    """The downloaded config.json of a repository on the Hub. Downloads nothing else.

    Raises: ParamcountError if the [hub] extra is missing, or if the download fails.
    """
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    try:
        from huggingface_hub import constants, get_session, hf_hub_download
        from huggingface_hub.errors import (
            EntryNotFoundError,
            GatedRepoError,
            HfHubHTTPError,
            LocalEntryNotFoundError,
            RepositoryNotFoundError,
        )
    except ImportError:
        raise make_extra_error(DOWNLOAD, "hub") from None
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # it logs every retry
    where = f"{repo} on the Hub"
    access = "a public repository, or a token in HF_TOKEN"

    def fetch() -> str:
        client = get_session()
        if not hasattr(client, "event_hooks"):
            raise ParamcountError("cannot be read with this huggingface_hub", expected="version 1.0 or newer of it")
        if check_response not in client.event_hooks["response"]:
            client.event_hooks = {**client.event_hooks, "response": [*client.event_hooks["response"], check_response]}
        return hf_hub_download(repo, "config.json", revision=revision, etag_timeout=RESPONSE_TIMEOUT)

    try:
        return Path(run_with_timeout(fetch, constants.ENDPOINT))
    except ParamcountError as error:
        raise error.replace(where=where) from None
    except TimeoutError:
        problem = f"no response within {DOWNLOAD_TIMEOUT} seconds; try again later or pass the config.json as a file"
        expected = ""
    except GatedRepoError:
        problem, expected = "is gated", access
    except RepositoryNotFoundError:
        problem, expected = "does not exist or is private", access
    except LocalEntryNotFoundError as error:
        problem, expected = (
            "cannot be reached",
            "a network connection, a token in HF_TOKEN, or the config.json as a file",
        )
        if status := find_status(error):
            problem, expected = f"responded with HTTP {status}; try again later", ""
    except EntryNotFoundError:
        problem, expected = "has no config.json", "a repository with a model"
    except HfHubHTTPError as error:
        status = getattr(error.response, "status_code", None)
        problem, expected = f"responded with {status or 'an error'}; try again later", ""
        if status == 401:
            problem, expected = "responded with HTTP 401", access
    except Exception as error:  # the network library may raise anything
        problem = f"cannot be reached: {type(error).__name__}"
        expected = "a network connection, or the config.json as a file"
    raise ParamcountError(problem, where=where, expected=expected)


def find_status(error: BaseException | None) -> int | None:
    while error is not None:
        status = getattr(getattr(error, "response", None), "status_code", None)
        if status is not None:
            return int(status)
        error = error.__cause__ or error.__context__
    return None


def check_response(response: Any) -> None:
    """Refuse a response whose headers would name files outside of the cache, or whose body exceeds LARGEST_FILE.

    huggingface_hub writes what it receives to a file that is named as the ETag, whatever that is and however long.

    Raises: ParamcountError for such headers at once, and for the body as soon as it exceeds the limit.
    """
    for header in FILE_HEADERS:
        if not FILE_NAME.fullmatch(response.headers.get(header, "")):
            raise ParamcountError(f"responded with an invalid {header}", expected="letters, digits, _ and -")
    encoding = response.headers.get("Content-Encoding", "identity")
    if response.request.method == "GET" and encoding != "identity":
        raise ParamcountError(f"responded with Content-Encoding {quote(encoding)}", expected="identity")
    stream, close = response.stream, response.stream.close

    class Limited(type(stream)):  # type: ignore[misc]
        def __init__(self) -> None:
            pass

        def __iter__(self) -> Iterator[bytes]:
            n = 0
            for chunk in stream:
                n += len(chunk)
                if n > LARGEST_FILE:
                    raise ParamcountError("is too large", expected=f"{CONFIG} of at most {LARGEST_FILE:,} bytes")
                yield chunk

        def close(self) -> None:
            close()

    response.stream = Limited()


def run_with_timeout(fetch: Callable[[], str], address: str) -> str:
    """The result of a download, with a note on stderr if it takes longer than a second.

    Raises: TimeoutError after DOWNLOAD_TIMEOUT seconds, without stopping the download; any exception of the download.
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
    thread.join(NOTE_DELAY)
    if thread.is_alive() and sys.stderr:
        note = f"note: waiting for {make_printable(address)}, at most {DOWNLOAD_TIMEOUT} seconds"
        print(note, file=sys.stderr, flush=True)
    thread.join(DOWNLOAD_TIMEOUT - NOTE_DELAY)
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError
    return results[0]
