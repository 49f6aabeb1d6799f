// One model: its article, which Python wrote, with the map of its parameters and links to the views that play with it.

import { render } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { copyText } from "./clipboard.js";
import { listTensors, shareActive } from "./count.js";
import { chooseModel, countPublished } from "./data.js";
import { ParameterMap } from "./map.jsx";
import { formatShort } from "./format.js";
import { formatFragment, parseFragment } from "./state.js";
import { groupTensors } from "./tree.js";

/** What there is so far: the name and the size, the article, and the map when everything has been read. */
export function Model({ data, state, names }) {
  const model = chooseModel(data, state);
  const article = useMemo(() => model.article ?? data.finders?.map((find) => find(model.id)).find((found) => found !== undefined), [model, data]);
  return (
    <>
      <Actions model={model} names={names} />
      {article !== undefined ? <Article key={model.id} data={data} model={model} article={article} /> : <Summary model={model} />}
    </>
  );
}

function Summary({ model }) {
  const active = model.active !== model.total && `, of which ${formatShort(model.active)} are active for each token`;
  return (
    <div class="article">
      <h1>{model.name}</h1>
      <p class="lead">{model.name} has {formatShort(model.total)} parameters{active}.</p>
      <p role="status" class="waiting">Reading the models …</p>
    </div>
  );
}

function Actions({ model, names }) {
  const [message, setMessage] = useState("");
  const copy = () => {
    const link = new URL(formatFragment({ view: "model", ids: [model.id] }), location.href).href;
    copyText(link).then((done) => setMessage(done ? "Copied the link" : "The browser did not allow copying"));
  };
  return (
    <div class="actions">
      {["fit", "change", "inside", "compare"].map((view) => (
        <a class="button" key={view} href={formatFragment({ view, ids: [model.id] })}>{names[view]}</a>
      ))}
      <button type="button" onClick={copy}>Copy link</button>
      <span role="status">{message}</span>
    </div>
  );
}

/** The article with the map before its first section, whose place is kept free until its data are there. */
function Article({ data, model, article }) {
  const box = useRef(null);
  const map = useRef(null);
  useLayoutEffect(() => {
    const place = document.createElement("div");
    place.className = "whole-map";
    const first = box.current.querySelector("section");
    if (first) first.before(place);
    else box.current.append(place);
    map.current = place;
    for (const link of box.current.querySelectorAll('a[href^="#model/"]')) {
      if (!data.byId.has(parseFragment(link.hash).ids[0])) link.replaceWith(...link.childNodes); // not on this page
    }
    return () => render(null, place);
  }, []);
  useLayoutEffect(() => {
    if (model.structure) render(<WholeMap data={data} model={model} />, map.current);
  }, [data]);
  return <div ref={box} dangerouslySetInnerHTML={{ __html: article }} />;
}

function WholeMap({ data, model }) {
  const tree = useMemo(() => groupTensors(listTensors(model.structure, model.values), model.name, data), [model]);
  const open = (keys) => (location.hash = formatFragment({ view: "inside", ids: [model.id], options: { at: keys.join("/") } }));
  return <ParameterMap data={data} node={tree} total={tree.parameters} active={shareActive(countPublished(model))} open={open} />;
}
