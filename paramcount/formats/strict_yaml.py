"""A strict subset of YAML for data files: no tags, anchors or aliases, no duplicate keys, plain numbers only."""

from __future__ import annotations

import re
from math import isinf
from pathlib import Path
from typing import Any

import yaml

from paramcount.errors import ParamcountError, make_printable, quote
from paramcount.formats.files import read_text

LARGEST_FILE = 1 << 20  # bytes: a zoo entry has two or three thousand
DEEPEST = 12
LOADER = getattr(yaml, "CLoader", yaml.Loader)  # libyaml's parser where present; only its events are used

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
    try:
        return parse_yaml(text, until)
    except ParamcountError as error:
        raise error.add_location(make_printable(path)) from None


def parse_yaml(text: str, until: str = "") -> dict[str, Any]:
    """The mapping in a YAML text; with `until`, only the keys before that one.

    >>> parse_yaml("a: 012\\nb: no\\nc: 1e-5\\nd: [1, 2]")
    {'a': '012', 'b': 'no', 'c': 1e-05, 'd': [1, 2]}
    """
    if strange := FORBIDDEN.search(text):
        line = text.count("\n", 0, strange.start()) + 1
        raise ParamcountError(f"the character {quote(strange[0])}", where=f"line {line}", expected="printable text")
    try:
        found = _document(text, until)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "is not YAML"
        raise ParamcountError(
            f"is not YAML: {make_printable(problem, 80)}", where=_line(mark), expected="a mapping of fields"
        ) from None
    if not isinstance(found, dict):
        raise ParamcountError("is empty" if found is None else "holds no mapping", expected="a mapping of fields")
    return found


def _line(mark: Any) -> str:
    return f"line {mark.line + 1}" if mark is not None else ""


def _document(text: str, until: str) -> Any:
    """Builds the mapping from parser events, so that errors have a line and nothing is ever expanded."""
    root: list[Any] = []
    open_: list[Any] = [root]  # the collections being filled
    keys: list[Any] = [None]  # the pending key of each open mapping
    documents = 0
    event: Any
    for event in yaml.parse(text, Loader=LOADER):
        kind = type(event).__name__
        where = _line(event.start_mark)
        if kind == "DocumentStartEvent":
            documents += 1
            if documents > 1:
                raise ParamcountError("a second document", where=where, expected="one document a file")
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            open_.pop()
            keys.pop()
        elif getattr(event, "anchor", None):  # an alias has one too
            raise ParamcountError("an anchor or alias", where=where, expected="every value written out")
        elif getattr(event, "tag", None):
            raise ParamcountError(f"the tag {make_printable(event.tag, 60)}", where=where, expected="no tags")
        elif kind in ("ScalarEvent", "MappingStartEvent", "SequenceStartEvent"):
            if kind == "ScalarEvent":
                value: Any = _scalar(event.value, where) if event.implicit[0] else event.value
            else:
                value = {} if kind == "MappingStartEvent" else []
            target = open_[-1]
            if isinstance(target, list):
                target.append(value)
            elif keys[-1] is None:
                if not isinstance(value, str) or not value:
                    raise ParamcountError("a key that is not a text", where=where, expected="the name of a field")
                if value in target:
                    raise ParamcountError(
                        f"the key {make_printable(value, 60)} a second time", where=where, expected="every key once"
                    )
                if value == until and len(open_) == 2:
                    break
                keys[-1] = value
                continue
            else:
                target[keys[-1]] = value
                keys[-1] = None
            if kind != "ScalarEvent":
                if len(open_) > DEEPEST:
                    raise ParamcountError("nested too deep", where=where, expected=f"at most {DEEPEST} levels")
                open_.append(value)
                keys.append(None)
    return root[0] if root else None


def _scalar(text: str, where: str) -> Any:
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
        return text  # 012: ten to some readers, twelve to others
    value = float(text)
    if isinf(value):
        raise ParamcountError(f"{text} is too large for a number", where=where, expected="an integer")
    return value
