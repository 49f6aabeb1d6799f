"""Which architectures compute the reference's logits, and what the others lack. The second list may only shrink."""

from __future__ import annotations

import warnings

import pytest

from paramcount.api import load
from paramcount.architectures import ARCHITECTURES
from paramcount.counting.sum_weights import list_flows
from paramcount.flow import Undescribed, list_steps
from tests import cases
from tests.type_files import load_all, load_facts

RUNNING = set(load_all("running"))
# {model type: operations without a meaning; empty if the flow is described but was never compared with the reference}
NOT_RUNNING = {name: set(facts["missing_operations"]) for name, facts in load_all("not_running").items()}


def test_every_architecture_is_on_one_of_the_two_lists() -> None:
    assert set(ARCHITECTURES) - RUNNING == set(NOT_RUNNING)


def test_at_least_177_architectures_run() -> None:
    assert len(RUNNING & set(ARCHITECTURES)) >= 177


@pytest.mark.parametrize("name", sorted(name for name, missing in NOT_RUNNING.items() if missing))
def test_an_architecture_that_does_not_run_lacks_exactly_these_operations(name: str) -> None:
    found = set()
    frozen = [case["config"] for case in cases.load_cases().get(name, ()) if "refused" not in case]
    published = [*load_facts(name).get("zoo_configs", {}).values()]
    for config in frozen or published or [{"model_type": name}]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out, _ = next(iter(list_flows(load(config).sizes)))
        found |= {data.operation.label for data, *_ in list_steps(out) if isinstance(data.operation, Undescribed)}
    assert found == NOT_RUNNING[name]
