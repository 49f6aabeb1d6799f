// The columns of the table of models, its filters and its copies in other formats.

import { formatBytes, formatCount, formatShort } from "./format.js";

const text = (name) => ({ numeric: false, value: (model) => model[name] ?? "", format: (model) => model[name] ?? "" });
/** A column of numbers: exact in copies, and short on the page. */
const number = (name, shorten = formatShort) => ({
  numeric: true,
  value: (model) => model[name] ?? null,
  format: (model) => ((model[name] ?? null) === null ? "" : formatCount(model[name])),
  shorten: (model) => ((model[name] ?? null) === null ? "" : shorten(model[name])),
});

export const COLUMNS = {
  name: { heading: "Model", ...text("name") },
  total: { heading: "Total", ...number("total") },
  active: { heading: "Active", ...number("active") },
  context: { heading: "Context", ...number("context", formatTokens) },
  released: { heading: "Released", ...text("released") },
  family: { heading: "Family", ...text("family") },
  publisher: { heading: "Publisher", ...text("publisher") },
  architecture: { heading: "Architecture", ...text("architecture") },
  id: { heading: "Id", ...text("id") },
  reference: { heading: "Reference total", ...number("reference_total") },
  embedding: { heading: "Embedding", ...number("embedding") },
  experts: { heading: "Experts", ...number("experts") },
  mlp: { heading: "MLP", ...number("mlp") },
  cache: { heading: "KV cache per token (bytes)", ...number("kv_per_token", (n) => formatBytes(BigInt(n))) },
};

/** 131072 as "128k", 1048576 as "1M", as people say it; other lengths with all digits. */
export function formatTokens(n) {
  for (const [unit, letter] of [[1048576, "M"], [1000000, "M"], [1024, "k"], [1000, "k"]]) {
    if (n >= unit && n % unit === 0) return `${n / unit}${letter}`;
  }
  return formatCount(n);
}

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

const COLLATOR = new Intl.Collator("en", { numeric: true });

/** The models by a column, "-" in front for descending; models without a value are last. */
export function sortModels(models, sort) {
  const column = COLUMNS[sort.replace(/^-/, "")];
  if (!column) return models;
  const sign = sort.startsWith("-") ? -1 : 1;
  const isMissing = (value) => value === "" || value === null || value === undefined;
  return models
    .map((model) => [column.value(model), model])
    .sort(([a], [b]) => {
      if (isMissing(a) || isMissing(b)) return isMissing(a) - isMissing(b);
      if (typeof a === "string") return sign * COLLATOR.compare(a, b);
      return a < b ? -sign : a > b ? sign : 0;
    })
    .map(([, model]) => model);
}

const cells = (models, names) => [
  names.map((name) => COLUMNS[name].heading),
  ...models.map((model) => names.map((name) => COLUMNS[name].format(model))),
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

export const formatTable = (models, names, format) => FORMATS[format](cells(models, names), names) + "\n";
