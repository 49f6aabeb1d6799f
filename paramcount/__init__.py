"""Exact parameter counts of language models, from the config alone, with the arithmetic."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paramcount.auditing.audits import Audit, audit
    from paramcount.changing import what_if
    from paramcount.checkpoints.alone import StoredCount, stored_in
    from paramcount.checkpoints.verifying import Verification, verify
    from paramcount.comparing import compare
    from paramcount.counting import Count, count
    from paramcount.differing import Difference, diff
    from paramcount.drawing.bars import plot
    from paramcount.drawing.pictures import draw
    from paramcount.drawing.reports import report
    from paramcount.drawing.shapes import Drawing
    from paramcount.errors import ConfigWarning, ParamcountError
    from paramcount.explaining.explained import explain
    from paramcount.explaining.explanation import Explanation
    from paramcount.explaining.formulated import formula
    from paramcount.explaining.published import why
    from paramcount.names import load
    from paramcount.stored import Tensor
    from paramcount.tracing.sending import trace
    from paramcount.zoo import Model

__version__ = "0.1.0"

# {public name: the module that has it}; loaded on first use, so that importing paramcount costs nothing.
_PUBLIC = {
    "Audit": "auditing.audits",
    "ConfigWarning": "errors",
    "Count": "counting",
    "Difference": "differing",
    "Drawing": "drawing.shapes",
    "Explanation": "explaining.explanation",
    "Model": "zoo",
    "ParamcountError": "errors",
    "StoredCount": "checkpoints.alone",
    "Tensor": "stored",
    "Verification": "checkpoints.verifying",
    "audit": "auditing.audits",
    "compare": "comparing",
    "count": "counting",
    "diff": "differing",
    "draw": "drawing.pictures",
    "explain": "explaining.explained",
    "formula": "explaining.formulated",
    "load": "names",
    "plot": "drawing.bars",
    "report": "drawing.reports",
    "stored_in": "checkpoints.alone",
    "trace": "tracing.sending",
    "verify": "checkpoints.verifying",
    "what_if": "changing",
    "why": "explaining.published",
}
__all__ = [
    "Audit",
    "ConfigWarning",
    "Count",
    "Difference",
    "Drawing",
    "Explanation",
    "Model",
    "ParamcountError",
    "StoredCount",
    "Tensor",
    "Verification",
    "__version__",
    "audit",
    "compare",
    "count",
    "diff",
    "draw",
    "explain",
    "formula",
    "load",
    "plot",
    "report",
    "stored_in",
    "trace",
    "verify",
    "what_if",
    "why",
]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PUBLIC[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
