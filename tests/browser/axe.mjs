// axe-core on every page, light, dark and narrow: no violation.

import { readFileSync } from "node:fs";
import { launch, open, visit, pages, resolve, check, finish } from "./browser.mjs";

const source = readFileSync(resolve("axe-core/axe.min.js"), "utf8");
const browser = await launch();
const page = await open(browser);
for (const [theme, width] of [["light", 1280], ["dark", 1280], ["light", 390]]) {
  await page.setViewport({ width, height: 820 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
  for (const [name, hash] of await pages()) {
    await visit(page, hash);
    await page.evaluate(source);
    const { violations, passes } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
    check(violations.length === 0, `${theme} ${width} ${name}: ${violations.length} violations, ${passes.length} rules passed`);
    for (const v of violations) console.log(`     ${v.id}: ${v.help}\n       ${v.nodes.slice(0, 3).map((n) => `${n.target} ${n.html.slice(0, 160)} ${(n.any[0] || n.all[0] || {}).message || ""}`).join("\n       ")}`);
  }
}
check(page.problems.length === 0, `no error, no violation of the policy, no request elsewhere ${page.problems.slice(0, 5).join("; ")}`);
await browser.close();
finish();
