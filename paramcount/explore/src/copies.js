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

/** The zoo entry with the changed sizes in it; null if the page has none. */
export function formatYaml(model, variant, changed) {
  return null;
}

/** The config.json with the changed sizes in it; null where keys do not state them all. */
export function formatConfig(model, variant, changed) {
  return null;
}
