// Counts, caches and FLOPs of a structure for some values of its sizes. All numbers are BigInt.

import { calculate, decide, evaluate, least, multiply } from "./arithmetic.js";
import { formatCount } from "./format.js";

/** The counts of a model: total, active, by component and part, and every tensor. */
export function count(structure, values, components) {
  const result = {
    total: 0n, active: 0n, activeMin: 0n, buffers: 0n, legacyBuffers: 0n, mtp: 0n, tied: false,
    components: Object.fromEntries(components.map((name) => [name, 0n])), activeComponents: {}, details: {}, parts: {},
  };
  for (const tensor of structure.tensors) {
    const copies = evaluate(tensor.copies, values);
    const elements = copies * multiply(tensor.shape.map((n) => evaluate(n, values)));
    if (tensor.part === "mtp") {
      if (!tensor.tied && !tensor.role) result.mtp += elements;
      continue;
    }
    if (tensor.tied) {
      if (tensor.shares[0][1] === "lm_head") result.tied = true;
      continue;
    }
    if (tensor.role) {
      if (tensor.role === "buffer") result.buffers += elements;
      continue;
    }
    const active = tensor.active === undefined ? copies : evaluate(tensor.active, values);
    const activeLeast = tensor.least === undefined ? active : evaluate(tensor.least, values);
    for (const [component, detail, share] of tensor.shares) {
      const one = evaluate(share, values);
      result.total += one * copies;
      result.active += one * active;
      result.activeMin += one * activeLeast;
      result.components[component] += one * copies;
      add(result.activeComponents, component, one * active);
      add(result.parts, tensor.part, one * copies);
      if (detail !== component) add(result.details, detail, one * copies);
    }
  }
  return result;
}

function add(sums, name, n) {
  sums[name] = (sums[name] ?? 0n) + n;
}

/** Every tensor that the total includes, with its shape and the number of its copies as numbers. */
export function listTensors(structure, values) {
  return structure.tensors
    .filter((tensor) => tensor.part !== "mtp" && !tensor.role && !tensor.tied)
    .map((tensor) => {
      const shape = tensor.shape.map((n) => evaluate(n, values));
      const copies = evaluate(tensor.copies, values);
      const experts = tensor.experts === undefined ? 1n : evaluate(tensor.experts, values);
      return {
        name: tensor.name,
        part: tensor.part,
        component: tensor.shares[0][0],
        shape,
        copies,
        experts,
        layers: tensor.layers ? evaluate(tensor.layers[0], values) : 1n,
        stack: tensor.layers ? `${tensor.name.split("{layer}")[0]}|${tensor.layers[1]}` : "",
        kind: tensor.layers?.[1] ?? "",
        parameters: copies * multiply(shape),
      };
    })
    .filter((tensor) => tensor.parameters > 0n);
}

/** Bytes of the KV cache and of recurrent states, one sequence in BF16; null if a length is not known. */
export function countCache(structure, values, context) {
  if (!structure.caches) return null;
  const result = { perToken: 0n, bytes: 0n, states: 0n };
  for (const group of structure.caches) {
    const row = 2n * evaluate(group.layers, values) * group.shapes
      .map((shape) => multiply(shape.map((n) => evaluate(n, values))))
      .reduce((sum, n) => sum + n, 0n);
    if (group.stream === "") {
      result.states += row;
      continue;
    }
    if (group.stream !== "tokens" && group.stream !== "source") return null;
    const block = evaluate(group.block, values);
    const tokens = (group.stream === "tokens" ? context / block : context) + countFront(group, values, context);
    const longest = group.longest === null ? null : evaluate(group.longest, values);
    result.bytes += row * (longest === null ? tokens : least(tokens, longest));
    if (longest === null && group.stream === "tokens") result.perToken += row / block;
  }
  return result;
}

/** Rows that are kept in front of the tokens; an encoder reads as many as the context. */
export const countFront = (group, values, context) =>
  group.front.reduce((sum, rows) => sum + (rows === "source" ? context : evaluate(rows, values)), 0n);

/** The values of the names in a flow: the sizes, the context, and what windows leave of it. */
function listFlowValues(structure, values, context) {
  const windows = structure.flow.windows.map((n) => least(evaluate(n, values), context));
  return [...values, context, ...windows];
}

/** Whether the steps are those of these sizes: a flow that branches on a size is exported for one model only. */
const isExported = (structure, values) =>
  structure.flow && (structure.flow.only ?? []).every((value, i) => BigInt(value) === values[i]);

/** Why FLOPs are not known. */
export const explainFlops = (structure, values) =>
  isExported(structure, values) ? "depend on an input other than text" : "known for the published sizes only";

/** What has the FLOPs: one token, or a whole text in a model that decodes none. */
export const nameFlops = (structure, context) =>
  structure.flow?.decodes === false ? `FLOPs of a pass of ${formatCount(context)} tokens` : "FLOPs per decoded token";

/**
 * FLOPs of one token at the end of a context, or of a pass of so many tokens, by component; null if they are not known.
 * MLA runs over the compressed latents, as engines compute it; `expanded`: as the reference does, which expands them all.
 */
export function countFlops(structure, values, context) {
  if (!isExported(structure, values) || structure.flow.steps.some((step) => step.products === null)) return null;
  const all = listFlowValues(structure, values, context);
  const components = {};
  let total = 0n;
  let expanded = 0n;
  for (const step of structure.flow.steps) {
    const n = countStep(step, all, step.absorbed ?? step.products);
    if (n) add(components, step.component || "attention", n);
    total += n;
    expanded += countStep(step, all);
  }
  return { total, components, expanded };
}

/** FLOPs of a step in all its layers: 2 for each multiply-add. */
const countStep = (step, all, products = step.products) =>
  products === 0 ? 0n : 2n * evaluate(products, all) * multiply(listLayers(step).map(([, n]) => evaluate(n, all)));

const listLayers = (step) => step.scopes.filter(([axis]) => axis === "layer");

/** The steps of the forward pass with numbers: shapes, layers and FLOPs; null if they are not known. */
export function listSteps(structure, values, context) {
  if (!isExported(structure, values)) return null;
  const all = listFlowValues(structure, values, context);
  const fill = (shape) => shape.map((n) => (Array.isArray(n) && typeof n[0] === "string" ? n[0] : evaluate(n, all)));
  return structure.flow.steps.map((step, i) => ({
    ...step,
    i,
    inputs: step.inputs.map(fill),
    weights: step.weights.map(([name, shape]) => [name, fill(shape)]),
    out: fill(step.out),
    scopes: step.scopes.map(([axis, copies, active, kind, name]) => ({
      axis, kind, name, copies: evaluate(copies, all), active: evaluate(active, all),
    })),
    flops: step.products === null ? null : countStep(step, all),
    products: step.products === null ? null : evaluate(step.products, all),
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
  const sizes = Object.fromEntries(structure.sizes.map(([path], i) => [path, values[i]]));
  for (const check of structure.checks) {
    const error = decide(check, sizes);
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
const fillText = (pieces, sizes) =>
  pieces.map((piece) => (Array.isArray(piece) ? calculate(piece[0], sizes) : piece)).join("");
