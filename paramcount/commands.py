"""The commands: reserved words, so that a first word that is none of them is a model."""

from __future__ import annotations

# {command: (module of paramcount.cli, one line for --help)}
COMMANDS = {
    "compare": ("compare", "Several models side by side."),
    "list": ("list_models", "The models of the zoo."),
    "show": ("show", "One model: total, proof, components, arithmetic."),
    "verify": ("verify", "An entry against its reference and what was published."),
}
