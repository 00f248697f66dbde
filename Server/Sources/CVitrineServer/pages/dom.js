// Elements without HTML text, so that no name of a file can become markup.
export function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name in node && !name.includes("-") && name !== "list") node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const shapes = {
  previous: "M12.5 4.5 7 10l5.5 5.5", next: "M7.5 4.5 13 10l-5.5 5.5", close: "M5 5l10 10M15 5 5 15",
  info: "M10 9v5M10 6v.1M17 10a7 7 0 1 1-14 0 7 7 0 0 1 14 0z", download: "M10 3v9m0 0 4-4m-4 4-4-4M4 16.5h12",
  folder: "M2.5 5.5a1 1 0 0 1 1-1h4l2 2h7a1 1 0 0 1 1 1v7a1 1 0 0 1-1 1h-13a1 1 0 0 1-1-1z",
  picture: "M3 4.5h14v11H3zM3 13l4-4 3.5 3.5L13 10l4 4M13 7.5v.1",
  broken: "M10 6v5M10 14v.1M10 2.5 18 17H2z", document: "M5 2.5h7l3.5 3.5v11.5H5zM11.5 2.5V6.5h4M7.5 10h5M7.5 13h5",
  video: "M3 4.5h14v11H3zM8.5 7.5v5l4-2.5z", music: "M7.5 14.5V4l8-1.5v10M7.5 14.5a2 2 0 1 1-4 0 2 2 0 0 1 4 0zM15.5 12.5a2 2 0 1 1-4 0 2 2 0 0 1 4 0z",
  font: "M3.5 16 8 4.5 12.5 16M5 12h6M13.5 11.5a2 2 0 0 1 3.5 1V16M17 13.2c-2.6 0-3.7.5-3.7 1.6s1 1.4 1.7 1.4 2-.7 2-1.7",
  closed: "M5 9h10v8H5zM7 9V6.5a3 3 0 0 1 6 0V9", play: "M6.5 4.5v11l8.5-5.5z",
};

export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 20 20");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", shapes[name]);
  svg.append(path);
  return svg;
}

export const isMotionReduced = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

// Names of files may have bytes that are not UTF-8, which come as U+10FE80 to U+10FEFF, and characters that break lines
// or turn the direction of what follows.
export function shownName(name) {
  return name.replace(/[\u{10FE80}-\u{10FEFF}]/gu, "\uFFFD")
    .replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, "\uFFFD");
}

export function bytesText(bytes) {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (bytes >= 1000 && unit < 4) { bytes /= 1000; unit += 1; }
  return `${unit === 0 || bytes >= 100 ? Math.round(bytes) : bytes.toFixed(1)} ${units[unit]}`;
}

export function timeText(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const rest = String(whole % 60).padStart(2, "0");
  const minutes = Math.floor(whole / 60);
  return minutes < 60 ? `${minutes}:${rest}` : `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${rest}`;
}
