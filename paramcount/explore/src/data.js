// The data of the page: compressed JSON in a script element.

import { count } from "./count.js";

export async function readData(element) {
  const bytes = Uint8Array.from(atob(element.textContent), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return prepare(await new Response(stream).json());
}

/** Values as BigInt, and structures and packings in their place. */
export function prepare(data) {
  for (const part of data.parts) {
    if (part.packings) part.packings = part.packings.map((i) => data.packings[i]);
  }
  for (const structure of data.structures) {
    structure.tensors = structure.tensors.map((i) => data.parts[i]);
    structure.checks = structure.checks.map((i) => data.parts[i]);
    if (structure.flow) structure.flow.steps = structure.flow.steps.map((i) => data.parts[i]);
  }
  data.models = data.models.map((model) => prepareModel(model, data));
  data.byId = new Map(data.models.flatMap((model) => [model.id, ...model.aliases].map((name) => [name, model])));
  data.models.forEach((model) => data.byId.set(model.id, model));
  return data;
}

function prepareModel(model, { structures, drawings }) {
  const variants = [
    { label: "as published", changes: {}, structure: model.structure, values: model.values },
    ...model.variants,
  ].map((variant) => ({ ...variant, structure: structures[variant.structure], values: variant.values.map(BigInt) }));
  return {
    ...model,
    variants,
    structure: variants[0].structure,
    values: variants[0].values,
    drawing: model.drawing === null ? null : drawings[model.drawing],
    total: BigInt(model.total),
    active: BigInt(model.active),
  };
}

/** The counts of a model at its published sizes, computed when they are first needed. */
export function countPublished(model, components) {
  model.counted ??= count(model.structure, model.values, components);
  return model.counted;
}
