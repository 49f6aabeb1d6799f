"""Counts of a model: total, active, per component, per part and per tensor. All numbers are Python ints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

from paramcount.counting.components import COMPONENTS, PARTS, TABLES, TOWERS
from paramcount.counting.results import SCHEMA_VERSION as SCHEMA_VERSION
from paramcount.counting.results import JsonResult, alias
from paramcount.counting.sum_weights import Sums, cached_sums, sum_weights
from paramcount.counting.tensors import list_tensors, list_unreachable
from paramcount.errors import ParamcountError
from paramcount.flow import TensorRow
from paramcount.sizes import build_as_reference

if TYPE_CHECKING:
    from paramcount.counting.quantisation.storage import ReleasedWeights, Storage
    from paramcount.sizes import Sizes

NO_COMPONENTS = dict.fromkeys(COMPONENTS, 0)
NO_PARTS = dict.fromkeys(PARTS[:-1], 0)


@dataclass(frozen=True, repr=False)
class Count(JsonResult):
    """Parameter counts of a model, in total and per component.

    `total` includes every parameter of the reference implementation once; of a zoo entry whose released files differ
    from it, every parameter of the release, with `reference_total` beside it. `details` splits components one level
    further ("qkv.q", "vision.mlp"). Buffers, MTP layers and other tensors of a release are not included in the total.
    """

    html_table = "paramcount.views.notebooks:build_count_table"
    json_fields: ClassVar[tuple[str, ...]] = (
        "id", "total", "reference_total", "active", "active_min", "active_non_embedding",
        "active_without_input_embedding", "active_without_input_table", "embedding", "non_embedding", "lm_head",
        "language_model", "buffers", "legacy_buffers", "mtp", "mtp_buffers", "checkpoint", "bytes_fp32", "bytes_bf16",
        "tied", "scope", "architecture", "reference", "stored_bytes", "quantization", "not_counted", "warnings",
        "notes", "remarks", "components", "active_components", "details", "parts", "unreachable",
        "unreachable_reasons", "shared_with_target", "release",
    )  # fmt: skip
    id: str
    total: int
    active: int
    components: Mapping[str, int]  # every name in COMPONENTS, zeros included; sums to total
    active_components: Mapping[str, int]
    details: Mapping[str, int]
    parts: Mapping[str, int]  # every name in PARTS except mtp, zeros included; sums to total
    buffers: int
    legacy_buffers: int
    mtp: int | None  # None if what the release has of them is unknown
    mtp_buffers: int
    mtp_copies: int
    tied: bool
    active_min: int  # equals `active` unless the number of active experts varies
    scope: str = "model"  # model | language_model
    not_counted: tuple[str, ...] = ()
    release: Mapping[str, int] = field(default_factory=dict)  # values in the released files, itemised; empty if unknown
    quantisation: str | None = None  # of the released files
    warnings: tuple[str, ...] = ()  # the result may not be what the user meant
    reading_notes: tuple[str, ...] = ()  # the part of `notes` about reading the config
    architecture: str = ""
    reference: str = ""  # the class that was counted
    sizes: Any = field(default=None, repr=False, compare=False)  # Sizes; its fields depend on the architecture
    head: bool = field(default=True, repr=False, compare=False)
    # How the released weights are quantised: the zoo entry's statement, and the config.json.
    quantised_by: tuple[ReleasedWeights | None, Mapping[str, Any]] | None = field(
        default=None, repr=False, compare=False
    )

    def __hash__(self) -> int:
        """A hash that agrees with equality, which compares every count."""
        return hash((self.id, self.architecture, self.reference, self.scope, self.total, self.active))

    @cached_property
    def reference_total(self) -> int:
        """The parameters that the reference implementation builds: `total`, unless the released files differ."""
        built = None if self.sizes is None else build_as_reference(self.sizes)
        return self.total if built is None or built is self.sizes else count_sizes(built, head=self.head).total

    @cached_property
    def released_tensors(self) -> tuple[str, ...]:
        """The parameters of the released files that the reference does not build: it ties them to others."""
        if self.reference_total == self.total:
            return ()
        built = {tensor.name for tensor in list_tensors(build_as_reference(self.sizes), self.head) if tensor.is_counted}
        return tuple(tensor.name for tensor in self.tensors if tensor.is_counted and tensor.name not in built)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Warnings and notes together. Deprecated: use `warnings` and `notes`; it goes away in 0.3."""
        return (*self.warnings, *self.notes)

    @property
    def embedding(self) -> int:
        return self.components["embedding"]

    @property
    def lm_head(self) -> int:
        return self.components["lm_head"]

    @property
    def non_embedding(self) -> int:
        """Total minus all embeddings and the LM head."""
        return self.total - sum(self.components[name] for name in TABLES)

    @property
    def active_non_embedding(self) -> int:
        """Active minus all embeddings and the LM head."""
        return self.active - sum(self.components[name] for name in TABLES)

    @property
    def active_without_input_embedding(self) -> int:
        """`active` minus the token embedding: the convention of DeepSeek-V3's and gpt-oss's published figures."""
        return self.active - self.embedding

    active_without_input_table = alias("active_without_input_embedding")

    @property
    def language_model(self) -> int:
        """Total minus vision, audio and projector."""
        return self.total - sum(self.components[name] for name in TOWERS)

    @property
    def checkpoint(self) -> int | None:
        """Values in the released files, quantisation scales included; None if unknown."""
        return sum(self.release.values()) if self.release else None

    @property
    def bytes_fp32(self) -> int:
        """Bytes of the weights at 4 bytes each."""
        return 4 * self.total

    @property
    def bytes_bf16(self) -> int:
        """Bytes of the weights at 2 bytes each."""
        return 2 * self.total

    @property
    def stored_bytes(self) -> int | None:
        """Stored bytes of a quantised model, scales and buffers included.

        None if the model is not quantised or the size is unknown.
        """
        return self.storage.bytes if self.storage else None

    @property
    def storage(self) -> Storage | None:
        """How quantised weights are stored; None if the model is not quantised or the size is unknown."""
        return self._storage[0]

    @property
    def quantization(self) -> dict[str, Any] | None:
        """`storage` for JSON, which has its bytes as `stored_bytes`."""
        return {name: n for name, n in self.storage._asdict().items() if name != "bytes"} if self.storage else None

    @property
    def notes(self) -> tuple[str, ...]:
        """Harmless facts about how the config was read and how its weights are stored."""
        return (*self.reading_notes, *self._describe_draft(), *self._storage[1])

    @cached_property
    def shared_with_target(self) -> int:
        """Of a draft head, the parameters that are copies of the target's, which an engine loads once; otherwise 0."""
        names = () if self.sizes is None else self.sizes.shared_with_target
        return sum(tensor.parameters for tensor in self.tensors if tensor.name in names) if names else 0

    def _describe_draft(self) -> tuple[str, ...]:
        """What a draft head adds to its target."""
        if self.sizes is None or not self.sizes.is_draft:
            return ()
        if shared := self.shared_with_target:
            added = self.total - shared
            return (f"a draft head: its token embedding ({shared:,}) is the target's; it adds {added:,} parameters",)
        return (f"a draft head: it adds its {self.total:,} parameters to those of the target",)

    @cached_property
    def _storage(self) -> tuple[Storage | None, tuple[str, ...]]:
        """How quantised weights are stored, or a note why it is unknown. Lazy, because it lists all tensors."""
        if self.quantised_by is None or self.sizes is None:
            return None, ()
        from paramcount.counting.quantisation.storage import read_storage

        try:
            return read_storage(self.sizes, *self.quantised_by, self.tensors), ()
        except ParamcountError as error:
            return None, (f"stored bytes are unknown: quantization_config {error}",)

    @cached_property
    def tensors(self) -> tuple[TensorRow, ...]:
        """The tensors of the reference implementation, and those of its MTP layers (part "mtp")."""
        return tuple(list_tensors(self.sizes, self.head)) if self.sizes is not None else ()

    @cached_property
    def unreachable(self) -> dict[str, int]:
        """{tensor: parameters} that no forward pass reads. The reference's sum of numel is `total` plus these."""
        return {name: n for name, (n, _) in self._unreachable.items()}

    @cached_property
    def unreachable_reasons(self) -> dict[str, str]:
        """{tensor: why no forward pass reads it}, for each key of `unreachable`."""
        return {name: reason for name, (_, reason) in self._unreachable.items()}

    @cached_property
    def _unreachable(self) -> dict[str, tuple[int, str]]:
        found: dict[str, tuple[int, str]] = {}
        unreachable = () if self.sizes is None else list_unreachable(self.sizes, self.head)
        for tensor, reason in unreachable:  # layers of several kinds may have tensors of the same name
            n, _ = found.get(tensor.name, (0, ""))
            found[tensor.name] = (n + tensor.elements, reason)
        return found


