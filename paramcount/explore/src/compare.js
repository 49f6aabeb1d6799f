// What a comparison says in sentences, and the points of its curves.

import { countCache } from "./count.js";
import { formatBytes, formatCount } from "./format.js";

const USUAL_CONTEXT = 131072; // tokens, of models without a limit
const POINTS = 600; // of a curve as wide as a chart: about one for each pixel

/** The bytes that a model keeps of a text; null if their number is not known. */
function countKept({ structure, values }, context) {
  const cache = countCache(structure, values, BigInt(context));
  return cache && cache.bytes + cache.states;
}

const hasCache = (model) => (countKept(model, 1) ?? 0n) > 0n;

/** The context at which models are compared: the longest that all with a cache take, at most 128k. */
export const findContext = (models) =>
  Math.min(USUAL_CONTEXT, ...models.filter(hasCache).map(({ context }) => context).filter((n) => n !== null));

const divide = (a, b) => Number((a * 100000n) / b) / 100000;

/** A ratio of at least 1 with two digits, or all before the point: "1.4×", "2×", "22×". */
const formatRatio = (ratio) => (ratio < 9.95 ? `${ratio.toFixed(1).replace(".0", "")}×` : `${formatCount(BigInt(Math.round(ratio)))}×`);

const isAlmostOne = (ratio) => ratio > 0.95 && ratio < 1.05;

/** One or two sentences about two models: which is larger, what they use per token, and their KV caches at a context. */
export function describePair(one, other, context) {
  const [large, small] = one.counted.total >= other.counted.total ? [one, other] : [other, one];
  return [describeCounts(large, small), describeCaches(large.model, small.model, context)].filter(Boolean).join(" ");
}

function describeCounts(large, small) {
  const [a, b] = [large.model.name, small.model.name];
  const total = divide(large.counted.total, small.counted.total);
  const begin = large.counted.total === small.counted.total ? `${a} has as many parameters as ${b}`
    : isAlmostOne(total) ? `${a} has about as many parameters as ${b}`
    : `${a} has ${formatRatio(total)} the parameters of ${b}`;
  const isDense = [large, small].every(({ counted }) => counted.active === counted.total);
  if (isDense) return `${begin}.`;
  const active = divide(large.counted.active, small.counted.active);
  if (isAlmostOne(active)) return `${begin}, and uses about as many per token.`;
  if (active > 1) return `${begin}, and uses ${formatRatio(active)} as many per token.`;
  return `${begin}, but ${b} uses ${formatRatio(divide(small.counted.active, large.counted.active))} as many per token.`;
}

function describeCaches(large, small, context) {
  const models = [large, small].filter((model) => countKept(model, context) !== null);
  const [first, ...others] = models.sort((a, b) => hasCache(b) - hasCache(a));
  if (!first || !others.length || !hasCache(first)) return "";
  const [other] = others;
  const begin = `At ${formatCount(context)} tokens, ${first.name} caches ${formatBytes(countKept(first, context))} per sequence`;
  return hasCache(other) ? `${begin}, and ${other.name} ${formatBytes(countKept(other, context))}.` : `${begin}; ${other.name} has no KV cache.`;
}

/** {points, longest, ticks}: the cache of one sequence in BF16, densely, up to exactly the longest context of each model. */
export function sampleCaches(models) {
  const known = models.filter(hasCache);
  const longest = Math.max(1, ...known.map(({ context }) => context ?? USUAL_CONTEXT));
  const points = known.flatMap((model) => {
    const last = model.context ?? longest;
    const contexts = new Set([1, last]);
    for (let i = 1; i <= POINTS; i++) contexts.add(Math.min(last, Math.max(1, Math.round((longest * i) / POINTS))));
    return [...contexts].sort((a, b) => a - b).map((context) => (
      { model: model.name, context, gigabytes: Number(countKept(model, context)) / 1e9 }
    ));
  });
  const step = Math.max(1, 2 ** Math.floor(Math.log2(longest / 4)));
  const ticks = Array.from({ length: Math.floor(longest / step) + 1 }, (_, i) => i * step);
  return { points, longest, ticks };
}

/** Whether a fact is one that two models have and that is not the same: what only one of them has is no difference. */
export const differs = (values) => new Set(values.filter((value) => value !== undefined && value !== "" && value !== "unknown")).size > 1;
