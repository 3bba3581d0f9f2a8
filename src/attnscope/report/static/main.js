// The page: tabs, theme, and the views, each made when it is first opened.

import { AttentionView } from "./attention.js";
import { AuditView } from "./audit.js";
import { isDark } from "./colour.js";
import { el, explainTerms, hideTip } from "./dom.js";
import { follow } from "./live.js";
import { loadFigures, overview } from "./overview.js";
import { number } from "./text.js";
import { TrajectoriesView } from "./trajectories.js";

const TABS = ["overview", "attention", "trajectories"];
const VIEWS = { attention: AttentionView, trajectories: TrajectoriesView, audit: AuditView };
const views = {};
const source = document.getElementById("data");
let data = withoutPrototypes(JSON.parse(source.textContent));
// Only reports with audits have this view.
if (data.audits.length) TABS.push("audit");
document.getElementById("tab-audit").hidden = !data.audits.length;

// Tables that names of others are looked up in have no entries but their own: a measurement may be
// named "constructor" or "__proto__".
function withoutPrototypes(value) {
  const tables = [value.papers, value.symbols, value.scores, value.colours.named, value.glossary, ...Object.values(value.glossary)];
  tables.forEach((table) => Object.setPrototypeOf(table, null));
  return value;
}

function panel(name) {
  return document.getElementById(name);
}

function open(name, focus = false) {
  hideTip();
  for (const each of TABS) {
    const tab = panel(`tab-${each}`);
    const chosen = each === name;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    panel(each).hidden = !chosen;
    if (chosen && focus) tab.focus();
  }
  if (VIEWS[name] && !views[name]) views[name] = new VIEWS[name](panel(name), data);
  else views[name]?.redraw();
}

function tabs() {
  for (const name of TABS) {
    panel(`tab-${name}`).addEventListener("click", () => {
      open(name);
      // A frame of a notebook has no address of its own.
      if (location.protocol !== "about:") history.replaceState(null, "", `#${name}`);
    });
  }
  document.querySelector("[role=tablist]").addEventListener("keydown", (event) => {
    const now = TABS.findIndex((name) => panel(`tab-${name}`) === document.activeElement);
    const to = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: TABS.length - 1 }[event.key];
    if (to === undefined || now < 0) return;
    event.preventDefault();
    open(TABS[(to + TABS.length) % TABS.length], true);
  });
}

function themeButton() {
  document.getElementById("theme").addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    Object.values(views).forEach((view) => view.redraw());
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => Object.values(views).forEach((view) => view.redraw()));
}

function showOverview() {
  const shown = overview(data);
  panel("overview").replaceChildren(shown);
  loadFigures(shown);
}

function footer() {
  const size = number(Math.round(document.documentElement.textContent.length / 1e4) / 100);
  const opened = el("span", { id: "opened" });
  panel("footer").replaceChildren(`Made by attnscope ${data.attnscope}. `, opened, ` ${size} MB, nothing loaded from elsewhere.`);
  // Two frames later what was drawn is on the screen.
  requestAnimationFrame(() => requestAnimationFrame(() => {
    const seconds = performance.now() / 1000;
    opened.dataset.seconds = String(seconds);
    opened.textContent = `First view after ${number(seconds)} s;`;
  }));
}

// #attention opens a view, #recipe-snell-fig3 the overview at that recipe: both can be linked to. A report of
// audits alone opens with them.
function openAddress() {
  const wanted = location.hash.slice(1);
  if (TABS.includes(wanted)) open(wanted);
  else if (wanted.startsWith("recipe-") && panel(wanted)) {
    open("overview");
    panel(wanted).scrollIntoView({ behavior: "instant" });
  } else if (!wanted && data.audits.length && data.runs.every((run) => run.recipe === "audit")) open("audit");
}

function start() {
  explainTerms();
  tabs();
  themeButton();
  showOverview();
  openAddress();
  addEventListener("hashchange", openAddress);
  footer();
  if ("live" in document.documentElement.dataset) {
    follow((news) => {
      data = withoutPrototypes(news);
      showOverview();
      for (const name of Object.keys(views)) views[name] = views[name].update(data);
    });
  }
}

start();
