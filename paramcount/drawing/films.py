"""Writes pictures as an animation of ten seconds: GIF, WebP or MP4. Needs the [animate] extra."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from paramcount.errors import make_extra_error

if TYPE_CHECKING:
    from PIL.Image import Image

SECONDS = 10  # of an animation, however many pictures it has
ENDINGS = {".gif": "gif", ".webp": "webp", ".mp4": "mp4"}
RATE = 25  # pictures per second of a video
UNIT = 10  # milliseconds in which a GIF measures durations
COLOURS = 255  # of a GIF

Encoder = Callable[[Iterable[bytes], int], bytes]


def find_encoder(format: str) -> Encoder:
    """The function that turns PNG pictures, and their number, into the content of a file.

    Raises: ParamcountError if the [animate] extra is missing.
    """
    try:
        import PIL.Image  # noqa: F401
        import resvg_py  # noqa: F401

        if format == "mp4":
            import imageio_ffmpeg

            imageio_ffmpeg.get_ffmpeg_exe()
    except (ImportError, RuntimeError):  # the latter if there is no ffmpeg for this system
        raise make_extra_error("an animation", "animate") from None
    return {"gif": encode_gif, "webp": encode_webp, "mp4": encode_mp4}[format]


def divide_time(n: int, units: int) -> list[int]:
    """The lengths of `n` pictures, which differ by at most one unit and have the sum `units`.

    >>> divide_time(3, 1000)
    [333, 333, 334]
    """
    ends = [units * i // n for i in range(n + 1)]
    return [end - start for start, end in pairwise(ends)]


def list_durations(n: int) -> list[int]:
    return [UNIT * length for length in divide_time(n, 1000 * SECONDS // UNIT)]


def read_pictures(pictures: Iterable[bytes]) -> Iterator[Image]:
    from PIL import Image

    for content in pictures:
        with Image.open(BytesIO(content)) as image:
            yield image.convert("RGB")


def encode_gif(pictures: Iterable[bytes], n: int) -> bytes:
    """A GIF whose pictures share the colours of the last one, in which nothing is dimmed, and of the middle one."""
    from PIL import Image

    images = list(read_pictures(pictures))
    samples = [images[n // 2], images[-1]]
    both = Image.new("RGB", (samples[0].width, 2 * samples[0].height))
    for i, sample in enumerate(samples):
        both.paste(sample, (0, i * sample.height))
    palette = both.quantize(COLOURS, dither=Image.Dither.NONE)
    first, *others = (image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images)
    file = BytesIO()
    first.save(file, "GIF", save_all=True, append_images=others, duration=list_durations(n), loop=0)
    return file.getvalue()


def encode_webp(pictures: Iterable[bytes], n: int) -> bytes:
    first, *others = read_pictures(pictures)
    file = BytesIO()
    first.save(
        file, "WEBP", save_all=True, append_images=others, duration=list_durations(n), loop=0, lossless=True, method=3
    )
    return file.getvalue()


def encode_mp4(pictures: Iterable[bytes], n: int) -> bytes:
    """An H.264 video, which begins to play before all of it is there."""
    import imageio_ffmpeg

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "film.mp4"
        writer = None
        for image, times in zip(read_pictures(pictures), divide_time(n, RATE * SECONDS)):
            if writer is None:
                writer = imageio_ffmpeg.write_frames(
                    str(path), image.size, fps=RATE, codec="libx264", quality=7, macro_block_size=2,
                    ffmpeg_log_level="error", output_params=["-movflags", "+faststart"],
                )  # fmt: skip
                writer.send(None)
            for _ in range(times):
                writer.send(image.tobytes())
        if writer is not None:
            writer.close()
        return path.read_bytes()
