// A flame graph of 100,000 nodes beside speedscope with the same stacks, and a list of 10,000 spans
// that scrolls: times from Chromium's own trace.

import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { dirname, extname, join } from "node:path";
import { launch, open, base, check, finish, resolve } from "./browser.mjs";

const NODES = 100000;
const SPANS = 10000;
const ROUNDS = 5;

// ---- the same stacks for both ----

function random(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

function makeTree() {
  const next = random(1);
  const names = ["all"], files = [""];
  for (let i = 1; i <= 3000; i++) {
    names.push(`github.com/shop/service${i % 40}/package${i % 200}.(*Type${i % 60}).function${i}`);
    files.push(`/src/service${i % 40}/package${i % 200}/file${i % 900}.go`);
  }
  const nodes = [[0, 0, 0, 0, 0]];
  const depth = [0];
  while (nodes.length < NODES) {
    const parent = nodes.length < 50 ? 0 : next() < 0.5 ? nodes.length - 1 : Math.floor(nodes.length * next() ** 0.7);
    if (depth[parent] > 80) continue;
    depth.push(depth[parent] + 1);
    const name = 1 + Math.floor(next() * 3000);
    nodes.push([parent, name, name, 1e6 * (1 + Math.floor(next() * 20)), 0]);
  }
  for (let i = nodes.length - 1; i > 0; i--) {
    nodes[i][4] += nodes[i][3];
    nodes[nodes[i][0]][4] += nodes[i][4];
  }
  return { type: "cpu", unit: "nanoseconds", total: nodes[0][4], spans: 1000, truncated: false, names, files, nodes };
}

function asSpeedscope(tree) {
  const samples = [], weights = [];
  for (let i = 1; i < tree.nodes.length; i++) {
    const stack = [];
    for (let at = i; at > 0; at = tree.nodes[at][0]) stack.push(tree.nodes[at][1] - 1);
    samples.push(stack.reverse());
    weights.push(tree.nodes[i][3]);
  }
  return { $schema: "https://www.speedscope.app/file-format-schema.json", shared: { frames: tree.names.slice(1).map((name, i) => ({ name, file: tree.files[i + 1] })) },
    profiles: [{ type: "sampled", name: "cpu", unit: "nanoseconds", startValue: 0, endValue: tree.total, samples, weights }] };
}

function makeSpans() {
  const next = random(2);
  const hex = (n) => Array.from({ length: n }, () => "0123456789abcdef"[Math.floor(next() * 16)]).join("");
  return Array.from({ length: SPANS }, (_, i) => ({ trace_id: hex(32), span_id: hex(16), parent_id: "", service: `service${i % 7}`, version: "1", operation: `GET /path/${i % 40}`, kind: "server", status: "unset",
    status_message: "", start: String(BigInt(Date.now()) * 1000000n), duration_ns: (SPANS - i) * 1e5, samples: 3, costs: { cpu: (SPANS - i) * 5e4 }, attributes: {} }));
}

// ---- speedscope as a site of its own ----

function serve(folder, profile) {
  const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json", ".woff2": "font/woff2", ".png": "image/png", ".svg": "image/svg+xml" };
  const server = createServer((request, response) => {
    const path = new URL(request.url, "http://localhost").pathname;
    try {
      const body = path === "/profile.json" ? profile : readFileSync(join(folder, path === "/" ? "index.html" : path));
      response.writeHead(200, { "content-type": types[extname(path)] || "text/html" });
      response.end(body);
    } catch {
      response.writeHead(404);
      response.end();
    }
  });
  return new Promise((r) => server.listen(0, "127.0.0.1", () => r(server)));
}

// ---- reading traces ----

async function traced(page, action) {
  await page.tracing.start({ categories: ["devtools.timeline", "toplevel", "disabled-by-default-devtools.timeline", "blink.user_timing", "loading"] });
  await action();
  const trace = JSON.parse(Buffer.from(await page.tracing.stop()).toString());
  return trace.traceEvents;
}

// Tasks of a thread, in ms, without those inside others.
function tasksOf(events, { pid, tid }) {
  const tasks = events.filter((e) => e.pid === pid && e.tid === tid && /RunTask$/.test(e.name) && e.ph === "X").map((e) => ({ start: e.ts / 1000, end: (e.ts + e.dur) / 1000, cpu: (e.tdur ?? e.dur) / 1000 })).sort((a, b) => a.start - b.start || b.end - a.end);
  let end = 0;
  return tasks.filter((t) => t.start >= end && (end = t.end));
}

// The main thread of the process that an event is of.
const mainThread = (events, { pid }) => events.find((e) => e.name === "thread_name" && e.pid === pid && e.args.name === "CrRendererMain");

// From a moment on: the time until the last task ends that needs more than 4 ms of processor time;
// the processor time of the tasks until then, and of the longest.
function work(tasks, from) {
  const after = tasks.filter((t) => t.end > from);
  const last = after.filter((t) => t.cpu > 4).pop();
  const end = last ? last.end : from;
  const until = after.filter((t) => t.end <= end);
  return { until: end - from, busy: until.reduce((sum, t) => sum + t.cpu, 0), longest: Math.max(0, ...until.map((t) => t.cpu)) };
}

const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];
const pause = (ms) => new Promise((r) => setTimeout(r, ms));

