// A field that finds a model by its id or name.

import { useMemo } from "preact/hooks";
import { findModels } from "./find.js";

export function ModelPicker({ data, id, choose, label = "Model" }) {
  // made once, so that a slider that moves does not compare the names of all models
  const list = useMemo(
    () => <datalist id="models">{data.models.map((model) => <option key={model.id} value={model.id}>{model.name}</option>)}</datalist>,
    [data],
  );
  return (
    <label>
      {label}
      <input
        list="models"
        key={id}
        defaultValue={id}
        onChange={(event) => {
          const text = event.target.value.trim();
          const found = data.byId.get(text) ?? findModels(data.models, text, 1)[0];
          if (found) choose(found.id);
          event.target.setCustomValidity(found ? "" : "There is no model with this name");
          event.target.reportValidity();
        }}
      />
      {list}
    </label>
  );
}
