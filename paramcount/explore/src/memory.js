// Bytes of weights, and the fewest GPUs that hold them with the KV cache of one sequence.

import { evaluate, greatest, least, multiply } from "./arithmetic.js";

export const DTYPES = [{ name: "FP32", bytes: 4n }, { name: "BF16", bytes: 2n }];
const MOST_GPUS = 8n; // of one node

/** Bytes of the parameters, each once, in a dtype. */
export function countWeights(structure, values, dtype) {
  return listLoaded(structure)
    .filter((tensor) => !tensor.role)
    .reduce((sum, tensor) => sum + dtype.bytes * countElements(tensor, values), 0n);
}

const listLoaded = (structure) =>
  structure.tensors.filter((tensor) => tensor.part !== "mtp" && !tensor.tied && tensor.role !== "legacy_buffer");

const countElements = (tensor, values) =>
  evaluate(tensor.copies, values) * multiply(tensor.shape.map((n) => evaluate(n, values)));

/** The fewest GPUs, of at most 8 that share every matrix; null if it takes more. */
export function fitGpus(structure, values, context, memory) {
  return null;
}
