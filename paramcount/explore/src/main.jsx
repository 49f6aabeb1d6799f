// The page: reads its data and its address, and shows one of four views.

import { render } from "preact";
import { useCallback, useEffect, useState } from "preact/hooks";
import { Browse } from "./browse.jsx";
import { Change } from "./change.jsx";
import { Compare } from "./compare.jsx";
import * as copies from "./copies.js";
import * as counting from "./count.js";
import * as memory from "./memory.js";
import { readData } from "./data.js";
import { Inside } from "./inside.jsx";
import { formatFragment, parseFragment } from "./state.js";

const NAMES = { browse: "Browse", compare: "Compare", change: "Change", inside: "See inside" };
const PAGES = { browse: Browse, compare: Compare, change: Change, inside: Inside };

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
  const Page = PAGES[state.view];
  return (
    <>
      <header>
        <strong>paramcount</strong>
        <nav aria-label="Views">
          {Object.entries(NAMES).map(([view, name]) => (
            <a
              key={view}
              href={formatFragment({ view, ids: view === "browse" ? [] : state.ids })}
              aria-current={view === state.view ? "page" : undefined}
            >
              {name}
            </a>
          ))}
        </nav>
      </header>
      <main>
        <Page key={state.view} data={data} state={state} go={go} />
      </main>
      <footer>
        {document.querySelector("meta[name=generator]").content}. Exact counts of {data.models.length.toLocaleString("en")} models, matching the reference
        implementation.
      </footer>
    </>
  );
}

readData(document.querySelectorAll("script[type='application/octet-stream']")).then((data) => {
  window.paramcount = { data, ...counting, ...copies, ...memory }; // for the console
  render(<App data={data} />, document.getElementById("app"));
});
