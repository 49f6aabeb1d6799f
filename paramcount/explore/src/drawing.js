// The layout of a drawing, which Python made, from the integers that the page has.

// Bits of the kind of a box, as in drawings.py
const DATA = 1;
const BROKEN_ROWS = 2;
const BROKEN_COLS = 4;
const UNKNOWN = 8;

/** The shapes of a drawing, with their positions in pixels. */
export function readDrawing({ words, ...drawing }, roles) {
  return {
    boxes: place(drawing.boxes).map(([x, y, width, height, kind, cards = 1, depth = 0]) => ({
      x, y, width, height, cards, depth,
      isData: (kind & DATA) > 0, isUnknown: (kind & UNKNOWN) > 0,
      gap: trace(kind, x, y, width, height),
    })),
    lines: readLines(drawing.lines),
    texts: place(drawing.texts).map(([x, y, role, word]) => ({ x, y, role: roles[role], text: words[word] })),
    signs: place(drawing.signs).map(([x, y, word]) => ({ x, y, text: words[word] })),
    frames: place(drawing.frames).map(([x, y, width, height, cards, depth]) => ({ x, y, width, height, cards, depth })),
    places: place(drawing.places).map(([x, y, width, height, ...steps]) => ({ x, y, width, height, steps })),
  };
}

/** Shapes whose first two numbers are the way from the one before. */
function place(shapes) {
  let [x, y] = [0, 0];
  return shapes.map(([dx, dy, ...others]) => [(x += dx), (y += dy), ...others]);
}

/** Lines whose points are the ways from the ones before; the first number says whether a line has a head. */
function readLines(lines) {
  let [x, y] = [0, 0];
  return lines.map(([head, ...ways]) => {
    const points = [];
    for (let i = 0; i < ways.length; i += 2) points.push(`${(x += ways[i])} ${(y += ways[i + 1])}`);
    return { hasHead: head === 1, path: `M${points.join("L")}` };
  });
}

/** The path of the gaps in a box that is cut off. */
function trace(kind, x, y, width, height) {
  const across = kind & BROKEN_ROWS ? `M${x - 3} ${y + height / 2}h${width + 6}` : "";
  return across + (kind & BROKEN_COLS ? `M${x + width / 2} ${y - 3}v${height + 6}` : "");
}

/** The path of a stack of cards, the last one first. */
export function traceCards({ x, y, width, height, cards, depth }) {
  let path = "";
  for (let i = cards - 1; i >= 0; i--) {
    const shift = cards > 1 ? (depth * i) / (cards - 1) : 0;
    path += `M${x + shift} ${y - shift}h${width}v${height}h${-width}z`;
  }
  return path;
}
