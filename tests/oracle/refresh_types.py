"""The files of model types, tests/data/types/<model type>.json, as the reference and the architectures have them.

`python -m tests.oracle.refresh_types TYPE…` writes the class and total of the default config, random configs as
the reference builds or refuses them, classes with the head of another task, parameters that no forward pass reads,
aliases of keys, and whether the flow computes the reference's logits; `--only FACT` one of these. It needs torch and
transformers.
What a person writes into a file stays: `vary`, the values that random configs draw; `configs`, small configs to run;
`without_entry`, why the zoo has no such model; `zoo_configs`, the published config.json of each zoo entry.
`python -m tests.oracle.prove TYPE…` then writes the proofs.
"""

from __future__ import annotations

import argparse
from typing import Any

from paramcount.api import load
from paramcount.architectures import ARCHITECTURES, architecture
from paramcount.architectures.task_heads import list_headed_types, list_task_heads
from paramcount.counting.sum_weights import list_flows
from paramcount.flow import Undescribed, list_steps
from tests import model_types
from tests.oracle import aliases, differential, freeze, logits, mappings
from tests.type_files import load_facts, save_fact


def refresh_total(name: str) -> None:
    """The class, and the total of the default config."""
    cls = architecture(name).reference
    needed = load_facts(name).get("vary", {}).get("=", {})
    model = differential.build_model({"model_type": name.partition(".")[0], "architectures": [cls], **needed}, cls)
    save_fact(name, "class", cls)
    save_fact(name, "total", sum(p.numel() for p in model.parameters()))
    model_types.MODEL_TYPES.update(model_types.load_model_types())


def refresh_task_heads(name: str) -> None:
    heads = list_task_heads(name) if name in list_headed_types() else ()
    save_fact(name, "task_heads", {cls: freeze.make_head_cases(f"{name}.{cls}") for cls in sorted(heads)})


def refresh_unreachable(name: str) -> None:
    """The same configs anew; one more if the default config has such parameters and none is frozen."""
    known = [entry["config"] for entry in load_facts(name).get("unreachable", ())]
    found = [freeze.find_unreachable(config) for config in known or [model_types.default_document(name)]]
    save_fact(name, "unreachable", found if known or found[0]["unreachable"] else [])


def refresh_running(name: str) -> None:
    """The configs whose flow computes the reference's logits; or the operations that are missing."""
    flows = list_flows(load(model_types.default_document(name)).sizes)
    operations = [data.operation for flow, _ in flows for data, *_ in list_steps(flow)]
    missing = sorted({operation.label for operation in operations if isinstance(operation, Undescribed)})
    labels: dict[str, Any] = {"": None, **load_facts(name).get("configs", {})}
    full = {label: ", ".join(filter(None, (name, label))) for label in labels}
    running = [] if missing else [label for label, one in full.items() if max(logits.compare(one)) < logits.TOLERANCE]
    save_fact(name, "running", running)
    save_fact(name, "not_running", {} if running else {"missing_operations": missing})


FACTS = {
    "total": refresh_total,
    "cases": lambda name: save_fact(name, "cases", freeze.make_cases(name)),
    "task_heads": refresh_task_heads,
    "unreachable": refresh_unreachable,
    "aliases": lambda name: aliases.freeze([name]),
    "mappings": lambda name: mappings.freeze([name]),
    "running": refresh_running,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.refresh_types", description=__doc__)
    parser.add_argument("types", nargs="+", metavar="TYPE", choices=sorted(ARCHITECTURES))
    parser.add_argument("--only", choices=FACTS, action="append", help="a fact to write (repeatable; default: all)")
    options = parser.parse_args()
    differential.silence()
    for name in options.types:
        for fact in options.only or FACTS:
            FACTS[fact](name)
            print(name, fact, flush=True)


if __name__ == "__main__":
    main()
