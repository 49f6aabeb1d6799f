"""A file in the user's cache directory that keeps what was computed from the zoo, valid for exactly this zoo and code.

`PARAMCOUNT_CACHE` names another directory; if it is empty, nothing is kept.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from paramcount.formats.files import open_regular
from paramcount.output.files import write_atomically
from paramcount.zoo.catalog import PACKAGE, list_paths

VARIABLE = "PARAMCOUNT_CACHE"
DIGEST = 32  # bytes
LARGEST = 1 << 28  # bytes; the whole database has some megabytes
MOST_FILES = 3  # of other zoos or versions
MOST_BYTES = 1 << 26  # of all files
MOST_DAYS = 30  # since a file of another zoo or version was written


def find_folder() -> Path | None:
    """The cache directory; None if there is none to use."""
    chosen = os.environ.get(VARIABLE)
    if chosen is not None:
        return Path(chosen) if chosen else None
    from platformdirs import user_cache_path

    with suppress(OSError, RuntimeError):
        return user_cache_path("paramcount", appauthor=False)
    return None


def hash_sources(*, own: bool = True) -> bytes:
    """A digest of every zoo entry, with or without the user's own, and of the code: the key of the cache."""
    digest = hashlib.blake2b(hash_code(), digest_size=DIGEST)
    for path in list_paths(own=own):
        digest.update(f"{path.parent.name}/{path.name}\0".encode(errors="surrogateescape"))
        with open_regular(path, "a zoo entry") as file:
            digest.update(hashlib.blake2b(file.read(LARGEST)).digest())
    return digest.digest()


@lru_cache(maxsize=1)
def hash_code() -> bytes:
    """A digest of the size and the times of every file of the package, which any installation sets anew."""
    digest = hashlib.blake2b(digest_size=DIGEST)
    for folder, folders, names in os.walk(PACKAGE):
        folders[:] = sorted(name for name in folders if name not in ("__pycache__", "configs", "docs"))
        for name in sorted(names):
            status = os.stat(os.path.join(folder, name))
            text = f"{folder}/{name} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}\0"
            digest.update(text.encode(errors="surrogateescape"))
    return digest.digest()


def read_cache(key: bytes) -> bytes | None:
    """What `write_cache` stored for this zoo and code; None if there is nothing, or nothing to trust."""
    path = locate_cache(key)
    if path is None:
        return None
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(file.fileno())
            if not is_own_file(status) or status.st_size > LARGEST:
                return None
            content = file.read(LARGEST + 1)
    except (OSError, ValueError):
        return None
    digest, data = content[:DIGEST], content[DIGEST:]
    return data if digest == sign(key, data) else None


def write_cache(key: bytes, data: bytes) -> None:
    """Store data for this zoo and code. Does nothing if the directory cannot be written."""
    path = locate_cache(key)
    if path is None:
        return
    with suppress(OSError, ValueError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        is_replaceable = not os.path.lexists(path) or stat.S_ISREG(path.lstat().st_mode)  # a pipe has to be read
        folder = path.parent.stat()
        if stat.S_ISDIR(folder.st_mode) and is_own(folder) and is_replaceable:
            write_atomically(str(path), sign(key, data) + data)
            path.chmod(0o600)
            remove_old_files(path)


def locate_cache(key: bytes) -> Path | None:
    """The file for this zoo and code."""
    try:
        folder = find_folder()
        return folder / f"zoo-{key.hex()[:32]}.cache" if folder else None
    except (OSError, ValueError):
        return None


def sign(key: bytes, data: bytes) -> bytes:
    """A digest of data for this zoo and code."""
    return hashlib.blake2b(data, digest_size=DIGEST, key=key).digest()


def is_own_file(status: os.stat_result) -> bool:
    """Whether a file is a regular one that only this user can write."""
    return stat.S_ISREG(status.st_mode) and is_own(status)


def is_own(status: os.stat_result) -> bool:
    """Whether only this user can write a file or directory."""
    if not hasattr(os, "geteuid"):  # Windows: the profile of a user is private
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def remove_old_files(path: Path) -> None:
    """Remove the files of other zoos and versions except a few that are new and not too large."""
    found = [(other.lstat(), other) for other in path.parent.glob("*.cache") if other != path]
    others = [(status, other) for status, other in found if is_own_file(status)]
    others.sort(key=lambda pair: pair[0].st_mtime, reverse=True)
    n_bytes = path.lstat().st_size
    for i, (status, other) in enumerate(others):
        n_bytes += status.st_size
        is_old = time.time() - status.st_mtime > MOST_DAYS * 24 * 3600
        if i >= MOST_FILES or n_bytes > MOST_BYTES or is_old:
            other.unlink(missing_ok=True)
