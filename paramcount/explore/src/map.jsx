// The parameter map: one rectangle per tensor, its area in proportion to its parameters.

import { hierarchy, treemap, treemapSquarify } from "d3-hierarchy";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { formatCount, formatShare } from "./format.js";
import { drawGrid, findNeighbour } from "./tree.js";

const HEIGHT = 560;
const LABEL = 14; // pixels of a line of text
const LETTER = 6.6; // pixels of a letter, at most

/** `active`: from `shareActive`. `open`: shows the group at a path of keys. `close`: shows the group around this one, if there is one. */
export function ParameterMap({ data, node, total, active = {}, open, close }) {
  const box = useRef(null);
  const [width, setWidth] = useState(960);
  const [chosen, setChosen] = useState(null);
  const [current, setCurrent] = useState(0); // of the groups that arrows move through
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.max(280, Math.floor(entry.contentRect.width))));
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const leaves = useMemo(() => {
    const root = hierarchy(node).sum((group) => (group.children ? 0 : Number(group.parameters)));
    treemap().tile(treemapSquarify).size([width, HEIGHT]).round(false)(root);
    return root.descendants().filter((leaf) => leaf.depth > 0);
  }, [node, width]);
  const groups = leaves.filter((leaf) => leaf.depth === 1 && isVisible(leaf));
  const before = useRef(node);
  const byKey = useRef(false); // whether a key has opened or closed a group
  useEffect(() => {
    if (before.current === node) return;
    before.current = node;
    setChosen(null);
    setCurrent(0);
    if (byKey.current) focus(0); // what had the focus is gone
    byKey.current = false;
  }, [node]);
  const focus = (i) => box.current.querySelectorAll("[tabindex]")[i]?.focus();
  const move = (event) => {
    byKey.current = event.key === "Enter" || event.key === " " || event.key === "Escape";
    const next = findNeighbour(groups, current, event.key);
    if (next !== undefined) focus(next);
    else if (event.key === "Escape" && close) close();
    else return;
    event.preventDefault();
  };
  const shown = chosen ?? node;
  return (
    <>
      <p role="status" class="answer">
        <b>{shown.place ?? shown.label}</b>{shown.shape && ` [${shown.shape.map(String).join(" × ")}]`}
        {shown.count > 1n && `, ${formatCount(shown.count)} of them`}: {formatCount(shown.parameters)} parameters
        {shown.parameters < total && `, ${formatShare(shown.parameters, total)} of the model`} {shown.name && <code>{shown.name}</code>}
        {shown === node && Object.keys(active).length > 0 && " · dark: the experts that one token uses"}
      </p>
      <div ref={box} class="map">
        <svg width={width} height={HEIGHT} viewBox={`0 0 ${width} ${HEIGHT}`} role="group" aria-label={`Parameters of ${node.label}, area to scale`} onKeyDown={move}>
          {leaves.filter(isVisible).map((leaf) => {
            const i = groups.indexOf(leaf);
            return (
              <Rectangle
                key={leaf.ancestors().map((one) => one.data.key).join("/")} leaf={leaf} total={total} active={active[leaf.data.component] ?? 1} colors={data.colors} choose={setChosen} open={open}
                tabIndex={i < 0 ? undefined : i === Math.min(current, groups.length - 1) ? 0 : -1} enter={() => i >= 0 && setCurrent(i)}
              />
            );
          })}
          {leaves.map((leaf, i) => <Label key={i} leaf={leaf} data={data} />)}
        </svg>
      </div>
    </>
  );
}

const isVisible = (leaf) => leaf.x1 - leaf.x0 >= 0.5 && leaf.y1 - leaf.y0 >= 0.5;

function Rectangle({ leaf, total, active, colors, choose, open, tabIndex, enter }) {
  const group = leaf.data;
  const [w, h] = [leaf.x1 - leaf.x0, leaf.y1 - leaf.y0];
  const keys = leaf.ancestors().reverse().slice(1).map((one) => one.data.key);
  const count = group.count > 1n ? `, ${formatCount(group.count)} of them` : "";
  const shape = group.shape ? ` [${group.shape.join(" × ")}]` : "";
  const figures = `${shape}${count}: ${formatCount(group.parameters)} parameters, ${formatShare(group.parameters, total)}`;
  const zoom = () => group.children && open(keys);
  const focus = tabIndex === undefined ? undefined : () => (choose(group), enter()); // with a listener, Tab would stop here
  return (
    <g
      role={group.children ? "button" : "img"}
      tabindex={tabIndex}
      aria-label={`${group.place ?? group.label}${figures}`}
      class={group.children ? "group" : "leaf"}
      onFocus={focus}
      onMouseEnter={() => choose(group)}
      onMouseLeave={() => choose(null)}
      onClick={zoom}
      onKeyDown={(event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), zoom())}
    >
      <title>{group.name ?? group.label}</title>
      <rect x={leaf.x0} y={leaf.y0} width={w} height={h} fill={group.children ? "transparent" : colors[group.component]} style={{ strokeWidth: 4 / leaf.depth }} />
      {!group.children && active < 1 && <rect class="active" x={leaf.x0} y={leaf.y0} width={w} height={h * active} />}
      {!group.children && group.count > 1n && <path class="grid" d={drawGrid(group.count, leaf.x0, leaf.y0, w, h)} />}
    </g>
  );
}

/** Names over the rectangles, one line for each level, where there is room, on the colour of the rectangle in the corner. */
function Label({ leaf, data }) {
  const group = leaf.data;
  const [w, h] = [leaf.x1 - leaf.x0, leaf.y1 - leaf.y0];
  const first = leaf.ancestors().slice(1).filter((one) => one.depth > 0 && leaf.y0 - one.y0 < 1).length;
  const isRepeated = group.label === leaf.parent?.data.label && first > 0; // "token embedding" is a component and its only tensor
  const text = !group.children && group.count > 1n ? `${group.label} × ${formatCount(group.count)}` : group.label;
  if (isRepeated || w < LETTER * text.length + 8 || h < LABEL * (first + 1) + 3) return null;
  const y = leaf.y0 + LABEL * (first + 1) - 2;
  const { component } = (leaf.leaves().find(({ x0, x1, y0, y1 }) => x0 <= leaf.x0 + 9 && leaf.x0 + 9 < x1 && y0 <= y - 4 && y - 4 < y1) ?? leaf.leaves()[0]).data;
  return (
    <g class={group.children ? "label outer" : "label"}>
      <rect x={leaf.x0 + 2} y={y - 11} width={LETTER * text.length + 4} height={LABEL} fill={data.colors[component]} />
      <text x={leaf.x0 + 5} y={y} fill={data.inks[component]}>{text}</text>
    </g>
  );
}
