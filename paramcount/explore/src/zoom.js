// What part of a drawing is seen: {x, y, scale}, with the position of the corner and pixels per unit of the drawing.

const LARGEST = 4;

const READABLE = 0.9;

/** The whole drawing, or as much of it as stays readable, from its corner. */
export function fitView({ width, height }, [w, h], isWhole = false) {
  const scale = isWhole ? Math.min(width / w, height / h) : Math.min(1, Math.max(width / w, READABLE));
  return limitView({ x: 0, y: 0, scale }, { width, height }, [w, h]);
}

/** A view whose drawing stays in sight: in the middle where it is smaller than the box. */
export function limitView({ x, y, scale }, { width, height }, [w, h]) {
  const least = Math.min(1, width / w, height / h);
  const bounded = Math.min(LARGEST, Math.max(least, scale));
  const limit = (at, seen, size) => (seen >= size ? (size - seen) / 2 : Math.min(Math.max(at, 0), size - seen));
  return { x: limit(x, width / bounded, w), y: limit(y, height / bounded, h), scale: bounded };
}

/** A view that is `factor` times larger, with the point (px, py) of the box where it was. */
export function zoomView(view, factor, px, py, box, size) {
  const { scale } = limitView({ ...view, scale: view.scale * factor }, box, size);
  return limitView({ x: view.x + px / view.scale - px / scale, y: view.y + py / view.scale - py / scale, scale }, box, size);
}

/** A view moved by pixels. */
export function moveView(view, dx, dy, box, size) {
  return limitView({ ...view, x: view.x - dx / view.scale, y: view.y - dy / view.scale }, box, size);
}

/** A view in which an area is seen, moved as little as possible. */
export function showArea(view, { x, y, width, height }, box, size) {
  const margin = 24 / view.scale;
  const [right, bottom] = [view.x + box.width / view.scale, view.y + box.height / view.scale];
  const shift = (from, to, low, high) => (from - margin < low ? from - margin - low : to + margin > high ? to + margin - high : 0);
  const moved = { ...view, x: view.x + shift(x, x + width, view.x, right), y: view.y + shift(y, y + height, view.y, bottom) };
  return limitView(moved, box, size);
}
