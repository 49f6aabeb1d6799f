// The parameter map: one rectangle per tensor, its area in proportion to its parameters.

import { hierarchy, treemap, treemapSquarify } from "d3-hierarchy";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { formatCount, formatShare } from "./format.js";
import { drawGrid } from "./tree.js";

const HEIGHT = 560;
const LABEL = 14; // pixels of a line of text

export function ParameterMap({ data, node, total, open }) {
  const box = useRef(null);
  const [width, setWidth] = useState(960);
  const [chosen, setChosen] = useState(null);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.max(280, Math.floor(entry.contentRect.width))));
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const leaves = useMemo(() => {
    const root = hierarchy(node).sum((group) => (group.children ? 0 : Number(group.parameters)));
    treemap().tile(treemapSquarify).size([width, HEIGHT]).round(false)(root);
    return root.descendants();
  }, [node, width]);
  const shown = chosen ?? node;
  return (
    <>
      <p role="status" class="answer">
        <b>{shown.label}</b>{shown.shape && ` [${shown.shape.map(String).join(" × ")}]`}
        {shown.count > 1n && `, ${formatCount(shown.count)} of them`}: {formatCount(shown.parameters)} parameters,{" "}
        {formatShare(shown.parameters, total)} of the model
      </p>
      <div ref={box} class="map">
        <svg width={width} height={HEIGHT} viewBox={`0 0 ${width} ${HEIGHT}`} role="group" aria-label={`Parameters of ${node.label}, area to scale`}>
          {leaves.filter((leaf) => leaf.depth > 0).map((leaf) => (
            <Rectangle key={leaf.ancestors().map((one) => one.data.key).join("/")} leaf={leaf} total={total} colors={data.colors} choose={setChosen} open={open} />
          ))}
          {leaves.filter((leaf) => leaf.depth > 0).map((leaf, i) => <Label key={i} leaf={leaf} />)}
        </svg>
      </div>
    </>
  );
}

function Rectangle({ leaf, total, colors, choose, open }) {
  const group = leaf.data;
  const [w, h] = [leaf.x1 - leaf.x0, leaf.y1 - leaf.y0];
  if (w < 0.5 || h < 0.5) return null;
  const keys = leaf.ancestors().reverse().slice(1).map((one) => one.data.key);
  const count = group.count > 1n ? `, ${formatCount(group.count)} of them` : "";
  const shape = group.shape ? ` [${group.shape.join(" × ")}]` : "";
  const share = formatShare(group.parameters, total);
  const zoom = () => group.children && open(keys);
  return (
    <g
      role={group.children ? "button" : "img"}
      tabindex="0"
      aria-label={`${group.label}${shape}${count}: ${formatCount(group.parameters)} parameters, ${share}`}
      class={group.children ? "group" : "leaf"}
      onFocus={() => choose(group)}
      onMouseEnter={() => choose(group)}
      onMouseLeave={() => choose(null)}
      onClick={zoom}
      onKeyDown={(event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), zoom())}
    >
      <rect x={leaf.x0} y={leaf.y0} width={w} height={h} fill={group.children ? "transparent" : colors[group.component]} style={{ strokeWidth: 4 / leaf.depth }} />
      {!group.children && group.count > 1n && <path class="grid" d={drawGrid(group.count, leaf.x0, leaf.y0, w, h)} />}
    </g>
  );
}

/** Names over the rectangles, one line for each level, where there is room. */
function Label({ leaf }) {
  const group = leaf.data;
  const [w, h] = [leaf.x1 - leaf.x0, leaf.y1 - leaf.y0];
  const first = leaf.ancestors().slice(1).filter((one) => one.depth > 0 && leaf.y0 - one.y0 < 1).length;
  const text = !group.children && group.count > 1n ? `${group.label} × ${formatCount(group.count)}` : group.label;
  if (w < 6.6 * text.length + 8 || h < LABEL * (first + 1) + 3) return null;
  return <text x={leaf.x0 + 5} y={leaf.y0 + LABEL * (first + 1) - 2}>{text}</text>;
}
