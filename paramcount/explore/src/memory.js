// Bytes of weights, and the fewest GPUs that hold them with the KV cache of one sequence.

import { calculate, decide, evaluate, least, multiply } from "./arithmetic.js";
import { countFront } from "./count.js";

/** Formats of the weights: bytes of each value, or the position of its packing. */
export const DTYPES = [
  { name: "FP32", bytes: 4n },
  { name: "BF16", bytes: 2n },
  { name: "FP8 (128 × 128 blocks)", packing: 0 },
  { name: "INT8 (per row)", packing: 1 },
  { name: "INT4 (group 128)", packing: 2 },
];
const BF16 = DTYPES[1];
const MOST_GPUS = 8n; // of one node

const isLoaded = (tensor) => tensor.part !== "mtp" && !tensor.tied && tensor.role !== "legacy_buffer";
const findBytes = (tensor, dtype) => (tensor.float32 || tensor.role ? 4n : dtype.bytes);

/** Bytes of the parameters, each once, in a dtype. */
export function countWeights(structure, values, dtype) {
  return structure.tensors
    .filter((tensor) => isLoaded(tensor) && !tensor.role)
    .reduce((sum, tensor) => sum + countBytes(tensor, values, dtype), 0n);
}

function countBytes(tensor, values, dtype) {
  if (dtype.packing === undefined) {
    const elements = evaluate(tensor.copies, values) * multiply(tensor.shape.map((n) => evaluate(n, values)));
    return findBytes(tensor, dtype) * elements;
  }
  const shape = (tensor.stored ?? tensor.shape).map((n) => evaluate(n, values));
  const copies = evaluate(tensor.files ?? tensor.copies, values);
  return copies && multiply(shape) ? copies * calculate(decide(tensor.packings[dtype.packing], shape).bytes, shape) : 0n;
}

/** The fewest GPUs that share every matrix of a BF16 model, at most 8; null if it takes more. */
export function fitGpus(structure, sharing, values, context, usable) {
  const find = (size) => (size === undefined ? 0n : size.index === undefined ? BigInt(size.number) : values[size.index]);
  const heads = { n_heads: find(structure.heads.n_heads), n_kv_heads: find(structure.heads.n_kv_heads) };
  for (let gpus = 1n; gpus <= MOST_GPUS; gpus++) {
    const sizes = { ...heads, gpus };
    if (decide(sharing.check, sizes)) continue;
    const needed = shareWeights(structure, sharing, values, sizes) + shareCache(structure, sharing, values, context, gpus);
    if (needed <= usable) return gpus;
  }
  return null;
}

const divideUp = (a, b) => (a + b - 1n) / b;
const choose = (tree, sizes) => calculate(decide(tree, sizes).value, sizes);

/** Bytes of the weights and buffers on one of several GPUs. */
function shareWeights(structure, sharing, values, sizes) {
  let sum = 0n;
  for (const tensor of structure.tensors.filter(isLoaded)) {
    const bytes = findBytes(tensor, BF16) * evaluate(tensor.copies, values);
    for (const [, name, share] of tensor.shares) {
      sum += divideUp(bytes * evaluate(share, values), tensor.replicated ? 1n : choose(sharing.weights[name], sizes));
    }
  }
  return sum;
}

/** Bytes of the KV cache and the states of one sequence on one of several GPUs. */
function shareCache(structure, sharing, values, context, gpus) {
  let sum = 0n;
  for (const group of structure.caches) {
    const row = group.shapes
      .map((shape) => shape.map((n) => evaluate(n, values)))
      .map(([first, ...others], i) => [group.divided[i] ? choose(sharing.cache, { first, gpus }) : first, ...others])
      .reduce((bytes, shape) => bytes + BF16.bytes * multiply(shape), 0n);
    const length = group.stream === "tokens" ? context / evaluate(group.block, values) : context;
    const rows = length + countFront(group, values, context);
    const longest = group.longest === null ? rows : evaluate(group.longest, values);
    sum += evaluate(group.layers, values) * row * (group.stream === "" ? 1n : least(rows, longest));
  }
  return sum;
}
