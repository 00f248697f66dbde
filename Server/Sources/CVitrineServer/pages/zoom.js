import { element, isMotionReduced } from "./dom.js";
import { Tiles } from "./tiles.js";

export const rungs = [640, 960, 1280, 1920, 2560, 3840, 5120, 8192];
const largest = 8;
// Of a double tap: milliseconds and pixels.
const tapTime = 320, tapDistance = 30;

// A picture that is moved and enlarged by wheel, fingers, double click and keys. What is shown gets sharper with it: by
// tiles of what is in the window, or as a whole without them.
export class Zoom {
  // url(side): the picture that fits a square of so many pixels. size: its pixels, null if not known. tile: as the
  // address of ``Tiles``, null for a picture without them.
  constructor(stage, { url, size, tile, placeholder, isVector, swiped }) {
    this.stage = stage;
    this.url = url;
    this.size = size;
    this.isVector = isVector;
    this.swiped = swiped;
    this.tiles = tile && size ? new Tiles({ size, url: tile }) : null;
    this.scale = 1;
    this.pointers = new Map();
    this.shownRung = 0;
    this.picture = element("div", { className: "picture" });
    if (placeholder) this.picture.append(placeholder);
    if (this.tiles) this.picture.append(this.tiles.root);
    stage.append(this.picture);
    this.abort = new AbortController();
    const listen = (type, body, options = {}) => stage.addEventListener(type, body, { signal: this.abort.signal, ...options });
    listen("wheel", (event) => this.wheel(event), { passive: false });
    listen("pointerdown", (event) => this.down(event));
    listen("pointermove", (event) => this.move(event));
    listen("pointerup", (event) => this.up(event));
    listen("pointercancel", (event) => this.up(event));
    listen("dblclick", (event) => {
      if (event.target.closest("button, a") || performance.now() - (this.tapped ?? -1000) < 600) return;
      this.toggle(event.clientX, event.clientY);
    });
    this.observer = new ResizeObserver(() => this.fit());
    this.observer.observe(stage);
    this.fit();
  }

  destroy() {
    this.abort.abort();
    this.observer.disconnect();
    clearTimeout(this.waiting);
    this.tiles?.clear();
    for (const picture of this.picture.querySelectorAll("img")) { picture.removeAttribute("srcset"); picture.removeAttribute("src"); }
    if (this.loading) { this.loading.onload = null; this.loading.onerror = null; this.loading.src = ""; this.loading.removeAttribute("src"); }
    this.picture.remove();
  }

  get density() { return devicePixelRatio || 1; }

  fit() {
    const { clientWidth: width, clientHeight: height } = this.stage;
    if (!width || !height) return;
    const size = this.size ?? { width: 4, height: 3 };
    const factor = Math.min(width / size.width, height / size.height, this.isVector || !this.size ? Infinity : 1 / this.density * 2);
    this.base = { width: size.width * factor, height: size.height * factor };
    this.picture.style.width = `${this.base.width}px`;
    this.picture.style.height = `${this.base.height}px`;
    this.centre();
    this.load();
  }

  // The scale at which a pixel of the picture is one of the screen.
  get full() { return this.size && !this.isVector ? Math.max(1, this.size.width / this.density / this.base.width) : 4; }

  centre() {
    this.scale = 1;
    this.x = (this.stage.clientWidth - this.base.width) / 2;
    this.y = (this.stage.clientHeight - this.base.height) / 2;
    this.apply();
  }

  apply() {
    const { clientWidth: width, clientHeight: height } = this.stage;
    const [w, h] = [this.base.width * this.scale, this.base.height * this.scale];
    this.x = w <= width ? (width - w) / 2 : Math.min(0, Math.max(width - w, this.x));
    this.y = h <= height ? (height - h) / 2 : Math.min(0, Math.max(height - h, this.y));
    this.picture.style.transform = `translate(${this.x}px, ${this.y}px) scale(${this.scale})`;
    this.stage.classList.toggle("zoomed", this.scale > 1.01);
    this.changed?.(this.scale, this.size && !this.isVector ? (this.base.width * this.scale * this.density) / this.size.width : this.scale);
  }

  // Enlarges about a place of the window.
  zoom(scale, clientX, clientY) {
    const box = this.stage.getBoundingClientRect();
    const [px, py] = [(clientX ?? box.left + box.width / 2) - box.left, (clientY ?? box.top + box.height / 2) - box.top];
    const wanted = Math.min(Math.max(1, scale), Math.max(this.full * 2, largest));
    const [ix, iy] = [(px - this.x) / this.scale, (py - this.y) / this.scale];
    this.scale = wanted;
    this.x = px - ix * wanted;
    this.y = py - iy * wanted;
    this.apply();
    this.soon(120, true);
  }

  toggle(x, y) {
    this.picture.style.transition = isMotionReduced() ? "" : "transform .2s";
    setTimeout(() => { this.picture.style.transition = ""; }, 220);
    if (this.scale > 1.01) this.zoom(1, x, y); else this.zoom(Math.max(2, this.full), x, y);
  }

  pan(dx, dy) {
    this.x += dx;
    this.y += dy;
    this.apply();
    this.soon(60, false);
  }

