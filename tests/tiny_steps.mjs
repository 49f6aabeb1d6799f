// What the page's runtime computes: logits and steps of each tiny model, as JSON. Its input: {data: base64 of
// `export_tiny_models`, uncompressed; runs: [{model, parts: ids of a text that is read in parts, off}]}.

import { readFileSync } from "node:fs";
import { Evaluation } from "../paramcount/explore/src/runtime/evaluate.js";
import { unpack } from "../paramcount/explore/src/runtime/models.js";

const { data, runs } = JSON.parse(readFileSync(0, "utf8"));
const { models } = unpack(new Uint8Array(Buffer.from(data, "base64")));
const plain = (value) => ({ shape: value.shape, data: [...value.data].map((v) => (Number.isFinite(v) ? v : String(v))) });
const found = runs.map(({ model, parts, off }) => {
  const evaluation = new Evaluation(models.find(({ id }) => id === model), new Set(off));
  return parts.map((ids) => {
    const logits = plain(evaluation.run(ids));
    return { logits, steps: evaluation.steps.map(({ node, value }) => ({ label: node.label, form: node.form, ...plain(value) })) };
  });
});
console.log(JSON.stringify(found));
