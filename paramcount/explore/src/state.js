// The state of the page in the fragment of its address: "#model/qwen3-8b", "#compare/a,b", "#change/gpt2-small?d_model=1024".

/** The names of the views in the navigation, and whether the ids in their address are models. */
export const VIEWS = {
  start: { name: "Start", hasModels: false },
  model: { name: "Model", hasModels: true },
  browse: { name: "All models", hasModels: false },
  compare: { name: "Compare", hasModels: true },
  fit: { name: "Does it fit?", hasModels: true },
  change: { name: "Change sizes", hasModels: true },
  inside: { name: "See inside", hasModels: true },
  run: { name: "Watch one run", hasModels: false },
};

/** {view, ids, options} of a fragment; the view of an empty one is "start", of an unknown one what the address says. */
export function parseFragment(fragment) {
  const [path, query = ""] = splitOnce(fragment.replace(/^#/, ""), "?");
  const [view, ids = ""] = splitOnce(path, "/");
  return {
    view: decode(view) || "start",
    ids: ids.split(",").filter(Boolean).map(decode),
    options: Object.fromEntries(query.split("&").filter(Boolean).map(readPair)),
  };
}

function readPair(pair) {
  const [name, value = ""] = splitOnce(pair, "=");
  return [decode(name), decode(value)];
}

export function formatFragment({ view, ids = [], options = {} }) {
  const pairs = Object.entries(options).filter(([, value]) => value !== "" && value !== undefined);
  const query = pairs.map(([name, value]) => `${encode(name)}=${encode(String(value))}`).join("&");
  return `#${view}${ids.length ? "/" + ids.map(encode).join(",") : ""}${query ? "?" + query : ""}`;
}

/** {view} or {id} of what an address names and the page does not have; null if it has everything. */
export function findUnknown({ view, ids }, byId) {
  if (!Object.hasOwn(VIEWS, view)) return { view };
  const id = VIEWS[view].hasModels ? ids.find((one) => !byId.has(one)) : undefined;
  return id === undefined ? null : { id };
}

/** The title of the window. */
export function nameState({ view, ids }, byId) {
  const name = Object.hasOwn(VIEWS, view) ? VIEWS[view].name : "Not found";
  const models = ids.map((id) => byId.get(id)?.name).filter(Boolean).join(", ");
  const words = view === "start" ? [] : view === "model" ? [models] : VIEWS[view]?.hasModels ? [name, models] : [name];
  return [...words.filter(Boolean), "paramcount"].join(" · ");
}

const encode = (text) => encodeURIComponent(text).replace(/%20/g, "+").replace(/%2F/g, "/");

function decode(text) {
  try {
    return decodeURIComponent(text.replace(/\+/g, "%20"));
  } catch {
    return "";
  }
}

function splitOnce(text, separator) {
  const i = text.indexOf(separator);
  return i < 0 ? [text] : [text.slice(0, i), text.slice(i + separator.length)];
}
