// The graph of a dataflow: what is visible of it, its layout by ELK, and the picture as SVG text.
// This file touches neither the document nor the network, so a program without a browser can use it, too.

export const WIDTH = 168, HEIGHT = 52, SMALL = 26;

const escaped = text => String(text).replace(/[&<>"]/g, c => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const cut = (text, most) => text.length > most ? text.slice(0, most - 1) + "…" : text;

/** Return which scope or node stands for a node while some scopes are closed: `n3`, or `s1`. */
export function standing(shape, closed) {
  const outermost = shape.scopes.map((scope, number) => {
    let found = null;
    for (let each = number; each >= 0; each = shape.scopes[each].parent) if (closed.has(each)) found = each;
    return found;
  });
  return shape.nodes.map((node, number) => outermost[node.scope] === null ? `n${number}` : `s${outermost[node.scope]}`);
}

/** Return the graph for ELK: nested scopes as nodes with children, closed ones as boxes. */
export function elkGraph(shape, closed) {
  const stands = standing(shape, closed);
  const options = {
    "elk.algorithm": "layered", "elk.direction": "DOWN", "elk.hierarchyHandling": "INCLUDE_CHILDREN",
    "elk.layered.spacing.nodeNodeBetweenLayers": "34", "elk.spacing.nodeNode": "22", "elk.spacing.edgeNode": "14",
    "elk.layered.nodePlacement.strategy": "BRANDES_KOEPF", "elk.padding": "[top=12,left=12,bottom=12,right=12]",
  };
  const root = { id: "root", layoutOptions: options, children: [], edges: [] };
  const holders = new Map();
  const hidden = number => {
    for (let each = shape.scopes[number].parent; each >= 0; each = shape.scopes[each].parent) if (closed.has(each)) return true;
    return false;
  };
  shape.scopes.forEach((scope, number) => {
    if (hidden(number)) return;
    const made = closed.has(number) ? { id: `s${number}`, width: WIDTH, height: HEIGHT }
      : { id: `s${number}`, children: [], layoutOptions: { "elk.padding": "[top=34,left=14,bottom=14,right=14]" } };
    holders.set(number, made);
  });
  for (const [number, made] of holders) {
    const parent = shape.scopes[number].parent;
    (parent < 0 ? root : holders.get(parent)).children.push(made);
  }
  shape.nodes.forEach((node, number) => {
    if (stands[number] !== `n${number}`) return;
    const height = node.kind === "meeting" ? SMALL : HEIGHT;
    holders.get(node.scope).children.push({ id: `n${number}`, width: WIDTH, height });
  });
  for (const scope of holders.values()) if (scope.children && !scope.children.length) { scope.width = WIDTH; scope.height = HEIGHT; delete scope.children; }
  const joined = new Map();
  shape.edges.forEach((edge, number) => {
    const ends = [stands[edge.source], stands[edge.target]];
    if (ends[0] === ends[1] && ends[0][0] === "s") return;
    const key = ends.join(" ");
    if (!joined.has(key)) joined.set(key, { id: `e${number}`, sources: [ends[0]], targets: [ends[1]], all: [] });
    joined.get(key).all.push(number);
    // What does not lead back into a loop points down, so that a loop begins at its top.
    if (!edge.is_loop) joined.get(key).layoutOptions = { "elk.layered.priority.direction": "10" };
  });
  root.edges = [...joined.values()];
  return root;
}

function path(edge, x, y) {
  return (edge.sections || []).map(section => {
    const points = [section.startPoint, ...(section.bendPoints || []), section.endPoint];
    return points.map((point, place) => `${place ? "L" : "M"}${(point.x + x).toFixed(1)} ${(point.y + y).toFixed(1)}`).join("");
  }).join("");
}

/** Return the picture of a graph that ELK has laid out: the SVG as text, and its size. `second` is a node's second line. */
export function picture(shape, laid, style = "", second = () => "") {
  const scopes = [], nodes = [], edges = [];
  const places = new Map([["root", [0, 0]]]);
  const draw = (element, left, top) => {
    for (const child of element.children || []) {
      const x = left + child.x, y = top + child.y, number = +child.id.slice(1);
      places.set(child.id, [x, y]);
      const at = `data-id="${child.id}" transform="translate(${x.toFixed(1)} ${y.toFixed(1)})"`;
      const size = `width="${child.width.toFixed(1)}" height="${child.height.toFixed(1)}"`;
      if (child.id[0] === "s") {
        const scope = shape.scopes[number], kind = scope.is_loop ? " loop" : "";
        const state = child.children ? "true" : "false";
        const mark = scope.parent < 0 ? "" : child.children ? "▾ " : "▸ ";
        const button = scope.parent < 0 ? `role="group"` : `role="button" tabindex="-1" aria-expanded="${state}"`;
        const open = scope.parent < 0 ? "" : " box";
        const text = `<text x="10" y="${child.children ? 20 : 17}">${escaped(mark + cut(scope.name, 40))}</text>`;
        const more = child.children ? "" : `<text class="small rate" x="10" y="32"></text><text class="small more" x="10" y="45"></text>`;
        const heat = child.children ? "" : `<rect class="heat" rx="5" ${size}/>`;
        scopes.push(`<g class="scope${kind}${open}${child.children ? "" : " node"}" ${at} ${button} aria-label="${escaped(scope.is_loop ? "loop" : "scope")} ${escaped(scope.name)}"><rect class="base" rx="5" ${size}/>${heat}${text}${more}</g>`);
        draw(child, x, y);
      } else {
        const node = shape.nodes[number], small = node.kind === "meeting";
        const kind = small ? " meeting" : node.kind === "in line" ? " line" : "";
        const title = `<title>${escaped(node.name)}${node.origin ? "\n" + escaped(node.origin) : ""}</title>`;
        const text = `<text x="9" y="17">${escaped(cut(node.name, 23))}</text>`;
        const more = small ? "" : `<text class="small rate" x="9" y="32">${escaped(cut(second(node), 26))}</text><text class="small more" x="9" y="45"></text>`;
        nodes.push(`<g class="node box${kind}" ${at} role="button" tabindex="-1" aria-label="${escaped(node.name)}"><rect class="base" rx="5" ${size}/><rect class="heat" rx="5" ${size}/>${title}${text}${more}</g>`);
      }
    }
  };
  draw(laid, 0, 0);
  const lines = element => {
    for (const edge of element.edges || []) {
      const [x, y] = places.get(edge.container || element.id) || [0, 0];
      const known = edge.all.map(number => shape.edges[number]);
      const spread = known.some(each => each.pact && each.pact !== "pipeline") ? " spread" : "";
      const back = known.some(each => each.is_loop) ? " back" : "";
      edges.push(`<path class="edge${spread}${back}" data-edges="${edge.all.join(" ")}" d="${path(edge, x, y)}" marker-end="url(#tip)"/>`);
    }
    for (const child of element.children || []) lines(child);
  };
  lines(laid);
  const tip = `<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>`;
  const width = Math.ceil(laid.width), height = Math.ceil(laid.height);
  return { width, height, text: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">${style}${tip}<g>${scopes.join("")}</g><g>${edges.join("")}</g><g>${nodes.join("")}</g></svg>` };
}
