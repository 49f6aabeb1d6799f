"""Counts of a declaration: total, active, per component, per part, tensor by tensor. All of them are Python ints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from paramcount.flow import Data, Held, Repeat, given, product, weights

if TYPE_CHECKING:
    from paramcount.sizes import Sizes

SCHEMA_VERSION = 1

COMPONENTS = (
    "embedding", "other_embedding", "position", "qkv", "output_projection", "mlp", "router", "experts", "shared_experts",
    "mixer", "norm", "lm_head", "other", "vision", "audio", "projector",
)  # fmt: skip
PARTS = ("decoder", "encoder", "cross_attention", "vision", "audio", "projector", "mtp")
TOWERS = ("vision", "audio", "projector")  # parts that are one component each in the overview
TABLES = ("embedding", "other_embedding", "position", "lm_head")


@dataclass(frozen=True, slots=True)
class Tensor:
    """One row of `count.tensors`: a tensor of the released checkpoint, or all that differ from it only in layer or expert."""

    name: str  # "{layer}" and "{expert}" stand for the indices of `repeats`
    shape: tuple[int, ...]  # axis order as stored; a stacked expert axis is in front
    component: str
    part: str
    role: str  # parameter | buffer | legacy_buffer
    repeats: tuple[Repeat, ...]
    splits: tuple[tuple[str, int], ...]  # what a fused matrix is made of: (component, width)
    tied_to: str | None
    stacked: Repeat | None = None  # the experts that share this one tensor

    @property
    def copies(self) -> int:
        """How many such tensors there are."""
        n: int = product(r.count for r in self.repeats)
        return n

    @property
    def elements(self) -> int:
        """Numbers in all copies, tied or not."""
        n: int = product(self.shape) * self.copies
        return n

    @property
    def parameters(self) -> int:
        """Learned parameters in all copies; 0 where tied or a buffer."""
        return self.elements if self.role == "parameter" and self.tied_to is None else 0

    @property
    def active(self) -> int:
        """Those of them that one token uses."""
        one = self.parameters // self.copies if self.copies else 0
        if self.stacked:
            one = one // self.stacked.count * self.stacked.active
        n: int = one * product(r.active for r in self.repeats)
        return n

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "shape": list(self.shape),
            "component": self.component,
            "part": self.part,
            "role": self.role,
            "copies": self.copies,
            "parameters": self.parameters,
            "active": self.active,
            "tied_to": self.tied_to,
        }


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
    scope: str = "model"  # model | language_model
    not_counted: tuple[str, ...] = ()
    release: Mapping[str, int] = field(default_factory=dict)  # what the released files hold, item by item
    sizes: Any = field(default=None, repr=False, compare=False)

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
    def active_without_input_table(self) -> int:
        """Active less the token table: the convention of DeepSeek-V3's and gpt-oss's published figures."""
        return self.active - self.embedding

    @property
    def language_model(self) -> int:
        """Total less vision, audio and projector."""
        return self.total - sum(self.components[name] for name in TOWERS)

    @property
    def checkpoint(self) -> int:
        """Logical values in the released files; quantisation scales are not in it."""
        return sum(self.release.values()) or self.total + self.buffers

    @property
    def bytes_fp32(self) -> int:
        """Bytes of the weights at 4 bytes each."""
        return 4 * self.total

    @property
    def bytes_bf16(self) -> int:
        """Bytes of the weights at 2 bytes each."""
        return 2 * self.total

    @cached_property
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors of the reference implementation and, part mtp, of the layers beside it."""
        return tuple(tensors(self.sizes)) if self.sizes is not None else ()

    def to_dict(self) -> dict[str, Any]:
        """All counts as plain data for JSON."""
        names = (
            "id", "total", "active", "active_non_embedding", "active_without_input_table", "embedding", "non_embedding", "lm_head",
            "language_model", "buffers", "legacy_buffers", "mtp", "mtp_buffers", "checkpoint", "bytes_fp32", "bytes_bf16", "tied", "scope",
        )  # fmt: skip
        nested = ("components", "active_components", "details", "parts", "release")
        return {
            "schema_version": SCHEMA_VERSION,
            **{name: getattr(self, name) for name in names},
            "not_counted": list(self.not_counted),
            **{name: dict(getattr(self, name)) for name in nested},
        }


