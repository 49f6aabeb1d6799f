// Bundles the program and its libraries to page.js, with the licences of the libraries at its end.

import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const { metafile, outputFiles } = await build({
  entryPoints: ["src/main.jsx"],
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  charset: "utf8",
  legalComments: "none",
  metafile: true,
  write: false,
});

const inputs = Object.entries(Object.values(metafile.outputs)[0].inputs).filter(([, { bytesInOutput }]) => bytesInOutput > 0);
const packages = new Set(inputs.map(([path]) => /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]).filter(Boolean));

/** {text of a licence: names of the packages that have it}, without the lines of the copyright, which differ. */
const licences = new Map();
const copyrights = [];
for (const name of [...packages].sort()) {
  const folder = `node_modules/${name}`;
  const file = readdirSync(folder).find((other) => /^licen[cs]e/i.test(other));
  if (!file) throw new Error(`${name} has no licence`);
  const lines = readFileSync(`${folder}/${file}`, "utf8").trim().split(/\r?\n/);
  const isCopyright = (line) => /^copyright/i.test(line.trim());
  copyrights.push(`${name}: ${lines.filter(isCopyright).map((line) => line.trim()).join("; ")}`);
  const text = lines.filter((line) => !isCopyright(line)).join(" ").replace(/\s+/g, " ").trim();
  licences.set(text, [...(licences.get(text) ?? []), name]);
}
const texts = [...licences].map(([text, names]) => `${names.join(", ")}:\n${text}`);
const notice = ["This program contains:", ...copyrights, "", ...texts].join("\n").replaceAll("*/", "* /");
writeFileSync("page.js", `${outputFiles[0].text.trimEnd()}\n/*\n${notice}\n*/\n`);
