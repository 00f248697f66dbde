import { element } from "./dom.js";

// The side of a tile, as the server cuts them from what it has decoded.
const side = 512;
// The browser opens six connections; one of them brings changes, and one is for the picture as a whole.
const simultaneous = 4;
const kept = 64;

// Counted for tests and measurements.
export const tileStatistics = { started: 0, finished: 0, cancelled: 0, failed: 0 };

// The parts of an enlarged picture that are in the window, of the level that is sharp there.
export class Tiles {
  // url(region, width, height): a part of the picture, reduced. size: the picture's pixels.
  constructor({ size, url }) {
    this.size = size;
    this.url = url;
    this.root = element("div", { className: "tiles" });
    this.known = new Map();
    this.queue = [];
    this.running = 0;
    this.clock = 0;
    this.view = null;
  }

  // part: the visible rectangle in pixels of the picture. density: pixels of the screen for one of the picture.
  show(part, density) {
    this.view = [part, density];
    // A tenth fewer pixels than the screen has cannot be seen.
    this.factor = Math.max(1, 2 ** Math.floor(Math.log2(1.1 / density)));
    const step = side * this.factor;
    const [right, bottom] = [Math.min(this.size.width, part.x + part.width), Math.min(this.size.height, part.y + part.height)];
    const middle = { x: part.x + part.width / 2, y: part.y + part.height / 2 };
    const wanted = new Map();
    for (let y = Math.floor(part.y / step) * step; y < bottom; y += step) {
      for (let x = Math.floor(part.x / step) * step; x < right; x += step) {
        const key = `${this.factor} ${x} ${y}`;
        wanted.set(key, { key, factor: this.factor, x, y, distance: Math.hypot(x + step / 2 - middle.x, y + step / 2 - middle.y) });
      }
    }
    this.wanted = wanted;
    for (const tile of [...this.known.values()]) if (tile.state === "running" && !wanted.has(tile.key)) this.cancel(tile);
    this.clock += 1;
    for (const key of wanted.keys()) if (this.known.has(key)) this.known.get(key).used = this.clock;
    this.queue = [...wanted.values()].filter(({ key }) => !this.known.has(key)).sort((one, other) => one.distance - other.distance);
    this.next();
    this.prune();
  }

  get isComplete() { return Boolean(this.wanted?.size) && [...this.wanted.keys()].every((key) => this.known.get(key)?.state === "shown"); }

  next() {
    while (this.running < simultaneous && this.queue.length) this.start(this.queue.shift());
  }

  start({ key, factor, x, y }) {
    const { width: wholeWidth, height: wholeHeight } = this.size;
    const width = Math.min(side * factor, wholeWidth - x), height = Math.min(side * factor, wholeHeight - y);
    const picture = element("img", { alt: "", decoding: "async", draggable: false });
    const { style } = picture;
    [style.left, style.top] = [`${(x / wholeWidth) * 100}%`, `${(y / wholeHeight) * 100}%`];
    [style.width, style.height] = [`${(width / wholeWidth) * 100}%`, `${(height / wholeHeight) * 100}%`];
    // Finer levels are above coarser ones.
    style.zIndex = String(64 - Math.log2(factor));
    const tile = { key, factor, picture, state: "running", used: this.clock, attempts: this.attempts?.get(key) ?? 0 };
    this.known.set(key, tile);
    this.running += 1;
    tileStatistics.started += 1;
    picture.onload = () => {
      this.ended(tile, "shown");
      tileStatistics.finished += 1;
      this.root.append(picture);
      this.prune();
      this.next();
    };
    picture.onerror = () => this.failed(tile);
    picture.src = this.url({ x, y, width, height }, Math.ceil(width / factor), Math.ceil(height / factor));
  }

  ended(tile, state) {
    this.running -= 1;
    tile.state = state;
    tile.picture.onload = null;
    tile.picture.onerror = null;
  }

  // A busy server is asked again. What it cannot show is covered by the picture below.
  failed(tile) {
    this.ended(tile, "failed");
    tileStatistics.failed += 1;
    const attempts = tile.attempts + 1;
    (this.attempts ??= new Map()).set(tile.key, attempts);
    if (attempts < 4) {
      setTimeout(() => {
        if (this.known.get(tile.key) !== tile) return;
        this.known.delete(tile.key);
        if (this.view) this.show(...this.view);
      }, 500 * attempts ** 2);
    }
    this.next();
  }

  cancel(tile) {
    if (tile.state === "running") {
      tileStatistics.cancelled += 1;
      this.ended(tile, "cancelled");
      // Without its address the browser ends the request, and the server sees that.
      tile.picture.src = "";
    }
    tile.picture.removeAttribute("src");
    tile.picture.remove();
    this.known.delete(tile.key);
  }

  // Other levels go when this one is whole, and parts that were not looked at for the longest time.
  prune() {
    if (this.isComplete) {
      for (const tile of [...this.known.values()]) if (tile.factor !== this.factor) this.cancel(tile);
    }
    if (this.known.size <= kept) return;
    const old = [...this.known.values()].filter(({ key }) => !this.wanted.has(key)).sort((one, other) => one.used - other.used);
    for (const tile of old.slice(0, this.known.size - kept)) this.cancel(tile);
  }

  clear() {
    this.view = null;
    this.queue = [];
    this.wanted = new Map();
    for (const tile of [...this.known.values()]) this.cancel(tile);
  }
}
