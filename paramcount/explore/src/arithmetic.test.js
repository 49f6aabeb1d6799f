import assert from "node:assert/strict";
import { test } from "node:test";
import { evaluate } from "./arithmetic.js";

test("an expression is exact beyond the numbers of JavaScript", () => {
  const expression = ["+", ["*", 3, ["power", "d", 2], "n"], ["*", ["integer", "9007199254740993"], "n"], -2];
  assert.equal(evaluate(expression, { d: 10n ** 9n, n: 7n }), 21n * 10n ** 18n + 63050394783186951n - 2n);
  assert.equal(evaluate(5, {}), 5n);
});

test("division rounds down, as in Python, and by zero has no value", () => {
  const sizes = { a: -7n, b: 2n, zero: 0n };
  assert.equal(evaluate(["//", "a", "b"], sizes), -4n);
  assert.equal(evaluate(["%", "a", "b"], sizes), 1n);
  assert.equal(evaluate(["//", "b", "a"], sizes), -1n);
  assert.equal(evaluate(["+", ["%", "a", "zero"], 1], sizes), null);
  assert.equal(evaluate(["//", "a", "zero"], sizes), null);
});

test("a share of a size is rounded down as in Python", () => {
  assert.equal(evaluate(["share", "d", 0.4], { d: 80n }), 32n);
  assert.equal(evaluate(["share", "d", 0.25], { d: 30n }), 7n);
});

test("a tree of decisions ends in an error or in none", () => {
  const tree = ["if", ["=", ["%", "n_heads", "n_kv_heads"], 0], null, { where: "n_kv_heads", text: ["no"] }];
  assert.equal(evaluate(tree, { n_heads: 32n, n_kv_heads: 8n }), null);
  assert.equal(evaluate(tree, { n_heads: 32n, n_kv_heads: 7n }).where, "n_kv_heads");
  assert.equal(evaluate(["if", ["<", "n_kv_heads", "n_heads"], 1, 2], { n_heads: 32n, n_kv_heads: 8n }), 1n);
});

test("a function of axes is applied to their values", () => {
  assert.equal(evaluate(["*", 3, ["apply", ["min", "0", "1"], ["*", 2, "d"], 7]], { d: 4n }), 21n);
});
