import assert from "node:assert/strict";
import { test } from "node:test";
import { describeChanges, describeDifference, findNearestValid, listChanges, readVariant } from "./changes.js";

const structure = {
  sizes: [["d_model", 1, 1000], ["n_heads", 1, 1000], ["window"]],
  checks: [["if", ["=", ["%", "d_model", "n_heads"], 0], null, { where: "n_heads", text: ["n_heads does not divide"] }]],
};
const variant = { label: "as published", changes: {}, structure, values: [48n, 6n, 9n] };
const model = { variants: [variant, { ...variant, label: "tied", changes: { tied: "true" } }] };

test("an address changes sizes that may vary", () => {
  const { values } = readVariant(model, { d_model: "96", n_heads: "x", window: "3" });
  assert.deepEqual(values, [96n, 6n, 9n]);
  assert.deepEqual(listChanges(variant, values), [["d_model", 96n]]);
  assert.equal(describeChanges(variant, [["d_model", 9600n]]), "d_model 48 → 9,600");
  assert.equal(describeChanges(readVariant(model, { variant: "tied" }).variant, []), "tied");
});

test("the nearest valid values are below and above", () => {
  assert.deepEqual(findNearestValid(structure, [48n, 7n, 9n], 1), [6n, 8n]);
  assert.deepEqual(findNearestValid(structure, [50n, 6n, 9n], 0), [48n, 54n]);
  assert.deepEqual(findNearestValid(structure, [48n, 49n, 9n], 1), [48n]); // nothing larger divides
});

test("a difference has a sign and a share of what was there", () => {
  assert.equal(describeDifference(8190735360n, 9_420_000_000n), "+1.23B, +15.0%");
  assert.equal(describeDifference(1000n, 500n), "−500, −50.0%");
  assert.equal(describeDifference(0n, 1234n), "+1.23K");
  assert.equal(describeDifference(5n, 5n), "no change");
});
