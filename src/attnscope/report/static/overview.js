// What was asked, what was found, and every number behind it.

import { drawing } from "./bytes.js";
import { el, labelled, option, term, withTerms } from "./dom.js";
import { number, plural, short, word } from "./text.js";
import { sortable } from "./table.js";

const MOST_SENTENCE = 240;
const VERDICTS = { holds: "✓ holds", fails: "✗ fails", undecided: "? undecided" };
const MEANINGS = {
  holds: "The measured numbers support the claim, by a rule that was fixed before any run.",
  fails: "The measured numbers speak against the claim, by a rule that was fixed before any run.",
  undecided: "The measured numbers do not decide, or no full-size run was made.",
};

export function overview(data) {
  const measured = data.claims.filter((claim) => claim.measured);
  const known = Object.keys(data.papers);
  const place = (paper) => (known.includes(paper) ? known.indexOf(paper) : known.length);
  const papers = [...new Set(data.runs.map((run) => run.recipe.split("/")[0]))].sort((a, b) => place(a) - place(b));
  return el(
    "div",
    {},
    about(data),
    summary(data, measured),
    notices(data.notices),
    filters(data, papers),
    papers.map((paper) => paperSection(data, paper)),
    withoutRun(data),
  );
}

// The user's corpora come first: a block for each, with what every recipe says about it.
function about(data) {
  const names = [...new Set(data.about.map((each) => each.dataset))];
  return names.map((name) =>
    el(
      "section",
      { className: "about" },
      el("h2", {}, "About ", word(name, 60)),
      data.about.filter((each) => each.dataset === name).map((each) => aboutBlock(data, each)),
    ),
  );
}

function aboutBlock(data, each) {
  const run = data.runs.find((one) => one.key === each.run);
  const same = data.about.filter((one) => one.recipe === each.recipe && one.dataset === each.dataset).length > 1;
  const settings = run.scale === "full" ? "at the default settings" : run.changed.length ? `with ${run.changed.join(" ")}` : run.scale;
  return el(
    "div",
    {},
    each.warnings.map((text) => el("p", { className: "warning" }, el("b", {}, "Warning: "), text)),
    el("p", {}, each.found.map((text) => [marked(text), " "])),
    el("p", { className: "meaning" }, each.means.map((text) => [marked(text), " "])),
    each.next.length ? el("p", { className: "faint" }, "Next: ", each.next.map((text) => [marked(text), " "])) : null,
    el("p", { className: "faint" }, el("a", { href: `#${anchor(each.recipe)}` }, word(each.recipe)), same ? ` (${short(each.label, 60)})` : "", " ", short(settings, 200), run.scale === "quick" ? ", a quick run" : "", "."),
  );
}

// Commands stand between backquotes; a number stays with its percent sign.
function marked(text) {
  return text.replaceAll(" %", "\u00a0%").split("`").map((part, index) => (index % 2 ? el("code", {}, part) : part));
}

function summary(data, measured) {
  const recipes = new Set(data.runs.map((run) => run.recipe)).size;
  const units = data.scenes.flatMap((scene) => scene.units);
  const running = units.filter((unit) => unit.running).length;
  const stopped = units.filter((unit) => unit.stopped).length;
  const own = data.runs.length > 0 && data.runs.every((run) => run.own);
  return el(
    "div",
    { className: "lead" },
    el(
      "p",
      {},
      `${plural(data.runs.length, "run")} of ${plural(recipes, "recipe")}`,
      // Claims are about the papers' corpora.
      own ? "" : verdicts(measured),
      running ? `. ${plural(running, "unit")} of those shown ${running === 1 ? "is" : "are"} still training` : "",
      stopped ? `. ${plural(stopped, "unit")} of those shown stopped before the end; the same command resumes ${stopped === 1 ? "it" : "them"}` : "",
      ".",
    ),
    data.fidelity ? el("p", {}, data.fidelity) : null,
    el("p", { className: "faint" }, "From ", data.folders.map((folder, index) => [index ? ", " : "", el("code", {}, word(folder, 80))]), "."),
  );
}

