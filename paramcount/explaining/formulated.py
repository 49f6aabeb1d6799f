"""Counts as polynomials in named sizes: of a model, whose flags are known, or of an architecture, whose flags have to be given."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from types import SimpleNamespace
from typing import Any

from paramcount import zoo
from paramcount.architectures import ARCHITECTURES, architecture
from paramcount.changing import flat, what_if
from paramcount.counting import COMPONENTS, PARTS, from_sums
from paramcount.errors import ParamcountError, few, near, printable, shown
from paramcount.explaining import bare
from paramcount.explaining.pieces import polynomial, walk
from paramcount.names import find, load
from paramcount.polynomials import Polynomial
from paramcount.sizes import Sizes
from paramcount.summing import UNWALKED, Sums, walked

# What of a count is a number of parameters or of bytes, besides its components, details and parts.
COUNTS = (
    "total", "active", "active_min", "non_embedding", "active_non_embedding", "active_without_input_table", "language_model",
    "buffers", "legacy_buffers", "mtp", "mtp_buffers", "mtp_copies", "bytes_fp32", "bytes_bf16",
)  # fmt: skip


def formula(spec: object, of: str = "total", **structure: object) -> Polynomial:
    """A count of a model or an architecture as a polynomial in its named sizes.

    `spec`: as for `paramcount.load`, or the name of an architecture. What a model is called is that model, also where an architecture
    is called so too ("gpt2"); `{"architecture": "gpt2"}` is the architecture. `of`: a field of a count ("total", "active", "mtp"), a
    component ("qkv"), a detail ("qkv.q", "vision.mlp") or a part ("encoder").
    `structure`: flags, which an architecture needs and a model has, and sizes that are to be numbers. A size of an inner config is
    given in a mapping, or named with a dot: `**{"vision.n_layers": 32}`.

    >>> formula("llama-3.1-8b", of="qkv")
    n_layers · d_model · d_head · (n_heads + 2·n_kv_heads)
    >>> total = formula("llama", attention_bias=False, mlp_bias=False, tie_word_embeddings=False)
    >>> total.evaluate(vocab_size=128256, d_model=4096, n_layers=32, n_heads=32, n_kv_heads=8, d_head=128, d_ff=14336)
    8030261248
    >>> print(total.difference("n_layers"))
    d_model · (2·d_head·(n_heads + n_kv_heads) + 3·d_ff + 2)

    Units: parameters; bytes_fp32 and bytes_bf16 are bytes. Raises: ParamcountError for an unknown name, with the nearest; for an
    architecture some of whose flags are missing, naming each on which its weights depend; for sizes that a model cannot have.
    """
    name = architecture_named(spec)
    if name is None:
        return of_model(spec, of, structure)
    cls = architecture(name)
    try:
        known = bare.given(cls, dict(flat(structure)))
        sums = bare.sums(cls, known)
    except ParamcountError as error:
        raise error.at(printable(name, 60)) from None
    return picked(sums, bare.Open(cls, known), cls, of)


def architecture_named(spec: object) -> str | None:
    """The architecture that a word or a mapping names; None where it is a model."""
    if isinstance(spec, Mapping) and set(spec) == {"architecture"}:
        name: str = spec["architecture"]
        return name
    if not isinstance(spec, str) or spec not in ARCHITECTURES:
        return None
    try:
        names = zoo.names_of(find(spec))
    except ParamcountError:
        return spec
    return None if spec in names or spec in [name.rpartition("/")[2] for name in names] else spec


def of_model(spec: object, of: str, structure: Mapping[str, object]) -> Polynomial:
    """A count of a model. What is given in the place of its own sizes stays a number."""
    try:
        model = load(spec)
    except ParamcountError as error:
        if isinstance(spec, str) and (nearest := near(spec, ARCHITECTURES)) and error.found.startswith("unknown model"):
            accepted = f"{error.accepted}, or an architecture"
            raise ParamcountError(error.found, accepted=accepted, nearest=dict.fromkeys((*error.nearest, *nearest))) from None
        raise
    wanted = dict(flat(structure))
    if wanted:
        model = what_if(model, **wanted)
    found = walk(model.sizes, model.reading.head, frozenset(path for path, value in wanted.items() if type(value) is int))
    return picked(walked(found.c, model.reading.head), found.c, type(model.sizes), of, model.sizes)


def picked(sums: Sums, c: Any, cls: type[Sizes], of: str, sizes: Sizes | None = None) -> Polynomial:
    """One of the numbers of a count."""
    if not isinstance(of, str):
        raise ParamcountError(f"= {shown(of)}", where="of", accepted="a text: total, active, qkv, qkv.q, …")
    if of == "legacy_buffers":
        return legacy(c, cls, sizes)
    count = from_sums(sums, NO_LEGACY, "", True)  # type: ignore[arg-type]
    if of in COUNTS:
        return polynomial(getattr(count, of))
    if of in COMPONENTS or of in count.details:
        return polynomial(count.components[of] if of in COMPONENTS else count.details[of])
    if of in count.parts:
        return polynomial(count.parts[of])
    inside = [n for name, n in count.details.items() if name.startswith(f"{of}.")]  # of "vision.mlp"
    if not inside:
        known = (*COUNTS, *COMPONENTS, *count.details, *count.parts)
        raise ParamcountError(f"= {shown(of)}", where="of", accepted=few((*COUNTS, *COMPONENTS, *PARTS[:-1]), of), nearest=near(of, known))
    return polynomial(sum(inside))


NO_LEGACY = SimpleNamespace(legacy_buffers=tuple)


def legacy(c: Any, cls: type[Sizes], sizes: Sizes | None) -> Polynomial:
    """What older released files hold besides. Where that takes more than + and ×, it is a number, which an architecture has not."""
    try:
        rows = cls.legacy_buffers(c)
    except UNWALKED:
        if sizes is None:
            raise ParamcountError("= legacy_buffers is more than + and × of sizes", where="of", accepted="a model in place of its architecture") from None
        rows = sizes.legacy_buffers()
    return polynomial(sum(prod(shape) * copies for _, shape, copies in rows))
