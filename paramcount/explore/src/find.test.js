import assert from "node:assert/strict";
import { test } from "node:test";
import { findModels, findNearest, findNearestWords, measureDistance } from "./find.js";

const model = (id, more = {}) => ({ id, name: id, aliases: [], family: "", publisher: "", hf: null, ...more });
const MODELS = [
  model("deepseek-v3", { name: "DeepSeek-V3", publisher: "DeepSeek", aliases: ["v3"] }),
  model("qwen3-8b-base"),
  model("qwen3-8b", { name: "Qwen3 8B", hf: "Qwen/Qwen3-8B" }),
  model("deepseek-v2", { name: "DeepSeek-V2", publisher: "DeepSeek" }),
  model("gpt2-xl", { family: "gpt2" }),
];
const find = (query) => findModels(MODELS, query).map(({ id }) => id);

test("a name is found as people write it", () => {
  for (const query of ["qwen3-8b", "Qwen3 8B", "Qwen/Qwen3-8B", "qwen3_8b"]) assert.equal(find(query)[0], "qwen3-8b", query);
  assert.deepEqual(find("v3")[0], "deepseek-v3"); // an alias
});

test("among equals the order of the models decides, which begins with the famous ones", () => {
  assert.deepEqual(find("deepseek"), ["deepseek-v3", "deepseek-v2"]);
});

test("words match in any order; what matches nothing finds nothing", () => {
  assert.deepEqual(find("base qwen3"), ["qwen3-8b-base"]);
  assert.deepEqual(find("llama"), []);
  assert.deepEqual(find(" - "), []);
});

test("a mistyped name has neighbours, and one unlike all others has none", () => {
  assert.equal(findNearest(MODELS, "qwen3-9b")[0].id, "qwen3-8b");
  assert.equal(findNearest(MODELS, "depseek-v3")[0].id, "deepseek-v3");
  assert.deepEqual(findNearest(MODELS, "zzzzzzzz"), []);
  assert.deepEqual(findNearestWords(["browse", "compare"], "browze"), ["browse"]);
});

test("a distance counts letters that are inserted, deleted, replaced or swapped", () => {
  const distance = (a, b) => measureDistance(a, b);
  assert.deepEqual([distance("", "ab"), distance("kitten", "sitting"), distance("gtp2", "gpt2")], [2, 3, 1]);
});
