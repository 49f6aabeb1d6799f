// A changed model as text: a zoo entry, a config.json, a command.

const quote = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

/** [size, value as JSON] of everything that differs from the published model. */
const listSettings = (variant, changed) => [
  ...Object.entries(variant.changes),
  ...changed.map(([path, value]) => [path, value.toString()]),
];

export function formatCommand(model, variant, changed) {
  const settings = listSettings(variant, changed).map(([path, value]) => ` --set ${quote(`${path}=${value}`)}`);
  return `paramcount ${quote(model.id)}${settings.join("")}\n`;
}

/** The zoo entry with the changed sizes in it; null if there is none. */
export function formatYaml(model, variant, changed) {
  if (!model.yaml) return null;
  const settings = new Map(listSettings(variant, changed));
  const blocks = []; // the keys around a line, each with its indentation
  let replaced = null; // the indentation of a key whose list is left out
  return model.yaml
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

/** The config.json with the changed sizes in it; null where keys do not state them all. */
export function formatConfig(model, variant, changed) {
  if (!model.config) return null;
  const document = structuredClone(model.config.document);
  for (const [path, value] of listSettings(variant, changed)) {
    const place = model.config.keys[path];
    if (!place) return null;
    let section = document;
    for (const step of place.slice(0, -1)) section = section[step];
    section[place.at(-1)] = JSON.parse(value);
  }
  return JSON.stringify(document, null, 2) + "\n";
}
