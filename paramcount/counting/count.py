"""Counts of a declaration: total, active, per component, per part, tensor by tensor. All of them are Python ints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

from paramcount.counting.sum_weights import Sums, sum_weights
from paramcount.counting.sum_weights import cached_sums as summed
from paramcount.counting.tensors import TOWERS, Tensor, list_tensors, list_unreachable, locate_component
from paramcount.errors import ParamcountError

if TYPE_CHECKING:
    from paramcount.counting.quantisation.storage import Release, Storage
    from paramcount.sizes import Sizes

SCHEMA_VERSION = 2

COMPONENTS = (
    "embedding", "other_embedding", "position", "qkv", "output_projection", "mlp", "router", "experts", "shared_experts",
    "mixer", "norm", "lm_head", "other", "vision", "audio", "projector",
)  # fmt: skip
PARTS = ("decoder", "encoder", "cross_attention", "vision", "audio", "projector", "mtp")
TABLES = ("embedding", "other_embedding", "position", "lm_head")


@dataclass(frozen=True)
class Count:
    """How many parameters a model has, and where.

    `total` holds every parameter of the reference implementation once; `details` opens components one level
    ("qkv.q", "vision.mlp"); buffers, MTP layers and what else a release stores stand beside it, never in it.
    """

    id: str
    total: int
    active: int
    components: Mapping[str, int]  # every name of COMPONENTS, zeros too; sums to total
    active_components: Mapping[str, int]
    details: Mapping[str, int]
    parts: Mapping[str, int]  # every name of PARTS but mtp, zeros too; sums to total
    buffers: int
    legacy_buffers: int
    mtp: int
    mtp_buffers: int
    mtp_copies: int
    tied: bool
    active_min: int  # what a token uses at least; `active` unless the number of experts it visits varies
    scope: str = "model"  # model | language_model
    not_counted: tuple[str, ...] = ()
    release: Mapping[str, int] = field(default_factory=dict)  # what the released files hold, item by item; empty where nobody said
    quantisation: str | None = None  # of the released files
    warnings: tuple[str, ...] = ()  # the count may not be what was meant: a key that looks like a size is ignored, for example
    reading_notes: tuple[str, ...] = ()  # of `notes`, those about how the config was read
    architecture: str = ""
    reference: str = ""  # the class whose parameters these are
    sizes: Any = field(default=None, repr=False, compare=False)
    head: bool = field(default=True, repr=False, compare=False)
    quantised_by: tuple[Release | None, Mapping[str, Any]] | None = field(default=None, repr=False, compare=False)  # a zoo entry, a config.json

    def __hash__(self) -> int:
        """A hash that agrees with equality, which compares every count."""
        return hash((self.id, self.architecture, self.reference, self.scope, self.total, self.active))

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
        """Total less every table and the head."""
        return self.total - sum(self.components[name] for name in TABLES)

    @property
    def active_non_embedding(self) -> int:
        """Active less every table and the head."""
        return self.active - sum(self.components[name] for name in TABLES)

    @property
    def active_without_input_embedding(self) -> int:
        """`active` minus the token embedding: the convention of DeepSeek-V3's and gpt-oss's published figures."""
        return self.active - self.embedding

    @property
    def active_without_input_table(self) -> int:
        """Deprecated alias of `active_without_input_embedding`, until 0.3."""
        return self.active_without_input_embedding

    @property
    def language_model(self) -> int:
        """Total less vision, audio and projector."""
        return self.total - sum(self.components[name] for name in TOWERS)

    @property
    def checkpoint(self) -> int | None:
        """Logical values in the released files: all items of `release`, quantisation scales too. None where nobody said what they hold."""
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
        """Bytes of a quantised model as stored, with scales and buffers; None if nothing says how it is quantised, or nobody knows."""
        return self.storage.bytes if self.storage else None

    @property
    def storage(self) -> Storage | None:
        """How quantised weights are stored; None if nothing says so, or if their bytes are unknown."""
        return self._storage[0]

    @property
    def notes(self) -> tuple[str, ...]:
        """Harmless, but worth knowing."""
        return (*self.reading_notes, *self._storage[1])

    @cached_property
    def _storage(self) -> tuple[Storage | None, tuple[str, ...]]:
        """How quantised weights are stored, or a note why it is unknown. Worked out when asked for, tensor by tensor."""
        if self.quantised_by is None:
            return None, ()
        from paramcount.counting.quantisation.storage import read_storage

        try:
            return read_storage(self.sizes, *self.quantised_by, self.tensors), ()
        except ParamcountError as error:
            return None, (f"stored bytes are unknown: quantization_config {error}",)

    @cached_property
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors of the reference implementation and, part mtp, of the layers beside it."""
        return tuple(list_tensors(self.sizes, self.head)) if self.sizes is not None else ()

    @cached_property
    def unreachable(self) -> dict[str, int]:
        """{tensor: parameters} of what the reference allocates and no forward pass reads; `total` and these are its sum of numel."""
        return {name: n for name, (n, _) in self._unreachable.items()}

    @cached_property
    def unreachable_reasons(self) -> dict[str, str]:
        """{tensor: why no forward pass reads it}, for those of `unreachable`."""
        return {name: reason for name, (_, reason) in self._unreachable.items()}

    @cached_property
    def _unreachable(self) -> dict[str, tuple[int, str]]:
        found = list_unreachable(self.sizes, self.head) if self.sizes is not None else ()
        return {tensor.name: (tensor.parameters, reason) for tensor, reason in found}

    def _repr_html_(self) -> str:
        """The components as a table, for notebooks."""
        from paramcount.output.numbers import format_count
        from paramcount.output.tables import Column, Table, html_fragment

        columns = [Column("component", "component", right=False), Column("parameters", "parameters")]
        rows: list[list[Any]] = [[name, n] for name, n in self.components.items() if n]
        if self.active != self.total:
            columns.append(Column("active", "active"))
            rows = [[name, n, self.active_components[name]] for name, n in rows]
        rows.append(["total", self.total, self.active][: len(columns)])
        heading = f"{self.id}: {self.total:,} parameters ({format_count(self.total)})"
        return html_fragment(Table(columns, rows, None, above=[heading]))

    def to_dict(self) -> dict[str, Any]:
        """All counts as plain data for JSON."""
        names = (
            "id", "total", "active", "active_min", "active_non_embedding", "active_without_input_embedding",
            "active_without_input_table", "embedding", "non_embedding", "lm_head", "language_model", "buffers",
            "legacy_buffers", "mtp", "mtp_buffers", "checkpoint", "bytes_fp32", "bytes_bf16", "tied", "scope",
            "architecture", "reference",
        )  # fmt: skip
        nested = ("components", "active_components", "details", "parts", "unreachable", "unreachable_reasons", "release")
        return {
            "schema_version": SCHEMA_VERSION,
            **{name: getattr(self, name) for name in names},
            "stored_bytes": self.stored_bytes,
            "quantization": {name: value for name, value in self.storage._asdict().items() if name != "bytes"} if self.storage else None,
            "not_counted": list(self.not_counted),
            "warnings": list(self.warnings),
            "notes": list(self.notes),
            "remarks": list(self.remarks),
            **{name: dict(getattr(self, name)) for name in nested},
        }


