import assert from "node:assert/strict";
import { test } from "node:test";
import { fitGpus } from "./memory.js";

const SHARING = {
  check: [["!=", ["%", "n_heads", "gpus"], 0], { text: [] }, null],
  weights: { "qkv.k": [["<", "n_kv_heads", "gpus"], { value: "n_kv_heads" }, { value: "gpus" }], mlp: { value: "gpus" } },
  cache: { value: ["//", "first", "gpus"] },
};
const make = (name, part = {}) => ({
  tensors: [{ part: "decoder", copies: 1, shape: [1000], shares: [["", name, 1000]], ...part }],
  heads: { n_heads: { number: 6 }, n_kv_heads: { number: 2 } },
  caches: [{ shapes: [[2, 50], [4]], divided: [true, false], stream: "tokens", block: 1, longest: null, layers: 1, front: [] }],
});

test("numbers of GPUs that do not divide the heads are left out", () => {
  const fit = (usable) => fitGpus(make("mlp"), SHARING, [], 0n, usable); // 2,000 bytes of weights
  assert.deepEqual([2000n, 1000n, 667n, 500n, 333n].map(fit), [1n, 2n, 3n, 6n, null]);
});

test("KV heads are repeated, and norms are whole on every GPU", () => {
  assert.equal(fitGpus(make("qkv.k"), SHARING, [], 0n, 999n), null); // never less than a half
  assert.equal(fitGpus(make("mlp", { replicated: true }), SHARING, [], 0n, 1999n), null);
});

test("heads of the cache are divided, latents are not", () => {
  // 10 tokens of 2 · (2 · 50 + 4) bytes, on two GPUs 2 · (50 + 4), beside the 2,000 or 1,000 bytes of weights
  assert.equal(fitGpus(make("mlp"), SHARING, [], 10n, 2000n + 2080n), 1n);
  assert.equal(fitGpus(make("mlp"), SHARING, [], 10n, 1000n + 1080n), 2n);
  assert.equal(fitGpus(make("mlp"), SHARING, [], 10n, 1000n + 1079n), 3n);
});

test("rows in front of the tokens are cached with them", () => {
  // 10 tokens and 3 rows of 2 · (2 · 50 + 4) bytes, beside the 2,000 bytes of weights
  const model = make("mlp");
  model.caches = model.caches.map((group) => ({ ...group, front: [3] }));
  assert.equal(fitGpus(model, SHARING, [], 10n, 2000n + 2704n), 1n);
  assert.equal(fitGpus(model, SHARING, [], 10n, 2000n + 2703n), 2n);
});
