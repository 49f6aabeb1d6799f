// The tiny models of the page: read from its data, asked to continue a text.

import { decodeBase85 } from "../blocks.js";
import { Evaluation } from "./evaluate.js";
import { readSafetensors } from "./tensors.js";

/** {alphabet, separator, end, longest, models} of an element of the page; each model has its flow and weights. */
export async function readTinyModels(element) {
  const stream = new Blob([decodeBase85(element.textContent.trim())]).stream().pipeThrough(new DecompressionStream("gzip"));
  return unpack(new Uint8Array(await new Response(stream).arrayBuffer()));
}

/** The same of bytes: the length of a JSON text, the text, and one file of weights after the other. */
export function unpack(bytes) {
  let at = 4 + new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const data = JSON.parse(new TextDecoder().decode(bytes.subarray(4, at)));
  for (const model of data.models) {
    model.weights = readSafetensors(bytes.subarray(at, at + model.n_bytes));
    at += model.n_bytes;
  }
  return data;
}

export const encode = (data, text) => [...text].map((character) => data.alphabet.indexOf(character));

/** The likeliest token and its probability, and those of all tokens, from one row of logits. */
export function predict(logits) {
  const most = logits.reduce((a, b) => Math.max(a, b));
  const powers = Array.from(logits, (v) => Math.exp(v - most));
  const sum = powers.reduce((a, b) => a + b, 0);
  const probabilities = powers.map((v) => v / sum);
  const id = probabilities.indexOf(Math.max(...probabilities));
  return { id, probability: probabilities[id], probabilities };
}

/** What a model makes of letters: the answer, token by token with its cache, until it ends or is too long.
 *
 * {tokens: ids of the letters, the separator and the answer; predictions: for each token, what comes next; n: letters and
 * separator; isRight}
 */
export function sortLetters(data, model, letters, off) {
  const evaluation = new Evaluation(model, off);
  const tokens = encode(data, letters + data.separator);
  const n = tokens.length;
  const end = data.alphabet.indexOf(data.end);
  const predictions = [];
  let logits = evaluation.run(tokens);
  for (let i = 0; i < n; i++) predictions.push(predict(logits.data.subarray(i * logits.shape[1], (i + 1) * logits.shape[1])));
  while (tokens.at(-1) !== end && tokens.length < 2 * letters.length + 2) {
    tokens.push(predictions.at(-1).id);
    logits = evaluation.run([tokens.at(-1)]);
    predictions.push(predict(logits.data));
  }
  const answer = tokens.slice(n).map((id) => data.alphabet[id]).join("");
  const expected = [...letters].sort().join("") + data.end;
  return { tokens, predictions, n, answer, expected, isRight: answer === expected };
}

/** Every value of a pass over all tokens at once: `Evaluation.steps`. */
export function watch(model, tokens, off) {
  const evaluation = new Evaluation(model, off);
  evaluation.run(tokens);
  return evaluation.steps;
}
