"""What a typed name means: an id, a Hugging Face id, a common spelling, a family, a wildcard, a path."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from paramcount import zoo
from paramcount.commands import COMMANDS
from paramcount.errors import LONGEST, ParamcountError, near, quoted
from paramcount.files import expanded

PATH_ENDS = ("/", ".yaml", ".yml", ".json", ".safetensors", ".gguf")
SPEC_HELP = "a zoo id, a Hugging Face id, a path, a mapping or what paramcount.load returned"
YAML_ENDS = (".yaml", ".yml")


def is_path(word: str) -> bool:
    """Whether a word is a path by its looks, whatever lies in the current directory."""
    return word == "-" or word.startswith((".", "/", "~")) or word.lower().endswith(PATH_ENDS)


def folded(name: str) -> str:
    """A name without what people write differently: case, blanks, hyphens, underscores.

    >>> folded("Llama 3.1 8B") == folded("llama-3.1-8b")
    True
    """
    return re.sub(r"[\s_\-]+", lambda gap: "-" if _between_digits(gap) else "", name.casefold())


def _between_digits(gap: re.Match[str]) -> bool:
    """Whether a gap holds two numbers apart: qwen2 7b is no qwen 27b."""
    before, after = gap.string[: gap.start()][-1:], gap.string[gap.end() :][:1]
    return before.isdigit() and after.isdigit()


@lru_cache(maxsize=1)
def spellings() -> dict[str, str]:
    """{folded spelling: id} of the whole zoo: ids, names, Hugging Face ids with and without the publisher, aliases."""
    found: dict[str, str] = {}
    weaker: dict[str, str] = {}
    for id in zoo.ids():
        for name in zoo.names_of(id):
            found.setdefault(folded(name), id)
            weaker.setdefault(folded(name.rpartition("/")[2]), id)
    return weaker | found


def find(name: str) -> str:
    """The zoo id that a name means.

    >>> find("meta-llama/Llama-3.1-8B"), find("GPT2-small")
    ('llama-3.1-8b', 'gpt2-small')

    Raises: ParamcountError with the nearest names, commands and families among them.
    """
    if zoo.path_of(name):
        return name
    known = spellings()
    if name and (id := known.get(folded(name[:LONGEST]))):
        return id
    if name in zoo.families():
        raise ParamcountError(f"{name} is a family of {len(list(zoo.ids(name)))} models", accepted=f"one of them: {', '.join(zoo.ids(name))}")
    raise ParamcountError(f"unknown model {quoted(name)}", accepted="what `paramcount list` names, or a path such as ./model.yaml", nearest=nearest_to(name))


def nearest_to(name: str) -> list[str]:
    """The ids, commands and families that a name nearly is."""
    known = spellings()
    by_spelling = {**{word: word for word in (*COMMANDS, *zoo.families())}, **known, **{folded(id): id for id in known.values()}}
    typed = folded(name[:LONGEST])
    beginning = [word for word in by_spelling if typed and word.startswith(typed)]
    holding = [word for word in by_spelling if len(typed) > 1 and typed in word]
    return list(dict.fromkeys(by_spelling[word] for word in (*beginning, *holding, *near(typed, by_spelling, most=8))))[:3]


def other_entry(name: str) -> str | None:
    """The id of the entry that answers for another release of the same sizes; None where the entry is that model's own.

    >>> other_entry("deepseek-v2.5"), other_entry("gpt2"), other_entry("GPT2-small")
    ('deepseek-v2', None, None)
    """
    if is_path(name) or zoo.path_of(name) or expand(name) is not None:
        return None  # a family or a wildcard needs no spelling looked up
    id = spellings().get(folded(name[:LONGEST]))
    if id is None:
        return None
    id_, display, *others = zoo.names_of(id)
    bare = folded(name.rpartition("/")[2])
    own = [folded(spelling.rpartition("/")[2]) for spelling in (id_, display, *others[:1])]
    return None if any(spelling.startswith(bare) for spelling in own) else id


def load(spec: object, *, download: bool = False) -> zoo.Model:
    """The validated config of a model, with its sources.

    `spec`: a zoo id, a Hugging Face id (of the zoo, else of the local cache), the path of a config.json, of a directory with one or of
    a YAML file, a mapping (a parsed config.json, or `architecture` and `config`), or a loaded model. `download`: config.json of a
    Hugging Face id that is nowhere else is fetched from the Hub, which needs the [hub] extra.

    >>> load("deepseek-v3").config.n_routed_experts
    256
    >>> load({"model_type": "qwen3", "num_hidden_layers": 36}).config.n_layers
    36

    Raises: ParamcountError for anything else, saying what was found and what is accepted.
    """
    if isinstance(spec, zoo.Model):
        return spec
    if isinstance(spec, Mapping):
        from paramcount.config_files import from_document

        return from_document(spec, "unnamed")
    if isinstance(spec, Path) or (isinstance(spec, str) and is_path(spec)):
        return _from_path(str(spec))
    if isinstance(spec, str):
        return _by_name(spec, download)
    raise ParamcountError(f"{type(spec).__name__} is not a model", accepted=SPEC_HELP)


def _by_name(name: str, download: bool) -> zoo.Model:
    """The zoo, else the local Hugging Face cache, else, where asked for, the Hub."""
    try:
        return zoo.entry(find(name))
    except ParamcountError:
        from paramcount import config_files

        if not config_files.REPO.fullmatch(name):
            raise
        path = config_files.cached(name)
        if path is None and not download:
            accepted = "what `paramcount list` names, a repository of the local Hugging Face cache, or --download"
            raise ParamcountError(f"unknown model {quoted(name)}", accepted=accepted, nearest=nearest_to(name)) from None
        return config_files.from_path(path or config_files.download(name))


def _from_path(path: str) -> zoo.Model:
    if path.lower().endswith(YAML_ENDS):
        return zoo.from_file(expanded(path))
    from paramcount import config_files

    return config_files.from_stdin() if path == "-" else config_files.from_path(expanded(path))


def select(words: object, *, estimates: bool = False, download: bool = False) -> list[zoo.Model]:
    """The models that words stand for, in the order given, each once: a family for all its models, `*` and `?` for any text.

    Estimates come only with `estimates`; `download` is as for `load`.

    Raises: ParamcountError for a word that means nothing, or an estimate without `estimates`.
    """
    if isinstance(words, (str, Path, Mapping, zoo.Model)):
        words = [words]
    if isinstance(words, bytes) or not isinstance(words, Iterable):
        raise ParamcountError(f"{type(words).__name__} is not a list of models", accepted=f"a list of any of these: {SPEC_HELP}")
    found: dict[zoo.Model, None] = {}
    for word in words:
        many = expand(word)
        for model in [load(word, download=download)] if many is None else [zoo.entry(id) for id in many]:
            if model.estimate and not estimates:
                if many is None:
                    _ = model.sizes  # raises: there is nothing to count
                continue
            found[model] = None
    return list(found)


def expand(word: object) -> list[str] | None:
    """The zoo ids of a family or a wildcard; None for what names one model.

    >>> expand("gpt2-*")
    ['gpt2-small', 'gpt2-medium', 'gpt2-large', 'gpt2-xl']
    """
    if not isinstance(word, str) or is_path(word):
        return None
    if word.casefold() in zoo.families():
        return list(zoo.ids(word.casefold()))
    if "*" not in word and "?" not in word:
        return None
    exact, loose = word[:LONGEST].casefold(), folded(word[:LONGEST])
    matching = [id for id in zoo.ids() if fnmatchcase(id, exact)] or [id for id in zoo.ids() if fnmatchcase(folded(id), loose)]
    if not matching:
        raise ParamcountError(f"no model matches {quoted(word)}", accepted="a pattern over the ids of `paramcount list`: 'qwen3-*'")
    return matching