function verdicts(measured) {
  const count = (verdict) => measured.filter((claim) => claim.verdict === verdict).length;
  const quick = measured.filter((claim) => claim.quick).length;
  return [
    `, on which ${plural(measured.length, "claim")} of the papers ${measured.length === 1 ? "is" : "are"} measured: `,
    ["holds", "fails", "undecided"].map((verdict, index) => [index ? ", " : "", chip(verdict, `${number(count(verdict))} ${verdict === "undecided" ? verdict : verdict.replace(/s$/, "")}`)]),
    quick ? ` (${number(quick)} from quick runs, which never decide)` : "",
  ];
}

function notices(list) {
  if (!list.length) return null;
  return el(
    "details",
    { className: "notice", open: list.length < 4 },
    el("summary", {}, plural(list.length, "notice")),
    el("ul", {}, list.map((notice) => el("li", {}, word(notice, 400)))),
  );
}

function chip(verdict, label) {
  return el("span", { className: `chip ${verdict}`, tabIndex: 0, "data-meaning": MEANINGS[verdict] }, label);
}

function paperSection(data, paper) {
  const runs = data.runs.filter((run) => run.recipe.split("/")[0] === paper);
  const recipes = [...new Set(runs.map((run) => run.recipe))];
  return el(
    "section",
    { className: "paper" },
    el("h2", {}, word(data.papers[paper] ?? paper, 200)),
    contents(data, recipes),
    recipes.map((recipe) => recipeSection(data, recipe, runs.filter((run) => run.recipe === recipe))),
  );
}

// Recipes can be searched, and chosen by paper, recipe, corpus and verdict.
function filters(data, papers) {
  const recipes = [...new Set(data.runs.map((run) => run.recipe))];
  const corpora = [...new Set(data.runs.flatMap(corporaOf))].sort();
  if (recipes.length < 2 && corpora.length < 2) return null;
  const search = el("input", { type: "search", id: "find", placeholder: "a word, a claim, a measurement", oninput: () => apply() });
  const choice = (id, values) => el("select", { id, onchange: () => apply() }, option("", "all"), values.map((value) => option(value, short(value, 60))));
  const paper = choice("of-paper", papers);
  const recipe = choice("of-recipe", recipes);
  const corpus = choice("of-corpus", corpora);
  const verdict = choice("of-verdict", ["holds", "fails", "undecided"]);
  const found = el("p", { className: "faint", role: "status" });
  const apply = () => {
    const wanted = search.value.trim().toLowerCase();
    const root = found.closest("main") ?? document;
    const articles = [...root.querySelectorAll("article.recipe")];
    for (const article of articles) {
      const { about } = article;
      const fits = (!paper.value || about.paper === paper.value) && (!recipe.value || about.recipe === recipe.value) && (!corpus.value || about.corpora.includes(corpus.value)) && (!verdict.value || about.verdicts.includes(verdict.value));
      article.hidden = !(fits && (!wanted || about.text.includes(wanted) || article.textContent.toLowerCase().includes(wanted)));
    }
    for (const section of root.querySelectorAll("section.paper")) section.hidden = [...section.querySelectorAll("article.recipe")].every((article) => article.hidden);
    for (const link of root.querySelectorAll(".contents a")) link.parentElement.hidden = document.getElementById(link.hash.slice(1))?.hidden ?? false;
    const shown = articles.filter((article) => !article.hidden).length;
    found.textContent = shown === articles.length ? "" : `${shown} of ${plural(articles.length, "recipe")} shown.`;
  };
  return el("div", { className: "filters" }, el("div", { className: "controls" }, labelled("search", search), labelled("paper", paper), labelled("recipe", recipe), labelled("corpus", corpus), labelled("verdict", verdict)), found);
}

function corporaOf(run) {
  return [...new Set(run.rows.map((row) => row[1]))];
}

function contents(data, recipes) {
  return el(
    "ul",
    { className: "contents" },
    recipes.map((recipe) => {
      const own = data.runs.every((run) => run.recipe !== recipe || run.own);
      const claims = own ? [] : data.claims.filter((claim) => claim.measured && claim.recipes.includes(recipe));
      return el("li", {}, el("a", { href: `#${anchor(recipe)}` }, word(recipe)), " ", claims.map((claim) => dot(claim)));
    }),
  );
}

