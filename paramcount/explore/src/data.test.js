import assert from "node:assert/strict";
import test from "node:test";

import { Blocks } from "./blocks.js";
import { chooseModel, merge, nameModels, unfold } from "./data.js";

const record = (total) => ({ total, reference_total: total, active: total, drawing: null, variants: [], structure: 0, values: [7] });
const make = (ids, totals) => ({
  ids,
  components: ["mlp"],
  models: new Blocks([() => totals.map(record)], 9, totals.length),
  structures: new Blocks([() => [{ tensors: [], counts: 0, caches: null, sharing: null, checks: [], flow: null }]], 9, 1),
  expressions: new Blocks([() => ["n"]], 9, 1),
});
const row = (id, ...aliases) => ({ id, aliases });

test("the models of several elements are found by their ids, which aliases do not hide", () => {
  const rows = [row("b"), row("a", "b", "c")];
  const { models, byId } = merge([make(["a"], [1]), make(["b"], [2])], rows);
  assert.deepEqual([byId.get("a").total, byId.get("b").total, byId.get("c").id, byId.get("d")], [1n, 2n, "a", undefined]);
  assert.deepEqual(models, rows);
});

test("a model is read when it is asked for, and keeps its identity", () => {
  const rows = [row("a"), row("b")];
  const data = merge([make(["a", "b"], [1, 2])], rows);
  assert.equal(rows[1].structure, undefined);
  const model = chooseModel(data, { ids: ["b"] });
  assert.deepEqual([model === rows[1], model.structure.counts, model.values, rows[0].structure], [true, "n", [7n], undefined]);
  assert.equal(data.byId.get("b").structure, model.structure);
});

test("without a model in the address the first one is chosen", () => {
  assert.equal(chooseModel(merge([make(["a"], [1])], [row("a")]), { ids: [] }).id, "a");
});

test("names of models are their ids and aliases", () => {
  const models = [row("a", "b"), row("b")];
  assert.deepEqual([...nameModels(models)], [["b", models[1]], ["a", models[0]]]);
});

test("an article is written out of its phrases", () => {
  assert.equal(unfold("\ue001one\ue000, \ue001two\ue000", ["</b>", "<b>"]), "<b>one</b>, <b>two</b>");
});
