// The tensors of a model as a tree: parts, stacks of layers, components, tensors.

/**
 * {label, key, parameters, children | shape, component, count}; parameters of a group are those of its children.
 * A key is that of one child only; `names` are those of parts and components, `places` those of the blocks that they are in. Stacks of equally many layers have their path in the label. Layers that differ in some tensors,
 * as the first one of T5 does, are one stack, whose label has the number of all of them.
 */
export function groupTensors(tensors, name, { names = {}, places = {} } = {}) {
  const root = { label: name, key: "", parameters: 0n, count: 1n, children: [] };
  const parts = new Set(tensors.map(({ part }) => part));
  for (const tensor of tensors) {
    const levels = [
      ...(parts.size > 1 ? [{ label: names[tensor.part] ?? tensor.part, key: tensor.part }] : []),
      ...(tensor.stack ? [{ label: "", key: tensor.stack, kind: tensor.kind, layers: new Map() }] : []),
      { label: names[tensor.component] ?? tensor.component, key: tensor.component },
    ];
    let group = root;
    group.parameters += tensor.parameters;
    for (const level of levels) {
      const key = level.key ?? level.label;
      let child = group.children.find((other) => other.key === key);
      if (!child) {
        child = { ...level, key, parameters: 0n, count: 1n, children: [] };
        group.children.push(child);
      }
      child.parameters += tensor.parameters;
      if (child.layers) addLayers(child, tensor);
      group = child;
    }
    addTensor(group, tensor, places);
  }
  nameAlike(root);
  return root;
}

/** Stacks with the label of another one beside them have their path in it: "model.H_module.layers × 16". */
function nameAlike({ children = [] }) {
  const labels = children.map(({ label }) => label);
  children.forEach((child, i) => {
    if (child.layers && labels.indexOf(labels[i]) !== labels.lastIndexOf(labels[i])) {
      child.label = labels[i].replace("layers", () => child.key.split(".|")[0]);
    }
    nameAlike(child);
  });
}

/** The layers of a stack are those of the tensor that most of them have. */
function addLayers(stack, { name, layers }) {
  stack.layers.set(name, (stack.layers.get(name) ?? 0n) + layers);
  const most = [...stack.layers.values()].reduce((a, b) => (a > b ? a : b));
  stack.label = `${stack.kind ? stack.kind + " " : ""}layers × ${most}`;
}

/** A tensor is one rectangle, with the copies of all layers in which it has the same shape. */
function addTensor(group, { name, title = name, component, shape, copies, parameters }, blocks) {
  const key = `${name} ${shape}`;
  const same = group.children.find((other) => other.key === key);
  if (same) {
    same.count += copies;
    same.parameters += parameters;
  } else {
    const place = nameInBlock(blocks[component], title);
    group.children.push({ label: title, name, place, key, component, shape, count: copies, parameters });
  }
}

/** A name with the block that it is in: "attention: queries". */
export const nameInBlock = (block, name) => (!block || name.includes(block) ? name : `${block}: ${name}`);

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

const WAYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** The index of the rectangle that an arrow key leads to: the nearest one whose middle lies that way; undefined if there is none. */
export function findNeighbour(rectangles, i, key) {
  if (!WAYS[key] || !rectangles[i]) return undefined;
  const [right, down] = WAYS[key];
  const middle = ({ x0, x1, y0, y1 }) => [(x0 + x1) / 2, (y0 + y1) / 2];
  const [x, y] = middle(rectangles[i]);
  let [nearest, least] = [undefined, Infinity];
  rectangles.forEach((other, j) => {
    const [dx, dy] = [middle(other)[0] - x, middle(other)[1] - y];
    const along = dx * right + dy * down;
    const distance = along + 2 * Math.abs(dx * down + dy * right);
    if (along > 0.5 && distance < least) [nearest, least] = [j, distance];
  });
  return nearest;
}
