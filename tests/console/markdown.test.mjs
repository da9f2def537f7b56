// The page's Markdown: what is read, what becomes of it, and that no text hangs it.
//
//   node --test tests/console/markdown.test.mjs      needs npm install in clients/console
//   OUTRIGGER_FUZZ_SECONDS=600 …                      for how long random texts are tried
import assert from "node:assert/strict";
import test from "node:test";
import { Worker } from "node:worker_threads";

import { Growing, MOST_NESTING, parse } from "../../clients/console/src/markdown/parse.js";
import { element } from "../../clients/console/src/markdown/view.js";

/** An element as a text that can be compared. */
const drawn = (it) => {
  if (it === null || it === undefined || typeof it === "boolean") return "";
  if (Array.isArray(it)) return it.map(drawn).join("");
  if (typeof it !== "object") return String(it);
  if (typeof it.type === "function") return `{${it.type.name} ${JSON.stringify(it.props)}}`;
  const { children, ...props } = it.props;
  const attributes = Object.entries(props).flatMap(([name, value]) => (value === undefined || ["target", "rel", "tabindex"].includes(name) ? [] : ` ${name}=${JSON.stringify(value)}`)).join("");
  return `<${it.type}${attributes}>${drawn(children)}</${it.type}>`;
};
const shown = (text) => parse(text).map((node) => drawn(element(node))).join("");

const SAMPLE = [
  "# Title", "", "A *few* **words** with `code`, ~~struck~~ and [a link](https://example.org/a_b).", "soft break", "",
  "- one", "- two", "  - below", "- [x] done", "", "1. first", "2. second", "", "> quoted", "> more", "",
  "| a | b |", "|---|:-:|", "| 1 | `xy` |", "", "```js", "const a = 1;", "", "// ~~~ no end", "```", "after", "", "text", "```x``` and more", "", "---", "",
  "**not closed and https://example.org/x.", "", "~~~", "open to the end",
].join("\n");

test("a text that streams in piece by piece is what it is in one", () => {
  for (const step of [1, 3, 7]) {
    const growing = new Growing();
    let nodes = [];
      for (let end = step; end < SAMPLE.length + step; end += step) nodes = growing.update(SAMPLE.slice(0, end), false, 0);
    const pieces = nodes.map((node) => drawn(element(node))).join("").replace('"isOpen":true', '"isOpen":false');
    assert.equal(pieces, shown(SAMPLE), `in pieces of ${step}`);
    assert.ok(growing.finished.length > 10, "what is finished is not parsed again");
  }
});

test("Markdown becomes the elements it stands for", () => {
  const cases = [
    ["# Title", "<h2>Title</h2>"],
    ["**b** | ~~x~~ `c`", "<p><strong>b</strong> | <s>x</s> <code>c</code></p>"],
    ["- [x] done\n- open\n  - below", '<ul><li class="task"><input type="checkbox" disabled=true checked=true aria-label="done"></input>done</li><li>open<ul><li>below</li></ul></li></ul>'],
    ["3. third", '<ol start=3><li>third</li></ol>'],
    ["|a|b|c|\n|:-|:-:|-:|\n|1|2|3|", '<div class="table"><table><thead><tr><th scope="col" class="left">a</th><th scope="col" class="center">b</th><th scope="col" class="right">c</th></tr></thead><tbody><tr><td class="left">1</td><td class="center">2</td><td class="right">3</td></tr></tbody></table></div>'],
    ["a[^n]\n\n[^n]: note", '<p>a<sup class="footnote">[1]</sup></p><section class="footnotes" aria-label="Footnotes"><div><sup class="footnote">[1]</sup><p>note</p></div></section>'],
    ["\\(a_1 + b_1\\) and \\[x^2\\] and $$y*z*$$", '<p><span class="math">\\(a_1 + b_1\\)</span> and <span class="math">\\[x^2\\]</span> and <span class="math">$$y*z*$$</span></p>'],
    ["costs $5 and *now* $6 \\(", "<p>costs $5 and <em>now</em> $6 (</p>"],
    ["<b onclick=x>bold</b> <!-- -->", "<p><b onclick=x>bold</b> <!-- --></p>"],
    ["<script>x</script>\n\ny", "<p><script>x</script></p><p>y</p>"],
    ["see https://example.org/x. And main.rs", '<p>see <a href="https://example.org/x">https://example.org/x</a>. And main.rs</p>'],
    ["![pic](https://example.org/p.png)", '<p><a href="https://example.org/p.png">pic</a></p>'],
    ["[a](./b.md) [x](javascript:alert) [d](data:text/html,x)", '<p><span class="nolink" title="./b.md">a</span> [x](javascript:alert) [d](data:text/html,x)</p>'],
    ["```rust title\nfn a() {}\n```", '{Code {"text":"fn a() {}","language":"rust","isOpen":false}}'],
    ["    indented", '{Code {"text":"indented","language":"","isOpen":false}}'],
  ];
  for (const [text, expected] of cases) assert.equal(shown(text), expected, text);
});

