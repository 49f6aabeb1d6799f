// A field that finds a model by its id or name.

export function ModelPicker({ data, id, choose, label = "Model" }) {
  return (
    <label>
      {label}
      <input
        list="models"
        key={id}
        defaultValue={id}
        onChange={(event) => {
          const found = data.byId.get(event.target.value.trim());
          if (found) choose(found.id);
          event.target.setCustomValidity(found ? "" : "There is no model with this id");
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