function dot(claim) {
  const verdict = claim.quick ?? claim.verdict;
  return el("span", { className: `dot ${verdict}${claim.quick ? " quick" : ""}`, tabIndex: 0, "data-meaning": `${claim.id}: ${claim.quick ? "a quick run would say " : ""}${verdict}. ${claim.statement}.` });
}

function anchor(recipe) {
  return `recipe-${recipe.replace(/[^\w-]/g, "-")}`;
}

function recipeSection(data, recipe, runs) {
  const claims = data.claims.filter((claim) => claim.measured && claim.recipes.includes(recipe));
  const title = runs[0].title;
  const article = el(
    "article",
    { className: "recipe", id: anchor(recipe) },
    el("h3", {}, word(recipe), runs.every((run) => run.scale === "quick") ? el("span", { className: "chip quick", tabIndex: 0, "data-meaning": "A smaller problem on the same code path; its verdicts never count." }, "quick run") : null),
    title ? el("p", { className: "asked" }, title[0].toUpperCase() + title.slice(1), ".") : null,
    pooled(runs),
    claimBlocks(data, claims, runs),
    figures(runs),
    runs.length > 1 ? sideBySide(data, recipe, runs) : null,
    runs.map((run) => runDetails(data, run, runs.length === 1)),
  );
  // Tables are made when they are opened: names of measurements are searched here.
  const names = runs.flatMap((run) => run.rows.map((row) => row[0]));
  const labels = [...new Set(names)].map((name) => `${name} ${(data.symbols[recipe]?.[name] ?? []).join(" ")}`);
  article.about = {
    paper: recipe.split("/")[0],
    recipe,
    corpora: runs.flatMap(corporaOf),
    verdicts: claims.map((claim) => claim.quick ?? claim.verdict),
    text: labels.join(" ").toLowerCase(),
  };
  return article;
}

// Claims are about the papers' corpora: runs on the user's own alone do not decide them.
function claimBlocks(data, claims, runs) {
  const blocks = claims.map((claim) => claimBlock(claim, data.glossary[claim.paper] ?? {}));
  if (!blocks.length || !runs.every((run) => run.own)) return blocks;
  return el("details", { className: "run" }, el("summary", {}, `What the paper claims: ${plural(blocks.length, "claim")} about its own corpora`), blocks);
}

// The same run from several folders, or with several settings: one verdict for all of them.
function pooled(runs) {
  const parts = runs.map((run) => run.part);
  const several = new Set(parts).size < parts.length || runs.some((run) => run.changed.length);
  if (runs.length < 2 || !several) return null;
  return el("p", { className: "faint" }, "Of runs with several settings those at the defaults decide, or else those with the fewest changes; where two have measured the same, the one over more seeds counts, else the later folder's.");
}

// A claim in two readings: the first gives the verdict, the second is shown with its own.
function readings([words, rule]) {
  const found = [rule.evidence, rule.note].filter(Boolean).join(". ");
  return [
    [`(a) The paper's words, ${words.verdict}`, `${words.says} (${words.fixed})`],
    [`(b) The stricter rule, ${rule.verdict}`, `${rule.says} (${rule.fixed}). ${found}`],
  ];
}

function claimBlock(claim, glossary) {
  const verdict = claim.quick ?? claim.verdict;
  const more = [
    ...(claim.readings.length ? readings(claim.readings) : [["Decided by", claim.decided]]),
    ["Printed in the paper", claim.published.join("; ")],
    ["Deviation", claim.deviation],
    ["Note", claim.note],
  ].filter(([, text]) => text);
  return el(
    "div",
    { className: `claim ${verdict}` },
    el(
      "p",
      {},
      chip(verdict, claim.quick ? `quick, would say: ${VERDICTS[verdict]}` : VERDICTS[verdict]),
      " ",
      el("strong", {}, claim.id),
      " ",
      withTerms(claim.statement, glossary),
      ` (${claim.where}).`,
    ),
    evidence(claim.evidence),
    more.length ? el("details", {}, el("summary", {}, "How it was decided"), el("dl", {}, more.map(([name, text]) => [el("dt", {}, name), el("dd", {}, word(text, 2000))]))) : null,
  );
}

