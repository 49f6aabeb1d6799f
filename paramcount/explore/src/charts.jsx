// The charts of a comparison: totals, components, and KV caches against context.

import { useMemo } from "preact/hooks";
import { sampleCaches } from "./compare.js";
import { formatShort } from "./format.js";
import { Chart, barX, dot, lineY, ruleX, selectLast, stackX, text } from "./plot.jsx";

const formatTokens = (n) => (n < 1024 ? n : `${n / 1024}k`);

export function Charts({ data, models, counts, present }) {
  const names = models.map((model) => model.name);
  const totals = models.flatMap((model, i) => [
    { model: model.name, what: "total", n: Number(counts[i].total) },
    { model: model.name, what: "active", n: Number(counts[i].active) },
  ]);
  const shares = models.flatMap((model, i) =>
    present.map((name) => ({ model: model.name, component: name, share: Number((counts[i].components[name] * 1000000n) / counts[i].total) / 10000 })),
  );
  const caches = useMemo(() => sampleCaches(models), [models]);
  const left = Math.min(220, 20 + 7 * Math.max(...names.map((name) => name.length)));
  const of = [models];
  return (
    <div class="charts">
      <Chart
        label="Total parameters (light), and those active per token (dark)"
        of={of}
        make={() => ({
          marginLeft: left,
          height: 60 + 34 * models.length,
          x: { label: "parameters", tickFormat: (n) => formatShort(BigInt(n)).replace(".0", ""), grid: true, nice: true },
          y: { domain: names, label: null },
          marks: [
            barX(totals.filter(({ what }) => what === "total"), { x: "n", y: "model", fill: "var(--total)" }),
            barX(totals.filter(({ what }) => what === "active"), { x: "n", y: "model", fill: "var(--active)", insetTop: 6, insetBottom: 6 }),
            ruleX([0]),
          ],
        })}
      />
      <Chart
        label="Components, in percent of the total"
        of={of}
        make={() => ({
          marginLeft: left,
          height: 60 + 34 * models.length,
          x: { label: "% of the parameters", domain: [0, 100] },
          y: { domain: names, label: null },
          color: { domain: present, range: present.map((name) => data.colors[name]), legend: true },
          marks: [barX(shares, stackX({ x: "share", y: "model", fill: "component", order: present }))],
        })}
      />
      {caches.points.length > 0 && (
        <Chart
          label="KV cache and states of one sequence in BF16, in GB, up to the longest context of each model"
          of={of}
          make={() => ({
            height: 300,
            marginRight: left,
            x: { label: "context (tokens)", domain: [0, caches.longest], ticks: caches.ticks, tickFormat: formatTokens, grid: true },
            y: { label: "GB", zero: true, grid: true, nice: true },
            marks: [
              lineY(caches.points, { x: "context", y: "gigabytes", z: "model", stroke: "model" }),
              dot(caches.points, selectLast({ x: "context", y: "gigabytes", z: "model", fill: "model" })),
              text(caches.points, selectLast({ x: "context", y: "gigabytes", z: "model", text: "model", textAnchor: "start", dx: 8 })),
            ],
          })}
        />
      )}
    </div>
  );
}
