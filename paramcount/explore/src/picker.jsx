// A field that finds a model by its id or name.

import { findModels } from "./find.js";

export function ModelPicker({ data, id, choose, label = "Model" }) {
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
      <datalist id="models">
        {data.models.map((model) => (
          <option key={model.id} value={model.id}>{model.name}</option>
        ))}
      </datalist>
    </label>
  );
}
