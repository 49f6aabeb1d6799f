"""Operations between an image and a text: patches, where they stand, and the tokens whose place they take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from paramcount.errors import ParamcountError
from paramcount.flow.graph import Data, Size, Weight
from paramcount.flow.operation import Array, Operation, Pass, Shape, Unknown, np, require


class Patches(Operation):
    """An image [channels, height, width] cut into patches, row by row, or where its patches stand.

    "pixels": [patches, channels, height, width]; with frames, the image is repeated for each of them: [patches,
    channels, frames, height, width]. "places": the row and the column of each patch. "places of tokens": for each
    token of a text, its position in time, row and column; those of text are equal, and continue after the largest of
    an image. Source: arXiv:2409.12191 §2.1. "windows": the number of the window of `window` pixels a side that each
    patch is in; "places in windows": its place in there, row by row. "places on page": the row and column of each
    token, of which two stand in front of the patches of an image and one behind each of its rows. "tokens in rows": the
    position of each token, `n_axes` times; the last three of tokens of an image are the column, the row and the number
    of the image, 0, but for its first and its last token; each row has one more token at its end. If padded, patches
    outside the image fill the last windows, and come after
    those of the image.
    """

    only_moves: ClassVar[bool] = True
    of: Literal[
        "pixels", "places", "places of tokens", "places on page", "tokens in rows", "windows", "places in windows"
    ]
    height: Size  # of a patch; of a merged one, if places are of tokens
    width: Size
    square: Size = 1  # patches that are merged later stand together, in squares of so many rows and columns
    frames: Size | None = None
    window: int | Unknown | None = None
    shift: int | Unknown = 0  # pixels by which padded windows start further down and right, unless one is the image
    is_padded: bool = False  # to whole windows
    channels_last: bool = False  # of pixels, [patches, height, width, channels]
    frames_first: bool = False  # of pixels, [patches, frames, channels, height, width]
    class_place: Literal["first", "last"] | None = None  # a class token at 0; columns first, both from 1 on
    on_its_side: bool = False  # places row by row in an image with as many rows as this one has columns
    token: int | Unknown | None = None  # id of the image token
    n_axes: Size = 0
    needs: ClassVar[int] = 1  # without an image, the tokens of a text have places

    @property
    def label(self) -> str:
        names = {
            "pixels": "patches",
            "places": "rows and columns",
            "places of tokens": "position ids",
            "places on page": "position ids",
            "tokens in rows": "position ids",
        }
        return names.get(self.of, self.of)

    def describe(self) -> str:
        names = {
            "pixels": "pixels of each patch",
            "places of tokens": "time, row and column of each token",
            "places on page": "row and column of each token",
            "tokens in rows": "position, column and row of each token",
            "places in windows": "place of each patch in its window",
        }
        place = "row and column of each patch" + (", with rows and columns swapped" if self.on_its_side else "")
        return names.get(self.of, place)

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        if self.of == "places of tokens":
            return self.place_tokens(run, *inputs)
        if self.of == "places on page":
            return self.place_page(run, *inputs)
        if self.of == "tokens in rows":
            return self.place_in_rows(run, *inputs)
        (image,) = inputs
        channels, height, width, square = len(image), int(self.height), int(self.width), int(self.square)
        rows, columns = count_patches(image, height, width, square)
        order = order_patches(rows, columns, square)
        if self.is_padded:
            side = require(self.window) // height
            places = pad_places(rows, columns, side)
            shift = 0 if min(rows, columns) <= side else require(self.shift) // height
            before = 1 if shift else 0  # one more window, in front of the shifted ones
            down, across = ((places[:, axis] - shift) // side + before for axis in (0, 1))
            return places if self.of == "places" else down * (-(-columns // side) + before) + across
        if self.of == "windows":
            side = require(self.window) // (height * square) * square  # in whole squares
            return order // columns // side * (columns // side + 1) + order % columns // side
        if self.of == "places in windows":
            side = require(self.window) // height
            return order // columns % side * side + order % columns % side
        if self.of == "places" and self.class_place:
            placed, token = np.stack((order % columns, order // columns), axis=-1) + 1, np.zeros((1, 2), int)
            return np.concatenate((token, placed) if self.class_place == "first" else (placed, token))
        if self.of == "places":
            return np.stack(np.divmod(order, rows if self.on_its_side else columns), axis=-1)
        whole = image[:, : rows * height, : columns * width].astype(np.float32)
        patches = whole.reshape(channels, rows, height, columns, width).transpose(1, 3, 0, 2, 4)
        patches = patches.reshape(-1, channels, height, width)[order]
        if self.channels_last:
            return patches.transpose(0, 2, 3, 1)
        if self.frames is None:
            return patches
        axis = 1 if self.frames_first else 2
        return np.repeat(np.expand_dims(patches, axis), int(self.frames), axis=axis)

    def place_page(self, run: Pass, ids: Array, image: Array | None = None) -> Array:
        positions = np.repeat(run.positions[:, None], 2, axis=1)
        if image is None:
            return positions
        _, columns = count_patches(image, int(self.height), int(self.width))
        rows = np.stack(np.divmod(positions[:, 0] - 2, columns + 1), axis=-1) + 2
        return np.where(positions < 2, positions, rows)

    def place_in_rows(self, run: Pass, ids: Array, image: Array | None = None) -> Array:
        places = np.repeat(run.positions[:, None], int(self.n_axes), axis=1)
        if image is None:
            return places
        rows, columns = count_patches(image, int(self.height), int(self.width))
        is_image = ids == require(self.token)
        before = int(run.state.get("seen", np.zeros(())))
        seen = before + np.cumsum(is_image) - 2  # without the first token of the image
        run.state["seen"] = np.array(before + is_image.sum())
        inside = is_image & (seen >= 0) & (seen < rows * (columns + 1))
        placed = np.stack((seen % (columns + 1), seen // (columns + 1), np.zeros_like(seen)), axis=-1)
        places[inside, -3:] = placed[inside]
        return places

    def place_tokens(self, run: Pass, ids: Array, image: Array | None = None) -> Array:
        if image is None:
            return np.repeat(run.positions[:, None], 3, axis=1)
        rows, columns = count_patches(image, int(self.height), int(self.width))
        following, seen = (int(run.state.get(key, np.zeros(()))) for key in ("following", "seen"))
        places = []
        for id in ids:
            if id == require(self.token) and seen < rows * columns:
                places.append((following, following + seen // columns, following + seen % columns))
                seen += 1
                following += max(rows, columns) if seen == rows * columns else 0
            else:
                places.append((following,) * 3)
                following += 1
        run.state["following"], run.state["seen"] = np.array(following), np.array(seen)
        return np.array(places)


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


def pad_places(rows: int, columns: int, side: int) -> Array:
    """The row and column of each patch, row by row, and then of those that fill the last windows."""
    whole = tuple(-(-n // side) * side for n in (rows, columns))
    places: Array = np.indices(whole).reshape(2, -1).T
    is_inside = (places[:, 0] < rows) & (places[:, 1] < columns)
    return np.concatenate((places[is_inside], places[~is_inside]))


def order_patches(rows: int, columns: int, square: int) -> Array:
    """Indices of the patches, square by square."""
    order = np.arange(rows * columns).reshape(rows // square, square, columns // square, square)
    return order.transpose(0, 2, 1, 3).reshape(-1)


class Insert(Operation):
    """The embeddings of tokens, of which those of image tokens are replaced in order.

    Inputs: embeddings [n, d], token ids [n], and what takes their place [rows, d]; or token ids for token ids. A
    learned vector takes the place of all of them.
    """

    only_moves: ClassVar[bool] = True
    name: ClassVar[str] = "insert"
    token: int | Unknown  # id of the image token, or of an audio token
    of_prompt: ClassVar[bool] = True
    adds: bool = False  # to the image tokens, instead of replacing them; nothing is added to the others
    unless_after: int | Unknown | None = None  # an image token right behind this one is left as it is
    needs: ClassVar[int] = 2  # without an image, all embeddings stay, and there is no such step

    def describe(self) -> str:
        return "adds to the placeholder tokens" if self.adds else "replaces the placeholder tokens"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        if weights:
            return np.where((inputs[1] == require(self.token))[:, None], weights[0].reshape(-1), inputs[0])
        x, ids, image = inputs
        rows = image.reshape(-1, *x.shape[1:])
        is_image = ids == require(self.token)
        if self.unless_after is not None:
            is_image[1:] &= ids[:-1] != require(self.unless_after)
        places = np.flatnonzero(is_image)
        done = int(run.state.get("done", np.zeros(())))
        if done + len(places) > len(rows):
            raise ParamcountError(
                f"{done + len(places):,} placeholder tokens (id {self.token}) for an input of {len(rows):,} vectors",
                where="tokens",
                expected=f"{len(rows):,}",
            )
        y = x.copy()
        new = rows[done : done + len(places)]
        y[places] = y[places] + new if self.adds else new
        run.state["done"] = np.array(done + len(places))
        return y


def insert_learned(
    x: Data, tokens: Data, name: str, token: int | Unknown, tied_to: str | None = None, *, stored: tuple[Size, ...] = ()
) -> Data:
    """Embedded tokens [n, d], of which those with the id `token` are a learned vector. `stored`: if not [d]."""
    weight = Weight(name, "other_embedding", stored or x.shape[-1:], tied_to=tied_to)
    return Data(Insert(token), (x, tokens), x.shape, (weight,))


def cut(
    image: Data,
    height: Size,
    width: Size,
    *,
    square: Size = 1,
    frames: Size | None = None,
    channels_last: bool = False,
    frames_first: bool = False,
) -> Data:
    """An image cut into patches."""
    extra: tuple[Size, ...] = (image.shape[0],) if frames is None else (image.shape[0], frames)
    shape = (height, width, *extra) if channels_last else (*extra[:: -1 if frames_first else 1], height, width)
    operation = Patches("pixels", height, width, square, frames, channels_last=channels_last, frames_first=frames_first)
    return Data(operation, (image,), ("patches", *shape))


def patch_places(
    image: Data,
    height: Size,
    width: Size,
    *,
    square: Size = 1,
    class_place: Literal["first", "last"] | None = None,
    on_its_side: bool = False,
) -> Data:
    """The row and the column of each patch, [patches, 2]. `class_place`, `on_its_side`: see `Patches`."""
    operation = Patches("places", height, width, square, class_place=class_place, on_its_side=on_its_side)
    return Data(operation, (image,), ("patches", 2))


def padded_places(image: Data, size: Size, window: Size) -> tuple[Data, Data]:
    """The row and the column of each patch, [padded, 2], and its window, [padded], which has so many pixels a side.

    Patches outside the image fill the last windows.
    """
    places = Patches("places", size, size, window=window, is_padded=True)
    return Data(places, (image,), ("padded", 2)), padded_windows(image, size, window)


def padded_windows(image: Data, size: Size, window: Size, shift: Size = 0) -> Data:
    """The window of each of these patches, [padded]. `shift`: see `Patches`."""
    return Data(Patches("windows", size, size, window=window, shift=shift, is_padded=True), (image,), ("padded",))


def patch_windows(image: Data, size: Size, window: int | Unknown, *, square: Size = 1, rows: str = "patches") -> Data:
    """The number of the window of each patch, [rows]."""
    return Data(Patches("windows", size, size, square, window=window), (image,), (rows,))


def places_in_windows(image: Data, size: Size, window: int | Unknown, *, rows: str = "patches") -> Data:
    """The place of each patch in its window, [rows]."""
    return Data(Patches("places in windows", size, size, window=window), (image,), (rows,))


def text_places(tokens: Data) -> Data:
    """The position of each token of a text, as time, row and column, [n, 3]."""
    return Data(Patches("places of tokens", 1, 1), (tokens,), (tokens.shape[0], 3))


def token_places(tokens: Data, image: Data, height: Size, width: Size, token: int | Unknown) -> Data:
    """The positions of each token in time, row and column, [n, 3]. `height`, `width`: of a merged patch."""
    return Data(Patches("places of tokens", height, width, token=token), (tokens, image), (tokens.shape[0], 3))


def tokens_in_rows(tokens: Data, image: Data, side: Size, n_axes: Size, token: int | Unknown) -> Data:
    """The positions of each token, [n, n_axes]: of tokens of an image also its column and row."""
    return Data(
        Patches("tokens in rows", side, side, token=token, n_axes=n_axes), (tokens, image), (tokens.shape[0], n_axes)
    )


def page_places(tokens: Data, image: Data, height: Size, width: Size) -> Data:
    """The row and column of each token of a text or of a page, [n, 2]."""
    return Data(Patches("places on page", height, width), (tokens, image), (tokens.shape[0], 2))


def insert(
    x: Data,
    tokens: Data,
    rows: Data,
    token: int | Unknown,
    *,
    adds: bool = False,
    unless_after: int | Unknown | None = None,
) -> Data:
    """The embeddings x with other vectors in place of the tokens of this id. `unless_after`: as in `Insert`."""
    return Data(Insert(token, adds, unless_after), (x, tokens, rows), x.shape)
