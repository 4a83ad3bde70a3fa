// What the page computes from a tree of stacks, beside the plain definition, for random trees with recursion.

import { readFileSync } from "node:fs";
import { check, finish } from "./browser.mjs";

const source = readFileSync(new URL("../../extensions/explore/page/stacks.js", import.meta.url), "utf8");
const { Stacks } = await import(`data:text/javascript,${encodeURIComponent(source)}`);

let seed = 1;
function random(n) {
  seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
  return Math.floor(((seed >> 8) / 0x800000) * n);
}

function makeTree(size, isDiff) {
  const nodes = [[0, 0, 0, 0, 0, 0, 0].slice(0, isDiff ? 7 : 5)];
  for (let i = 1; i < size; i++) nodes.push([random(i), 1 + random(6), random(3), random(5), 0, random(5), 0].slice(0, isDiff ? 7 : 5));
  for (let i = size - 1; i >= 0; i--) {
    for (let k = 3; k < nodes[i].length; k += 2) {
      nodes[i][k + 1] += nodes[i][k];
      if (i) nodes[nodes[i][0]][k + 1] += nodes[i][k + 1];
    }
  }
  return { unit: "count", names: ["", "a", "b", "c", "d", "e", "f"], files: ["", "x.go", "y.go"], nodes };
}

// Self and total of each function from the list of all stacks.
function definition(tree) {
  const result = new Map();
  const key = (i) => `${tree.nodes[i][1]} ${tree.nodes[i][2]}`;
  tree.nodes.forEach((node, i) => {
    if (!i) return;
    const on = new Set();
    for (let at = i; at; at = tree.nodes[at][0]) on.add(key(at));
    for (const f of on) {
      const entry = result.get(f) || { self: 0, total: 0 };
      entry.total += node[3];
      if (f === key(i)) entry.self += node[3];
      result.set(f, entry);
    }
  });
  return result;
}

const near = (a, b) => Math.abs(a - b) < 1e-6;
let wrong = 0;
for (let round = 0; round < 300; round++) {
  const tree = makeTree(1 + random(round % 10 ? 60 : 1500), false);
  const stacks = new Stacks(tree);
  const expected = definition(tree);
  const found = stacks.functions();
  if (found.length !== expected.size) wrong++;
  for (const f of found) {
    const e = expected.get(`${tree.nodes[f.node][1]} ${tree.nodes[f.node][2]}`);
    if (!e || e.self !== f.self || e.total !== f.total) wrong++;
    const { total, callers } = stacks.neighbours(stacks.func[f.node]);
    if (total !== f.total || callers.reduce((sum, c) => sum + c.total, 0) !== total) wrong++;
  }
  // Frames are inside their parents, side by side, largest first; each is on one level.
  if (stacks.levels.reduce((sum, level) => sum + level.length, 0) !== tree.nodes.length) wrong++;
  for (let i = 0; i < tree.nodes.length; i++) {
    let x = stacks.x[i], last = Infinity;
    for (const child of stacks.children(i)) {
      if (!near(stacks.x[child], x) || stacks.total[child] > last || tree.nodes[child][0] !== i) wrong++;
      x += stacks.total[child];
      last = stacks.total[child];
    }
  }
  // A search counts each stack once.
  const hits = tree.nodes.reduce((sum, node, i) => {
    for (let at = i; at; at = tree.nodes[at][0]) if (tree.names[tree.nodes[at][1]] === "a") return sum + node[3];
    return sum;
  }, 0);
  if (stacks.search("a").total !== hits) wrong++;
}
check(wrong === 0, `functions, callers, places and searches of 300 random trees (${wrong} differ)`);

wrong = 0;
for (let round = 0; round < 100; round++) {
  const tree = makeTree(1 + random(200), true);
  const stacks = new Stacks(tree, { a: 0.5, b: 0.25 });
  tree.nodes.forEach((node, i) => {
    if (!near(stacks.totalA[i], node[4] / 2) || !near(stacks.totalB[i], node[6] / 4) || !near(stacks.total[i], node[4] / 2 + node[6] / 4)) wrong++;
  });
  const functions = stacks.functions();
  if (!near(functions.reduce((sum, f) => sum + f.selfA, 0), (tree.nodes[0][4] - tree.nodes[0][3]) / 2)) wrong++;
}
check(wrong === 0, `both sides of 100 random comparisons (${wrong} differ)`);
finish();
