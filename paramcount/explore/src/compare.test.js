import assert from "node:assert/strict";
import { test } from "node:test";
import { describePair, differs, findContext, sampleCaches } from "./compare.js";

const make = (name, total, active, perToken, context = 1000) => ({
  model: { name, context, values: [], structure: { sizes: [], caches: { per_token: perToken, kv: ["*", "context", perToken], state: 0 } } },
  counted: { total: BigInt(total), active: BigInt(active) },
});
const say = (a, b) => describePair(a, b, 1000);

test("the larger model comes first, whichever is named first", () => {
  const [large, small] = [make("DeepSeek-V3", 671_026, 37_552, 70), make("Qwen3 30B-A3B", 30_532, 3_353, 98)];
  const expected = "DeepSeek-V3 has 22× the parameters of Qwen3 30B-A3B, and uses 11× as many per token. "
    + "At 1,000 tokens, DeepSeek-V3 caches 70.0 kB per sequence, and Qwen3 30B-A3B 98.0 kB.";
  assert.equal(say(large, small), expected);
  assert.equal(say(small, large), expected);
});

test("a larger model may use fewer parameters per token", () => {
  assert.match(say(make("MoE", 1000, 30, 1), make("dense", 100, 100, 1)), /^MoE has 10× the parameters of dense, but dense uses 3\.3× as many per token\./);
  assert.match(say(make("MoE", 1000, 100, 1), make("dense", 104, 104, 1)), /^MoE has 9\.6× the parameters of dense, and uses about as many per token\./);
});

test("dense models, and models of one size", () => {
  assert.match(say(make("b", 150, 150, 1), make("a", 100, 100, 1)), /^b has 1\.5× the parameters of a\./);
  assert.match(say(make("b", 101, 101, 1), make("a", 100, 100, 1)), /^b has about as many parameters as a\./);
  assert.match(say(make("b", 100, 100, 1), make("a", 100, 100, 1)), /^b has as many parameters as a\./);
});

test("a model without a cache says nothing about it", () => {
  assert.equal(say(make("b", 150, 150, 0), make("a", 100, 100, 0)), "b has 1.5× the parameters of a.");
  assert.match(say(make("b", 150, 150, 0), make("a", 100, 100, 7)), /At 1,000 tokens, a caches 7\.00 kB per sequence; b has no KV cache\.$/);
});

test("curves end at the context of each model and leave no gap", () => {
  const models = [make("short", 1, 1, 10, 8192).model, make("long", 1, 1, 1000, 131072).model];
  const { points, longest } = sampleCaches(models);
  assert.equal(longest, 131072);
  for (const model of models) {
    const own = points.filter((point) => point.model === model.name);
    assert.equal(own.at(-1).context, model.context);
    assert.equal(own.at(-1).gigabytes, (model.context * model.structure.caches.per_token) / 1e9);
    const steps = own.slice(1).map((point, i) => point.context - own[i].context);
    assert.ok(Math.max(...steps) <= longest / 600 + 1 && Math.min(...steps) > 0);
  }
});

test("models are compared at a context that all with a cache take", () => {
  const [short, long, none] = [make("a", 1, 1, 1, 8192), make("b", 1, 1, 1, 10 ** 6), make("c", 1, 1, 0, 512)].map(({ model }) => model);
  assert.equal(findContext([short, { ...long, context: null }, none]), 8192);
  assert.equal(findContext([long]), 131072);
  assert.deepEqual(new Set(sampleCaches([short, none]).points.map(({ model }) => model)), new Set(["a"]));
});

test("what only one model has is no difference, nor is what an entry does not state", () => {
  assert.deepEqual([["1", "2"], ["1", "1"], ["1", undefined], ["1", "unknown"], ["", "1"], ["1", undefined, "2"]].map(differs), [true, false, false, false, false, true]);
});