def count_sizes(sizes: Sizes, id: str = "", head: bool = True, *, cached: bool = False, **facts: Any) -> Count:
    """The count of one config.

    `head`: include the LM head. `cached`: evaluate the cached polynomials of the structure, if there are any.
    `facts`: further fields of the count.
    """
    return build_count((cached_sums if cached else sum_weights)(sizes, head), sizes, id, head, **facts)


def build_count(sums: Sums, sizes: Sizes | None, id: str, head: bool, **facts: Any) -> Count:
    """The count with these sums over its weights. Without sizes it has no legacy buffers, and MTP layers are known."""
    components = {**NO_COMPONENTS, **sums.components}
    active_components = {**components, **sums.active}
    active = sum(active_components.values())
    legacy = sum(prod(shape) * copies for _, shape, copies in sizes.legacy_buffers()) if sizes is not None else 0
    return Count(
        id=id,
        total=sum(components.values()),
        active=active,
        active_min=active - sums.active_slack,
        components=components,
        active_components=active_components,
        # Whether a kind without layers has details of 0 depends on the cache.
        details={name: n for name, n in sums.details.items() if (n if type(n) is int else n.terms)},
        parts={**NO_PARTS, **sums.parts},
        buffers=sums.excluded["buffer"],
        legacy_buffers=legacy,
        mtp=None if sizes is not None and sizes.has_unknown_mtp() else sums.excluded["mtp"],
        mtp_buffers=sums.excluded["mtp_buffer"],
        mtp_copies=sums.excluded["mtp_copy"],
        tied=sums.tied,
        sizes=sizes,
        head=head,
        **facts,
    )
