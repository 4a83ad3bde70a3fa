// As a person would: find the slowest request, see where its time goes, what is different from the
// normal ones, which function it is, download the pprof and open it with Go's tool.

import { execFileSync } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { launch, open, visit, settled, json, base, check, finish, folder } from "./browser.mjs";

const out = folder(`${process.env.OUT}/downloads`);
for (const file of readdirSync(out)) rmSync(`${out}/${file}`);

const browser = await launch();
const page = await open(browser);
const text = (selector) => page.$eval(selector, (e) => e.textContent.trim());
const click = async (selector, words) => {
  const found = await page.evaluateHandle((s, w) => [...document.querySelectorAll(s)].find((e) => e.textContent.trim() === w && e.offsetParent), selector, words);
  check(Boolean(found.asElement()), `there is "${words}"`);
  await found.asElement().click();
  await settled(page);
};

// ---- the slowest request ----

const slowest = (await json("api/spans?entry=true&sort=duration&limit=1")).spans[0];
await visit(page, "");
check(await text(".list-rows .list-row a") === slowest.operation, `the first row is the slowest request: ${slowest.operation}, ${slowest.duration_ns / 1e6} ms`);

// With the calls and steps inside of requests, by keyboard; the address says so.
const all = await json("api/spans?sort=duration&limit=1");
const toggle = await page.evaluateHandle(() => [...document.querySelectorAll(".toolbar button")].find((b) => b.textContent === "All spans"));
await toggle.focus();
await page.keyboard.press("Space");
await page.waitForFunction((total) => document.querySelector('.toolbar [role="status"]').textContent.startsWith(`${total} spans`), {}, all.total);
check(/spans=all/.test(page.url()) && (await text(".list-rows .list-row a")) === all.spans[0].operation, `"All spans" lists ${all.total}, the first is ${all.spans[0].operation}`);
check(await toggle.evaluate((b) => b.ariaPressed) === "true", "a screen reader hears that it is pressed");
await visit(page, page.url().slice(base.length));
check((await text(".list-rows .list-row a")) === all.spans[0].operation, "the address lists them again");
await visit(page, "");

// The slowest one that samples name, so that there is something to see.
const withSamples = (await json("api/spans?entry=true&sort=duration&limit=1000")).spans.find((s) => s.samples > 0);
await page.focus(".list");
for (let i = 0; i < 1000; i++) {
  await page.keyboard.press("ArrowDown");
  const href = await page.$eval('.list-row[aria-selected="true"] a', (a) => a.getAttribute("href"));
  if (href.includes(withSamples.span_id)) break;
}
await page.keyboard.press("Enter");
await settled(page);
check((await text("h1")) === withSamples.operation, `Enter opens ${withSamples.operation}`);
check(/It took/.test(await text("main .lead")), `a sentence says: ${await text("main .lead")}`);

// ---- its flame graph ----

await page.waitForSelector(".flame");
const graph = await json(`api/flamegraph?trace=${withSamples.trace_id}&span=${withSamples.span_id}`);
check(graph.nodes.length > 1, `its flame graph has ${graph.nodes.length} functions, ${graph.total} ${graph.unit}`);
await page.focus(".flame");
const up = "ArrowUp";
await page.keyboard.press(up);
await page.keyboard.press(up);
const selected = await text(".detail strong");
check(graph.names.includes(selected) || selected.length > 0, `arrow keys select a function: ${selected}`);
await page.keyboard.press("Enter");
check(/z=[0-9a-f]+/.test(page.url()), "Enter zooms, and the address says so");
const zoomed = page.url();
await visit(page, zoomed.slice(base.length));
await page.waitForFunction((name) => document.querySelector(".detail strong")?.textContent === name, {}, selected);
check(true, "the address opens the same function again");
await page.focus(".flame");
await page.keyboard.press("0");

// ---- what is different ----