test("what hung or overflowed the page is drawn, and all of it is there", () => {
  // Each of the first two was an endless loop.
  for (const text of ["```a`b", "~~~ x ` y\na`b", "```\n``` a`b\n~~~x`", "- ```a`b", "x\n```a`b\ny"]) assert.ok(shown(text).includes("a`b"), text);
  for (const [many, word] of [[">", "deep"], ["> ", "deep"], ["- ", "deep"], ["> - ", "deep"], ["1. ", "deep"]]) {
    const text = many.repeat(5_000) + word;
    assert.ok(shown(text).includes(word), many);
    assert.equal(parse(text)[0].type, "plain");
  }
  // What is opened again and again is looked for once.
  for (const text of ["\\(".repeat(40_000), "\\[a".repeat(30_000), "$$".repeat(40_001)]) assert.ok(parse(text).length === 1);
  for (const text of ["*a **b ".repeat(2_000), "[".repeat(5_000), "![".repeat(5_000), "`".repeat(5_000), "*".repeat(5_000), `${"*a **b ".repeat(1_000)}${"c** d* ".repeat(1_000)}end`]) assert.ok(depth(parse(text)) <= 2 * MOST_NESTING + 4);
});

const depth = (nodes) => 1 + Math.max(0, ...nodes.map((it) => (it.children.length ? depth(it.children) : 0)));

test("a long answer is not parsed again and again", () => {
  const growing = new Growing();
  let text = "";
  for (let piece = 0; piece < 200; piece++) {
    text += "All work and no play makes one long line. ".repeat(20);
    growing.update(text, false, 0);
    assert.ok(text.length - growing.at <= 32_000, "the part that is parsed again is bounded");
  }
  const code = new Growing();
  code.update(`\`\`\`js\n${"let a;\n".repeat(20_000)}`, false, 0);
  assert.equal(code.last[0].type, "open_fence", "code without an end needs no parser");
});

/** Runs of one mark, or two, in which nothing ends. */
const RUNS = [
  ..."`~*_[]()>#-+|$\\<&", ..."`~".split("").flatMap((it) => [`${it} `, `${it}\n`, `${it}x`]), "`~", "~`", "`)", "~*", "*_", "_[", "[*", "[]", "](", "![", "<_", "_<", "|-", "\\(", "\\[", "$\\",
].map((run) => ({ name: JSON.stringify(run), text: run.repeat(200_000 / run.length) }));
for (const mark of "`~") {
  const fence = mark.repeat(3);
  const many = mark.repeat(200_000);
  RUNS.push(
    { name: `a fence ${fence} and a run that does not close it`, text: `${fence}\n${many}x` },
    { name: `a fence ${fence} and what closes it but for its last mark`, text: `${fence}\n${fence}${" ".repeat(200_000)}x` },
    { name: `a long fence of ${mark}`, text: `${many}\n${many.slice(1)}` },
    { name: `a long fence of ${mark} in front of blanks`, text: `   ${many}${" ".repeat(200_000)}x` },
  );
}

test("a long run of marks takes no longer than a text of its length", { timeout: 600_000 }, async (t) => {
  // In a thread of its own, which can be ended in the middle of a loop. What it sends is the text that it begins.
  const worker = new Worker(
    `const { parentPort, workerData } = require("node:worker_threads");
    import(workerData.parser).then(({ Growing }) => {
      for (const { name, text } of workerData.runs) {
        parentPort.postMessage(name + ", whole");
        new Growing().update(text, true);
        parentPort.postMessage(name + ", in pieces");
        const growing = new Growing();
        for (let piece = 1; piece <= 40; piece++) growing.update(text.slice(0, Math.ceil((text.length * piece) / 40)), piece === 40);
      }
      parentPort.postMessage("");
    });`,
    { eval: true, workerData: { parser: new URL("../../clients/console/src/markdown/parse.js", import.meta.url).href, runs: RUNS } },
  );
  let name = "";
  let began = process.cpuUsage();
  let slowest = { name, took: 0 };
  let watch;
  await new Promise((resolve, reject) => {
    worker.on("message", (next) => {
      // Of the processor, not of the clock: the machine may have other things to do.
      const { user, system } = process.cpuUsage(began);
      const took = (user + system) / 1_000;
      clearTimeout(watch);
      if (name && took > slowest.took) slowest = { name, took };
      // A second or two; nine were seen where cores are shared. With quadratic time more than twenty on any.
      if (name && took > 20_000) return reject(new Error(`a run of 200,000 characters takes ${took} ms of processor: ${name}`));
      name = next;
      began = process.cpuUsage();
      if (!name) return resolve();
      watch = setTimeout(() => reject(new Error(`no end after five minutes: ${name}`)), 300_000);
    });
    worker.once("error", reject);
  }).finally(() => {
    clearTimeout(watch);
    return worker.terminate();
  });
  t.diagnostic(`${RUNS.length} texts, the slowest ${Math.round(slowest.took)} ms: ${slowest.name}`);
});

test("random texts neither hang nor break it", { timeout: 3_600_000 }, async (t) => {
  const seconds = Number(process.env.OUTRIGGER_FUZZ_SECONDS ?? 3);
  const seed = Number(process.env.OUTRIGGER_FUZZ_SEED ?? 1);
  const progress = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(new URL("markdown_fuzz.mjs", import.meta.url), { workerData: { seconds, seed, progress } });
  let before = -1;
  // One text that takes this long is a hang: the slowest of them take a few hundredths of a second.
  const watch = setInterval(() => {
    if (progress[0] === before) void worker.terminate();
    before = progress[0];
  }, 30_000);
  const done = await new Promise((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
    worker.once("exit", () => reject(new Error(`the text of OUTRIGGER_FUZZ_SEED=${progress[0]} hangs`)));
  }).finally(() => clearInterval(watch));
  t.diagnostic(`${done.count} texts, the slowest ${Math.round(done.slowest)} ms`);
  assert.ok(done.count > 0);
});
