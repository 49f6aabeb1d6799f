// The columns of the table of models, its filters and its copies in other formats.

import { countCache } from "./count.js";
import { countPublished } from "./data.js";
import { formatCount } from "./format.js";

const text = (name) => ({ numeric: false, value: (model) => model[name] ?? "", format: (model) => model[name] ?? "" });
const number = (find) => ({
  numeric: true,
  value: find,
  format: (model, data) => {
    const n = find(model, data);
    return n === null || n === undefined ? "" : formatCount(BigInt(n));
  },
});
const component = (name) => number((model, data) => countPublished(model).components[name]);

export const COLUMNS = {
  name: { heading: "Model", ...text("name") },
  id: { heading: "Id", ...text("id") },
  total: { heading: "Total", ...number((model) => model.total) },
  reference: { heading: "Reference total", ...number((model) => model.reference_total) },
  active: { heading: "Active", ...number((model) => model.active) },
  released: { heading: "Released", ...text("released") },
  family: { heading: "Family", ...text("family") },
  architecture: { heading: "Architecture", ...text("architecture") },
  publisher: { heading: "Publisher", ...text("publisher") },
  context: { heading: "Context", ...number((model) => model.context) },
  embedding: { heading: "Embedding", ...component("embedding") },
  experts: { heading: "Experts", ...component("experts") },
  mlp: { heading: "MLP", ...component("mlp") },
  cache: {
    heading: "KV cache per token (bytes)",
    ...number((model) => countCache(model.structure, model.values, 1n)?.perToken),
  },
};

const UNITS = { k: 10n ** 3n, m: 10n ** 6n, b: 10n ** 9n, t: 10n ** 12n };

/** "1.5B" as 1500000000n; null if it is no number. */
export function parseCount(input) {
  const match = /^\s*(\d+)(?:\.(\d+))?\s*([kmbt]?)\s*$/i.exec((input ?? "").replaceAll(",", ""));
  if (!match) return null;
  const [, whole, fraction = "", letter] = match;
  const unit = letter ? UNITS[letter.toLowerCase()] : 1n;
  return (BigInt(whole + fraction) * unit) / 10n ** BigInt(fraction.length);
}

/** The models that match all words of a search and all filters. */
export function filterModels(models, { q = "", family = "", architecture = "", from = "", to = "", since = "" }) {
  const words = q.toLowerCase().split(/\s+/).filter(Boolean);
  const smallest = parseCount(from);
  const largest = parseCount(to);
  return models.filter((model) => {
    const names = [model.id, model.name, model.family, model.publisher, model.hf, ...model.aliases].join(" ").toLowerCase();
    return (
      words.every((word) => names.includes(word)) &&
      (!family || model.family === family) &&
      (!architecture || model.architecture === architecture) &&
      (smallest === null || model.total >= smallest) &&
      (largest === null || model.total <= largest) &&
      (!since || (model.released ?? "") >= since)
    );
  });
}

/** The models by a column, "-" in front for descending; models without a value are last. */
export function sortModels(models, sort, data) {
  const column = COLUMNS[sort.replace(/^-/, "")];
  if (!column) return models;
  const sign = sort.startsWith("-") ? -1 : 1;
  const isMissing = (value) => value === "" || value === null || value === undefined;
  return models
    .map((model) => [column.value(model, data), model])
    .sort(([a], [b]) => {
      if (isMissing(a) || isMissing(b)) return isMissing(a) - isMissing(b);
      if (typeof a === "string") return sign * a.localeCompare(b, "en", { numeric: true });
      return a < b ? -sign : a > b ? sign : 0;
    })
    .map(([, model]) => model);
}

const cells = (models, names, data) => [
  names.map((name) => COLUMNS[name].heading),
  ...models.map((model) => names.map((name) => COLUMNS[name].format(model, data))),
];

const FORMATS = {
  Markdown: (rows, names) => {
    const line = (row) => `| ${row.map((cell) => cell.replace(/[\\|]/g, "\\$&").replace(/</g, "&lt;")).join(" | ")} |`;
    const rule = `|${names.map((name) => (COLUMNS[name].numeric ? "---:" : "---")).join("|")}|`;
    return [line(rows[0]), rule, ...rows.slice(1).map(line)].join("\n");
  },
  CSV: (rows, names) =>
    rows
      .map((row, i) =>
        row.map((cell, j) => quoteCell(i && COLUMNS[names[j]].numeric ? cell.replaceAll(",", "") : cell)).join(","),
      )
      .join("\r\n"),
  LaTeX: (rows, names) => {
    const line = (row) => `${row.map(escapeLatex).join(" & ")} \\\\`;
    const kinds = names.map((name) => (COLUMNS[name].numeric ? "r" : "l")).join("");
    const body = [line(rows[0]), "\\midrule", ...rows.slice(1).map(line)];
    return [`\\begin{tabular}{${kinds}}`, "\\toprule", ...body, "\\bottomrule", "\\end{tabular}"].join("\n");
  },
};

/** A cell that a spreadsheet reads as text, never as a formula. */
function quoteCell(cell) {
  const inert = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert;
}

const LATEX = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}" };
const escapeLatex = (cell) => cell.replace(/[\\~^&%$#_{}]/g, (character) => LATEX[character] ?? `\\${character}`);

export const formatTable = (models, names, format, data) => FORMATS[format](cells(models, names, data), names) + "\n";

/** Whether the browser took the text to its clipboard. */
export async function copyText(content) {
  try {
    await navigator.clipboard.writeText(content);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = content;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
