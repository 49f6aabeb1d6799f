// The data of the page: the rows of all models at once, and the structure of a model when it is first asked for.

import { evaluate } from "./arithmetic.js";
import { parseLine, readElement, readLines, readRecords } from "./blocks.js";
import { count } from "./count.js";

const COUNTS = ["total", "reference_total", "active", "embedding", "experts", "mlp", "kv_per_token"];

/** The rows of the table of models, the most famous first. */
export async function readRows(element) {
  const rows = readRecords(parseLine((await readElement(element))[0]));
  return rows.map(({ context_length, ...row }) => ({
    ...row,
    context: context_length,
    ...Object.fromEntries(COUNTS.map((name) => [name, evaluate(row[name], {})])),
  }));
}

/** The models by their ids and aliases; an alias does not hide an id. */
export function nameModels(models) {
  const byId = new Map(models.flatMap((model) => model.aliases.map((name) => [name, model])));
  models.forEach((model) => byId.set(model.id, model));
  return byId;
}

/**
 * The data of all elements, which share structures within each: {models, byId} with everything about a model. `show` is
 * called for each element when its articles have been read, which come first, with a function that finds one by its id.
 */
export async function readData(elements, rows, show) {
  const read = async (element) => {
    let data;
    let isShown = false;
    await readElement(element, (lines) => {
      data ??= readLines(lines);
      if (isShown || lines.length <= data.models.readers.length) return;
      isShown = true;
      show((id) => data.ids.includes(id) ? unfold(data.models.get(data.ids.indexOf(id)).article, data.phrases) : undefined);
    });
    return data;
  };
  return merge(await Promise.all([...elements].map(read)), rows);
}

export function merge(all, rows) {
  const places = new Map(all.flatMap((data) => data.ids.map((id, i) => [id, [data, i]])));
  const models = rows.filter(({ id }) => places.has(id));
  const byId = nameModels(models);
  const complete = (model) => {
    if (model && !model.structure) {
      const [data, i] = places.get(model.id);
      Object.assign(model, prepareModel(data.models.get(i), data));
    }
    return model;
  };
  const { components } = all[0];
  const makeColors = (prefix) => Object.fromEntries(components.map((name) => [name, `var(--${prefix}-${name})`])); // of the style
  const lessons = Object.assign({}, ...all.map((data) => data.lessons));
  return { ...all[0], colors: makeColors("c"), inks: makeColors("on"), lessons, models, byId: { get: (id) => complete(byId.get(id)), has: (id) => byId.has(id) } };
}

/** An article with its phrases in place of single characters, as `unfold` of phrases.py. */
export const unfold = (folded, phrases) =>
  folded.replace(/[\ue000-\uf8ff]/g, (character) => phrases[character.charCodeAt(0) - 0xe000]);

/** Values as BigInt, structures in their place, and the article written out. */
function prepareModel(model, data) {
  const variants = [
    { label: "as published", changes: {}, structure: model.structure, values: model.values },
    ...model.variants,
  ].map((variant) => ({ ...variant, structure: prepareStructure(data, variant.structure), values: variant.values.map(BigInt) }));
  const prepared = {
    ...model,
    article: unfold(model.article ?? "", data.phrases),
    variants,
    structure: variants[0].structure,
    values: variants[0].values,
    total: evaluate(model.total, {}),
    reference_total: evaluate(model.reference_total, {}),
    active: evaluate(model.active, {}),
  };
  return Object.defineProperty(prepared, "drawing", { value: model.drawing === null ? null : prepareDrawing(data, model.drawing), enumerable: true });
}

/** A structure with its parts and expressions, once for all models that share it. */
function prepareStructure(data, position) {
  data.prepared ??= new Map();
  if (!data.prepared.has(position)) {
    const structure = { ...data.structures.get(position) };
    structure.tensors = structure.tensors.map((i) => preparePart(data, i));
    for (const name of ["counts", "caches", "sharing"]) structure[name] = find(structure[name], data.expressions);
    structure.checks = structure.checks.map((i) => data.expressions.get(i));
    if (structure.flow) {
      structure.flow = {
        ...structure.flow,
        steps: structure.flow.steps.map((i) => preparePart(data, i)),
        flops: find(structure.flow.flops, data.expressions),
      };
    }
    data.prepared.set(position, structure);
  }
  return data.prepared.get(position);
}

/** A tensor or a step with the packings of its bytes. */
function preparePart(data, position) {
  const part = data.parts.get(position);
  const packings = part.packings?.map((i) => data.packings.get(i));
  const shared = part.shared && [part.shared[0], data.packings.get(part.shared[1]), ...part.shared.slice(2)]; // ["apply", function, …]
  return { ...part, ...(packings && { packings }), ...(shared && { shared }) };
}

const prepareDrawing = (data, position) => ({ ...data.drawings.get(position), words: (data.allWords ??= data.words.list()) });

/** The expressions at some positions, which may be in a table. */
function find(positions, expressions) {
  if (typeof positions === "number") return expressions.get(positions);
  return positions && Object.fromEntries(Object.entries(positions).map(([name, at]) => [name, find(at, expressions)]));
}

/** The model that an address names, or else the best known one. */
export const chooseModel = (data, { ids }) => data.byId.get(ids[0]) ?? data.byId.get(data.models[0].id);

/** The counts of a model at its published sizes, computed when they are first needed. */
export function countPublished(model) {
  model.counted ??= count(model.structure, model.values);
  return model.counted;
}