  // Loads what is to be seen: after a rest if this is only a step on the way, else while the picture moves.
  soon(milliseconds, waitsForRest) {
    if (waitsForRest) clearTimeout(this.waiting);
    else if (this.waiting) return;
    this.waiting = setTimeout(() => { this.waiting = null; this.load(); }, milliseconds);
  }

  load() {
    if (!this.base) return;
    const fitted = Math.max(this.base.width, this.base.height) * this.density;
    const limit = this.size && !this.isVector ? Math.max(this.size.width, this.size.height) : Infinity;
    this.loadWhole(Math.min(this.tiles ? fitted : fitted * this.scale, limit));
    if (!this.tiles) return;
    if (this.shownRung >= Math.min(fitted * this.scale, limit) * 0.95 || this.scale <= 1.01) return this.tiles.clear();
    // Pixels of the window for one of the picture.
    const relative = (this.base.width * this.scale) / this.size.width;
    const [x, y] = [Math.max(0, -this.x), Math.max(0, -this.y)];
    const [width, height] = [this.stage.clientWidth - Math.max(0, this.x), this.stage.clientHeight - Math.max(0, this.y)];
    this.tiles.show({ x: x / relative, y: y / relative, width: width / relative, height: height / relative }, relative * this.density);
  }

  // The smallest rendering that is sharp at this side.
  loadWhole(side) {
    // Letters are sharp in the size that they are drawn for.
    const rung = this.isVector && this.scale === 1 ? Math.ceil(side) : rungs.find((one) => one >= side * 0.95) ?? rungs.at(-1);
    if (rung <= Math.max(this.shownRung, this.loadingRung ?? 0)) return;
    if (this.loading) { this.loading.onload = null; this.loading.onerror = null; this.loading.src = ""; }
    const picture = element("img", { alt: "", decoding: "async", draggable: false });
    this.loading = picture;
    this.loadingRung = rung;
    picture.onload = () => {
      this.loading = null;
      this.loadingRung = 0;
      this.shownRung = rung;
      this.picture.replaceChildren(picture);
      if (this.tiles) this.picture.append(this.tiles.root);
      const { naturalWidth: width, naturalHeight: height } = picture;
      // Pages of a document may be of different sizes.
      if (width && (!this.size || (this.isVector && Math.abs(width / height / (this.size.width / this.size.height) - 1) > 0.02))) {
        this.size = { width, height };
        this.fit();
      }
    };
    picture.onerror = () => { this.loading = null; this.loadingRung = 0; if (this.shownRung === 0) this.broken?.(); };
    picture.src = this.url(rung);
  }

  wheel(event) {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    this.zoom(this.scale * Math.exp((-event.deltaY * lines) / (event.ctrlKey ? 120 : 400)), event.clientX, event.clientY);
  }

  down(event) {
    if (event.button === 0 && !event.target.closest("button, a")) this.begin(event);
  }

  begin(event) {
    this.stage.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    this.began = { x: event.clientX, y: event.clientY, time: performance.now(), type: event.pointerType, wasPinch: this.pointers.size > 1 };
    this.stage.classList.add("dragged");
  }

  move(event) {
    const old = this.pointers.get(event.pointerId);
    if (!old) return;
    const now = { x: event.clientX, y: event.clientY };
    if (this.pointers.size === 2) {
      const other = [...this.pointers].find(([id]) => id !== event.pointerId)[1];
      const before = Math.hypot(old.x - other.x, old.y - other.y), after = Math.hypot(now.x - other.x, now.y - other.y);
      // The picture follows the middle of the fingers.
      this.x += (now.x - old.x) / 2;
      this.y += (now.y - old.y) / 2;
      if (before > 0) this.zoom((this.scale * after) / before, (now.x + other.x) / 2, (now.y + other.y) / 2);
      this.began.wasPinch = true;
    } else if (this.scale > 1.01) {
      this.pan(now.x - old.x, now.y - old.y);
    } else if (event.pointerType === "touch" && this.began && !this.began.wasPinch) {
      this.picture.style.translate = `${now.x - this.began.x}px 0`;
    }
    this.pointers.set(event.pointerId, now);
  }

  up(event) {
    if (!this.pointers.delete(event.pointerId)) return;
    this.picture.style.translate = "";
    if (this.pointers.size) return;
    this.stage.classList.remove("dragged");
    const { x, y, type, wasPinch } = this.began;
    const [dx, dy] = [event.clientX - x, event.clientY - y];
    if (event.type !== "pointerup" || type !== "touch" || wasPinch) return;
    if (Math.hypot(dx, dy) < tapDistance) return this.tap(event.clientX, event.clientY);
    if (this.scale > 1.01) return;
    if (Math.abs(dx) > 60 && Math.abs(dx) > 1.5 * Math.abs(dy)) this.swiped?.(dx > 0 ? -1 : 1);
    else if (dy > 110) this.swiped?.(0);
  }

  // Browsers make a double click of two taps, or do not.
  tap(x, y) {
    const now = performance.now();
    const isSecond = this.lastTap && now - this.lastTap.time < tapTime && Math.hypot(x - this.lastTap.x, y - this.lastTap.y) < tapDistance;
    this.lastTap = isSecond ? null : { x, y, time: now };
    if (!isSecond) return;
    this.tapped = now;
    this.toggle(x, y);
  }
}
