"""Hugging Face Hub URLs: their repository and revision."""

from __future__ import annotations

import re
from typing import NamedTuple

from paramcount.errors import ParamcountError, quote

SCHEME = r"[A-Za-z][A-Za-z0-9+.\-]*://"
HUB = r"(?:https?://)?(?:www\.)?(?:huggingface\.co|hf\.co)/([^?#]*)"
REVISION = r"\w[\w.\-]{0,95}"
NOT_MODELS = {
    "datasets": "a dataset",
    "spaces": "a Space",
    "collections": "a collection",
    "papers": "a paper",
    "docs": "documentation",
    "blog": "a blog post",
}
HUB_VIEWS = ("blob", "tree", "resolve", "raw", "blame", "commits", "discussions")


def is_url(word: str) -> bool:
    """Whether a word is a URL; Hugging Face URLs may omit the scheme.

    >>> is_url("https://hf.co/Qwen/Qwen3-8B"), is_url("huggingface.co/Qwen/Qwen3-8B"), is_url("Qwen/Qwen3-8B")
    (True, True, False)
    """
    # A name without a slash is told apart without a regular expression: one takes as long as all other checks of it.
    return "/" in word and any(re.match(url, word, re.IGNORECASE) for url in (SCHEME, HUB))


class HubAddress(NamedTuple):
    """A repository on the Hugging Face Hub, at a revision."""

    repo: str
    revision: str = "main"


def parse_hub_url(url: str) -> HubAddress:
    """The repository and revision of a Hugging Face URL.

    >>> parse_hub_url("https://huggingface.co/Qwen/Qwen3-8B/blob/main/config.json")
    HubAddress(repo='Qwen/Qwen3-8B', revision='main')

    Raises: ParamcountError for another site, for a page that is not a model, and for a file in a folder.
    """
    match = re.match(HUB, url, re.IGNORECASE)
    if not match:
        raise ParamcountError(
            f"{quote(url)} is not a Hugging Face URL",
            expected="https://huggingface.co/ORG/NAME, or the path of a file",
        )
    words = [word for word in match[1].split("/") if word]
    if words[:1] == ["models"]:
        words = words[1:]
    if not words or words[0] in NOT_MODELS:
        what = NOT_MODELS[words[0]] if words else "the Hub itself"
        raise ParamcountError(f"{quote(url)} is {what}, not a model", expected="https://huggingface.co/ORG/NAME")
    view = next((i for i, word in enumerate(words[:3]) if i and word in HUB_VIEWS), None)
    if view is None or words[view] in ("discussions", "commits"):
        return HubAddress("/".join(words[: min(view or 2, 2)]))
    revision, *file = words[view + 1 :] or ["main"]
    if len(file) > 1 or (file and words[view] == "tree"):
        raise ParamcountError(
            f"{quote(url)} points into a directory of the repository",
            expected="the repository, or the downloaded config.json as a file",
        )
    if not re.fullmatch(REVISION, revision):
        raise ParamcountError(f"{quote(url)} has an invalid revision", expected="a branch, a tag or a commit")
    return HubAddress("/".join(words[:view]), revision)
