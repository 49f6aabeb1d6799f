// A model with other sizes, as the address states them.

import { findErrors } from "./count.js";
import { formatCount, formatShare, formatShort } from "./format.js";

/** The variant that an address names, and its sizes with those that the address changes, if they are integers. */
export function readVariant(model, options) {
  const variant = model.variants.find(({ label }) => label === options.variant) ?? model.variants[0];
  const values = variant.values.map((value, i) => {
    const [path, smallest] = variant.structure.sizes[i];
    return smallest !== undefined && /^\d{1,18}$/.test(options[path] ?? "") ? BigInt(options[path]) : value;
  });
  return { variant, values };
}

/** [path, value] of each size that differs from the published one. */
export const listChanges = ({ structure, values: published }, values) =>
  structure.sizes.flatMap(([path], i) => (values[i] === published[i] ? [] : [[path, values[i]]]));

/** Such as "n_layers 36 → 48"; "" if nothing differs. */
export function describeChanges({ structure, values, changes, label }, changed) {
  const published = Object.fromEntries(structure.sizes.map(([path], i) => [path, values[i]]));
  const sizes = changed.map(([path, value]) => `${path} ${formatCount(published[path])} → ${formatCount(value)}`);
  return [...(Object.keys(changes).length ? [label] : []), ...sizes].join(", ");
}

const absolute = (n) => (n < 0n ? -n : n);

/** Such as "+1.2B, +15.0%"; "no change" if nothing differs. */
export function describeDifference(before, after) {
  const n = after - before;
  if (n === 0n) return "no change";
  const sign = n < 0n ? "−" : "+";
  return `${sign}${formatShort(absolute(n))}${before ? `, ${sign}${formatShare(absolute(n), before)}` : ""}`;
}

const FARTHEST = 512n; // that is tried

/** The nearest valid values of a size below and above its own, if the others stay as they are. */
export function findNearestValid(structure, values, i) {
  const [, least, most] = structure.sizes[i];
  const isValid = (n) => !findErrors(structure, values.map((value, j) => (j === i ? n : value))).length;
  const search = (sign) => {
    for (let k = 1n; k <= FARTHEST; k++) {
      const n = values[i] + sign * k;
      if (n < BigInt(least) || n > BigInt(most)) return null;
      if (isValid(n)) return n;
    }
    return null;
  };
  return [search(-1n), search(1n)].filter((n) => n !== null);
}
