"""Masks: which keys each query sees. A mask is data that `hide` and `cache` take: `Causal() & Window(4096)`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from paramcount.flow.operation import Array, Parameters, Unknown, np, require
from paramcount.flow.reach import Reach, count_ended

if TYPE_CHECKING:
    from paramcount.flow.graph import Data, Size

Kind = TypeVar("Kind", bound="Mask")


class Pairs(NamedTuple):
    """The pairs of the last n queries and the last m keys before the position `end`.

    Rows in front of the text have positions less than 0.
    """

    n: int
    m: int
    end: int
    layer: int = 0

    @property
    def queries(self) -> Array:
        """Positions, [n, 1]."""
        return np.arange(self.end - self.n, self.end)[:, None]

    @property
    def keys(self) -> Array:
        """Positions, [m]."""
        return np.arange(self.end - self.m, self.end)


class Mask(Parameters):
    """Which keys each query sees. `Mask()`: all; `a & b`: those that both show; `a | b`: those that one of them shows.

    Rows in front of the text are seen by all, and without `Causal` see all. Data that a mask reads are inputs of the
    step that applies it: `take_data` takes them out.
    """

    alone: ClassVar[str] = "all tokens"  # what a token attends to
    limit: ClassVar[str] = ""  # what that adds to another mask

    def __and__(self, other: Mask) -> Mask:
        return Both(self, other)

    def __or__(self, other: Mask) -> Mask:
        return Either(self, other)

    @property
    def parts(self) -> Sequence[Mask]:
        """The masks that it is made of."""
        return (self,)

    @property
    def reach(self) -> Reach:
        """How far a query of the text sees, as far as positions decide; a setting that is unknown limits nothing."""
        return Reach()

    @property
    def trim(self) -> Size | None:
        """Tokens that a KV cache keeps at most because of it, the newest included; None for all."""
        return None

    @property
    def is_causal(self) -> bool:
        """Whether a token sees no later tokens."""
        return self.find(Causal) is not None

    def find(self, kind: type[Kind]) -> Kind | None:
        """The part of this kind."""
        return next((part for part in self.parts if isinstance(part, kind)), None)

    def show_later(self) -> Mask:
        """The same with later tokens: as far ahead as back, if there is a window."""
        return self

    @property
    def n_data(self) -> int:
        """How many data it reads."""
        return 0

    def take_data(self) -> tuple[Mask, tuple[Data, ...]]:
        """The mask without the data that it reads, and these in order."""
        names = [name for name in self.fields if hasattr(getattr(self, name), "operation")]
        if not names:
            return self, ()
        return self.with_changes(**dict.fromkeys(names)), tuple(getattr(self, name) for name in names)

    def show(self, pairs: Pairs, data: Iterator[Array], seen: Array | bool = True) -> Array | bool:
        """Whether a query sees a key: bool [n, m], or [groups of heads, n, m]; True for all.

        `data`: what `take_data` has taken, in order. `seen`: what the masks before it show.
        """
        return True

    def count(self, pairs: Pairs, front: tuple[int, int] = (0, 0), most: int | None = None) -> int:
        """The pairs of one head that it leaves, without what data decide: groups and global tokens.

        `front`: how many of the queries and of the keys stand in front of the text. `most`: the pairs of the text that
        a choice leaves.
        """
        n, m, end, _ = pairs
        blocks = self.find(CompressedBlocks)
        if blocks is not None:
            ended = count_ended(range(end - n, end), int(blocks.size), m)
            return ended if most is None else min(ended, most)
        (first_queries, first_keys), text = front, (range(end - n + front[0], end), range(end - m + front[1], end))
        visible = self.reach.count_pairs(*text)
        if most is not None:
            visible = min(visible, most)
        causal = self.find(Causal)
        if causal is None or not causal.hides_front:
            return visible + n * first_keys + (first_queries * len(text[1]) if causal is None else 0)
        before = range(-first_keys, 0)
        return visible + sum(self.reach.count_pairs(rows, before) for rows in (text[0], range(-first_queries, 0)))

    def describe(self) -> str:
        """What a token attends to, in words."""
        return self.alone

    def describe_limit(self) -> str:
        """The same behind what another mask shows."""
        return self.limit


class MaskOfTwo(Mask):
    """A mask that is made of two."""

    left: Mask
    right: Mask

    @property
    def parts(self) -> Sequence[Mask]:
        return (*self.left.parts, *self.right.parts)

    def take_data(self) -> tuple[Mask, tuple[Data, ...]]:
        (left, first), (right, second) = self.left.take_data(), self.right.take_data()
        return (type(self)(left, right) if first or second else self), (*first, *second)


class Both(MaskOfTwo):
    """The keys that two masks show."""

    @property
    def reach(self) -> Reach:
        return self.left.reach.merge(self.right.reach)

    @property
    def trim(self) -> Size | None:
        return self.right.trim if self.left.trim is None else self.left.trim

    def show_later(self) -> Mask:
        return Both(self.left.show_later(), self.right.show_later())

    def show(self, pairs: Pairs, data: Iterator[Array], seen: Array | bool = True) -> Array | bool:
        first = seen & self.left.show(pairs, data, seen)
        return first & self.right.show(pairs, data, first)

    def describe(self) -> str:
        window, others = self.find(Window), self.parts[1:]
        if window is None or not isinstance(self.parts[0], Causal):
            return self.left.describe() + self.right.describe_limit()
        limits = (part.describe_limit() for part in others if part is not window)
        return f"itself and at most {format_size(window.n - 1)} earlier tokens{''.join(limits)}"

    def describe_limit(self) -> str:
        return self.left.describe_limit() + self.right.describe_limit()


class Either(MaskOfTwo):
    """The keys that one of two masks shows."""

    @property
    def reach(self) -> Reach:
        return self.left.reach

    def show_later(self) -> Mask:
        return Either(self.left.show_later(), self.right)

    def show(self, pairs: Pairs, data: Iterator[Array], seen: Array | bool = True) -> Array | bool:
        return self.left.show(pairs, data, seen) | self.right.show(pairs, data, seen)

    def describe(self) -> str:
        return f"{self.left.describe()}, and to {self.right.describe()}"


class Causal(Mask, alone="itself and earlier tokens", limit=", not later ones"):
    """No later tokens."""

    hides_front: bool = False  # whether rows in front of the text are seen by later rows alone, not by all

    @property
    def reach(self) -> Reach:
        return Reach(after=0)

    def show_later(self) -> Mask:
        return Mask()

    def show(self, pairs: Pairs, data: Iterator[Array], seen: Array | bool = True) -> Array | bool:
        keys = pairs.keys
        shown = keys <= pairs.queries
        return shown if self.hides_front or pairs.m <= pairs.end else shown | (keys < 0)


class Window(Mask):
    """The last n tokens, the query's own included, and so many later ones."""

    n: Size
    ahead: Size | None = None  # None: it limits no later ones

    @property
    def reach(self) -> Reach:
        return Reach(self.n - 1) if self.ahead is None else Reach(self.n - 1, self.ahead)

    @property
    def trim(self) -> Size | None:
        return self.n

    def show_later(self) -> Mask:
        return Window(self.n + 1, self.n) if self.ahead is None else self

    def show(self, pairs: Pairs, data: Iterator[Array], seen: Array | bool = True) -> Array | bool:
        queries, keys = pairs.queries, pairs.keys
        shown = self.reach.show(queries, keys)
        return shown | (keys < 0) | (queries < 0) if pairs.m > pairs.end or pairs.n > pairs.end else shown

    def describe(self) -> str:
        if self.ahead is None:
            return f"tokens less than {format_size(self.n)} positions back"
        if isinstance(self.n, int) and self.n - 1 != self.ahead:
            return f"at most {self.n - 1:,} earlier and {format_size(self.ahead)} later tokens"
        return f"tokens up to {format_size(self.ahead)} positions away"

    def describe_limit(self) -> str:
        return f", {self.describe()}"


