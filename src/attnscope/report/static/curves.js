// Accuracy and agreement over training, below the maps, with the step that they show marked.

import { chart, curveSpec, facts } from "./charts.js";
import { ink } from "./colour.js";
import { el, term } from "./dom.js";
import { symbolOf } from "./pictures.js";

const MEANING = "How often the input word with the highest attention is among the top 5 % of the other score, over the first stored examples: the probe at the same step, the uniform model's probe after its training.";

export class Curves {
  constructor(element) {
    this.element = element;
    this.view = null;
    this.now = 0;
  }

  // units: those that are shown; scores: label, meaning and colour of each score.
  async draw(units, scores) {
    this.view = null;
    const drawn = units.filter((unit) => Object.keys(unit.curves).length);
    if (!drawn.length) {
      this.element.replaceChildren();
      return;
    }
    const rows = [];
    const series = new Map();
    for (const unit of drawn) {
      for (const [name, points] of Object.entries(unit.curves)) {
        const label = curveLabel(name, scores) + (drawn.length > 1 ? `, ${unit.label}` : "");
        series.set(label, curveColour(name, scores));
        points.forEach(([step, value]) => rows.push({ series: label, step, value }));
      }
    }
    const target = el("div", { className: "chart" });
    const agreement = drawn.some((unit) => Object.keys(unit.curves).length > 1);
    const note = el("p", { className: "faint" }, term("Agreement", MEANING), " with attention, in percent; the dashed line is the step shown above.");
    this.element.replaceChildren(el("h3", {}, agreement ? "Accuracy and agreement over training" : "Accuracy over training"), target, ...(agreement ? [note] : []));
    const names = [...series].map(([name, colour]) => ({ name, colour: ink(colour) }));
    const view = await chart(target, curveSpec(rows, names, this.now), facts);
    // A reader may have gone on to other units while the chart was made.
    if (!target.isConnected) return;
    this.view = view;
    this.mark(this.now);
  }

  mark(step) {
    this.now = step;
    this.view?.signal("now", step).runAsync();
  }
}

function compared(name) {
  return /^A\(attention,(\w+)\)$/.exec(name)?.[1];
}

function curveLabel(name, scores) {
  const other = compared(name);
  return other ? `agreement of α and ${scores[other] ? symbolOf(scores[other]) : other}` : name;
}

function curveColour(name, scores) {
  const other = compared(name);
  return scores[other]?.colour ?? (other ? "#5F5F63" : "#000000");
}
