// A size with its slider and its field.

import { formatCount } from "./format.js";
import { memo } from "./memo.jsx";

const LOWEST = 8n; // the slider begins at an eighth of the published value, and ends at twice it
const EIGHT = 8n; // the least end of a slider

/** A slider and a field; a mark shows where the published value is. `set`: the options of the address. */
export const Size = memo(({ path, smallest, largest, value, published, list, wrong, set }) => {
  const id = `size-${path}`;
  if (smallest === undefined || (list && value === published)) {
    return (
      <div class="size">
        <span>{path}</span> <output>{formatCount(value)}</output>
        <small>{list ? `Set by ${list}.` : "Cannot be changed here: the architecture depends on it."}</small>
      </div>
    );
  }
  const step = findStep(published);
  const least = BigInt(smallest);
  const lowest = published - ((published - (published / LOWEST > least ? published / LOWEST : least)) / step) * step;
  const highest = published * 2n > EIGHT ? published * 2n : EIGHT;
  const change = (text) => set({ [path]: text === published.toString() ? undefined : text });
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
          onInput={(event) => change(event.target.value)}
        />
      </span>
      <input
        type="number"
        id={id}
        min={smallest}
        max={largest}
        value={value.toString()}
        aria-invalid={wrong}
        onInput={(event) => /^\d+$/.test(event.target.value) && change(event.target.value)}
      />
    </div>
  );
});

/** The largest power of two that divides a value, at most a 32nd of it. */
function findStep(value) {
  let step = 1n;
  while (value % (step * 2n) === 0n && step * 64n <= value) step *= 2n;
  return step;
}
