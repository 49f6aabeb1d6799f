// The page: reads its data and its address, and shows one of its views.

import { render } from "preact";
import { useCallback, useEffect, useLayoutEffect, useState } from "preact/hooks";
import { forgetAddress, replaceAddress, writeAddress } from "./address.js";
import { Browse } from "./browse.jsx";
import { Change } from "./change.jsx";
import { connectCopies } from "./clipboard.js";
import { Compare } from "./compare.jsx";
import * as choices from "./choices.js";
import * as copies from "./copies.js";
import * as counting from "./count.js";
import * as memory from "./memory.js";
import { nameModels, readData, readRows } from "./data.js";
import { Fit } from "./fit.jsx";
import { Inside } from "./inside.jsx";
import { Model } from "./model.jsx";
import { NotFound } from "./notfound.jsx";
import { Run } from "./run.jsx";
import { Search } from "./search.jsx";
import { VIEWS, findUnknown, formatFragment, nameState, parseFragment } from "./state.js";
import { connectTheme } from "./theme.js";

const PAGES = { model: Model, browse: Browse, compare: Compare, fit: Fit, change: Change, inside: Inside, run: Run };
const links = [...document.querySelectorAll("header nav a")];
const names = Object.fromEntries(links.map((link) => [parseFragment(link.hash).view, link.textContent]));

/** `light`: the rows of all models; `load`: reads the rest, which takes longer, as readData. */
function App({ light, load }) {
  const [state, setState] = useState(() => parseFragment(location.hash));
  const [data, setData] = useState(light);
  useEffect(() => {
    load((find) => setData((before) => ({ ...before, finders: [...before.finders, find] }))).then(setData);
    const follow = () => {
      forgetAddress();
      setState(parseFragment(location.hash));
    };
    follow(); // the address may have changed since the first rendering
    addEventListener("hashchange", follow);
    addEventListener("click", writeAddress, true); // before a link is followed or copied
    addEventListener("pagehide", writeAddress);
    return () => removeEventListener("hashchange", follow);
  }, []);
  /** `change`: of the state, or a function of the state before that returns it. */
  const go = useCallback((change, { replace = true } = {}) => {
    setState((before) => {
      const after = { ...before, ...(typeof change === "function" ? change(before) : change) };
      if (!replace) writeAddress();
      if (!replace) history.pushState(null, "", formatFragment(after));
      else replaceAddress(formatFragment(after));
      return after;
    });
  }, []);
  const unknown = findUnknown(state, light.byId);
  const view = unknown ? "missing" : state.view;
  useLayoutEffect(() => showState(state, view, light.byId), [view, state.ids.join()]);
  const Page = unknown ? NotFound : PAGES[view];
  const isReady = data.finders === undefined || view === "missing" || view === "model" || !VIEWS[view].hasModels;
  if (view === "start") return null; // it is part of the page
  return isReady ? <Page key={view} data={data} state={state} go={go} unknown={unknown} names={names} /> : <Waiting name={light.byId.get(state.ids[0])?.name ?? names[view]} />;
}

/** A view before the data of its models are there. */
function Waiting({ name }) {
  return (
    <>
      <h1>{name}</h1>
      <p role="status" class="waiting">Reading the models …</p>
    </>
  );
}

/** Everything outside of the view that follows the address. */
function showState(state, view, byId) {
  document.documentElement.dataset.start = view === "start";
  document.querySelector("main").dataset.view = view;
  document.title = view === "missing" ? "Not found · paramcount" : nameState(state, byId, names);
  const models = state.ids.filter((id) => byId.has(id));
  for (const link of links) {
    const target = parseFragment(link.hash).view;
    link.href = formatFragment({ view: target, ids: VIEWS[target].hasModels ? models : [] });
    if (target === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

/** Once the browser has painted what there is. */
const afterPaint = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));

async function run() {
  connectTheme(document.getElementById("theme"));
  connectCopies((text) => (document.getElementById("told").textContent = text));
  const typed = document.querySelector("#search input").value; // before the program ran
  const models = await readRows(document.querySelector("script.rows"));
  const light = { models, byId: nameModels(models), finders: [] }; // of articles
  const load = async (show) => {
    await afterPaint();
    const data = await readData(document.querySelectorAll("script.data"), models, show);
    window.paramcount = { data, ...counting, ...copies, ...memory, ...choices }; // for the console
    return data;
  };
  const search = document.getElementById("search");
  const hadFocus = search.contains(document.activeElement);
  search.replaceChildren();
  render(<Search data={light} initial={typed} />, search);
  if (hadFocus) search.querySelector("input").focus();
  render(<App light={light} load={load} />, document.getElementById("app"));
}

run();
