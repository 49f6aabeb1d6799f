// What is inside one model: the parameter map, and the flow of its layers.

import { useMemo } from "preact/hooks";
import { listTensors, shareActive } from "./count.js";
import { chooseModel, countPublished } from "./data.js";
import { Flow } from "./flow.jsx";
import { formatCount } from "./format.js";
import { ParameterMap } from "./map.jsx";
import { ModelPicker } from "./picker.jsx";
import { findNode, groupTensors } from "./tree.js";

const CONTEXT = 4096;

export function Inside({ data, state, go }) {
  const model = chooseModel(data, state);
  const tree = useMemo(() => groupTensors(listTensors(model.structure, model.values), model.name, data), [model]);
  const path = (state.options.at ?? "").split("/").filter(Boolean);
  const { node, trail } = findNode(tree, path);
  const context = BigInt(model.drawing?.context ?? Math.min(CONTEXT, model.context ?? CONTEXT));
  const open = (keys) => go({ ids: [model.id], options: { ...state.options, at: keys.join("/") } }, { replace: false });
  return (
    <>
      <h1>{model.name}</h1>
      <div class="filters">
        <ModelPicker data={data} id={model.id} choose={(id) => go({ ids: [id], options: {} }, { replace: false })} />
        {trail.length > 1 && <nav aria-label="Level of the map">
          <ol class="trail">
            {trail.map((group, i) => (
              <li key={i}>
                <button type="button" disabled={i === trail.length - 1} onClick={() => open(path.slice(0, i))}>{group.label}</button>
              </li>
            ))}
          </ol>
        </nav>}
      </div>
      <ParameterMap data={data} node={node} total={tree.parameters} active={shareActive(countPublished(model))} open={(keys) => open([...path, ...keys])} close={path.length ? () => open(path.slice(0, -1)) : undefined} />
      <h2>Forward pass of one token</h2>
      <p>With {formatCount(context)} tokens of context. Choose a step to see what it does and why, its shapes and its cost.</p>
      <Flow key={model.id} data={data} model={model} context={context} state={state} go={go} />
    </>
  );
}
