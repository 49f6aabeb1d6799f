// What an address names and the page does not have, with what it may mean.

import { findNearest, findNearestWords } from "./find.js";
import { formatFragment, VIEWS } from "./state.js";

const TITLES = { start: "the start", model: "the model" }; // of the views that the header does not name

export function NotFound({ data, state, unknown, names }) {
  const isView = unknown.view !== undefined;
  const views = isView ? findNearestWords(Object.keys(VIEWS), unknown.view) : [];
  const models = findNearest(data.models, isView ? unknown.view : unknown.id);
  const links = [
    ...views.map((view) => [formatFragment({ view, ids: VIEWS[view].hasModels ? state.ids : [] }), names[view] ?? TITLES[view]]),
    ...models.map(({ id, name }) => {
      const ids = isView ? [id] : state.ids.map((other) => (other === unknown.id ? id : other));
      return [formatFragment({ view: isView ? "model" : state.view, ids, options: {} }), name];
    }),
  ];
  return (
    <>
      <h1>Not found</h1>
      <p>
        {isView ? <>This page has no view <q>{unknown.view}</q>. </> : <>This page has no model <q>{unknown.id}</q>. </>}
        {links.length > 0 && "Did you mean "}
        {links.map(([href, name], i) => (
          <>{i === 0 ? "" : i === links.length - 1 ? " or " : ", "}<a key={href} href={href}>{name}</a></>
        ))}
        {links.length > 0 && "?"}
      </p>
      <p><a href="#start">Search for a model</a> or <a href="#browse">browse all {data.models.length.toLocaleString("en")} models</a>.</p>
    </>
  );
}
