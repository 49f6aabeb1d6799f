// The page: reads its data and its address, and shows one of its views.

import { render } from "preact";
import { useCallback, useEffect, useState } from "preact/hooks";
import { Browse } from "./browse.jsx";
import { Change } from "./change.jsx";
import { Compare } from "./compare.jsx";
import * as choices from "./choices.js";
import * as copies from "./copies.js";
import * as counting from "./count.js";
import * as memory from "./memory.js";
import { readData } from "./data.js";
import { Fit } from "./fit.jsx";
import { Inside } from "./inside.jsx";
import { Model } from "./model.jsx";
import { NotFound } from "./notfound.jsx";
import { Run } from "./run.jsx";
import { Start } from "./start.jsx";
import { VIEWS, findUnknown, formatFragment, nameState, parseFragment } from "./state.js";

const PAGES = {
  start: Start, model: Model, browse: Browse, compare: Compare, fit: Fit, change: Change, inside: Inside, run: Run,
};

function App({ data }) {
  const [state, setState] = useState(() => parseFragment(location.hash));
  useEffect(() => {
    const follow = () => setState(parseFragment(location.hash));
    follow(); // the address may have changed since the first rendering
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  const go = useCallback((change, { replace = true } = {}) => {
    setState((before) => {
      const after = { ...before, ...change };
      history[replace ? "replaceState" : "pushState"](null, "", formatFragment(after));
      return after;
    });
  }, []);
  const unknown = findUnknown(state, data.byId);
  const Page = unknown ? NotFound : PAGES[state.view];
  useEffect(() => {
    document.title = unknown ? "Not found · paramcount" : nameState(state, data.byId);
  }, [state]);
  const models = state.ids.filter((id) => data.byId.has(id));
  return (
    <>
      <header>
        <a class="brand" href="#start">paramcount</a>
        <nav aria-label="Views">
          {Object.entries(VIEWS).map(([view, { name, hasModels }]) => (
            <a
              key={view}
              href={formatFragment({ view, ids: hasModels ? models : [] })}
              aria-current={view === state.view ? "page" : undefined}
            >
              {name}
            </a>
          ))}
        </nav>
      </header>
      <main data-view={unknown ? "missing" : state.view}>
        <Page key={state.view} data={data} state={state} go={go} unknown={unknown} />
      </main>
      <footer>
        {document.querySelector("meta[name=generator]").content}. Exact counts of {data.models.length.toLocaleString("en")} models, matching the reference
        implementation.
      </footer>
    </>
  );
}

readData(document.querySelectorAll("script[type='application/octet-stream']")).then((data) => {
  window.paramcount = { data, ...counting, ...copies, ...memory, ...choices }; // for the console
  render(<App data={data} />, document.getElementById("app"));
});
