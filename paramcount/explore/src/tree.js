// The tensors of a model as a tree: parts, stacks of layers, components, tensors.

/**
 * {label, key, parameters, children | shape, component, count}; parameters of a group are those of its children.
 * A key is that of one child only; labels repeat, for stacks of equally many layers.
 */
export function groupTensors(tensors, name) {
  const root = { label: name, key: "", parameters: 0n, count: 1n, children: [] };
  const parts = new Set(tensors.map(({ part }) => part));
  for (const tensor of tensors) {
    const levels = [
      ...(parts.size > 1 ? [{ label: tensor.part }] : []),
      ...(tensor.stack ? [{ label: `${tensor.kind ? tensor.kind + " " : ""}layers × ${tensor.layers}`, key: tensor.stack }] : []),
      { label: tensor.component },
    ];
    let group = root;
    group.parameters += tensor.parameters;
    for (const { label, key = label } of levels) {
      let child = group.children.find((other) => other.key === key);
      if (!child) {
        child = { label, key, parameters: 0n, count: 1n, children: [] };
        group.children.push(child);
      }
      child.parameters += tensor.parameters;
      group = child;
    }
    group.children.push({
      label: tensor.name, key: tensor.name, component: tensor.component, shape: tensor.shape, count: tensor.copies,
      parameters: tensor.parameters,
    });
  }
  return root;
}

/** The group at a path of keys, as far as it exists, and the groups on the way. */
export function findNode(tree, path) {
  const trail = [tree];
  for (const key of path) {
    const child = trail.at(-1).children?.find((other) => other.key === key && other.children);
    if (!child) break;
    trail.push(child);
  }
  return { node: trail.at(-1), trail };
}

const SMALLEST = 2.5; // pixels of a cell that can be told apart

/** Lines that divide a rectangle into cells of equal area, one for each copy; none if they are too small to see. */
export function drawGrid(count, x, y, w, h) {
  const n = Number(count);
  if ((w * h) / n < SMALLEST ** 2) return "";
  const rows = Math.max(1, Math.min(n, Math.round(Math.sqrt((n * h) / w))));
  const lines = [];
  let top = y;
  for (let row = 0; row < rows; row++) {
    const cells = Math.floor(((row + 1) * n) / rows) - Math.floor((row * n) / rows);
    const height = (h * cells) / n;
    if (row) lines.push(`M${x} ${top.toFixed(2)}h${w}`);
    for (let i = 1; i < cells; i++) lines.push(`M${(x + (w * i) / cells).toFixed(2)} ${top.toFixed(2)}v${height.toFixed(2)}`);
    top += height;
  }
  return lines.join("");
}
