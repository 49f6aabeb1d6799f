"""The commands of the command line, in the order of `--help`. Their names are `RESERVED` in `paramcount.zoo.names`."""

from __future__ import annotations

# {command: (module of paramcount.cli, one line for --help)}
COMMANDS = {
    "architectures": ("architectures", "What can be counted from a config.json."),
    "audit": ("audit", "Tables of claims about models: what is right, rounded or wrong."),
    "compare": ("compare", "Several models side by side."),
    "diff": ("diff", "What differs between two models, and where the parameters come from."),
    "draw": ("draw", "A picture to scale: every matrix, data blue, weights grey."),
    "explain": ("explain", "Where the parameters come from: formulas, with a model's numbers in them."),
    "help": ("help", "Help for one command."),
    "list": ("list_models", "The models of the zoo."),
    "report": ("report", "One HTML page: numbers, formulas, trace, drawing, sources."),
    "scan": ("scan", "Every config.json below a directory."),
    "schema": ("schema", "Print the JSON Schema of a command's --json output."),
    "show": ("show", "One model, or a checkpoint: total, proof, components, arithmetic."),
    "trace": ("trace", "The life of a tensor: every operation in order, in shapes."),
    "verify": ("verify", "An entry against its reference and what was published; a checkpoint against its config."),
    "why": ("why", "Why somebody else says a different number."),
}
