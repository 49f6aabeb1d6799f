// Finds models by what people type: a name, an alias, a repo id, a family, or nearly one of them.

const simplify = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "");

/** The last part of a repo id: "Qwen/Qwen3-8B" is "Qwen3-8B". */
const listNames = (model) => [model.id, model.name, ...model.aliases, model.hf, model.hf?.split("/").at(-1)].filter(Boolean);

/** How well a model matches, 0 is best; Infinity if it does not. */
function rank(model, query, words) {
  const names = listNames(model).map(simplify);
  if (names.includes(query)) return 0;
  if (names.some((name) => name.startsWith(query))) return 1;
  if (names.some((name) => name.includes(query))) return 2;
  const all = [...names, ...[model.family, model.publisher].filter(Boolean).map(simplify)];
  return words.every((word) => all.some((name) => name.includes(word))) ? 3 : Infinity;
}

/** The models that match a query, the best first; among equals in their order, which begins with the famous ones. */
export function findModels(models, query, limit = 8) {
  const simple = simplify(query);
  if (!simple) return [];
  const words = query.split(/[\s/_-]+/).map(simplify).filter(Boolean);
  return models
    .map((model) => ({ model, rank: rank(model, simple, words) }))
    .filter((found) => found.rank < Infinity)
    .sort((a, b) => a.rank - b.rank)
    .slice(0, limit)
    .map(({ model }) => model);
}

/** The models that a mistyped name may mean: those that match, or else those whose name is nearly the same. */
export function findNearest(models, query, limit = 5) {
  const found = findModels(models, query, limit);
  return found.length ? found : keepNearest(models, query, listNames).slice(0, limit);
}

/** The words of a list that a mistyped one may mean. */
export const findNearestWords = (words, word) => keepNearest(words, word, (other) => [other]);

/** What differs from a text in at most a third of its letters, and hardly more than the nearest one. */
function keepNearest(things, text, listNames) {
  const simple = simplify(text);
  const measured = things
    .map((thing) => ({ thing, distance: Math.min(...listNames(thing).map((name) => measureDistance(simple, simplify(name)))) }))
    .filter(({ distance }) => distance <= Math.max(1, simple.length / 3) && distance < simple.length)
    .sort((a, b) => a.distance - b.distance);
  return measured.filter(({ distance }) => distance <= measured[0].distance + 1).map(({ thing }) => thing);
}

/** The number of letters to insert, delete, replace or swap. */
export function measureDistance(a, b) {
  let before = [];
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) next[j] = Math.min(next[j], before[j - 2] + 1);
    }
    [before, row] = [row, next];
  }
  return row[b.length];
}
