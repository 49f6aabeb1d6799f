import assert from "node:assert/strict";
import { test } from "node:test";
import { countWeights, fitGpus } from "./memory.js";

const make = (shared) => ({
  sizes: [["n_heads"]],
  sharing: ["if", ["=", ["%", "n_heads", "gpus"], 0], null, { text: [] }],
  tensors: [{ shared, elements: 1000 }, { elements: 1 }],
  caches: { shared: ["//", ["*", 208, "context"], "gpus"] },
});

test("numbers of GPUs that do not divide the heads are left out", () => {
  const fit = (usable) => fitGpus(make(["//", ["*", 2, "elements"], "gpus"]), [6n], 0n, usable);
  assert.deepEqual([2000n, 1000n, 666n, 333n, 332n].map(fit), [1n, 2n, 3n, 6n, null]);
});

test("the cache of the context is beside the weights", () => {
  const fit = (usable) => fitGpus(make(["//", ["*", 2, "elements"], "gpus"]), [6n], 10n, usable);
  assert.deepEqual([4080n, 4079n, 2040n, 2039n].map(fit), [1n, 2n, 2n, 3n]);
});

test("a packed tensor has the bytes of its files, a plain one those of its values", () => {
  const tensor = { elements: ["*", 8, "n"], widths: [4, 2], shape: ["n", 2], copies: 4, packings: [["*", "0", "1", 3]] };
  const count = (more, n, dtype) => countWeights({ sizes: [["n"]], tensors: [{ ...tensor, ...more }, { elements: 5 }] }, [n], dtype);
  assert.deepEqual([0, 1, 2].map((dtype) => count({}, 5n, dtype)), [160n, 80n, 4n * 30n]);
  assert.equal(count({ stored: ["n", 8], files: 2 }, 5n, 2), 2n * 120n);
  assert.equal(count({ packings: [["//", 1, "0"]] }, 0n, 2), 0n); // no file is divided
});
