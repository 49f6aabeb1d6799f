// Counts, caches and FLOPs of a structure for some values of its sizes. All numbers are BigInt.

import { evaluate } from "./arithmetic.js";
import { formatCount } from "./format.js";

/** {name: value} of the sizes, and of the context if there is one. */
export function nameValues(structure, values, context) {
  const named = Object.fromEntries(structure.sizes.map(([path], i) => [path, values[i]]));
  return context === undefined ? named : { ...named, context };
}

const evaluateAll = (expressions, sizes) =>
  Object.fromEntries(Object.entries(expressions).map(([name, expression]) => [name, evaluate(expression, sizes)]));

/** The counts of a model: total, active, by component and part. */
export function count(structure, values) {
  const sizes = nameValues(structure, values);
  const { components, active_components, details, parts, active_min, ...numbers } = structure.counts;
  return {
    ...evaluateAll(numbers, sizes),
    activeMin: evaluate(active_min, sizes),
    components: evaluateAll(components, sizes),
    activeComponents: evaluateAll({ ...components, ...active_components }, sizes),
    details: evaluateAll(details, sizes),
    parts: evaluateAll(parts, sizes),
    tied: structure.tied,
  };
}

/** {component: the share of its parameters that one token uses}, of those of which it does not use all. */
export const shareActive = ({ components, activeComponents }) =>
  Object.fromEntries(
    Object.entries(components)
      .filter(([name, n]) => activeComponents[name] < n)
      .map(([name, n]) => [name, Number(activeComponents[name]) / Number(n)]),
  );

/** Every tensor that the total includes, with its shape and the number of its copies as numbers. */
export function listTensors(structure, values) {
  const sizes = nameValues(structure, values);
  return structure.tensors
    .filter(({ component }) => component)
    .map((tensor) => {
      const [layers, kind, stack] = tensor.layers ?? [1, "", ""];
      return {
        name: tensor.name,
        title: tensor.title,
        part: tensor.part,
        component: tensor.component,
        shape: tensor.shape.map((n) => evaluate(n, sizes)),
        copies: evaluate(tensor.copies, sizes),
        layers: evaluate(layers, sizes),
        stack,
        kind,
        parameters: evaluate(tensor.elements, sizes),
      };
    })
    .filter((tensor) => tensor.parameters > 0n);
}

const ALONE = { users: 1n, gpus: 1n, kv_bytes: 2n }; // one sequence on one GPU, in BF16

/**
 * Bytes of the KV cache and of recurrent states on one of several GPUs, in BF16 for one sequence if nothing else is chosen;
 * null if a length is not known.
 */
export function countCache(structure, values, context, choice = ALONE) {
  if (!structure.caches) return null;
  const { per_token, kv, state } = structure.caches;
  return evaluateAll({ perToken: per_token, bytes: kv, states: state }, { ...nameValues(structure, values, context), ...choice });
}

/** The values of the names in a flow: the sizes, the context, and what windows leave of it. */
function nameFlowValues(structure, values, context) {
  const sizes = nameValues(structure, values, context);
  return { ...sizes, ...evaluateAll(structure.flow.windows, sizes) };
}

/** Whether the steps are those of these sizes: a flow that branches on a size is exported for one model only. */
function isExported(structure, values) {
  const sizes = nameValues(structure, values);
  return structure.flow && Object.entries(structure.flow.only ?? {}).every(([path, n]) => evaluate(n, {}) === sizes[path]);
}

/** Why FLOPs are not known. */
export const explainFlops = (structure, values) =>
  isExported(structure, values) ? "depend on an input other than text" : "known for the published sizes only";

/** What has the FLOPs: one token, or a whole text in a model that decodes none. */
export const nameFlops = (structure, context) =>
  structure.flow?.decodes === false ? `FLOPs of a forward pass over ${formatCount(context)} tokens` : "FLOPs per decoded token";

/**
 * FLOPs of one token at the end of a context, or of a pass of so many tokens, by component; null if they are not known.
 * MLA runs over the compressed latents, as engines compute it; `expanded`: as the reference does, which expands them all.
 */
export function countFlops(structure, values, context) {
  if (!isExported(structure, values) || !structure.flow.flops) return null;
  const all = nameFlowValues(structure, values, context);
  const { total, components, expanded } = structure.flow.flops;
  return { ...evaluateAll({ total, expanded }, all), components: evaluateAll(components, all) };
}

/** The steps of the forward pass with numbers: shapes, layers and FLOPs; null if they are not known. */
export function listSteps(structure, values, context) {
  if (!isExported(structure, values)) return null;
  const all = nameFlowValues(structure, values, context);
  const fill = (shape) => shape.map((n) => (Array.isArray(n) && n.length === 1 ? n[0] : evaluate(n, all)));
  return structure.flow.steps.map((step, i) => ({
    ...step,
    i,
    inputs: step.inputs.map(fill),
    weights: step.weights.map(([name, shape]) => [name, fill(shape)]),
    out: fill(step.out),
    scopes: step.scopes.map(([axis, copies, active, kind, name]) => ({
      axis, kind, name, copies: evaluate(copies, all), active: evaluate(active, all),
    })),
    flops: evaluate(step.flops, all),
    products: evaluate(step.products, all),
  }));
}

/** Why sizes are not valid, one text for each reason: limits first, then checks of sizes against each other. */
export function findErrors(structure, values) {
  const errors = [];
  structure.sizes.forEach(([path, smallest, largest], i) => {
    if (smallest === undefined) return;
    if (values[i] < BigInt(smallest)) errors.push({ where: path, text: `${path} = ${values[i]} (expected at least ${smallest})` });
    else if (values[i] > BigInt(largest)) errors.push({ where: path, text: `${path} = ${values[i]} (expected at most ${largest})` });
  });
  if (errors.length) return errors;
  const sizes = nameValues(structure, values);
  for (const check of structure.checks) {
    const error = evaluate(check, sizes);
    if (error) errors.push({ where: error.where, text: fillText(error.text, sizes) });
  }
  return errors;
}

/** The setting of the structure that has an entry for each layer, say, so that a size cannot change; or undefined. */
export function findList(structure, values, i) {
  const [list, other] = [values[i] + 1n, 2n * values[i]].map((value) => {
    const errors = findErrors(structure, values.map((old, j) => (j === i ? value : old)));
    return errors.map(({ where }) => where).find((where) => where in structure.structure);
  });
  return list === other ? list : undefined;
}

/** A text whose expressions are lists of one element. */
export const fillText = (pieces, sizes) =>
  pieces.map((piece) => (Array.isArray(piece) ? evaluate(piece[0], sizes) : piece)).join("");
