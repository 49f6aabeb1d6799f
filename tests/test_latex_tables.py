"""LaTeX: tables that go into a paper as they are."""

from __future__ import annotations

import re
from typing import Any

import pytest

from paramcount.output.latex_tables import render_latex
from paramcount.output.tables import Column, Table
from tests.running import Runner

COMMANDS = [
    ["gpt2-small"], ["deepseek-v3"], ["compare", "gpt2-*", "deepseek-v3"], ["diff", "llama-2-7b", "llama-3.1-8b"],
    ["verify", "qwen2.5-32b"], ["list", "llama"],
    ["why", "deepseek-v3"], ["trace", "gpt2-small"], ["architectures"], ["show", "jamba-v0.1", "--by", "layer"],
]  # fmt: skip


def parse_latex(text: str) -> list[Any]:
    walker = pytest.importorskip("pylatexenc.latexwalker")
    nodes: list[Any] = walker.LatexWalker(text, tolerant_parsing=False).get_latex_nodes()[0]
    return nodes


@pytest.mark.parametrize("command", COMMANDS)
def test_a_table_is_a_float_with_booktabs_rules_a_caption_and_a_label(command: list[str], run: Runner) -> None:
    text = run(*command, "--latex").out
    assert parse_latex(text)
    for part in (r"\begin{table}", r"\caption{", r"\label{tab:", r"\toprule", r"\bottomrule", r"\end{table}"):
        assert text.count(part) == 1
    assert r"\hline" not in text
    assert text.isascii()
    columns = re.search(r"\\begin\{tabular\}\{([lr]*)(p\{[^}]*\})?\}", text)
    assert columns
    n = len(columns[1]) + bool(columns[2])
    rows = [line for line in text.splitlines() if line.endswith(r" \\")]
    assert rows and {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {n - 1}


def test_a_row_that_begins_with_a_bracket_or_star_is_protected_from_the_preceding_line() -> None:
    table = Table(
        [Column("a", "[a]", right=False), Column("b", "b")], [["[5pt]", 1], ["*x", 2], ["x", 3]], None, caption="T"
    )
    lines = render_latex(table).splitlines()
    assert lines[6:13] == [
        r"\toprule",
        r"{}[a] & b \\",
        r"\midrule",
        r"{}[5pt] & 1 \\",
        r"{}*x & 2 \\",
        r"x & 3 \\",
        r"\bottomrule",
    ]


def test_everything_is_escaped() -> None:
    name = r"\input{x} 50% #1 $a_b^c$ ~ & {} <|> -- `` ''"
    text = render_latex(Table([Column("a", name)], [[name]], None, above=[name], below=[name]))
    escaped = (
        r"\textbackslash{}input\{x\} 50\% \#1 \$a\_b\textasciicircum{}c\$ \textasciitilde{} \& \{\} "
        r"\textless{}\textbar{}\textgreater{} -{}- `{}` '{}'"
    )
    assert text.count(escaped) == 4
    assert parse_latex(text)
