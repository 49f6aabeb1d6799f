// A changed model as text: a zoo entry, a config.json, a command.

const quote = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

const listSettings = (variant, changed) => [
  ...(variant.label === "as published" ? [] : [variant.label.replace(" = ", "=")]),
  ...changed.map(([path, value]) => `${path}=${value}`),
];

export function formatCommand(model, variant, changed) {
  const settings = listSettings(variant, changed).map((setting) => ` --set ${quote(setting)}`);
  return `paramcount ${quote(model.id)}${settings.join("")}\n`;
}

/** The zoo entry with the changed sizes in it; null if there is none. */
export function formatYaml(model, variant, changed) {
  if (!model.yaml) return null;
  const settings = new Map(listSettings(variant, changed).map((setting) => setting.split("=")));
  const blocks = []; // the keys around a line, each with its indentation
  return model.yaml
    .split("\n")
    .map((line) => {
      const match = /^( *)([A-Za-z0-9_]+):(.*)$/.exec(line);
      if (!match) return line;
      const [, indent, key] = match;
      while (blocks.length && blocks.at(-1).indent >= indent.length) blocks.pop();
      blocks.push({ indent: indent.length, key });
      const path = blocks.map((block) => block.key).join(".");
      const value = settings.get(path.replace(/^config\./, ""));
      return path.startsWith("config.") && value !== undefined ? `${indent}${key}: ${value}` : line;
    })
    .join("\n");
}

/** The config.json with the changed sizes in it; null where keys do not state them all. */
export function formatConfig(model, variant, changed) {
  if (!model.config) return null;
  const document = structuredClone(model.config.document);
  for (const setting of listSettings(variant, changed)) {
    const [path, value] = setting.split("=");
    const place = model.config.keys[path];
    if (!place) return null;
    let section = document;
    for (const step of place.slice(0, -1)) section = section[step];
    section[place.at(-1)] = JSON.parse(value);
  }
  return JSON.stringify(document, null, 2) + "\n";
}
