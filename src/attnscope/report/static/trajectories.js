// Points in planes: components of states over time, word types by two of their scores.

import { chart, facts, pointSpec } from "./charts.js";
import { el, labelled, option } from "./dom.js";
import { plural, short, word } from "./text.js";

const AT_ONCE = 6;

export class TrajectoriesView {
  constructor(root, data) {
    this.root = root;
    this.views = [];
    this.show(data);
  }

  show(data) {
    this.data = data;
    const places = [...new Set(data.planes.map((plane) => plane.place))];
    if (!places.length) {
      this.root.replaceChildren(el("p", { className: "notice" }, "No run here measured points in a plane: aitken's recipes and sunlu/scores do."));
      return;
    }
    this.select = el("select", { id: "plane-run", onchange: () => this.fill() }, places.map((place) => option(place, short(place, 60))));
    this.kind = el("select", { id: "plane-name", onchange: () => this.draw() });
    this.search = el("input", { id: "search", type: "search", placeholder: "find a word", autocomplete: "off", oninput: () => this.find() });
    this.matches = el("span", { className: "said", role: "status" });
    this.meaning = el("p", { className: "faint" });
    this.grid = el("div", { className: "planes" });
    this.root.replaceChildren(
      el("p", { className: "asked" }, "States of a trained model, split into what they say about time and about words, in their first two principal components; and word types by their scores. Point at a point for its name."),
      el("div", { className: "controls" }, labelled("run", this.select), labelled("what", this.kind), labelled("search", this.search), this.matches),
      this.meaning,
      this.grid,
    );
    this.fill();
  }

  fill() {
    const names = [...new Set(this.planes().map((plane) => plane.name))];
    this.kind.replaceChildren(...names.map((name) => option(name, name)));
    this.draw();
  }

  planes() {
    return this.data.planes.filter((plane) => plane.place === this.select.value);
  }

  async draw(all = false) {
    if (!this.grid) return;
    const chosen = this.planes().filter((plane) => plane.name === this.kind.value);
    this.meaning.textContent = chosen[0]?.meaning ?? "";
    this.shown = all ? chosen : chosen.slice(0, AT_ONCE);
    const targets = this.shown.map(() => el("div", { className: "chart" }));
    this.grid.replaceChildren(
      ...this.shown.map((plane, index) => el("figure", {}, el("figcaption", {}, word(plane.title, 90)), targets[index], plane.notice ? el("p", { className: "faint" }, plane.notice) : null)),
      ...(this.shown.length < chosen.length ? [el("button", { type: "button", className: "quiet", onclick: () => this.draw(true) }, `Show all ${plural(chosen.length, "plane")}`)] : []),
    );
    this.views = await Promise.all(this.shown.map((plane, index) => chart(targets[index], pointSpec(plane, this.data.colours), facts)));
    this.find();
  }

  find() {
    const sought = this.search.value.trim().toLowerCase();
    this.views.forEach((view) => view?.signal("find", sought).runAsync());
    const count = sought ? this.shown.flatMap((plane) => plane.points).filter(([label]) => short(label, 40).toLowerCase().includes(sought)).length : 0;
    this.matches.textContent = sought ? `${plural(count, "point")} found` : "";
  }

  update(data) {
    const place = this.select?.value;
    const [name, sought] = [this.kind?.value, this.search?.value ?? ""];
    this.show(data);
    if (data.planes.some((plane) => plane.place === place)) {
      this.select.value = place;
      this.fill();
      if ([...this.kind.options].some((each) => each.value === name)) this.kind.value = name;
      this.search.value = sought;
      this.draw();
    }
    return this;
  }

  redraw() {
    this.draw();
  }
}
