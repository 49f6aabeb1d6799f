// What people choose on the page about memory: read from the address, and written as commands.

import { quote } from "./copies.js";
import { fillText, nameValues } from "./count.js";
import { findNearestWords } from "./find.js";
import { formatCount } from "./format.js";
import { FITS, RELEASED, explainSharing, makeSubject, measure } from "./memory.js";

const USUAL_GPU = "H100 SXM"; // of someone who has chosen none
const UNITS = { k: 1024, K: 1024, M: 1024 ** 2 };

/** A number as people type it: "8192", "8,192", or of tokens "8k"; null for anything else. */
export function parseNumber(text, ofTokens) {
  const match = /^\s*(\d{1,3}(?:,\d{3})+|\d{1,10})\s*([kKM]?)\s*$/.exec(text);
  if (!match || (match[2] && !ofTokens)) return null;
  return Number(match[1].replaceAll(",", "")) * (UNITS[match[2]] ?? 1);
}

const simplify = (name) => name.toLowerCase().replace(/[^a-z0-9]/g, "");

/** The name in any case, as the command line accepts it. */
const findName = (names, text = "") => names.find((name) => name.toLowerCase() === text.toLowerCase());

/** The GPU of a name or alias; the exact name, which is usual, is found at once. */
const findGpu = (data, name) =>
  data.gpus.find((gpu) => gpu.name === name) ??
  data.gpus.find((gpu) => [gpu.name, ...gpu.aliases].some((other) => simplify(other) === simplify(name)));

/** The dtypes of the weights that a model can be asked for: {name: label}; as released first, if that is quantised. */
export function listDtypes(data, model, isChanged) {
  const released = model.as_released && !isChanged ? [[RELEASED, model.as_released.label]] : [];
  return new Map([...released, ...data.dtype_names.map((name, i) => [name, data.dtypes[i]])]);
}

export const usualDtype = (data, dtypes) => (dtypes.has(RELEASED) ? RELEASED : data.usual_dtype);

/**
 * {choice, dtype, subject, errors} of the options of an address: what memory.js measures. An error names the option and the
 * valid values; the choice then has the default in its place. `known`: {dtype: subject} of these values.
 */
export function readChoice(data, model, structure, values, isChanged, options, known) {
  const errors = [];
  const read = (name, value, explain) => {
    if (options[name] === undefined) return undefined;
    if (value === undefined || value === null) errors.push({ where: name, text: explain() });
    return value ?? undefined;
  };
  const dtypes = listDtypes(data, model, isChanged);
  const dtype =
    read("dtype", findName([...dtypes.keys()], options.dtype), () =>
      isChanged && options.dtype === RELEASED
        ? "the format of the released files holds for the published sizes only; choose a dtype"
        : `dtype = ${options.dtype} (expected ${[...dtypes.keys()].join(", ")})`) ?? usualDtype(data, dtypes);
  const find = (name) => {
    if (!known.has(name)) known.set(name, makeSubject(data, model, structure, values, name));
    return known.get(name);
  };
  const subject = find(dtype);
  const gpu =
    read("gpu", options.gpu ? findGpu(data, options.gpu) : undefined, () => {
      const words = findNearestWords(data.gpus.flatMap(({ name, aliases }) => [name, ...aliases]), options.gpu);
      const nearest = [...new Set(words.map((word) => findGpu(data, word).name))].slice(0, 3);
      return `gpu = ${options.gpu} is not in the list${nearest.length ? `; the nearest: ${nearest.join(", ")}` : ""}`;
    }) ?? findGpu(data, USUAL_GPU) ?? data.gpus[0];
  const kv =
    read("kv", data.kv_dtypes.find(({ name }) => name === findName([name], options.kv)), () =>
      `kv = ${options.kv} (expected ${data.kv_dtypes.map(({ name }) => name).join(", ")})`) ?? data.kv_dtypes[0];
  const number = (name, most, what) => {
    const n = options[name] === undefined ? null : parseNumber(options[name], name === "context");
    return read(name, n !== null && n >= 1 && n <= most ? n : null, () =>
      `${name} = ${options[name]} (expected ${what} from 1 to ${formatCount(most)})`);
  };
  const longest = subject.positions ?? data.longest_context;
  const context = number("context", longest, "a number of tokens such as 8192 or 8k,")
    ?? Math.min(data.default_context, subject.limit ?? data.default_context);
  const users = number("users", data.most_users, "a number") ?? 1;
  const gpus = number("n", data.most_gpus, "GPUs of one machine,") ?? 1;
  const wrong = explainSharing(structure, values, gpus);
  if (wrong) {
    const divide = listNumbers(data, subject).join(", ");
    errors.push({ where: "n", text: `${fillText(wrong.text, { ...nameValues(structure, values), gpus: BigInt(gpus) })} (these numbers of GPUs do: ${divide})` });
  }
  return { choice: { gpu, gpus, context, users, kv }, dtype, dtypes, subject, find, errors };
}

/** Other dtypes with which a choice fits, one change at a time: [{label, options of the address}]. */
export function listRemedies(data, { choice, dtype, dtypes, find, subject }) {
  const fits = (other, on) => measure(data, on, other)?.verdict === FITS;
  const smaller = data.kv_dtypes.filter(({ bytes }) => bytes < choice.kv.bytes);
  const caches = smaller
    .filter((kv) => fits({ ...choice, kv }, subject))
    .map((kv) => ({ label: `KV cache in ${kv.label}`, options: { kv: kv.name } }));
  const weights = [...dtypes]
    .filter(([name]) => name !== dtype && fits(choice, find(name)))
    .map(([name, label]) => ({ label: `weights in ${label}`, options: { dtype: name } }));
  return [...caches, ...weights];
}

/** The numbers of GPUs that can share a model. */
export const listNumbers = (data, subject) =>
  Array.from({ length: data.most_gpus }, (_, i) => i + 1).filter((n) => !explainSharing(subject.structure, subject.values, n));

/** The commands that answer the same, and everything else: {memory, plan}. `set`: " --set …" of changed sizes. */
export function writeCommands(data, model, { choice, dtype }, set = "") {
  const { gpu, gpus, context, users, kv } = choice;
  const weights = dtype === RELEASED ? "" : ` --dtype ${dtype}`;
  const cache = kv === data.kv_dtypes[0] ? "" : ` --kv-dtype ${kv.name}`;
  const name = `${quote(model.id)}${set}${weights}${cache} --context ${context}`;
  return {
    memory: `paramcount memory ${name} --batch ${users} --gpu ${quote(`${gpus}x${gpu.name}`)}`,
    plan: `paramcount plan ${name} --users ${users} --gpu ${quote(gpu.name)}`,
  };
}