class Chunk(Mask):
    """The query's own chunk of the text, and so many chunks before and after it."""

    size: Size | Unknown
    offset: Size = 0  # tokens that are missing from the first chunk
    before: int = 0
    after: int = 0

    @property
    def reach(self) -> Reach:
        if isinstance(self.size, Unknown):
            return Reach()
        chunks = {"chunks_before": self.before, "chunks_after": self.after}
        return Reach(chunk=self.size, offset=self.offset, **chunks)

    @property
    def trim(self) -> Size | None:
        return None if isinstance(self.size, Unknown) else self.size * (1 + self.before)

    def show(self, pairs: Pairs, data: Iterator[Array], seen: Array | bool = True) -> Array | bool:
        require(self.size)
        queries, keys = pairs.queries, pairs.keys
        return self.reach.show(queries, keys) | (keys < 0) | (queries < 0)

    def describe(self) -> str:
        return f"its own chunk of {format_size(self.size)} tokens"

    def describe_limit(self) -> str:
        return f" in its own chunk of {format_size(self.size)} tokens"


class Groups(Mask, alone="its own group", limit=" in its own group"):
    """The query's own group, such as a window of an image: data [n], and [m] if keys have others."""

    of_queries: Data | None
    of_keys: Data | None = None
    except_in: tuple[int, ...] | Unknown = ()  # layers in which groups do not matter
    has_keys: bool = False

    @property
    def n_data(self) -> int:
        return 1 + self.has_keys

    def take_data(self) -> tuple[Mask, tuple[Data, ...]]:
        mask, data = super().take_data()
        return mask.with_changes(has_keys=len(data) > 1), data

    def show(self, pairs: Pairs, data: Iterator[Array], seen: Array | bool = True) -> Array | bool:
        of_queries = next(data)
        of_keys = next(data) if self.has_keys else of_queries
        return pairs.layer in require(self.except_in) or of_queries[:, None] == of_keys