async function measure(browser, { url, isData, prepare, zoom }) {
  const draws = [], zooms = [];
  for (let round = 0; round < ROUNDS; round++) {
    const page = await open(browser);
    await prepare?.(page);
    const events = await traced(page, async () => {
      await page.goto(url);
      await pause(7000); // speedscope's import takes long on a busy machine
    });
    const request = events.find((e) => e.name === "ResourceSendRequest" && isData(e.args.data.url));
    const finish = events.find((e) => e.name === "ResourceFinish" && e.args.data.requestId === request.args.data.requestId);
    draws.push(work(tasksOf(events, mainThread(events, request)), finish.ts / 1000));
    const zoomEvents = await traced(page, async () => {
      await zoom(page);
      await pause(1500);
    });
    const input = zoomEvents.find((e) => e.name === "EventDispatch" && /click|mousedown|keydown|pointerdown/.test(e.args.data.type));
    zooms.push(work(tasksOf(zoomEvents, input), input.ts / 1000));
    await page.close();
  }
  const of = (list) => Object.fromEntries(["until", "busy", "longest"].map((k) => [k, +median(list.map((x) => x[k])).toFixed(1)]));
  return { draw: of(draws), zoom: of(zooms) };
}


const tree = makeTree();
const answer = JSON.stringify(tree);
const scope = JSON.stringify(asSpeedscope(tree));
const site = await serve(join(dirname(resolve("speedscope/package.json")), "dist/release"), scope);
const siteUrl = `http://127.0.0.1:${site.address().port}`;
const browser = await launch();
console.log(`${NODES} nodes, depth ${Math.max(...tree.nodes.map((_, i) => { let d = 0; for (let at = i; at; at = tree.nodes[at][0]) d++; return d; }).slice(0, 5000))}; medians of ${ROUNDS}, main thread, ms`);

const fulfil = (pattern, body) => async (page) => {
  await page.setRequestInterception(true);
  page.on("request", (r) => (pattern.test(r.url()) ? r.respond({ status: 200, contentType: "application/json", body }) : r.continue()));
};
const ours = await measure(browser, {
  url: `${base}#/profile?service=x`, isData: (u) => /api\/flamegraph/.test(u), prepare: fulfil(/api\/flamegraph/, answer),
  zoom: async (page) => { const box = await (await page.$(".flame")).boundingBox(); await page.mouse.click(box.x + box.width * 0.1, box.y + box.height - 50); },
});
const theirs = await measure(browser, {
  url: `${siteUrl}/#profileURL=${encodeURIComponent(`${siteUrl}/profile.json`)}&view=left-heavy`, isData: (u) => /profile\.json/.test(u),
  zoom: async (page) => { await page.mouse.click(128, 200, { count: 2 }); },
});
console.log("ms           data to drawn  cpu  longest | click to still  cpu  longest");
for (const [name, r] of [["explore", ours], ["speedscope", theirs]]) console.log(`${name.padEnd(12)} ${[r.draw.until, r.draw.busy, r.draw.longest, r.zoom.until, r.zoom.busy, r.zoom.longest].map((n) => String(n).padStart(10)).join(" ")}`);
check(ours.draw.until <= theirs.draw.until, "the first picture is not later than speedscope's");
// The processor time of a zoom is not compared: speedscope's pictures are drawn in the process of the GPU.
check(ours.zoom.until <= theirs.zoom.until, "the picture is still after a click not later than speedscope's");

// ---- the list ----

const spans = makeSpans();
const page = await open(browser);
await page.setRequestInterception(true);
page.on("request", (r) => {
  const url = new URL(r.url());
  if (url.pathname !== "/api/spans") return r.continue();
  const limit = +url.searchParams.get("limit"), from = +(url.searchParams.get("cursor") || 0);
  return r.respond({ status: 200, contentType: "application/json", body: JSON.stringify({ total: SPANS, spans: spans.slice(from, from + limit), next: from + limit < SPANS ? String(from + limit) : null }) });
});
await page.goto(`${base}#/requests`);
await page.waitForSelector(".list-rows .list-row");
const box = await (await page.$(".list")).boundingBox();
await page.mouse.move(box.x + 200, box.y + 200);
await page.evaluate(() => {
  window.frames2 = [];
  let last = performance.now();
  const step = (now) => { window.frames2.push(now - last); last = now; requestAnimationFrame(step); };
  requestAnimationFrame(step);
});
const scrollEvents = await traced(page, async () => {
  for (let i = 0; i < 1200; i++) {
    await page.mouse.wheel({ deltaY: 400 });
    if (await page.$eval(".list", (e) => e.scrollTop + e.clientHeight >= e.scrollHeight - 2) && i > 900) break;
  }
});
const { frames, reached, rows } = await page.evaluate(() => ({ frames: window.frames2.slice(1), reached: Math.max(...[...document.querySelectorAll(".list-rows .list-row")].map((r) => +r.dataset.index)), rows: document.querySelectorAll(".list-rows .list-row").length }));
const dispatch = scrollEvents.find((e) => e.name === "EventDispatch");
const long = tasksOf(scrollEvents, dispatch).map((t) => t.cpu);
console.log(`list: scrolled to row ${reached + 1} of ${SPANS}, ${rows} rows in the document, ${frames.length} frames, longest ${Math.max(...frames).toFixed(1)} ms, most processor time of a task of the main thread ${Math.max(...long).toFixed(1)} ms`);
check(reached >= SPANS - 1, "the list scrolls to its end");
// Frames also wait for other processes of a busy machine; the page's part is the processor time.
check(Math.max(...long) <= 100, "no task of the page holds a frame for 100 ms");
await browser.close();
site.close();
finish();
