import assert from "node:assert/strict";
import { test } from "node:test";
import { fillFormula, formatBytes, formatCount, formatShare, formatShort } from "./format.js";

test("counts have a comma for each three digits", () => {
  assert.equal(formatCount(124439808n), "124,439,808");
  assert.equal(formatCount(999n), "999");
  assert.equal(formatCount(-1234n), "-1,234");
});

test("short forms round half up", () => {
  assert.equal(formatShort(124439808n), "124.4M");
  assert.equal(formatShort(1050n), "1.1K");
  assert.equal(formatShort(671026404352n), "671.0B");
  assert.equal(formatBytes(16060522496n), "16.1 GB");
  assert.equal(formatBytes(999n), "999 B");
});

test("shares are per cent of a whole", () => {
  assert.equal(formatShare(1n, 3n), "33.3 %");
  assert.equal(formatShare(1n, 0n), "");
});

test("a formula takes the values of its names, the longest name first", () => {
  assert.equal(fillFormula("2·d_model² + d · vision.d_model", { d_model: 768n, d: 3n, "vision.d_model": 10n }), "2·768² + 3 · 10");
});