def count_sizes(sizes: Sizes, id: str = "", head: bool = True, *, cached: bool = False, **facts: Any) -> Count:
    """The count of one declaration.

    `head`: with the language model's head. `cached`: evaluate the polynomials of a structure that has come often, instead of walking
    it anew. `facts`: further fields of the count.
    """
    return build_count((summed if cached else sum_weights)(sizes, head), sizes, id, head, **facts)


def build_count(sums: Sums, sizes: Sizes, id: str, head: bool, **facts: Any) -> Count:
    """The count of a declaration whose weights have these sums."""
    found, beside, tied, spare = sums
    components, active_components = dict.fromkeys(COMPONENTS, 0), dict.fromkeys(COMPONENTS, 0)
    parts = dict.fromkeys(PARTS[:-1], 0)
    details: dict[str, int] = {}
    for (part, name), (n, used) in found.items():
        overview, name = locate_component(part, name)
        components[overview] += n
        active_components[overview] += used
        parts[part] += n
        if name != overview:
            details[name] = details.get(name, 0) + n
    legacy = sum(prod(shape) * copies for _, shape, copies in sizes.legacy_buffers())
    return Count(
        id=id,
        total=sum(components.values()),
        active=sum(active_components.values()),
        active_min=sum(active_components.values()) - spare,
        components=components,
        active_components=active_components,
        details=details,
        parts=parts,
        buffers=beside["buffer"],
        legacy_buffers=legacy,
        mtp=beside["mtp"],
        mtp_buffers=beside["mtp_buffer"],
        mtp_copies=beside["mtp_copy"],
        tied=tied,
        sizes=sizes,
        head=head,
        **facts,
    )
