// Bytes of weights, and the fewest GPUs that hold them with the KV cache of one sequence.

import { evaluate } from "./arithmetic.js";
import { nameValues } from "./count.js";

const MOST_GPUS = 8n; // of one node

const sum = (numbers) => numbers.reduce((total, n) => total + n, 0n);

/** Bytes of the parameters, each once, in a dtype: a position in data.dtypes. */
export function countWeights(structure, values, dtype) {
  const sizes = nameValues(structure, values);
  return sum(structure.tensors.filter(({ packings }) => packings).map((tensor) => countBytes(tensor, sizes, dtype)));
}

function countBytes(tensor, sizes, dtype) {
  const elements = evaluate(tensor.elements, sizes);
  if (dtype < tensor.widths.length || elements === 0n) return elements * BigInt(tensor.widths[dtype] ?? 0);
  const axes = (tensor.stored ?? tensor.shape).map((n) => evaluate(n, sizes));
  return evaluate(tensor.files ?? tensor.copies, sizes) * evaluate(tensor.packings[dtype - tensor.widths.length], axes);
}

/** The fewest GPUs that share every matrix of a BF16 model, at most 8; null if it takes more. */
export function fitGpus(structure, values, context, usable) {
  for (let gpus = 1n; gpus <= MOST_GPUS; gpus++) {
    const sizes = { ...nameValues(structure, values, context), gpus };
    if (evaluate(structure.sharing, sizes)) continue;
    const shares = structure.tensors.map(({ shared = 0, elements }) =>
      evaluate(shared, { ...sizes, elements: evaluate(elements, sizes) }) ?? 0n); // null if its parts are empty
    if (sum(shares) + evaluate(structure.caches.shared, sizes) <= usable) return gpus;
  }
  return null;
}
