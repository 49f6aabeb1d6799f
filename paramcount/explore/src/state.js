// The state of the page in the fragment of its address: "#change/gpt2-small?d_model=1024", "#compare/a,b".

export const VIEWS = ["browse", "compare", "change", "inside"];

/** {view, ids, options} of a fragment; anything that is not understood is left out. */
export function parseFragment(fragment) {
  const [path, query = ""] = splitOnce(fragment.replace(/^#/, ""), "?");
  const [view, ids = ""] = splitOnce(path, "/");
  return {
    view: VIEWS.includes(view) ? view : "browse",
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

const encode = (text) => encodeURIComponent(text).replace(/%20/g, "+");

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
