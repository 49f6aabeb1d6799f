// The data of the page: compressed JSON in a script element.

import { evaluate } from "./arithmetic.js";
import { count } from "./count.js";

// Of base85 as Python has it, with , : . in place of < > &, which HTML could read.
const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%.()*+-;,=:?@^_`{|}~";
const DIGITS = new Uint8Array(128);
[...ALPHABET].forEach((character, digit) => (DIGITS[character.charCodeAt(0)] = digit));

/** The bytes of a text in base85: four for five characters, one fewer than the characters of a last, shorter group. */
export function decodeBase85(text) {
  const missing = (5 - (text.length % 5)) % 5;
  const padded = text + "~".repeat(missing);
  const bytes = new Uint8Array((padded.length / 5) * 4);
  for (let i = 0, at = 0; i < padded.length; i += 5) {
    let number = 0;
    for (let j = i; j < i + 5; j++) number = number * 85 + DIGITS[padded.charCodeAt(j)];
    bytes[at++] = number >>> 24;
    bytes[at++] = number >>> 16;
    bytes[at++] = number >>> 8;
    bytes[at++] = number;
  }
  return bytes.subarray(0, bytes.length - missing);
}

/** The data of the page, which stand in one element or several: models share structures with those of the same one. */
export async function readData(elements) {
  return merge((await Promise.all([...elements].map(readElement))).map(prepare));
}

async function readElement(element) {
  const bytes = decodeBase85(element.textContent.trim());
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return readRecords(await new Response(stream).json());
}

/** Prepared data with the models of all, and the models by their names. */
export function merge(all) {
  const models = all.flatMap((data) => data.models);
  const byId = new Map(models.flatMap((model) => [model.id, ...model.aliases].map((name) => [name, model])));
  models.forEach((model) => byId.set(model.id, model));
  const lessons = Object.assign({}, ...all.map((data) => data.lessons));
  return { ...all[0], models, byId, lessons };
}

/** The data with records in place of columns: {order: the kind of each record, kinds: the keys and columns of each}. */
export function readRecords(data) {
  const isStored = (value) => Array.isArray(value?.order);
  const read = ({ order, kinds }) => {
    const next = kinds.map(() => 0);
    return order.map((kind) => {
      const { keys, columns } = kinds[kind];
      const at = next[kind]++;
      return Object.fromEntries(keys.map((key, i) => [key, columns[i][at]]));
    });
  };
  return Object.fromEntries(Object.entries(data).map(([name, value]) => [name, isStored(value) ? read(value) : value]));
}

/** Values as BigInt, and structures and packings in their place. */
export function prepare(data) {
  for (const part of data.parts) {
    if (part.packings) part.packings = part.packings.map((i) => data.packings[i]);
    if (part.shared) part.shared[1] = data.packings[part.shared[1]]; // ["apply", function, …]
  }
  for (const structure of data.structures) {
    structure.tensors = structure.tensors.map((i) => data.parts[i]);
    for (const name of ["counts", "caches", "sharing"]) structure[name] = find(structure[name], data.expressions);
    structure.checks = structure.checks.map((i) => data.expressions[i]);
    if (structure.flow) {
      structure.flow.steps = structure.flow.steps.map((i) => data.parts[i]);
      structure.flow.flops = find(structure.flow.flops, data.expressions);
    }
  }
  data.models = data.models.map((model) => prepareModel(model, data));
  return data;
}

/** The expressions at some positions, which may be in a table. */
function find(positions, expressions) {
  if (typeof positions === "number") return expressions[positions];
  return positions && Object.fromEntries(Object.entries(positions).map(([name, at]) => [name, find(at, expressions)]));
}

function prepareModel(model, { structures, drawings, words }) {
  const variants = [
    { label: "as published", changes: {}, structure: model.structure, values: model.values },
    ...model.variants,
  ].map((variant) => ({ ...variant, structure: structures[variant.structure], values: variant.values.map(BigInt) }));
  return {
    ...model,
    variants,
    structure: variants[0].structure,
    values: variants[0].values,
    drawing: model.drawing === null ? null : { ...drawings[model.drawing], words },
    total: evaluate(model.total, {}),
    reference_total: evaluate(model.reference_total, {}),
    active: evaluate(model.active, {}),
  };
}

/** The counts of a model at its published sizes, computed when they are first needed. */
export function countPublished(model) {
  model.counted ??= count(model.structure, model.values);
  return model.counted;
}
