// Bytes of weights and caches, and whether they fit GPUs that share every matrix. Python exports the expressions.

import { evaluate } from "./arithmetic.js";
import { countCache, nameValues } from "./count.js";

export const RELEASED = "released"; // the name of the format of the released files

const sum = (numbers) => numbers.reduce((total, n) => total + n, 0n);

/** Bytes of the parameters, each once, in a dtype: a position in data.dtypes. */
export function countWeights(structure, values, dtype) {
  const sizes = nameValues(structure, values);
  return sum(structure.tensors.filter(({ component }) => component).map((tensor) => countBytes(tensor, sizes, dtype)));
}

function countBytes(tensor, sizes, dtype) {
  const elements = evaluate(tensor.elements, sizes);
  if (dtype < tensor.widths.length || elements === 0n) return elements * BigInt(tensor.widths[dtype] ?? 0);
  const axes = (tensor.stored ?? tensor.shape).map((n) => evaluate(n, sizes));
  return evaluate(tensor.files ?? tensor.copies, sizes) * evaluate(tensor.packings[dtype - tensor.widths.length], axes);
}

/** Why so many GPUs cannot share the matrices, as an error of a check; null if they can. */
export const explainSharing = (structure, values, gpus) =>
  evaluate(structure.sharing, { ...nameValues(structure, values), gpus: BigInt(gpus) });

/**
 * What is asked about: a model at some sizes, with its weights in a dtype of data.dtype_names or as released, and the
 * longest text that it takes. `share(gpus)`: bytes of weights and buffers on each GPU, and what kernels may add to them;
 * null for numbers of GPUs that cannot share them.
 */
export function makeSubject(data, model, structure, values, dtype) {
  const sizes = nameValues(structure, values);
  const position = data.dtype_names.indexOf(dtype);
  const loaded = structure.tensors.filter(({ shared }) => shared !== undefined);
  let whole = null;
  const known = new Map();
  const compute = (gpus) => {
    if (position < 0) return model.as_released.shares[gpus - 1]?.map(BigInt) ?? null;
    if (explainSharing(structure, values, gpus)) return null;
    whole ??= loaded.map((tensor) => countBytes(tensor, sizes, position));
    const on = { ...sizes, gpus: BigInt(gpus) };
    const shares = loaded.map(({ shared }, i) => evaluate(shared, { ...on, bytes: whole[i] }) ?? 0n); // null: no parts
    return [sum(shares), 0n];
  };
  const share = (gpus) => {
    if (!known.has(gpus)) known.set(gpus, compute(gpus));
    return known.get(gpus);
  };
  const limits = [evaluate(structure.limit, sizes), findPublished(data, model, sizes)].filter((n) => n !== null).map(Number);
  const positions = evaluate(structure.positions, sizes);
  return {
    structure, values, share,
    loads: new Map(),
    limit: limits.length ? Math.min(...limits) : null,
    positions: positions === null ? null : Number(positions),
  };
}

/** The published context length, unless the size that states it has another value. */
function findPublished(data, model, sizes) {
  const own = nameValues(model.structure, model.values)[data.context_size];
  return own === sizes[data.context_size] ? model.published_context : null;
}

/**
 * Bytes on each of some GPUs: of weights, what kernels may add to them, KV cache and states; null if the GPUs cannot share
 * the model. `choice`: {gpus, context, users, kv: of data.kv_dtypes}
 */
function load(subject, { gpus, context, users, kv }) {
  const shared = subject.share(gpus);
  if (!shared) return null;
  const key = [gpus, context, users, kv.bytes].join();
  if (!subject.loads.has(key)) {
    const numbers = { users: BigInt(users), gpus: BigInt(gpus), kv_bytes: BigInt(kv.bytes) };
    const cache = countCache(subject.structure, subject.values, BigInt(context), numbers);
    subject.loads.set(key, { weights: shared[0], padding: shared[1], kv: cache.bytes, states: cache.states });
  }
  return subject.loads.get(key);
}

/** What lies on each of some GPUs of a kind, `choice.gpu` of data.gpus, and whether it fits: a verdict of the command line. */
export function measure(data, subject, choice) {
  const on = load(subject, choice);
  if (!on) return null;
  const total = on.weights + on.kv + on.states;
  const { memory, overhead: { usual, least, most } } = choice.gpu;
  const [overhead, budget] = [BigInt(usual), BigInt(memory)];
  const names = { needed: total, least: BigInt(least), most: BigInt(most) + on.padding, budget };
  return {
    ...evaluate(data.verdict, names), ...on, overhead, budget,
    margin: names.most - overhead,
    needed: total + overhead,
    free: budget - total - overhead,
  };
}

export const FITS = "fits"; // a verdict of the command line

/** The longest context that fits with so many users, at most that of the model; 0 if none does, null if there is no limit. */
export function findLongest(data, subject, choice) {
  const fits = (context) => measure(data, subject, { ...choice, context }).verdict === FITS;
  const most = subject.limit ?? data.longest_context;
  const found = findLargest(fits, choice.context, most);
  return subject.limit === null && found === most ? null : found;
}

/** The most users that fit at a context; 0 if none does, null if there is no limit. */
export function findMostUsers(data, subject, choice) {
  const found = findLargest((users) => measure(data, subject, { ...choice, users }).verdict === FITS, choice.users, data.most_users);
  return found === data.most_users ? null : found;
}

/** The largest number up to `most` that fits, if no larger number than one that does not; `guess`: one that may be near. */
export function findLargest(fits, guess, most) {
  let low = 0;
  let high = most + 1;
  for (let n = Math.min(Math.max(guess, 1), most); high - low > 1; ) {
    if (fits(n)) low = n;
    else high = n;
    n = high > most ? Math.min(2 * low, most) : Math.max(low + 1, Math.floor((low + high) / 2));
    if (low === most) break;
  }
  return low;
}

/** The fewest GPUs of a kind on which it fits for certain, with what lies on each; null if that takes more than a node. */
export function findFewest(data, subject, choice) {
  for (let gpus = 1; gpus <= data.most_gpus; gpus++) {
    const found = measure(data, subject, { ...choice, gpus });
    if (found?.verdict === FITS) return { gpus, ...found };
  }
  return null;
}
