// The state of the page in the fragment of its address: "#model/qwen3-8b", "#compare/a,b", "#change/gpt2-small?d_model=1024".

/** The views, and whether the ids in their address are models. */
export const VIEWS = {
  start: { hasModels: false },
  model: { hasModels: true },
  browse: { hasModels: false },
  compare: { hasModels: true },
  fit: { hasModels: true },
  change: { hasModels: true },
  inside: { hasModels: true },
  run: { hasModels: false },
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

/** The title of the window. `names`: of the views in the navigation. */
export function nameState({ view, ids }, byId, names) {
  const models = VIEWS[view].hasModels ? ids.map((id) => byId.get(id).name).join(", ") : "";
  return [names[view], models, "paramcount"].filter(Boolean).join(" · ");
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
