// Draw a dataflow without a browser: reads its shape as JSON, and writes a picture as SVG. For Node.js.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { elkGraph, picture } from "./graph.mjs";

const require = createRequire(import.meta.url);
const ELK = require("./vendor/elk-api.js").default;
const { Worker } = require("./vendor/elk-worker.min.js");

const shape = JSON.parse(readFileSync(0, "utf8"));
const style = `<style>
svg { font: 12px system-ui, "DejaVu Sans", sans-serif; --ink: #1c2328; --soft: #586670; --line: #c4ccd1; --scope: #eef2f4; --loop: #e4edf5; --node: #fff; background: #fff; }
text { fill: var(--ink); } .small { fill: var(--soft); font-size: 11px; } .heat { fill: none; }
.scope > rect.base { fill: var(--scope); stroke: var(--line); } .scope.loop > rect.base { fill: var(--loop); stroke-dasharray: 5 3; }
.node > rect.base { fill: var(--node); stroke: var(--soft); } .node.line > rect.base { stroke-dasharray: 3 2; } .node.meeting > rect.base { rx: 12px; }
.edge { fill: none; stroke: var(--soft); stroke-width: 1.2; } .edge.spread { stroke-width: 2.4; } .edge.back { stroke-dasharray: 4 3; }
marker path { fill: var(--soft); }
@media (prefers-color-scheme: dark) { svg { --ink: #e6ebee; --soft: #9fadb6; --line: #38444c; --scope: #20292f; --loop: #222d38; --node: #2a343b; background: #14191d; } }
</style>`;
const elk = new ELK({ workerFactory: () => new Worker() });
const laid = await elk.layout(elkGraph(shape, new Set()));
const short = line => line.split("/").pop();
const made = picture(shape, laid, style, node => node.origin ? short(node.origin) : "");
process.stdout.write(made.text);