class GlobalTokens(Mask, alone="global tokens"):
    """Keys that all queries see: those with mark 1, data [m]."""

    marks: Data | None

    @property
    def n_data(self) -> int:
        return 1

    def show(self, pairs: Pairs, data: Iterator[Array], seen: Array | bool = True) -> Array | bool:
        found: Array = next(data) == 1
        return found


class Chosen(Mask, alone="the selected tokens", limit=", if they are selected"):
    """Keys, or blocks of them, by index: data [n, chosen] or [n, groups of heads, chosen]. -1 stands for none."""

    indices: Data | None
    block: Size = 1  # keys of what is chosen

    @property
    def n_data(self) -> int:
        return 1

    def show(self, pairs: Pairs, data: Iterator[Array], seen: Array | bool = True) -> Array | bool:
        chosen = next(data)
        chosen = chosen.reshape(pairs.n, -1, chosen.shape[-1])
        block = int(self.block)
        found = np.zeros((*chosen.shape[:2], -(-pairs.m // block) + 1), dtype=bool)  # the last is for -1
        np.put_along_axis(found, chosen, values=True, axis=-1)
        shown: Array = np.repeat(found[..., :-1], block, axis=-1)[..., : pairs.m].transpose(1, 0, 2)
        return shown


class CompressedBlocks(Mask):
    """Keys that each stand for a block of tokens, which has to end before the query or with it."""

    size: Size

    def show(self, pairs: Pairs, data: Iterator[Array], seen: Array | bool = True) -> Array | bool:
        shown: Array = np.arange(pairs.m) < (pairs.queries + 1) // int(require(self.size))
        return shown

    def describe(self) -> str:
        return f"compressed blocks of {format_size(self.size)} tokens that have ended"


class Largest(Mask):
    """Of the keys that the masks before it show, the n with the largest biases: data [m, kv_heads]. Of ties the
    first."""

    biases: Data | None
    n: int | Unknown

    @property
    def n_data(self) -> int:
        return 1

    @property
    def reach(self) -> Reach:
        return Reach(most=self.n) if isinstance(self.n, int) else Reach()

    def show(self, pairs: Pairs, data: Iterator[Array], seen: Array | bool = True) -> Array | bool:
        n, biases = int(require(self.n)), next(data)[-pairs.m :].T[:, None]
        if pairs.m <= n:
            return True
        merit = np.where(seen, biases, -np.inf)
        order = np.argsort(-merit, axis=-1, kind="stable")[..., :n]
        largest = np.zeros(merit.shape, dtype=bool)
        np.put_along_axis(largest, order, values=True, axis=-1)
        return largest

    def describe(self) -> str:
        return f"the {format_size(self.n)} tokens with the largest biases"

    def describe_limit(self) -> str:
        return f", of these to the {format_size(self.n)} with the largest biases"


def format_size(n: Size | Unknown) -> Any:
    """A size in a sentence; a symbol as it is."""
    return f"{n:,}" if isinstance(n, int) else "some" if isinstance(n, Unknown) else n