await click("a.button", "Compare with the normal ones");
await click(".toolbar button", "What grew and shrank");
const difference = await text(".functions .list-rows .list-row .mono").catch(() => "");
const parameters = new URLSearchParams(page.url().split("?")[1]);
parameters.delete("view");
check(parseFloat(parameters.get("b.max_duration")) * 1e6 < withSamples.duration_ns, `the normal ones take up to ${parameters.get("b.max_duration")}, the request is not among them`);
const diff = await json(`api/diff?${parameters}`);
const perRequest = diff.spans_a > 0 && diff.spans_b > 0;
const [wa, wb] = perRequest ? [1 / diff.spans_a, 1 / diff.spans_b] : [1 / diff.total_a, 1 / diff.total_b];
const change = new Map();
for (const [, name, file, selfA, , selfB] of diff.nodes) change.set(`${name} ${file}`, (change.get(`${name} ${file}`) || 0) + selfA * wa - selfB * wb);
const largest = Math.max(...[...change.values()].map(Math.abs));
const names = [...change].filter(([, d]) => Math.abs(d) > largest * 0.999).map(([key]) => diff.names[+key.split(" ")[0]]);
check(names.includes(difference), `the function that differs most: ${difference} (${names})`);
check(await page.$$eval(".lead", (all) => all.some((e) => /grew most|shrank most/.test(e.textContent))), `a sentence says: ${(await page.$$eval(".lead", (all) => all.map((e) => e.textContent)))[0]}`);

// ---- the pprof ----

await page.goBack();
await settled(page);
await page.waitForSelector(".menu");
const session = await page.createCDPSession();
await session.send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: out });
await page.click(".menu summary");
await click(".menu-items button", "pprof");
let file;
for (let i = 0; i < 100 && !file; i++) {
  await new Promise((r) => setTimeout(r, 100));
  file = readdirSync(out).find((f) => f.endsWith(".pb.gz"));
}
check(Boolean(file), `downloaded ${file}`);
if (file) {
  try {
    const top = execFileSync("go", ["tool", "pprof", "-top", "-nodecount=10", `${out}/${file}`], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
    console.log(top.split("\n").slice(0, 12).map((l) => `     ${l}`).join("\n"));
    check(/flat%/.test(top), "go tool pprof opens it");
  } catch (error) {
    check(false, `go tool pprof: ${error.stderr || error.message}`);
  }
}

// ---- an operation over time ----

await click(".crumbs a", `${withSamples.service} ${withSamples.operation}`);
await page.waitForSelector(".heat");
await page.focus(".heat");
const cells = await json(`api/histogram?${new URLSearchParams({ service: withSamples.service, operation: withSamples.operation, kind: withSamples.kind })}`);
for (let i = 0; i < 60 && !/bucket=/.test(page.url()); i++) { // upwards until a cell has requests
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Enter");
}
await settled(page);
const bucket = +new URLSearchParams(page.url().split("?")[1]).get("bucket");
check(cells.counts[bucket] > 0, `a cell of the heat map: bucket ${bucket}, ${cells.counts[bucket]} requests; its graph: ${await page.$$eval(".flame, .message", (all) => all[0]?.className)}`);
await page.focus(".heat");
await page.keyboard.press("Escape");
check(!/bucket=/.test(page.url()), "Escape goes back to all of it");
await click("a.button", "Slow against normal");
const sides = await page.$$eval(".side summary", (all) => all.map((e) => e.textContent));
check(sides.length === 2 && Boolean(await page.$(".flame, .message")), `slow against normal: ${sides.join(" | ")}: ${(await page.$eval("main .lead, main .message", (e) => e.textContent)).slice(0, 200)}`);

// ---- keys, theme, headers ----

await visit(page, "#/requests");
await page.keyboard.press("?");
check(await page.$eval("dialog", (d) => d.open), "? opens the help");
await page.keyboard.press("Escape");
await page.keyboard.press("/");
check(await page.evaluate(() => document.activeElement.matches("select, input")), "/ goes to the filters");
await page.evaluate(() => document.activeElement.blur());
await page.keyboard.press("g");
await page.keyboard.press("o");
await settled(page);
check(/#\/operations/.test(page.url()), "g o opens the operations");

const response = await fetch(base);
const policy = response.headers.get("content-security-policy") || "";
check(policy.includes("default-src 'none'") && !policy.includes("unsafe"), `Content-Security-Policy: ${policy}`);
check(response.headers.get("x-content-type-options") === "nosniff", "X-Content-Type-Options: nosniff");
check(page.problems.length === 0, `no error, no violation of the policy, no request elsewhere ${page.problems.join("; ")}`);
await browser.close();
finish();