// A sentence where it is short, a line for each thing that was looked at where it is not.
function evidence(pairs) {
  if (!pairs.length) return null;
  const heading = term("Evidence", "The numbers that the verdict rests on; \"0.4 (0.3 to 0.5)\" is a value and the two ends of its 95 % interval.");
  const size = pairs.reduce((sum, [name, told]) => sum + name.length + told.length, 0);
  if (size <= MOST_SENTENCE) return el("p", { className: "evidence" }, heading, ": ", pairs.map(([name, told], index) => [index ? "; " : "", word(name, 200), ": ", word(told, 400)]), ".");
  return el("div", { className: "evidence" }, heading, ":", el("ul", {}, pairs.map(([name, told]) => el("li", {}, el("b", {}, word(name, 200)), ` ${short(told, 1200)}`))));
}

function figures(runs) {
  const several = runs.length > 1;
  const all = runs.flatMap((run) => run.figures.map((figure) => figureBlock(run, figure, several)));
  return all.length ? el("div", { className: `figures ${all.length > 1 ? "many" : ""}` }, all) : null;
}

function figureBlock(run, figure, several) {
  const name = several ? `${figure.name} (${run.part || run.workspace})` : figure.name;
  // An empty drawing keeps the room, so that nothing moves when the figure comes.
  const [width, height] = figure.size.map(Number);
  const empty = `data:image/svg+xml,${encodeURIComponent(`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"/>`)}`;
  const image = el("img", { alt: `Figure ${name} of ${run.place}`, src: empty });
  const link = el("a", { download: `${figure.name}.svg`, className: "quiet" }, "SVG");
  const enlarge = el("button", { type: "button", className: "quiet", ariaPressed: "false", onclick: () => {
    const large = block.classList.toggle("large");
    enlarge.ariaPressed = String(large);
  } }, "Enlarge");
  const block = el("figure", {}, image, el("figcaption", {}, word(name, 80), " ", link, " ", enlarge));
  block.load = async () => {
    if (link.href) return;
    link.href = image.src = await drawing(figure.svg);
  };
  return block;
}

// Figures are unpacked after the text is there, those in sight first.
export function loadFigures(root) {
  const blocks = [...root.querySelectorAll("figure")].filter((figure) => figure.load);
  const watcher = new IntersectionObserver((seen) => seen.forEach((entry) => entry.isIntersecting && entry.target.load()), { rootMargin: "600px" });
  blocks.forEach((figure) => watcher.observe(figure));
  loadRest(blocks);
}

// The others follow when nothing else is to be done: printing does not wait for what is unpacked
// then.
async function loadRest(blocks) {
  const idle = window.requestIdleCallback ?? ((call) => setTimeout(call, 50));
  for (const figure of blocks) {
    await new Promise((done) => idle(done));
    await figure.load();
  }
}

// What all rows that a recipe puts first share is not repeated in each.
function shortAxes(text, hidden) {
  return text.split(", ").filter((part) => !hidden.includes(part)).join(", ");
}

function columnsOf(data, recipe, hidden = []) {
  const [NAME, SET, AXES, VALUE, LOW, HIGH, PAPER, N, SEEDS, BESIDE] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
  const of = (row) => [shortAxes(row[AXES], hidden), row[BESIDE]].filter(Boolean).join(", ");
  const plain = (label, index, meaning) => ({ label, meaning, numeric: true, value: (row) => row[index], cell: (row) => number(row[index]) });
  return [
    { label: "measured", value: (row) => row[NAME], cell: (row) => symbol(data, recipe, row[NAME]) },
    { label: "data set", value: (row) => row[SET], cell: (row) => word(row[SET]) },
    { label: "of", value: of, cell: (row) => word(of(row), 90) },
    plain("value", VALUE),
    { label: "95 % interval", numeric: true, meaning: "Where the value would lie in 95 of 100 repetitions with other examples or seeds.", value: (row) => (row[LOW] === null ? "" : `${row[LOW]} … ${row[HIGH]}`), cell: (row) => (row[LOW] === null ? "" : `${number(row[LOW])} … ${number(row[HIGH])}`) },
    { label: "paper", numeric: true, meaning: "What the paper prints.", value: (row) => row[PAPER], cell: (row) => (row[PAPER] === null ? "" : number(row[PAPER])) },
    plain("n", N, "How many examples, words or seeds the value rests on."),
    { ...plain("seeds", SEEDS, "How many random seeds went into it."), cell: (row) => (row[SEEDS] ? number(row[SEEDS]) : "") },
  ];
}

