// Pictures of values: blue below 0, orange above, as strong as they are large.

import { useEffect, useRef } from "preact/hooks";

const BLUE = [40, 110, 220];
const ORANGE = [224, 122, 20];

/** Values in rows of `width`, as one picture; `most`: the magnitude of full colour, default the largest. */
export function Heat({ values, width = values.length, most, label }) {
  const canvas = useRef(null);
  const height = Math.ceil(values.length / width);
  useEffect(() => {
    const context = canvas.current.getContext("2d");
    const image = context.createImageData(width, height);
    const full = most ?? values.reduce((a, b) => (Number.isFinite(b) ? Math.max(a, Math.abs(b)) : a), 0);
    values.forEach((value, i) => {
      const strength = Number.isFinite(value) && full ? Math.min(1, Math.abs(value) / full) : 0;
      image.data.set([...(value < 0 ? BLUE : ORANGE), Math.round(255 * strength ** 0.7)], 4 * i);
    });
    context.putImageData(image, 0, 0);
  });
  return <canvas ref={canvas} class="heat" width={width} height={height} role="img" aria-label={label} />;
}

/** "-1.2 to 3.4" of values. */
export function formatRange(values) {
  const finite = [...values].filter(Number.isFinite);
  const [least, most] = [Math.min(...finite), Math.max(...finite)];
  return least === most ? formatValue(least) : `${formatValue(least)} to ${formatValue(most)}`;
}

export const formatValue = (value) => String(Number(value.toPrecision(3))).replace("-", "−");
