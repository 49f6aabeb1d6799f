"""The zoo models in a checkpoint: those with exactly its tensors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from math import prod
from typing import NamedTuple

import paramcount.zoo as zoo
from paramcount.checkpoints.checkpoint import Checkpoint
from paramcount.checkpoints.findings import DUPLICATE
from paramcount.checkpoints.name_meanings import Meanings, read_meanings
from paramcount.checkpoints.packed.quantised import Unpacked
from paramcount.checkpoints.verify import Verification, verify_checkpoint
from paramcount.errors import ParamcountError
from paramcount.zoo import count_model
from paramcount.zoo.columns import FIELDS
from paramcount.zoo.packaged import read_packaged_rows

MAX_RATIO = 10  # a file with more tensors, relative to the model, contains something else
MIN_TENSORS_PER_DIFFERENCE = 20  # for the nearest model
WIDTHS = (2, 4)  # bytes per value if only an index gives the size
MOST_TENSORS = 100_000  # more than any model of the zoo has: Qwen3-Next has 74,391
COUNTS = ("total", "language_model", "embedding", "lm_head", "buffers", "mtp", "n_layers", "d_model", "vocab_size")


class Nearest(NamedTuple):
    """The zoo model with the fewest differing tensors."""

    id: str
    differing: int  # tensors that are missing, unexpected or have another shape


class Identification(NamedTuple):
    """The zoo models in a checkpoint, or the nearest one."""

    ids: tuple[str, ...]  # of all models whose tensors the checkpoint contains
    verification: Verification | None  # of the first of them
    nearest: Nearest | None  # if there are none


def identify_models(checkpoint: Checkpoint, content: Unpacked, meanings: Meanings) -> Identification:
    tried: list[Verification] = []
    found: list[Verification] = []
    nearest = None
    for id in find_candidates(checkpoint, content, meanings):
        model = zoo.load_entry(id)
        if len(content.tensors) > MAX_RATIO * sum(tensor.copies for tensor in count_model(model).tensors):
            continue
        verification = find_equal_verification(model, tried)
        if verification is None:
            try:
                verification = verify_checkpoint(model, checkpoint, content)
            except ParamcountError:  # a GGUF file of another architecture
                continue
        tried.append(verification)
        differing = sum(not finding.ok for finding in verification.findings.values())
        if not differing:
            found.append(verification)
        elif differing * MIN_TENSORS_PER_DIFFERENCE <= len(checkpoint.tensors) and (
            nearest is None or differing < nearest.differing
        ):
            nearest = Nearest(id, differing)
    if found:
        # Values that are not available may be those of an LM head or a copy of the embedding: an LM head comes first.
        found.sort(key=lambda each: sum(finding.what == DUPLICATE for finding in each.findings.values()))
        return Identification(tuple(verification.model.id for verification in found), found[0], None)
    return Identification((), None, nearest)


def find_zoo_models(checkpoint: Checkpoint, content: Unpacked) -> tuple[str, ...]:
    """Ids of the zoo models in a checkpoint. `content`: the unpacked checkpoint."""
    if len(content.tensors) > MOST_TENSORS:
        return ()
    meanings = read_meanings({name: logical.shape for name, logical in content.tensors.items()})
    return identify_models(checkpoint, content, meanings).ids


def find_equal_verification(model: zoo.Model, tried: Iterable[Verification]) -> Verification | None:
    """That of a model of the same architecture, class and sizes, for this model, or None."""
    for verification in tried:
        other = verification.model
        if (other.architecture, other.reading, other.sizes) == (model.architecture, model.reading, model.sizes):
            return replace(verification, model=model)
    return None


def find_candidates(checkpoint: Checkpoint, content: Unpacked, meanings: Meanings) -> Iterator[str]:
    """Ids of models with the checkpoint's vocabulary size, number of layers and approximate size.

    Without an embedding and an LM head no tensor has the vocabulary size: encoders of images and of sounds.
    """
    shapes = [logical.shape for logical in content.tensors.values() if logical.shape]
    rows, values = {size for shape in shapes if len(shape) == 2 for size in shape}, sum(map(prod, shapes))
    layers = {*meanings.stacks.values(), sum(meanings.stacks.values())}
    for id, row in read_rows():
        if layers - {1} and row["n_layers"] not in (0, *layers):  # layers that share their weights are stored once
            continue
        total, vocab_size, d_model = row["total"], row["vocab_size"], row["d_model"]
        if not shapes:
            sizes = [width * (total + buffers) for width in WIDTHS for buffers in (0, row["buffers"])]
            is_candidate = checkpoint.total_size in sizes
        else:
            most = total + row["mtp"] + 2 * vocab_size * d_model
            has_vocabulary = row["embedding"] + row["lm_head"] > 0
            fits_rows = vocab_size in (0, *rows) or not has_vocabulary
            is_candidate = fits_rows and is_near(values, row["language_model"], most)
        if is_candidate:
            yield id


def is_near(values: int, least: int, most: int) -> bool:
    """Whether the size is in the range, with a tolerance for missing tensors, added buffers and masks."""
    return 4 * least <= 5 * values and 4 * values <= 5 * most


def read_rows() -> Iterator[tuple[str, Mapping[str, int]]]:
    """Counts and sizes of every built-in model with published sizes."""
    fields = [field for field in FIELDS if field.name in ("id", *COUNTS)]
    names = [field.name for field in fields]
    for row in read_packaged_rows(fields):
        values = dict(zip(names, row))
        if values["total"] is not None:
            yield values.pop("id"), {name: value or 0 for name, value in values.items()}
