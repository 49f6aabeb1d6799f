"""The commands: reserved words, so that a first word that is none of them is a model."""

from __future__ import annotations

# {command: (module of paramcount.cli, one line for --help)}
COMMANDS = {
    "architectures": ("architectures", "What can be counted from a config.json."),
    "compare": ("compare", "Several models side by side."),
    "list": ("list_models", "The models of the zoo."),
    "scan": ("scan", "Every config.json below a directory."),
    "show": ("show", "One model: total, proof, components, arithmetic."),
    "verify": ("verify", "An entry against its reference and what was published."),
}
