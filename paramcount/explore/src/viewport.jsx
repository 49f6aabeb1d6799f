// A drawing that can be zoomed and moved: by wheel, pinch, drag, buttons and keys.

import { useEffect, useRef, useState } from "preact/hooks";
import { fitView, moveView, showArea, zoomView } from "./zoom.js";

const STEP = 1.3; // of a button or a key
const SHIFT = 80; // pixels that an arrow key moves

/** `area`: what has to be seen, such as the chosen step; undefined for the beginning. `keys`: handles keys first, and returns whether it did. */
export function Viewport({ size, area, label, keys, children }) {
  const sheet = useRef(null);
  const [box, setBox] = useState(null);
  const [view, setView] = useState(null);
  const [isDragged, setDragged] = useState(false);
  const pointers = useRef(new Map());
  const now = view ?? (box && fitView(box, size));
  const change = (next) => setView((old) => next(old ?? fitView(box, size)));
  const zoom = (factor, x = box.width / 2, y = box.height / 2) => change((old) => zoomView(old, factor, x, y, box, size));
  const move = (dx, dy) => change((old) => moveView(old, dx, dy, box, size));
  useEffect(() => {
    const observer = new ResizeObserver(([{ contentRect: { width, height } }]) => width > 50 && height > 50 && setBox({ width, height }));
    observer.observe(sheet.current);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (box && area) change((old) => showArea(old, area, box, size));
  }, [area?.x, area?.y, box]);
  useEffect(() => {
    if (!box) return;
    const turn = (event) => {
      const { left, top } = sheet.current.getBoundingClientRect();
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault(); // the page would zoom
        zoom(Math.exp(-event.deltaY / 300), event.clientX - left, event.clientY - top);
        return;
      }
      const moved = moveView(now, -event.deltaX, -event.deltaY, box, size);
      if (moved.x === now.x && moved.y === now.y) return; // at the edge, the page goes on
      event.preventDefault();
      setView(moved);
    };
    sheet.current.addEventListener("wheel", turn, { passive: false });
    return () => sheet.current?.removeEventListener("wheel", turn);
  }, [box, now]);
  const press = (event) => {
    if (event.button === 0) pointers.current.set(event.pointerId, [event.clientX, event.clientY]);
  };
  const drag = (event) => {
    const all = pointers.current;
    const before = all.get(event.pointerId);
    if (!before) return;
    const [dx, dy] = [event.clientX - before[0], event.clientY - before[1]];
    if (all.size === 1 && !isDragged && Math.hypot(dx, dy) < 4) return; // a click is no drag
    if (!isDragged) {
      setDragged(true);
      sheet.current.setPointerCapture?.(event.pointerId);
    }
    if (all.size === 2) {
      const [other] = [...all].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
      const { left, top } = sheet.current.getBoundingClientRect();
      const spread = (x, y) => Math.hypot(x - other[0], y - other[1]);
      zoom(spread(event.clientX, event.clientY) / Math.max(spread(...before), 1), other[0] - left, other[1] - top);
    } else move(dx, dy);
    all.set(event.pointerId, [event.clientX, event.clientY]);
  };
  const release = (event) => {
    pointers.current.delete(event.pointerId);
    if (!pointers.current.size) setTimeout(() => setDragged(false));
  };
  const type = (event) => {
    const ways = { ArrowLeft: [SHIFT, 0], ArrowRight: [-SHIFT, 0], ArrowUp: [0, SHIFT], ArrowDown: [0, -SHIFT] };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.shiftKey && ways[event.key]) move(...ways[event.key]);
    else if (event.key === "+" || event.key === "=") zoom(STEP);
    else if (event.key === "-") zoom(1 / STEP);
    else if (event.key === "0" || event.key === "Escape") setView(fitView(box, size, true));
    else if (!keys(event)) return;
    event.preventDefault();
  };
  const [width, height] = box ? [box.width / now.scale, box.height / now.scale] : size;
  return (
    <div class="sheet" ref={sheet} onPointerDown={press} onPointerMove={drag} onPointerUp={release} onPointerCancel={release} onKeyDown={type}>
      <svg class={isDragged ? "drawing dragged" : "drawing"} viewBox={`${now?.x ?? 0} ${now?.y ?? 0} ${width} ${height}`} role="group" aria-label={label}>
        {children}
      </svg>
      <div class="tools" role="group" aria-label="Zoom">
        <button type="button" aria-label="Zoom in" title="Zoom in (+)" onClick={() => zoom(STEP)}>+</button>
        <button type="button" aria-label="Zoom out" title="Zoom out (−)" onClick={() => zoom(1 / STEP)}>−</button>
        <button type="button" title="Show the whole drawing (0 or Escape)" onClick={() => setView(fitView(box, size, true))}>Fit</button>
      </div>
    </div>
  );
}
