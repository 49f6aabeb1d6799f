"""The commands in the groups and the order of `--help`. Their names are `RESERVED` in `paramcount.zoo.names`."""

from __future__ import annotations

# {heading: {command: (module of paramcount.cli, one line for --help)}}
GROUPS = {
    "Models": {
        "show": ("show", "Show one model: total, components and arithmetic."),
        "compare": ("compare", "Compare models side by side."),
        "diff": ("diff", "Show which sizes and components differ between two models."),
        "list": ("list_models", "List the models in the zoo."),
    },
    "Inside a model": {
        "explain": ("explain", "Explain each component: formula, numbers, value."),
        "trace": ("trace", "Trace a forward pass: every operation with its shapes."),
        "draw": ("draw", "Draw every matrix of a model to scale."),
        "report": ("report", "Write an HTML page about one or more models."),
    },
    "Checks": {
        "why": ("why", "Find out what a published number or a checkpoint counts."),
        "verify": ("verify", "Check a model against its reference, published figures or a checkpoint."),
        "audit": ("audit", "Check tables of claims about models."),
        "scan": ("scan", "Count every config.json below a directory."),
    },
    "Reference": {
        "architectures": ("architectures", "List the architectures that paramcount can count."),
        "docs": ("docs", "Read the guides."),
        "help": ("help", "Show help for a command."),
        "schema": ("schema", "Print the JSON Schema of a command's --json output."),
    },
}
COMMANDS = {name: place for group in GROUPS.values() for name, place in group.items()}