function symbol(data, recipe, name) {
  const [label, meaning] = data.symbols[recipe]?.[name] ?? [name, ""];
  return meaning ? term(word(label, 90), meaning) : word(label, 90);
}

function runDetails(data, run, only) {
  const name = run.part || run.workspace;
  const first = run.rows.slice(0, run.headline);
  const rest = run.rows.length > first.length;
  return el(
    "details",
    { className: "run", open: only && first.length > 0 && first.length < 60 },
    el("summary", {}, only ? "Measurements and settings" : ["Measurements and settings: ", word(name, 60)]),
    first.length ? sortable(columnsOf(data, run.recipe, run.hidden), first, { caption: `Main measurements of ${run.place}`, file: `${name || "run"}.csv` }) : null,
    rest ? lazily("All measurements", () => sortable(columnsOf(data, run.recipe), run.rows, { caption: `All ${run.rows.length} measurements of ${run.place}`, file: `${name || "run"}-all.csv` })) : null,
    el("p", {}, el("code", { className: "command" }, word(run.command, 400)), ` took ${number(run.seconds)} s on ${run.device === "cuda" ? "a GPU" : "CPU"}${run.units ? `, ${plural(run.units, "unit")}` : ""}.`),
    el("details", {}, el("summary", {}, "Configuration"), pairs(run.config)),
    el("details", {}, el("summary", {}, "Environment"), pairs(run.environment)),
  );
}

// A table of thousands of rows is made when it is asked for.
function lazily(label, make) {
  const block = el("details", { ontoggle: () => block.open && block.children.length === 1 && block.append(make()) }, el("summary", {}, label));
  return block;
}

function pairs(list) {
  return el("dl", { className: "pairs" }, list.map(([key, value]) => [el("dt", {}, word(key, 60)), el("dd", {}, word(value, 400))]));
}

// The same measurement of several runs in one line: corpora of a table, or variants of a recipe.
function sideBySide(data, recipe, runs) {
  const names = runs.map((run) => run.part || run.workspace);
  const labels = names.map((name, index) => (names.indexOf(name) === index && names.lastIndexOf(name) === index ? name : `${name} (${runs[index].workspace})`));
  const lines = new Map();
  runs.forEach((run, index) => {
    for (const row of run.rows.slice(0, run.headline)) {
      const key = `${row[0]}\u0000${row[2]}`;
      if (!lines.has(key)) lines.set(key, { name: row[0], axes: shortAxes(row[2], run.hidden), cells: runs.map(() => null) });
      lines.get(key).cells[index] ??= row;
    }
  });
  const rows = [...lines.values()].filter((line) => line.cells.filter(Boolean).length > 1);
  if (!rows.length) return null;
  const columns = [
    { label: "measured", value: (line) => line.name, cell: (line) => symbol(data, recipe, line.name) },
    { label: "of", value: (line) => line.axes, cell: (line) => word(line.axes, 50) },
    ...labels.map((label, index) => ({
      label,
      numeric: true,
      value: (line) => line.cells[index]?.[3] ?? null,
      cell: (line) => sideCell(line.cells[index]),
    })),
  ];
  return el("details", { className: "run", open: true }, el("summary", {}, "Side by side"), sortable(columns, rows, { caption: `${recipe}: ${plural(runs.length, "run")} side by side; the paper's figure in grey`, file: `${anchor(recipe)}.csv` }));
}

function sideCell(row) {
  if (!row) return "";
  const interval = row[4] === null ? null : `${number(row[4])} … ${number(row[5])}`;
  return el("span", interval ? { title: `95 % interval ${interval}` } : {}, number(row[3]), row[6] === null ? null : el("span", { className: "faint" }, ` ${number(row[6])}`));
}

function withoutRun(data) {
  const without = data.claims.filter((claim) => !claim.measured);
  if (!without.length) return null;
  return el("details", { className: "run" }, el("summary", {}, `${plural(without.length, "claim")} without a run here`), el("ul", {}, without.map((claim) => el("li", {}, el("strong", {}, claim.id), ` ${claim.statement}. `, el("code", {}, claim.recipes.map((recipe) => `attnscope run ${recipe}`).join("; "))))));
}