def flows(sizes: Sizes) -> Iterator[tuple[Data, str]]:
    """The model's own flow, then that of its MTP layers, each with the part its weights belong to unless they say otherwise."""
    tokens = given("tokens", "tokens")
    yield sizes.forward(tokens), "decoder"
    beside = sizes.mtp(tokens, given("hidden", "tokens", getattr(sizes, "d_model", 0)))
    if beside is not None:
        yield beside, "mtp"


def component(held: Held, name: str) -> str:
    """A weight's component in the overview: a tower's parts are one component each and open into their own."""
    return f"{held.part}.{name}" if held.part in TOWERS and held.part != name else name


def count_sizes(sizes: Sizes, id: str = "") -> Count:
    """Count the declaration of one config. `sizes` is concrete: structure and numbers alike."""
    details: dict[str, int] = {}
    active_components = dict.fromkeys(COMPONENTS, 0)
    parts = dict.fromkeys(PARTS, 0)
    beside = {"buffer": 0, "legacy_buffer": 0, "mtp": 0, "mtp_buffer": 0, "mtp_copy": 0}
    total = active = 0
    tied = False
    for out, part in flows(sizes):
        for held in weights(out, part):
            weight = held.weight
            size = product(weight.shape)
            n = used = size
            for repeat in held.repeats:
                n, used = n * repeat.count, used * repeat.active
            if part == "mtp":
                beside["mtp_copy" if held.tied_to else "mtp" if weight.role == "parameter" else "mtp_buffer"] += n
            elif weight.role != "parameter":
                beside[weight.role] += n
            elif held.tied_to is not None:
                tied = tied or weight.component == "lm_head"
            else:
                total, active = total + n, active + used
                parts[held.part] += n
                active_components[component(held, weight.component).partition(".")[0]] += used
                if weight.splits:
                    width = weight.shape[weight.axis]
                    for name, share in weight.splits:
                        name = component(held, name)
                        details[name] = details.get(name, 0) + n // width * share
                else:
                    name = component(held, weight.component)
                    details[name] = details.get(name, 0) + n
    del parts["mtp"]
    components = dict.fromkeys(COMPONENTS, 0)
    for name, n in details.items():
        components[name.partition(".")[0]] += n
    legacy = sum(product(shape) * copies for _, shape, copies in sizes.legacy_buffers())
    return Count(
        id=id,
        total=total,
        active=active,
        components=components,
        active_components=active_components,
        details={name: n for name, n in details.items() if "." in name},
        parts=parts,
        buffers=beside["buffer"],
        legacy_buffers=beside["legacy_buffer"] + legacy,
        mtp=beside["mtp"],
        mtp_buffers=beside["mtp_buffer"],
        mtp_copies=beside["mtp_copy"],
        tied=tied,
        sizes=sizes,
    )


def tensors(sizes: Sizes) -> Iterator[Tensor]:
    """Every tensor of the declaration, in the order the forward pass reads it."""
    for out, part in flows(sizes):
        for held in weights(out, part):
            stacked = next((r for r in held.repeats if r.stacked), None)
            shape = (stacked.count, *held.weight.shape) if stacked else tuple(held.weight.shape)
            if 0 not in shape:
                yield Tensor(
                    held.name,
                    shape,
                    held.weight.component,
                    held.part,
                    held.weight.role,
                    tuple(r for r in held.repeats if r.axis != "use" and not r.stacked),
                    held.weight.splits,
                    held.tied_to,
                    stacked,
                )
    for name, shape, copies in sizes.legacy_buffers():
        yield Tensor(name, shape, "other", "decoder", "legacy_buffer", (Repeat("layer", copies, copies, runs=((0, copies),)),), (), None)
