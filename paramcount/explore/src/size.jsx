// A size with its slider and its field.

import { formatCount } from "./format.js";

const LOWEST = 8n; // the slider begins at an eighth of the published value, and ends at twice it
const EIGHT = 8n; // the least end of a slider

/** A slider and a field; a mark shows where the published value is. */
export function Size({ path, limits, value, published, list, wrong, set }) {
  const id = `size-${path}`;
  if (!limits || (list && value === published)) {
    return (
      <div class="size">
        <span>{path}</span> <output>{formatCount(value)}</output>
        <small>{list ? `Derived from ${list}.` : "Fixed here: the structure depends on it."}</small>
      </div>
    );
  }
  const step = findStep(published);
  const least = BigInt(limits[0]);
  const lowest = published - ((published - (published / LOWEST > least ? published / LOWEST : least)) / step) * step;
  const highest = published * 2n > EIGHT ? published * 2n : EIGHT;
  const share = Number(published - lowest) / Number(highest - lowest);
  return (
    <div class={wrong ? "size wrong" : value === published ? "size" : "size changed"}>
      <label for={id}>{path}</label>
      <span class="slider" style={{ "--published": share }} title={`published: ${formatCount(published)}`}>
        <input
          type="range"
          aria-label={`${path}, slider; published: ${formatCount(published)}`}
          min={lowest.toString()}
          max={highest.toString()}
          step={step.toString()}
          value={value.toString()}
          onInput={(event) => set(event.target.value)}
        />
      </span>
      <input
        type="number"
        id={id}
        min={limits[0]}
        max={limits[1]}
        value={value.toString()}
        aria-invalid={wrong}
        onInput={(event) => /^\d+$/.test(event.target.value) && set(event.target.value)}
      />
    </div>
  );
}

/** The largest power of two that divides a value, at most a 32nd of it. */
function findStep(value) {
  let step = 1n;
  while (value % (step * 2n) === 0n && step * 64n <= value) step *= 2n;
  return step;
}
