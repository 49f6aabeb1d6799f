"""Operations on mel frames as an image of bands and frames."""

from __future__ import annotations

from collections.abc import Sequence

from paramcount.flow.graph import Data, Size
from paramcount.flow.operation import Array, Pass, Shape, np
from paramcount.flow.operations.convolutions import Convolution, add_kernel_bias, store_kernel


class SpectrogramPatches(
    Convolution, phrase="over {width} × {width} bands and frames, every {down} bands and {across} frames"
):
    """Overlapping patches of mel frames [n, bands], band by band: [patches, out]. Stored [out, 1, width, width]."""

    width: Size
    down: Size
    across: Size

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        image, kernel, width = inputs[0].T, weights[0][:, 0], int(self.width)
        steps = (int(self.down), int(self.across))
        rows, columns = ((n - width) // step + 1 for n, step in zip(image.shape, steps))
        y = np.zeros((rows, columns, len(kernel)), np.float32)
        for i in range(width):
            for j in range(width):
                part = image[i :: steps[0], j :: steps[1]][:rows, :columns]
                y += part[..., None] * kernel[:, i, j]
        return add_kernel_bias(y.reshape(-1, len(kernel)), weights)


def spectrogram_patches(
    frames: Data, name: str, patches: Size, channels: Size, width: Size, down: Size, across: Size
) -> Data:
    """Overlapping patches of mel frames, one vector each: [n, bands] to [patches, channels]."""
    weights = store_kernel(name, "mixer", (channels, 1, width, width), bias=True)
    return Data(SpectrogramPatches(width, down, across), (frames,), (patches, channels), weights)
