// One model: how large it is and why, with its article and the map of its parameters.

import { useMemo } from "preact/hooks";
import { Bar } from "./bar.jsx";
import { countPublished } from "./data.js";
import { listTensors } from "./count.js";
import { formatCount, formatShort } from "./format.js";
import { ParameterMap } from "./map.jsx";
import { formatFragment } from "./state.js";
import { groupTensors } from "./tree.js";

export function Model({ data, state }) {
  const model = data.byId.get(state.ids[0]) ?? data.models[0];
  const counted = countPublished(model);
  const tree = useMemo(() => groupTensors(listTensors(model.structure, model.values), model.name, data), [model]);
  const open = (keys) => (location.hash = formatFragment({ view: "inside", ids: [model.id], options: { at: keys.join("/") } }));
  return (
    <>
      <h1>{model.name}</h1>
      <p class="answer"><b>{formatCount(counted.total)}</b> parameters ({formatShort(counted.total)})</p>
      <Bar data={data} counted={counted} />
      <ParameterMap data={data} node={tree} total={tree.parameters} open={open} />
      {model.article && <article dangerouslySetInnerHTML={{ __html: model.article }} />}
    </>
  );
}
