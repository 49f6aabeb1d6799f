import assert from "node:assert/strict";
import { test } from "node:test";
import { fillFormula, formatBytes, formatCount, formatShare, formatShort } from "./format.js";

test("counts have a comma for each three digits", () => {
  assert.equal(formatCount(124439808n), "124,439,808");
  assert.equal(formatCount(999n), "999");
  assert.equal(formatCount(-1234n), "-1,234");
});

test("short forms have three digits and round half up", () => {
  const short = [124439808n, 1536n, 8030261248n, 671026404352n, 999_700_000n, 999_400_000n, 1004n, 1005n, 999n];
  assert.deepEqual(short.map(formatShort), ["124M", "1.54K", "8.03B", "671B", "1.00B", "999M", "1.00K", "1.01K", "999"]);
  const bytes = [497759232n, 2684105617408n, 16060522496n, 10n ** 9n, 1234n * 10n ** 12n, 999n];
  assert.deepEqual(bytes.map(formatBytes), ["498 MB", "2.68 TB", "16.1 GB", "1.00 GB", "1,234 TB", "999 B"]);
});

test("shares are per cent of a whole", () => {
  assert.equal(formatShare(1n, 3n), "33.3%");
  assert.equal(formatShare(1n, 0n), "");
});

test("a formula takes the values of its names, the longest name first", () => {
  assert.equal(fillFormula("2·d_model² + d · vision.d_model", { d_model: 768n, d: 3n, "vision.d_model": 10n }), "2·768² + 3 · 10");
});
