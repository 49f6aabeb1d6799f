"""Formulas: each value is worked out anew from what is printed, for every model and every architecture, as text and in LaTeX."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
from paramcount import zoo
from paramcount.config_json import from_config
from paramcount.counting import count_sizes, counted
from paramcount.explaining.explanation import Explanation
from paramcount.explaining.heads import attentions, matrices_of
from paramcount.explaining.layers import stacks
from paramcount.explaining.pieces import walk
from paramcount.explaining.wording import latex, markdown, text
from tests import test_mutants
from tests.cases import load
from tests.printed import of_latex, of_text, page
from tests.refusing import command_refusal
from tests.running import Runner

GOLDEN = Path(__file__).parent / "golden" / "explain"
ZOO = [id for id in zoo.ids() if not zoo.entry(id).estimate]
CASES = {f"{name}-{i}": case["config"] for name, cases in load().items() for i, case in list(built(cases))[:2]} if False else {}
