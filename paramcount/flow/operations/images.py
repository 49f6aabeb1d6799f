"""Operations between an image and a text: patches, where they stand, and the tokens whose place they take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from paramcount.errors import ParamcountError
from paramcount.flow.graph import Data, Size, Weight
from paramcount.flow.operation import Array, Move, Pass, Shape, Unknown, np, require

# ---- patches


def count_patches(image: Array, height: int, width: int, square: int = 1) -> tuple[int, int]:
    """Rows and columns of patches in an image.

    Raises: ParamcountError if it has none, or if they do not fill squares of `square` rows and columns.
    """
    if image.ndim != 3:
        found = f"an array with {image.ndim} axes"
        raise ParamcountError(found, where="pixels", expected="one image, [channels, height, width]")
    rows, columns = image.shape[1] // height, image.shape[2] // width
    if not rows or not columns or rows % square or columns % square:
        raise ParamcountError(
            f"an image of {image.shape[1]} × {image.shape[2]} pixels",
            where="pixels",
            expected=f"a multiple of {height * square} × {width * square} pixels",
        )
    return rows, columns


class PatchOperation(Move):
    """What is read of the patches of an image [channels, height, width], row by row."""

    height: Size  # of a patch
    width: Size
    square: Size = 1  # patches that are merged later stand together, in squares of so many rows and columns

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        square = int(self.square)
        rows, columns = count_patches(inputs[0], int(self.height), int(self.width), square)
        order = np.arange(rows * columns).reshape(rows // square, square, columns // square, square)
        return self.read(inputs[0], rows, columns, order.transpose(0, 2, 1, 3).reshape(-1))

    def read(self, image: Array, rows: int, columns: int, order: Array) -> Array:
        """`order`: the indices of the patches, square by square."""
        raise NotImplementedError(self.label)


class Patches(PatchOperation, name="patches", phrase="pixels of each patch"):
    """The pixels of each patch: [patches, channels, height, width], or in another order of axes."""

    axes: Literal["chw", "hwc", "cfhw", "fchw"] = "chw"  # of a patch: channels, frames, height and width
    frames: Size = 1  # the image is repeated for each of them

    def read(self, image: Array, rows: int, columns: int, order: Array) -> Array:
        height, width = int(self.height), int(self.width)
        whole = image[:, : rows * height, : columns * width].astype(np.float32)
        patches = whole.reshape(len(image), rows, height, columns, width).transpose(1, 3, 0, 2, 4)
        patches = patches.reshape(-1, len(image), height, width)[order]
        if "f" in self.axes:
            patches = np.repeat(patches[:, None], int(self.frames), axis=1)
        stored = "fchw" if "f" in self.axes else "chw"
        return patches.transpose(0, *(1 + stored.index(axis) for axis in self.axes))


def cut(
    image: Data,
    height: Size,
    width: Size,
    *,
    square: Size = 1,
    frames: Size = 1,
    axes: Literal["chw", "hwc", "cfhw", "fchw"] = "chw",
) -> Data:
    """An image cut into patches: [patches, *axes]."""
    sizes = {"c": image.shape[0], "f": frames, "h": height, "w": width}
    operation = Patches(height, width, square, axes, frames)
    return Data(operation, (image,), ("patches", *(sizes[axis] for axis in axes)))


# ---- where patches stand


class PatchPlaces(PatchOperation, name="rows and columns", phrase="row and column of each patch"):
    """The row and the column of each patch: [patches, 2]."""

    def read(self, image: Array, rows: int, columns: int, order: Array) -> Array:
        return np.stack(np.divmod(order, columns), axis=-1)


class SidewaysPlaces(PatchPlaces, phrase="row and column of each patch, with rows and columns swapped"):
    """The same, row by row in an image with as many rows as this one has columns."""

    def read(self, image: Array, rows: int, columns: int, order: Array) -> Array:
        return np.stack(np.divmod(order, rows), axis=-1)


class ClassTokenPlaces(PatchPlaces):
    """The column and the row of each patch, from 1 on, behind a class token at 0: [1 + patches, 2]."""

    def read(self, image: Array, rows: int, columns: int, order: Array) -> Array:
        return np.concatenate((np.zeros((1, 2), int), np.stack((order % columns, order // columns), axis=-1) + 1))


class LastClassTokenPlaces(ClassTokenPlaces):
    """The same before a class token."""

    def read(self, image: Array, rows: int, columns: int, order: Array) -> Array:
        return np.roll(super().read(image, rows, columns, order), -1, axis=0)


def patch_places(
    image: Data,
    height: Size,
    width: Size,
    *,
    square: Size = 1,
    class_place: Literal["first", "last"] | None = None,
) -> Data:
    """The row and the column of each patch, [patches, 2]. `class_place`: there is a class token, too, at 0; then the
    column comes first, and both count from 1 on.
    """
    kinds = {None: PatchPlaces, "first": ClassTokenPlaces, "last": LastClassTokenPlaces}
    return Data(kinds[class_place](height, width, square), (image,), ("patches", 2))


def sideways_places(image: Data, height: Size, width: Size) -> Data:
    """The row and the column of each patch as if the image had as many rows as it has columns, [patches, 2]."""
    return Data(SidewaysPlaces(height, width), (image,), ("patches", 2))


class PatchWindows(PatchOperation, name="windows", phrase="window of each patch"):
    """The number of the window of `window` pixels a side that each patch is in: [patches]."""

    window: int | Unknown = 1

    def read(self, image: Array, rows: int, columns: int, order: Array) -> Array:
        height, square = int(self.height), int(self.square)
        side = require(self.window) // (height * square) * square  # in whole squares
        return order // columns // side * (columns // side + 1) + order % columns // side


class PlacesInWindows(PatchWindows, name="places in windows", phrase="place of each patch in its window"):
    """The place of each patch in its window, row by row: [patches]."""

    def read(self, image: Array, rows: int, columns: int, order: Array) -> Array:
        side = require(self.window) // int(self.height)
        return order // columns % side * side + order % columns % side


def patch_windows(image: Data, size: Size, window: int | Unknown, *, square: Size = 1, rows: str = "patches") -> Data:
    return Data(PatchWindows(size, size, square, window), (image,), (rows,))


def places_in_windows(image: Data, size: Size, window: int | Unknown, *, rows: str = "patches") -> Data:
    return Data(PlacesInWindows(size, size, window=window), (image,), (rows,))


class PaddedPlaces(PatchPlaces):
    """The row and the column of each patch, and behind the patches of those outside the image that fill the last
    windows: [padded, 2].
    """

    window: Size = 1  # pixels a side

    def read(self, image: Array, rows: int, columns: int, order: Array) -> Array:
        side = int(self.window) // int(self.height)
        places: Array = np.indices(tuple(-(-n // side) * side for n in (rows, columns))).reshape(2, -1).T
        is_inside = (places[:, 0] < rows) & (places[:, 1] < columns)
        return np.concatenate((places[is_inside], places[~is_inside]))


class PaddedWindows(PaddedPlaces, name="windows", phrase="window of each patch"):
    """The window of each of these patches: [padded]."""

    shift: Size = 0  # pixels by which windows start further down and right, unless one is the image

    def read(self, image: Array, rows: int, columns: int, order: Array) -> Array:
        side = int(self.window) // int(self.height)
        shift = 0 if min(rows, columns) <= side else int(self.shift) // int(self.height)
        before = 1 if shift else 0  # one more window, in front of the shifted ones
        down, across = ((super().read(image, rows, columns, order) - shift) // side + before).T
        return down * (-(-columns // side) + before) + across


def padded_places(image: Data, size: Size, window: Size) -> tuple[Data, Data]:
    """The row and the column of each patch, [padded, 2], and its window, [padded], which has so many pixels a side.

    Patches outside the image fill the last windows.
    """
    places = Data(PaddedPlaces(size, size, window=window), (image,), ("padded", 2))
    return places, padded_windows(image, size, window)


def padded_windows(image: Data, size: Size, window: Size, shift: Size = 0) -> Data:
    """The window of each of these patches, [padded]. `shift`: pixels by which windows start further down and right."""
    return Data(PaddedWindows(size, size, window=window, shift=shift), (image,), ("padded",))


# ---- where tokens stand


class TextPlaces(Move, name="position ids", phrase="time, row and column of each token"):
    """The position of each token in time, row and column, which are equal in a text: [n, 3]."""

    n_axes: Size

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        places = np.repeat(run.positions[:, None], int(self.n_axes), axis=1)
        return self.place(run, places, inputs[0], *inputs[1:])

    def place(self, run: Pass, places: Array, ids: Array, *images: Array) -> Array:
        """`places`: those in a text without an image."""
        return places


class ImageTokenPlaces(TextPlaces, needs=1):
    """The positions of the tokens of a text with an image, the second input, or without."""

    height: Size  # of a patch
    width: Size

    def place(self, run: Pass, places: Array, ids: Array, *images: Array) -> Array:
        if not images:
            return places
        return self.place_patches(run, places, ids, *count_patches(images[0], int(self.height), int(self.width)))

    def place_patches(self, run: Pass, places: Array, ids: Array, rows: int, columns: int) -> Array:
        """`rows`, `columns`: of patches."""
        raise NotImplementedError(self.label)


class TokenPlaces(ImageTokenPlaces):
    """The position of each token in time, row and column; those of text are equal, and continue after the largest of an
    image. Source: arXiv:2409.12191 §2.1.
    """

    token: int | Unknown  # id of the image token

    def place_patches(self, run: Pass, places: Array, ids: Array, rows: int, columns: int) -> Array:
        following, seen = (int(run.state.get(key, np.zeros(()))) for key in ("following", "seen"))
        found = []
        for id in ids:
            if id == require(self.token) and seen < rows * columns:
                found.append((following, following + seen // columns, following + seen % columns))
                seen += 1
                following += max(rows, columns) if seen == rows * columns else 0
            else:
                found.append((following,) * 3)
                following += 1
        run.state["following"], run.state["seen"] = np.array(following), np.array(seen)
        return np.array(found)


class PagePlaces(ImageTokenPlaces, phrase="row and column of each token"):
    """The row and column of each token, of which two stand in front of the patches of an image and one behind each of
    its rows: [n, 2].
    """

    def place_patches(self, run: Pass, places: Array, ids: Array, rows: int, columns: int) -> Array:
        placed = np.stack(np.divmod(places[:, 0] - 2, columns + 1), axis=-1) + 2
        return np.where(places < 2, places, placed)


class TokensInRows(ImageTokenPlaces, phrase="position, column and row of each token"):
    """The position of each token, several times: [n, axes].

    The last three of tokens of an image are the column, the row and the number of the image, 0, but for its first and
    its last token; each row has one more token at its end.
    """

    token: int | Unknown  # id of the image token

    def place_patches(self, run: Pass, places: Array, ids: Array, rows: int, columns: int) -> Array:
        is_image = ids == require(self.token)
        before = int(run.state.get("seen", np.zeros(())))
        seen = before + np.cumsum(is_image) - 2  # without the first token of the image
        run.state["seen"] = np.array(before + is_image.sum())
        inside = is_image & (seen >= 0) & (seen < rows * (columns + 1))
        placed = np.stack((seen % (columns + 1), seen // (columns + 1), np.zeros_like(seen)), axis=-1)
        places[inside, -3:] = placed[inside]
        return places


def text_places(tokens: Data) -> Data:
    return Data(TextPlaces(3), (tokens,), (tokens.shape[0], 3))


def token_places(tokens: Data, image: Data, height: Size, width: Size, token: int | Unknown) -> Data:
    """The positions of each token in time, row and column, [n, 3]. `height`, `width`: of a merged patch."""
    return Data(TokenPlaces(3, height, width, token), (tokens, image), (tokens.shape[0], 3))


def tokens_in_rows(tokens: Data, image: Data, side: Size, n_axes: Size, token: int | Unknown) -> Data:
    """The positions of each token, [n, n_axes]: of tokens of an image also its column and row."""
    return Data(TokensInRows(n_axes, side, side, token), (tokens, image), (tokens.shape[0], n_axes))


def page_places(tokens: Data, image: Data, height: Size, width: Size) -> Data:
    """The row and column of each token of a text or of a page, [n, 2]."""
    return Data(PagePlaces(2, height, width), (tokens, image), (tokens.shape[0], 2))


# ---- what takes the place of tokens


class Insert(Move, name="insert", phrase="replaces the placeholder tokens", of_prompt=True):
    """The embeddings of tokens, of which those of image tokens are replaced in order.

    Inputs: embeddings [n, d], token ids [n], and what takes their place [rows, d]; or token ids for token ids.
    """

    needs: ClassVar[int] = 2  # without an image, all embeddings stay, and there is no such step
    token: int | Unknown  # id of the image token, or of an audio token

    def find_placeholders(self, ids: Array) -> Array:
        return np.asarray(ids == require(self.token))

    def combine(self, x: Array, new: Array) -> Array:
        return new

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        x, ids, image = inputs
        rows, places = image.reshape(-1, *x.shape[1:]), np.flatnonzero(self.find_placeholders(ids))
        done = int(run.state.get("done", np.zeros(())))
        if done + len(places) > len(rows):
            raise ParamcountError(
                f"{done + len(places):,} placeholder tokens (id {self.token}) for an input of {len(rows):,} vectors",
                where="tokens",
                expected=f"{len(rows):,}",
            )
        y = x.copy()
        y[places] = self.combine(y[places], rows[done : done + len(places)])
        run.state["done"] = np.array(done + len(places))
        return y


class InsertSum(Insert, phrase="adds to the placeholder tokens"):
    """The embeddings of tokens; those of image tokens have what stands for them added in order."""

    def combine(self, x: Array, new: Array) -> Array:
        return x + new


class InsertUnlessAfter(Insert):
    """The same as `Insert`, but an image token right behind another token is left as it is."""

    other: int | Unknown

    def find_placeholders(self, ids: Array) -> Array:
        is_image = super().find_placeholders(ids)
        is_image[1:] &= ids[:-1] != require(self.other)
        return is_image


def insert(x: Data, tokens: Data, rows: Data, token: int | Unknown) -> Data:
    """The embeddings x with other vectors in place of the tokens of this id."""
    return Data(Insert(token), (x, tokens, rows), x.shape)


def insert_sum(x: Data, tokens: Data, rows: Data, token: int | Unknown) -> Data:
    """The embeddings x with other vectors added to the tokens of this id."""
    return Data(InsertSum(token), (x, tokens, rows), x.shape)


def insert_unless_after(x: Data, tokens: Data, rows: Data, token: int | Unknown, other: int | Unknown) -> Data:
    """The embeddings x with other vectors in place of the tokens of this id, unless the token before has the other."""
    return Data(InsertUnlessAfter(token, other), (x, tokens, rows), x.shape)


class InsertLearned(Move, name="insert", phrase="replaces the placeholder tokens", of_prompt=True):
    """The embeddings of tokens, in which a learned vector takes the place of all with an id."""

    token: int | Unknown

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        x, ids = inputs
        return np.where((ids == require(self.token))[:, None], weights[0].reshape(-1), x)


def insert_learned(
    x: Data, tokens: Data, name: str, token: int | Unknown, tied_to: str | None = None, *, stored: tuple[Size, ...] = ()
) -> Data:
    """Embedded tokens [n, d], of which those with the id `token` are a learned vector. `stored`: if not [d]."""
    weight = Weight(name, "other_embedding", stored or x.shape[-1:], tied_to=tied_to)
    return Data(InsertLearned(token), (x, tokens), x.shape, (weight,))
