"""A strict subset of YAML for data files: no tags, anchors or aliases, no duplicate keys, plain numbers only."""

from __future__ import annotations

import re
from math import isinf
from pathlib import Path
from typing import Any

import yaml

from paramcount.errors import ParamcountError, describe_value, locate_errors, make_printable, quote
from paramcount.formats.files import read_text

LARGEST_FILE = 1 << 20  # bytes; a zoo entry has two or three thousand
DEEPEST = 12
LOADER = getattr(yaml, "CLoader", yaml.Loader)  # libyaml's parser if installed; only its events are used

WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}
INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]{1,3})?")
LONGEST_NUMBER = 100
FORBIDDEN = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # YAML 1.1, section 4.1.1


def read_yaml(path: Path, until: str = "") -> dict[str, Any]:
    """The mapping in a YAML file; with `until`, only the keys before that one.

    Raises: ParamcountError that names the file and, if possible, the line.
    """
    text = read_text(path, "a YAML file", LARGEST_FILE)
    with locate_errors(path):
        return parse_yaml(text, until)


def parse_yaml(text: str, until: str = "") -> dict[str, Any]:
    """The mapping in a YAML text; with `until`, only the keys before that one.

    >>> parse_yaml("a: 012\\nb: no\\nc: 1e-5\\nd: [1, 2]")
    {'a': '012', 'b': 'no', 'c': 1e-05, 'd': [1, 2]}
    """
    if invalid := FORBIDDEN.search(text):
        line = text.count("\n", 0, invalid.start()) + 1
        raise ParamcountError(
            f"invalid character {quote(invalid[0])}", where=f"line {line}", expected="printable characters"
        )
    try:
        document = _build_document(text, until)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "syntax error"
        if "nesting depth" in problem:  # libyaml reads ahead of its events and has a limit of its own
            raise _too_deep(_locate(mark)) from None
        raise ParamcountError(
            f"invalid YAML: {make_printable(problem, 80)}", where=_locate(mark), expected="a mapping"
        ) from None
    if not isinstance(document, dict):
        problem = "is empty" if document is None else f"contains {describe_value(document)}"
        raise ParamcountError(problem, expected="a mapping")
    return document


def _locate(mark: yaml.Mark | None) -> str:
    return f"line {mark.line + 1}" if mark is not None else ""


def _too_deep(where: str) -> ParamcountError:
    return ParamcountError("nested too deeply", where=where, expected=f"at most {DEEPEST} levels")


def _build_document(text: str, until: str) -> Any:
    """The document, built from parser events, so that errors have a line and nothing is ever expanded."""
    root: list[Any] = []
    collections: list[Any] = [root]  # the open ones, innermost last
    keys: list[Any] = [None]  # the pending key of each open mapping
    documents = 0
    event: Any
    for event in yaml.parse(text, Loader=LOADER):
        kind = type(event).__name__
        where = _locate(event.start_mark)
        if kind == "DocumentStartEvent":
            documents += 1
            if documents > 1:
                raise ParamcountError("a second document", where=where, expected="one document per file")
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            collections.pop()
            keys.pop()
        elif getattr(event, "anchor", None):  # an alias has one too
            raise ParamcountError("anchors and aliases are not allowed", where=where)
        elif getattr(event, "tag", None):
            raise ParamcountError(f"the tag {make_printable(event.tag, 60)} is not allowed", where=where)
        elif kind in ("ScalarEvent", "MappingStartEvent", "SequenceStartEvent"):
            if kind == "ScalarEvent":
                value: Any = _parse_scalar(event.value, where) if event.implicit[0] else event.value
            else:
                value = {} if kind == "MappingStartEvent" else []
            target = collections[-1]
            if isinstance(target, list):
                target.append(value)
            elif keys[-1] is None:
                if not isinstance(value, str) or not value:
                    raise ParamcountError("a key that is not a string", where=where, expected="the name of a field")
                if value in target:
                    raise ParamcountError(f"duplicate key {quote(value)}", where=where)
                if value == until and len(collections) == 2:
                    break
                keys[-1] = value
                continue
            else:
                target[keys[-1]] = value
                keys[-1] = None
            if kind != "ScalarEvent":
                if len(collections) > DEEPEST:
                    raise _too_deep(where)
                collections.append(value)
                keys.append(None)
    return root[0] if root else None


def _parse_scalar(text: str, where: str) -> Any:
    if text in WORDS:
        return WORDS[text]
    if not NUMBER.fullmatch(text):
        return text
    if len(text) > LONGEST_NUMBER:
        raise ParamcountError(
            f"a number of {len(text):,} characters", where=where, expected=f"at most {LONGEST_NUMBER}"
        )
    if INTEGER.fullmatch(text):
        return int(text)
    if text.lstrip("+-").isdigit():
        return text  # 012 is 10 in YAML 1.1 and 12 in YAML 1.2
    value = float(text)
    if isinf(value):
        raise ParamcountError(f"{text} is too large", where=where, expected="a finite number")
    return value
