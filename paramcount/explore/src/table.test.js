import assert from "node:assert/strict";
import { test } from "node:test";
import { filterModels, formatTable, parseCount, sortModels } from "./table.js";

const model = (id, total, more = {}) => ({ id, name: id, family: "f", aliases: [], total, active: total, released: null, ...more });
const MODELS = [
  model("small", 10n), model("=HYPERLINK|1", 2n ** 60n, { released: "2024-01-02" }), model("Big 10", 5_000_000_000n), model("Big 9", 4n),
];

test("sizes are read with units", () => {
  assert.equal(parseCount("1.5b"), 1_500_000_000n);
  assert.equal(parseCount(" 7,000 "), 7000n);
  assert.equal(parseCount("many"), null);
  assert.equal(parseCount(undefined), null);
});

test("all words of a search and all filters must match", () => {
  const ids = (options) => filterModels(MODELS, options).map(({ id }) => id);
  assert.deepEqual(ids({ q: "BIG 1" }), ["Big 10"]);
  assert.deepEqual(ids({ from: "5B", to: "6B" }), ["Big 10"]);
  assert.deepEqual(ids({ since: "2024-01-01" }), ["=HYPERLINK|1"]);
  assert.deepEqual(ids({ family: "g" }), []);
});

test("numbers sort as numbers, names in natural order, missing values last", () => {
  const ids = (sort) => sortModels(MODELS, sort).map(({ id }) => id);
  assert.deepEqual(ids("-total").slice(0, 2), ["=HYPERLINK|1", "Big 10"]);
  assert.deepEqual(ids("name").slice(-3), ["Big 9", "Big 10", "small"]);
  assert.equal(ids("-released")[0], "=HYPERLINK|1");
  assert.equal(ids("released")[0], "=HYPERLINK|1");
});

test("copies are inert and exact", () => {
  const csv = formatTable(MODELS.slice(1, 2), ["id", "total"], "CSV");
  assert.equal(csv, "Id,Total\r\n'=HYPERLINK|1,1152921504606846976\n");
  assert.match(formatTable(MODELS.slice(1, 2), ["id", "total"], "Markdown"), /\| =HYPERLINK\\\|1 \| 1,152,921,504,606,846,976 \|/);
  assert.match(formatTable([model("a_b", 1n)], ["id"], "LaTeX"), /a\\_b \\\\/);
});
