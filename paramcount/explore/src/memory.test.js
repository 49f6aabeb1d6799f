import assert from "node:assert/strict";
import { test } from "node:test";
import { countWeights, findFewest, findLargest, findLongest, findMostUsers, makeSubject, measure } from "./memory.js";

const structure = {
  sizes: [["n_heads"]],
  sharing: ["if", ["=", ["%", "n_heads", "gpus"], 0], null, { text: [] }],
  tensors: [
    { shared: ["//", "bytes", "gpus"], elements: 1000, widths: [4, 2], component: "mlp" },
    { shared: "bytes", elements: 3, widths: [4, 4] }, // a buffer, which every GPU has
    { elements: 1 }, // not loaded
  ],
  caches: { per_token: 0, kv: ["//", ["*", "context", "users", "kv_bytes"], "gpus"], state: ["*", 5, "users"] },
  limit: null,
  positions: null,
};
const data = {
  dtype_names: ["fp32", "bf16"],
  verdict: ["if", ["<", "budget", ["+", "needed", "most"]], ["if", ["<", "budget", ["+", "needed", "least"]], { verdict: "does not fit" }, { verdict: "too close to call" }], { verdict: "fits" }],
  most_gpus: 8, most_users: 1000, longest_context: 10 ** 6,
};
const model = { structure, values: [6n], published_context: null, as_released: { shares: [["700", "30"], null] } };
const gpu = (memory) => ({ memory, overhead: { usual: 100, least: 0, most: 150 } });
const kv = { bytes: 1 };
const subject = (dtype = "bf16") => makeSubject(data, model, structure, [6n], dtype);
const choose = (more) => ({ gpu: gpu(3000), gpus: 1, context: 100, users: 2, kv, ...more });

test("weights, cache and overhead on one of several GPUs", () => {
  const found = measure(data, subject(), choose({ gpus: 2 }));
  assert.deepEqual([found.weights, found.kv, found.states, found.overhead, found.margin], [1012n, 100n, 10n, 100n, 50n]);
  assert.deepEqual([found.needed, found.free, found.budget], [1222n, 1778n, 3000n]);
  assert.equal(measure(data, subject("fp32"), choose({ gpus: 2 })).weights, 2012n);
  assert.equal(measure(data, subject(), choose({ gpus: 4 })), null); // 4 do not divide 6 heads
});

test("the margin is what separates the three verdicts", () => {
  const verdict = (memory) => measure(data, subject(), choose({ gpu: gpu(memory) })).verdict; // 2012 + 200 + 10 bytes
  assert.deepEqual([2372, 2371, 2222, 2221].map(verdict), ["fits", "too close to call", "too close to call", "does not fit"]);
});

test("released weights have numbers of their own, with what kernels may add to the margin", () => {
  const found = measure(data, subject("released"), choose());
  assert.deepEqual([found.weights, found.margin], [700n, 80n]);
  assert.equal(measure(data, subject("released"), choose({ gpus: 2 })), null);
});

test("the longest context and the most users leave the margin free", () => {
  const on = choose({ gpu: gpu(2512), context: 7 }); // 350 bytes for cache and states
  assert.deepEqual([findLongest(data, subject(), { ...on, users: 1 }), findMostUsers(data, subject(), on)], [345, 29]);
  assert.equal(findLongest(data, subject(), { ...on, gpu: gpu(2162) }), 0);
  const limited = { ...subject(), limit: 64 };
  assert.equal(findLongest(data, limited, on), 64);
  assert.equal(findLongest(data, subject(), { ...on, gpu: gpu(10 ** 9) }), null);
});

test("the fewest GPUs are among those that divide the heads", () => {
  const fewest = (memory) => findFewest(data, subject(), choose({ gpu: gpu(memory) }))?.gpus ?? null; // 2000 / n + 12 + 200 / n + 10 + 150
  assert.deepEqual([2372, 2371, 1272, 1271, 905, 539, 537].map(fewest), [1, 2, 2, 3, 3, 6, null]);
});

test("the largest number is found from any guess", () => {
  for (const last of [0, 1, 2, 7, 100, 999, 1000]) {
    for (const guess of [1, 3, 100, 1000, 5000]) assert.equal(findLargest((n) => n <= last, guess, 1000), last);
  }
});

test("a packed tensor has the bytes of its files, a plain one those of its values", () => {
  const tensor = { component: "mlp", elements: ["*", 8, "n"], widths: [4, 2], shape: ["n", 2], copies: 4, packings: [["*", "0", "1", 3]] };
  const count = (more, n, dtype) => countWeights({ sizes: [["n"]], tensors: [{ ...tensor, ...more }, { elements: 5 }] }, [n], dtype);
  assert.deepEqual([0, 1, 2].map((dtype) => count({}, 5n, dtype)), [160n, 80n, 4n * 30n]);
  assert.equal(count({ stored: ["n", 8], files: 2 }, 5n, 2), 2n * 120n);
  assert.equal(count({ packings: [["//", 1, "0"]] }, 0n, 2), 0n); // no file is divided
});

test("a published context holds until the size that states it changes", () => {
  const own = { ...structure, sizes: [["n_heads"], ["n_positions"]], limit: "n_positions" };
  const find = (n) => makeSubject({ ...data, context_size: "n_positions" }, { structure: own, values: [6n, 64n], published_context: 48 }, own, [6n, n], "bf16").limit;
  assert.deepEqual([find(64n), find(96n), find(32n)], [48, 96, 32]);
});
