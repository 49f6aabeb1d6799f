"""YAML for data and nothing more, with libyaml's parser and with Python's; files that are none; bombs."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import paramcount as pc
import paramcount.zoo as zoo
from paramcount.errors import join_place
from paramcount.formats import strict_yaml
from paramcount.formats.strict_yaml import parse_yaml
from tests.refusing import Refuse, assert_one_line, model_error

PARSERS = [parser for parser in (getattr(yaml, "CLoader", None), yaml.Loader) if parser]
WRITTEN_OUT = "anchors and aliases are not allowed"
TOO_DEEP = "nested too deeply (expected at most 12 levels)"
PRINTABLE = "(expected printable characters)"
LAUGHS = "a: &a [x, x]\n" + "".join(
    f"{b}: &{b} [*{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.fixture(params=PARSERS, ids=lambda parser: str(parser.__name__))
def _each_parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strict_yaml, "LOADER", request.param)


pytestmark = pytest.mark.usefixtures("_in_an_empty_directory")


def yaml_error(text: str) -> str:
    with pytest.raises(pc.ParamcountError) as caught:
        parse_yaml(text)
    assert_one_line(str(caught.value))
    return str(caught.value)


@pytest.mark.usefixtures("_each_parser")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a: 12", 12), ("a: -12", -12), ("a: +12", 12), ("a: 0", 0), ("a: " + "9" * 100, int("9" * 100)),
        ("a: 1e-5", 1e-5), ("a: 1.5", 1.5), ("a: 12.", 12.0),
        ("a: 012", "012"), ("a: 0x1F", "0x1F"), ("a: 1_000", "1_000"), ("a: 1:30", "1:30"), ("a: .5", ".5"),
        ("a: .inf", ".inf"), ("a: １２", "１２"),
        ("a: no", "no"), ("a: Yes", "Yes"), ("a: on", "on"), ("a: True", "True"), ("a: true", True),
        ("a: false", False),
        ("a: ~", None), ("a: null", None), ("a:", None), ("a: ''", ""), ("a: 'null'", "null"), ("a: '12'", "12"),
        ('a: "true"', "true"),
        ("a: 2024-07-23", "2024-07-23"), ("a: =", "="), ("a: '<<'", "<<"), ("a: |\n  x\n", "x\n"),
        ("a: [1, [x, ~]]", [1, ["x", None]]),
        ("a: {b: 1, c: {}}", {"b": 1, "c": {}}), ("a: 12\r\nb: 3\r\n", 12), ("\ufeffa: 1", 1), ("---\na: 1\n...\n", 1),
        ("%YAML 1.1\n---\na: 1", 1),
        ('a: "\\u0041\\x41"', "AA"), ("a: é中😀", "é中😀"),
    ],
)  # fmt: skip
def test_only_plain_numbers_are_parsed_as_numbers(text: str, found: object) -> None:
    value = parse_yaml(text)["a"]
    assert (type(value), value) == (type(found), found)


@pytest.mark.usefixtures("_each_parser")
def test_a_merge_key_is_an_ordinary_key() -> None:
    assert parse_yaml("<<: {a: 1}") == {"<<": {"a": 1}}


@pytest.mark.usefixtures("_each_parser")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\na: 2", "line 2: duplicate key 'a'"),
        ("a:\n  b: 1\n  'b': 1", "line 3: duplicate key 'b'"),
        ("a: {b: 1, b: 2}", "line 1: duplicate key 'b'"),
        ("\n1: a", "line 2: a key that is not a string (expected the name of a field)"),
        ("null: a", "line 1: a key that is not a string (expected the name of a field)"),
        ("'': a", "line 1: a key that is not a string (expected the name of a field)"),
        ("? [a]\n: 1", "line 1: a key that is not a string (expected the name of a field)"),
        ("a: !!int 12", "line 1: the tag tag:yaml.org,2002:int is not allowed"),
        ("a: 1\nb: !x 12", "line 2: the tag !x is not allowed"),
        ("!!map {a: 1}", "line 1: the tag tag:yaml.org,2002:map is not allowed"),
        ("a: !!set {b}", "line 1: the tag tag:yaml.org,2002:set is not allowed"),
        ("a: !!python/object/apply:os.system [id]",
         "line 1: the tag tag:yaml.org,2002:python/object/apply:os.system is not allowed"),
        ("a: &b 12", f"line 1: {WRITTEN_OUT}"),
        ("a: &b [1]", f"line 1: {WRITTEN_OUT}"),
        ("&b a: 1", f"line 1: {WRITTEN_OUT}"),
        ("a: *b", f"line 1: {WRITTEN_OUT}"),
        ("*b : 1", f"line 1: {WRITTEN_OUT}"),
        ("a: &b {c: *b}", f"line 1: {WRITTEN_OUT}"),
        (LAUGHS, f"line 1: {WRITTEN_OUT}"),
        ("a: 1\n---\nb: 2", "line 2: a second document (expected one document per file)"),
        ("", "is empty (expected a mapping)"),
        (" \n# nothing\n", "is empty (expected a mapping)"),
        ("---\n...\n", "is empty (expected a mapping)"),
        ("null", "is empty (expected a mapping)"),
        ("[a]", "contains ['a'] (expected a mapping)"),
        ("gpt2-small", "contains 'gpt2-small' (expected a mapping)"),
        ("12", "contains 12 (expected a mapping)"),
        ("a: " + "1" * 1_000_000, "line 1: a number of 1,000,000 characters (expected at most 100)"),
        ("a: -" + "1" * 100_000, "line 1: a number of 100,001 characters (expected at most 100)"),
        ("a: 1\nb: 1." + "1" * 100_000, "line 2: a number of 100,002 characters (expected at most 100)"),
        ("a: 1e999", "line 1: 1e999 is too large (expected a finite number)"),
        ("[" * 10_000, f"line 1: {TOO_DEEP}"),
        ("a: " + "{a: " * 10_000, f"line 1: {TOO_DEEP}"),
        ("[" * 10_000 + "]" * 10_000, f"line 1: {TOO_DEEP}"),
        ("- " * 10_000, f"line 1: {TOO_DEEP}"),
        ("".join(f"{' ' * i}a:\n" for i in range(1000)), f"line 13: {TOO_DEEP}"),
        ("".join(f"{' ' * i}- \n" for i in range(1000)), f"line 13: {TOO_DEEP}"),
        ("a: 1\nb: \0", rf"line 2: invalid character '\x00' {PRINTABLE}"),
        ("a: \x1b[31m", rf"line 1: invalid character '\x1b' {PRINTABLE}"),
        ("a: 1\n\n\x07: \x08", rf"line 3: invalid character '\x07' {PRINTABLE}"),
        ("é: é\nb: \x7f", rf"line 2: invalid character '\x7f' {PRINTABLE}"),
        ("a: \ud800", rf"line 1: invalid character '\ud800' {PRINTABLE}"),
        ("a: \ufffe", rf"line 1: invalid character '\ufffe' {PRINTABLE}"),
    ],
)  # fmt: skip
def test_anything_but_plain_data_is_an_error_with_its_line(text: str, message: str) -> None:
    assert yaml_error(text) == message


@pytest.mark.usefixtures("_each_parser")
@pytest.mark.parametrize(
    "text",
    [
        "a: [1,2",
        "a: {b",
        "a: 'b",
        "a: b: c",
        "\t- a",
        "@a: 1",
        "a: %b\n%",
        "a:\n b\n- c",
        "]",
        "k" * 1_000_000 + ": 1",
        "%YAML 3.0\n---\na: 1",
    ],
)
def test_invalid_yaml_is_an_error_with_its_line(text: str) -> None:
    message = yaml_error(text)
    assert message.startswith("line ")
    assert ": invalid YAML: " in message
    assert message.endswith("(expected a mapping)")


@pytest.mark.usefixtures("_each_parser")
def test_twelve_levels_are_enough_and_thirteen_too_many() -> None:
    assert parse_yaml("a: " + "[" * 11 + "]" * 11)
    assert yaml_error("a: " + "[" * 12 + "]" * 12) == f"line 1: {TOO_DEEP}"


def test_a_key_of_a_megabyte_is_an_unknown_field(refuse: Refuse) -> None:
    Path("x.yaml").write_text("architecture: llama\nconfig:\n  ? " + "k" * 1_000_000 + "\n  : 1\n", encoding="utf-8")
    message = refuse("./x.yaml")
    assert message.startswith("x.yaml: config.kkkk")
    assert "…" in message
    assert message.endswith(" or 5 others)")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty (expected a mapping)"),
        (b"\n\n", "is empty (expected a mapping)"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "is not valid UTF-8 (expected a YAML file)"),
        (b"\x1f\x8b\x08\0\0\0\0\0", "is not valid UTF-8 (expected a YAML file)"),
        (b"a: \xff", "is not valid UTF-8 (expected a YAML file)"),
        (b"a: \xed\xa0\x80", "is not valid UTF-8 (expected a YAML file)"),  # a surrogate
        ("a: 1".encode("utf-16"), "is not valid UTF-8 (expected a YAML file)"),
        ("a: 1".encode("utf-16-le"), rf"line 1: invalid character '\x00' {PRINTABLE}"),
        (b"\x7fELF\x02\x01\x01\0", rf"line 1: invalid character '\x7f' {PRINTABLE}"),
        (b"config: 1\nconfig: 2\n", "line 2: duplicate key 'config'"),
        (b"#" * (2**20 + 1), "is too large (expected a YAML file of at most 1,048,576 bytes)"),
        (b"id: a", "architecture is missing (expected architecture and config, or estimate: true and claims)"),
    ],
)
def test_a_file_without_an_entry_is_an_error_that_names_it(content: bytes, message: str, refuse: Refuse) -> None:
    Path("x.yaml").write_bytes(content)
    assert refuse("x.yaml", "-o", "out.csv") == join_place("x.yaml", message)
    assert model_error(Path("x.yaml")) == model_error("./x.yaml") == join_place("x.yaml", message)


def test_a_byte_order_mark_and_windows_line_ends_are_read(tmp_path: Path) -> None:
    path = zoo.find_path("gpt2-small")
    assert path
    copy = tmp_path / "gpt2-small.yaml"
    copy.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert pc.load(copy) == pc.load("gpt2-small")


def test_only_the_beginning_of_an_endless_file_is_read(refuse: Refuse) -> None:
    Path("x.yaml").touch()
    os.truncate("x.yaml", 2**40)
    assert refuse("x.yaml") == "x.yaml is too large (expected a YAML file of at most 1,048,576 bytes)"


NOT_A_FILE = "is not a file (expected a YAML file)"


@pytest.fixture
def _in_five_seconds() -> Iterator[None]:
    def raise_timeout(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, raise_timeout)
    signal.alarm(5)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("_in_five_seconds")
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("nothing", "cannot be read: No such file or directory"),
        ("directory", NOT_A_FILE),
        ("pipe", NOT_A_FILE),
        ("link to nothing", "is a broken link"),
        ("link to itself", "cannot be read: Too many levels of symbolic links"),
        ("link to /dev/zero", NOT_A_FILE),
        ("link to /dev/null", NOT_A_FILE),
        ("link to .", NOT_A_FILE),
    ],
)
def test_anything_but_a_file_is_rejected_without_waiting(kind: str, message: str, refuse: Refuse) -> None:
    match kind:
        case "directory":
            Path("x.yaml").mkdir()
        case "pipe":
            os.mkfifo("x.yaml")
        case _ if kind.startswith("link"):
            Path("x.yaml").symlink_to({"itself": "x.yaml"}.get(kind[8:], kind[8:]))
    assert refuse("x.yaml") == join_place("x.yaml", message)
    assert model_error(Path("x.yaml")) == join_place("x.yaml", message)


def test_an_unreadable_file_is_an_error(monkeypatch: pytest.MonkeyPatch, refuse: Refuse) -> None:
    def raise_denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    Path("x.yaml").write_text("a: 1", encoding="utf-8")
    monkeypatch.setattr(Path, "open", raise_denied)  # root may read everything
    assert refuse("x.yaml") == "x.yaml cannot be read: Permission denied"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("x\0.yaml", r"x\x00.yaml cannot be read: invalid file name"),
        ("\ud800.yaml", r"\ud800.yaml cannot be read: invalid file name"),
        ("x" * 300 + ".yaml", f"{'x' * 99}…{'x' * 95}.yaml cannot be read: File name too long"),
        ("x.yaml/y.yaml", "x.yaml/y.yaml cannot be read: Not a directory"),
        ("~\0/x.yaml", r"~\x00/x.yaml cannot be read: no such home directory"),
        ("~no-such-person/x.yaml", "~no-such-person/x.yaml cannot be read: no such home directory"),
        ("\x1b[31m\u202e.yaml", r"\x1b[31m\u202e.yaml cannot be read: No such file or directory"),
        ("/" + "x/" * 50_000 + "y.yaml", f"/{'x/' * 49}…{'x/' * 47}y.yaml cannot be read: File name too long"),
    ],
)
def test_an_invalid_path_is_an_error(name: str, message: str, refuse: Refuse) -> None:
    Path("x.yaml").touch()
    assert refuse(name) == message
    assert model_error(Path(name)) == model_error(name) == message
