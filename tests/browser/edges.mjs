// Data that is there in part, or odd: only spans, circles of parents, large traces, clocks that differ.

import { launch, open, visit, pages, check, finish } from "./browser.mjs";

const DAY_NS = 86400n * 1000000000n;
const browser = await launch();
const list = new Map(await pages());

// Opens a page whose answers of some paths are changed.
async function text(name, changes) {
  const page = await open(browser);
  await page.setRequestInterception(true);
  page.on("request", async (request) => {
    const path = /\/api\/(\w+)/.exec(request.url())?.[1];
    if (!changes[path]) { request.continue(); return; }
    const answer = await (await fetch(request.url())).json();
    changes[path](answer);
    request.respond({ status: 200, contentType: "application/json", body: JSON.stringify(answer) });
  });
  await visit(page, list.get(name));
  const found = await page.$eval("main", (e) => e.innerText);
  check(page.problems.length === 0, `${name}: no error ${page.problems.slice(0, 2).join("; ").slice(0, 300)}`);
  await page.close();
  return found;
}

const expect = (found, part, what) => check(part.test(found), `${what}${part.test(found) ? "" : `: ${found.slice(0, 300)}`}`);

// ---- only spans ----

const noTypes = (state) => { state.types = []; };
const noProfiles = ({ spanjoin }) => spanjoin.forEach(({ samples }) => Object.assign(samples, { joined: 0, unjoined: {} }));
expect(await text("join", { status: noTypes, join: noProfiles }), /No profiles yet/, "the join says that profiles are missing");
expect(await text("profile", { status: noTypes, flamegraph: (a) => Object.assign(a, { total: 0 }) }), /No profiles yet/, "so does the flame graph");
expect(await text("join", { join: ({ spanjoin }) => spanjoin.forEach((j) => { j.lag = { bounds_ns: [], counts: [] }; }) }), /metrics\.level is none/, "lags that are not measured");

// ---- traces ----

expect(await text("request", { span: ({ span, trace }) => trace.forEach((s) => { s.parent_id = s.span_id === span.span_id ? trace.at(-1).span_id : span.span_id; }) }),
  /Its trace, \d+ spans[^]*GET \/slow/, "a circle of parents is a trace");
expect(await text("request", { span: (answer) => { answer.trace_total = 5001; } }), /Its trace, 5,001 spans[^]*of 5,001 spans\./, "a trace of which only a part is listed");
expect(await text("request", { span: ({ span, trace }) => { for (const s of [span, ...trace]) s.start = String(BigInt(s.start) + DAY_NS); } }), /, in 24 h/, "a clock that is ahead");
const HOUR_NS = DAY_NS / 24n;
const shifted = (by, kind = "server") => ({ trace }) => {
  const called = trace.find((s) => trace.some((other) => other.span_id === s.parent_id));
  for (const s of trace) if (s === called || s.parent_id === called.span_id) Object.assign(s, { service: "other", kind, start: String(BigInt(s.start) + by) });
};
expect(await text("request", {}), /^(?![^]*clock about)/, "clocks that agree");
expect(await text("request", { span: shifted(HOUR_NS) }), /0 to [\d.]+ m?s;[^]*clock about 1 h ahead/, "a service whose clock is ahead");
expect(await text("request", { span: shifted(-HOUR_NS) }), /0 to [\d.]+ m?s;[^]*clock about 1 h behind[^]*clocks of services differ/, "a service whose clock is behind");
expect(await text("request", { span: shifted(HOUR_NS, "consumer") }), /0 to 1 h;(?![^]*clock about)/, "a message that was queued for an hour");

// ---- parameters ----

list.set("evil", list.get("request") + "&view=evil&color=evil");
expect(await text("evil", {}), /^(?![^]*Not found)[^]*Export/, "an unknown view is the first one");

// ---- operations ----

const many = ({ operations }) => { operations.length = 0; for (let i = 0; i < 1000; i++) operations.push({ service: "s", operation: `o${i}`, versions: [], costs: {}, cost_per_span: {} }); };
expect(await text("requests", { operations: many }), /“vs\. usual” is known of the 1,000 costliest operations/, "an operation that is rare");

expect(await text("request", { span: ({ span }) => { span.duration_ns = 0; } }), /It took 0[^]*more than its duration/, "a span that took no time");

// ---- chance ----

expect(await text("compare", {}), /this may be chance/, "the difference of few samples may be chance");
expect(await text("compare", { diff: (a) => { a.nodes.forEach((n) => { for (const i of [3, 4, 5, 6]) n[i] *= i < 5 ? 3000 : 1000; }); a.total_a *= 3000; a.total_b *= 1000; a.nodes.push([0, 0, 0, 1, 1, 1, 1]); } }),
  /^(?![^]*chance)[^]*grew most/, "that of many is not");

await browser.close();
finish();
