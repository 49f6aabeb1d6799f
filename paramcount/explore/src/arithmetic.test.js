import assert from "node:assert/strict";
import { test } from "node:test";
import { calculate, decide, evaluate } from "./arithmetic.js";

test("a polynomial is exact beyond the numbers of JavaScript", () => {
  assert.equal(evaluate([[3, 0, 0, 1], ["9007199254740993", 1], [-2]], [10n ** 9n, 7n]), 21n * 10n ** 18n + 63050394783186951n - 2n);
  assert.equal(evaluate(5, []), 5n);
});

test("division rounds down, as in Python", () => {
  const sizes = { a: -7n, b: 2n, zero: 0n };
  assert.equal(calculate(["//", "a", "b"], sizes), -4n);
  assert.equal(calculate(["%", "a", "b"], sizes), 1n);
  assert.equal(calculate(["//", "b", "a"], sizes), -1n);
  assert.equal(calculate(["%", "a", "zero"], sizes), 0n);
});

test("a tree of decisions ends in an error or in none", () => {
  const tree = [["!=", ["%", "n_heads", "n_kv_heads"], 0], { where: "n_kv_heads", text: ["no"] }, null];
  assert.equal(decide(tree, { n_heads: 32n, n_kv_heads: 8n }), null);
  assert.equal(decide(tree, { n_heads: 32n, n_kv_heads: 7n }).where, "n_kv_heads");
});
