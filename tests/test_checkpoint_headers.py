"""Headers of tiny models as the reference implementation saved them: nothing is left over, and every damage is found and named."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from paramcount.checkpoints.sources import opened
from paramcount.checkpoints.verifying import Verification, verified
from paramcount.names import load
from tests.damaging import DAMAGES, a_few, against, told
from tests.headers import HEADERS, NAMES, Tensors, bytes_of, saved, spread, write_header, write_index, write_shards

MANY = "EXAMPLES" in os.environ  # every tensor of every header, and not a few of each
PACKED = [name for name in NAMES if name.endswith(("GPTQ", "AWQ", "MXFP4")) or "-FP8" in name]
PLAIN = [name for name in NAMES if name not in PACKED]
Verify = Callable[..., Verification]


@pytest.fixture
def verify(tmp_path: Path) -> Verify:
    """Verify the tensors of a frozen header, those of its own or others, as a saved header beside its config.json."""

    def call(name: str, tensors: Tensors | None = None) -> Verification:
        (tmp_path / "config.json").write_text(json.dumps(saved(name).config), encoding="utf-8")
        path = write_header(tmp_path / "header.json", saved(name).tensors if tensors is None else tensors)
        return verified(load(saved(name).config), opened(path))

    return call


def in_folder(name: str, folder: Path, path: Path) -> Verification:
    (folder / "config.json").write_text(json.dumps(saved(name).config), encoding="utf-8")
    return verified(load(saved(name).config), opened(path))


def test_there_are_headers_of_many_architectures_all_of_them_small() -> None:
    assert len({saved(name).config["model_type"] for name in NAMES}) >= 25
    assert all(saved(name).source.startswith("transformers 5.23.0") for name in NAMES)
    assert sum(path.stat().st_size for path in HEADERS.glob("*.json")) < 400_000


@pytest.mark.parametrize("name", NAMES)
def test_what_the_reference_saves_is_what_its_config_promises(name: str, verify: Verify) -> None:
    found = verify(name)
    assert (found.ok, told(found)) == (True, "")
    assert found.expected == found.found
    assert (found.shapes_checked, found.by_shape, found.tensors) == (True, 0, len(saved(name).tensors))
    assert found.size.predicted == found.size.found == bytes_of(saved(name).tensors)
    assert {line.said.what for line in found.lines} <= {"buffer", "scale", "zero point", "group index"}


@pytest.mark.parametrize(
    ("name", "scheme"),
    [
        ("deepseek_v3-FP8", "FP8 in blocks of 16 × 16"),
        ("qwen3_moe-FP8_together", "FP8 in blocks of 16 × 16"),
        ("llama-GPTQ", "GPTQ, 4 bits, groups of 16"),
        ("gpt2-GPTQ", "GPTQ, 4 bits, groups of 16"),
        ("llama-AWQ", "AWQ, 4 bits, groups of 16"),
        ("gpt_oss-MXFP4", "MXFP4"),
        ("llama-biases", None),
    ],
)
def test_the_scheme_of_a_quantised_one_is_told(name: str, scheme: str | None, verify: Verify) -> None:
    assert verify(name).scheme == scheme


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", PLAIN)
def test_every_damage_to_a_tensor_is_found_and_named(name: str, damage: str, verify: Verify) -> None:
    tensors = saved(name).tensors
    chosen = list(tensors) if MANY else a_few(list(tensors), 4)
    for case in itertools.chain.from_iterable(DAMAGES[damage](tensors, tensor) for tensor in chosen):
        found = verify(name, case.tensors)
        assert against(found) == set(case.says)
        assert (found.ok, found.faults) == (False, ())


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", PACKED)
def test_every_damage_to_a_packed_tensor_is_found_and_its_module_named(name: str, damage: str, verify: Verify) -> None:
    tensors = saved(name).tensors
    chosen = list(tensors) if MANY else a_few(list(tensors), 8)
    for case in itertools.chain.from_iterable(DAMAGES[damage](tensors, tensor) for tensor in chosen):
        found = verify(name, case.tensors)
        assert not found.ok
        assert case.module in told(found)


@pytest.mark.parametrize("name", NAMES)
def test_a_damage_shows_in_its_component(name: str, verify: Verify) -> None:
    tensors = saved(name).tensors
    table = next(key for key in tensors if "wte" in key or "embed" in key or key == "shared.weight" or "tokens_embed" in key)
    found = verify(name, {key: tensor for key, tensor in tensors.items() if key != table})
    assert found.expected["embedding"] > 0 == found.found["embedding"]
    others = set(found.expected) - {"embedding"}
    assert {key: found.found[key] for key in others} == {key: found.expected[key] for key in others}
