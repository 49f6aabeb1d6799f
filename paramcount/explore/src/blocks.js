// Compressed data in lines, each of which is parsed when it is first needed.

// Of base85 as Python has it, with , : . in place of < > &, which HTML could read.
const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%.()*+-;,=:?@^_`{|}~";
const DIGITS = new Uint8Array(128);
[...ALPHABET].forEach((character, digit) => (DIGITS[character.charCodeAt(0)] = digit));

/** The bytes of a text in base85: four for five characters, one fewer than the characters of a last, shorter group. */
export function decodeBase85(text) {
  const missing = (5 - (text.length % 5)) % 5;
  const padded = text + "~".repeat(missing);
  const bytes = new Uint8Array((padded.length / 5) * 4);
  for (let i = 0, at = 0; i < padded.length; i += 5) {
    let number = 0;
    for (let j = i; j < i + 5; j++) number = number * 85 + DIGITS[padded.charCodeAt(j)];
    bytes[at++] = number >>> 24;
    bytes[at++] = number >>> 16;
    bytes[at++] = number >>> 8;
    bytes[at++] = number;
  }
  return bytes.subarray(0, bytes.length - missing);
}

const NEWLINE = 10;

/** The lines of an element of the page as bytes. `watch` is called with those that there are whenever there are more. */
export async function readElement(element, watch = () => {}) {
  const packed = decodeBase85(element.textContent.trim());
  const size = new DataView(packed.buffer, packed.byteOffset).getUint32(packed.length - 4, true); // the last bytes of gzip
  const bytes = new Uint8Array(size);
  const lines = [];
  const reader = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip")).getReader();
  for (let [start, end] = [0, 0]; ; ) {
    const { value, done } = await reader.read();
    if (done) return lines;
    bytes.set(value, end);
    const before = lines.length;
    for (let at = value.indexOf(NEWLINE); at >= 0; at = value.indexOf(NEWLINE, at + 1)) {
      lines.push(bytes.subarray(start, end + at));
      start = end + at + 1;
    }
    end += value.length;
    if (lines.length > before) watch(lines);
  }
}

export const parseLine = (line) => JSON.parse(new TextDecoder().decode(line));

/**
 * The data of an element: its fields, the ids of its models, and {name: a Blocks} of what the other lines have. Lines may
 * still be added until a block of them is needed.
 */
export function readLines(lines) {
  const { ids, layout, fields } = parseLine(lines[0]);
  const data = { ...fields, ids };
  let next = 1;
  for (const [name, size, length] of layout) {
    const first = next;
    next += Math.ceil(length / size);
    data[name] = new Blocks(Array.from({ length: next - first }, (_, i) => () => parseLine(lines[first + i])), size, length);
  }
  return data;
}

/** Values in blocks of so many, each block a function that parses it. */
export class Blocks {
  constructor(readers, size, length) {
    Object.assign(this, { readers, size, length, read: [] });
  }

  get(i) {
    const block = Math.floor(i / this.size);
    this.read[block] ??= readRecords(this.readers[block]());
    return this.read[block][i % this.size];
  }

  list() {
    return Array.from({ length: this.length }, (_, i) => this.get(i));
  }
}

/** Values as they are, or records from columns: {order: the kind of each record, kinds: the keys and columns of each}. */
export function readRecords(data) {
  if (Array.isArray(data)) return data;
  const next = data.kinds.map(() => 0);
  return data.order.map((kind) => {
    const { keys, columns } = data.kinds[kind];
    const at = next[kind]++;
    return Object.fromEntries(keys.map((key, i) => [key, columns[i][at]]));
  });
}
