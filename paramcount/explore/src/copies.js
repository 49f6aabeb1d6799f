// A changed model as text: a zoo entry, a config.json, a command.

import { evaluate } from "./arithmetic.js";
import { nameValues } from "./count.js";

export const quote = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

/** [size, value as JSON] of everything that differs from the published model. */
const listSettings = (variant, changed) => [
  ...Object.entries(variant.changes),
  ...changed.map(([path, value]) => [path, value.toString()]),
];

/** The options of a command that change a model: " --set n_layers=48". */
export const formatSettings = (variant, changed) =>
  listSettings(variant, changed).map(([path, value]) => ` --set ${quote(`${path}=${value}`)}`).join("");

export const formatCommand = (model, variant, changed) => `paramcount ${quote(model.id)}${formatSettings(variant, changed)}\n`;

const COPIED = "accessed: 0001-01-01"; // as in copies.py

const formatDay = (day) =>
  [day.getFullYear(), day.getMonth() + 1, day.getDate()].map((n) => String(n).padStart(2, "0")).join("-");

/** The zoo entry with the changed sizes in it, accessed on a day; null if there is none. */
export function formatYaml(model, variant, changed, day = new Date()) {
  if (!model.yaml) return null;
  const settings = new Map(listSettings(variant, changed));
  const blocks = []; // the keys around a line, each with its indentation
  let replaced = null; // the indentation of a key whose list is left out
  return model.yaml
    .replace(COPIED, `accessed: ${formatDay(day)}`)
    .split("\n")
    .flatMap((line) => {
      const indent = line.length - line.trimStart().length;
      if (replaced !== null && (indent > replaced || (indent === replaced && line.trimStart().startsWith("- ")))) return [];
      replaced = null;
      const key = /^ *([A-Za-z0-9_]+):/.exec(line)?.[1];
      if (!key) return [line];
      while (blocks.length && blocks.at(-1).indent >= indent) blocks.pop();
      blocks.push({ indent, key });
      const [first, ...path] = blocks.map((block) => block.key);
      const value = settings.get(path.join("."));
      if (first !== "config" || value === undefined) return [line];
      replaced = indent;
      return [`${" ".repeat(indent)}${key}: ${value}`];
    })
    .join("\n");
}

/** { text } of the config.json with the changed sizes in it, or { reason } why there is none. */
export function formatConfig({ config }, variant, changed) {
  if (config.reason) return config;
  const document = structuredClone(config.document);
  const published = nameValues(variant.structure, variant.values);
  const sizes = { ...published, ...Object.fromEntries(changed.map(([path, value]) => [path, BigInt(value)])) };
  for (const [path, value] of listSettings(variant, changed)) {
    const place = config.keys[path];
    if (!place && path in config.derived) continue; // from the other keys, see below
    if (!place) return { reason: explainMissing(path, config.coupled[path]) };
    let section = document;
    for (const step of place.slice(0, -1)) section = section[step];
    section[place.at(-1)] = JSON.parse(value);
  }
  for (const [path, tree] of Object.entries(config.derived)) {
    const value = evaluate(tree, sizes);
    if (value !== sizes[path]) return { reason: explainDerived(path, sizes[path], value) };
  }
  return { text: JSON.stringify(document, null, 2) + "\n" };
}

const explainMissing = (path, other) =>
  other && other !== path ? `the key of ${path} also changes ${other}` : `${path} has no key of its own`;

const explainDerived = (path, value, derived) =>
  `${path} = ${value} has no key, and ${derived === null ? "the other sizes do not give it" : `the other sizes make it ${derived}`}`;
