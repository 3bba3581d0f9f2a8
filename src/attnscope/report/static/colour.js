// Colours: each score has a pair, for white paper and for a dark page; a single colour is made lighter
// where it is needed.

export function channels(colour) {
  return [1, 3, 5].map((start) => parseInt(colour.slice(start, start + 2), 16));
}

function luminance(rgb) {
  const [r, g, b] = rgb.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  if (chosen) return chosen === "dark";
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

function mixed(from, to, share) {
  return from.map((value, index) => value + (to[index] - value) * share);
}

// Hue and saturation of a single colour stay.
export function inkChannels(colour) {
  if (Array.isArray(colour)) return channels(colour[isDark() ? 1 : 0]);
  let rgb = channels(colour);
  const wanted = isDark() ? 0.3 : 0;
  const [hue, saturation, lightness] = hsl(rgb);
  for (let light = lightness; luminance(rgb) < wanted && light < 1; light += 0.04) {
    rgb = fromHsl(hue, saturation, light);
  }
  return rgb.map(Math.round);
}

function hsl(rgb) {
  const [r, g, b] = rgb.map((value) => value / 255);
  const [most, least] = [Math.max(r, g, b), Math.min(r, g, b)];
  const span = most - least;
  const light = (most + least) / 2;
  if (!span) return [0, 0, light];
  const hue = most === r ? (g - b) / span + 6 : most === g ? (b - r) / span + 2 : (r - g) / span + 4;
  return [(hue % 6) * 60, span / (1 - Math.abs(2 * light - 1)), light];
}

function fromHsl(hue, saturation, light) {
  const reach = saturation * Math.min(light, 1 - light);
  return [0, 8, 4].map((shift) => {
    const at = (shift + hue / 30) % 12;
    return 255 * (light - reach * Math.max(-1, Math.min(at - 3, 9 - at, 1)));
  });
}

export function ink(colour) {
  return `rgb(${inkChannels(colour).join(" ")})`;
}

const AGAINST = ["#DC3A12", "#ED4820"];
export const GOLD = "#E69F00";

// A function from a value to a fill: paper at 0, the score's colour at the high end, and the colour
// of what speaks against at the low one.
export function ramp(colour, low, high) {
  const paper = isDark() ? [27, 28, 33] : [255, 255, 255];
  const strong = inkChannels(colour);
  const against = inkChannels(AGAINST);
  const size = Math.max(high, -low) || 1;
  return (value) => {
    const share = Math.min(1, Math.abs(value) / size);
    return `rgb(${mixed(paper, value < 0 ? against : strong, share).map(Math.round).join(" ")})`;
  };
}
