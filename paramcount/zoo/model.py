"""The type `Model`: sizes, how they were read, and the zoo entry."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from paramcount.counting.count import Count, count_sizes
from paramcount.counting.results import describe_result
from paramcount.errors import ParamcountError
from paramcount.sizes import Sizes
from paramcount.sizes.reading import Reading, with_document
from paramcount.zoo.entries import Checked, Claim, Entry, Published, Release, Source, list_storage_keys

QUANTISATION_KEYS = {"quantization_config", "compression_config"}


@dataclass(frozen=True, repr=False)
class Model:
    """A model: its sizes, how they were read, and its zoo entry.

    It comes from a zoo entry, from a config.json or from a change of sizes (`paramcount.what_if`).
    """

    id: str
    name: str
    config: Sizes | None  # `sizes`; None for a third-party estimate
    architecture: str | None
    reading: Reading = field(hash=False)
    context_length: int | None = None
    entry: Entry | None = field(default=None, hash=False, repr=False)  # None unless it is in the zoo
    is_own: bool = False  # an entry that the user added
    original: Model | None = field(default=None, hash=False, repr=False)  # of a what-if: the model before all changes
    changes: Mapping[str, tuple[Any, Any]] = field(default_factory=dict, hash=False)  # {size: (before, after)}
    adapter: Mapping[str, Any] | None = field(default=None, hash=False, repr=False)  # an adapter_config.json of PEFT

    def __repr__(self) -> str:
        return describe_result(self, "id", "name", "architecture")

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the config.json that the model was read from."""
        return self.reading.warnings

    @property
    def sizes(self) -> Sizes:
        """The sizes of the architecture, which read their settings from the config.json or the zoo entry.

        Raises: ParamcountError for a third-party estimate, which has none.
        """
        if self.config is None:
            found = f"is a third-party estimate; its sizes are unpublished; run `paramcount {self.id} --estimates`"
            raise ParamcountError(found, where=self.id)
        return self.config

    @property
    def stated(self) -> Mapping[str, Any] | None:
        """The keys of the config.json, or those that the zoo entry keeps beside the sizes; None if there is neither."""
        return self.entry.settings if self.entry else self.reading.document

    @property
    def estimate(self) -> bool:
        """Whether there are only third-party estimates of its size."""
        return self.entry is not None and self.entry.estimate

    @property
    def family(self) -> str | None:
        return self.entry.family if self.entry else None

    @property
    def publisher(self) -> str | None:
        return self.entry.publisher if self.entry else None

    @property
    def released(self) -> datetime.date | None:
        return self.entry.released if self.entry else None

    @property
    def hf(self) -> str | None:
        """The Hugging Face id."""
        return self.entry.hf if self.entry else None

    @property
    def aliases(self) -> tuple[str, ...]:
        return self.entry.aliases if self.entry else ()

    @property
    def checked(self) -> Checked | str:
        """The reference's own count, or "unverified"."""
        return self.entry.checked if self.entry else "unverified"

    @property
    def release(self) -> Release | None:
        """The contents of the released files besides parameters and buffers."""
        return self.entry.release if self.entry else None

    @property
    def storage_keys(self) -> Mapping[str, Any]:
        """The keys of the config.json that say how the weights are stored, or those that the zoo entry states."""
        if self.entry is None:
            return self.reading.document
        config = self.entry.quantization_config
        return {} if config is None else list_storage_keys(config)

    @property
    def claims(self) -> tuple[Claim, ...]:
        return self.entry.claims if self.entry else ()

    @property
    def sources(self) -> tuple[Source, ...]:
        return self.entry.sources if self.entry else ()

    @property
    def published(self) -> tuple[Published, ...]:
        return self.entry.published if self.entry else ()

    @property
    def notes(self) -> tuple[str, ...]:
        return self.entry.notes if self.entry else ()


def make_model(entry: Entry) -> Model:
    """The model of a zoo entry. Its scope is the whole reference class."""
    sizes = entry.config and with_document(entry.config, entry.settings)
    if entry.reference is None or sizes is None:
        reading = Reading(sizes.reference.partition(" ")[0] if sizes else "")
    else:
        reading = read_as_class(entry.reference, type(sizes))
    return Model(entry.id, entry.name, sizes, entry.architecture, reading, entry.context_length, entry)


def read_as_class(reference: str, architecture: type[Sizes]) -> Reading:
    """How a model is counted that is a given class of its architecture."""
    from paramcount.architectures.classes import has_lm_head

    has_head = has_lm_head(architecture, reference)
    return Reading(reference, has_head, not_counted=() if has_head else ("lm_head",))


def count_model(model: Model) -> Count:
    """The count of a model, with the contents of its released files if its zoo entry states them."""
    reading, release = model.reading, model.release
    count = count_sizes(
        model.sizes,
        model.id,
        reading.head,
        cached=True,
        scope=reading.scope,
        not_counted=reading.not_counted,
        warnings=reading.warnings,
        reading_notes=reading.notes,
        architecture=model.architecture or "",
        reference=reading.reference,
        quantised_by=(release, model.storage_keys) if is_quantised(model) else None,
    )
    if release is None:
        return count
    return replace(count, release=list_release_items(count, release), quantisation=release.quantisation)


def is_quantised(model: Model) -> bool:
    """Whether the weights are quantised, according to the zoo entry or the config.json."""
    if model.release and model.release.quantisation is not None:
        return True
    document = model.storage_keys
    if not QUANTISATION_KEYS.isdisjoint(document):
        return True
    language_model, block = document.get("text_config"), document.get("quantization")  # the second is MLX's
    if language_model and isinstance(language_model, Mapping) and not QUANTISATION_KEYS.isdisjoint(language_model):
        return True
    return bool(block) and isinstance(block, Mapping) and "bits" in block and "group_size" in block


def list_release_items(count: Count, release: Release) -> dict[str, int]:
    """The contents of the released files: {item: number of values}."""
    items = {"total": count.total, "buffers": count.buffers}
    if release.legacy_buffers:
        items["legacy_buffers"] = count.legacy_buffers
    if release.mtp and count.mtp is None:
        return {}
    if release.mtp and count.mtp is not None:
        items |= {"mtp": count.mtp, "mtp_buffers": count.mtp_buffers}
    if "mtp" in release.copies:
        items["mtp_copies"] = count.mtp_copies
    if "lm_head" in release.copies:
        items["copy_of_lm_head"] = count.embedding if count.tied else 0
    if release.quantisation:
        from paramcount.counting.quantisation.scales import count_scales, get_scales

        group = get_scales(release.quantisation, {})
        scales = count_scales(count.tensors, group) if group else {"scales": 0}
        items |= scales if release.mtp else {"scales": scales["scales"]}
    return items
