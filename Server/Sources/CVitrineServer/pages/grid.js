import { element, icon, bytesText, shownName, timeText } from "./dom.js";
import * as kinds from "./kinds.js";
import { justify, neighbour, wantedHeight } from "./layout.js";
import { Previews } from "./previews.js";
import { drawThumbHash } from "./thumbhash.js";
import * as server from "./server.js";

const blockSize = 100;
const usualAspect = 1.4;
// The browser opens six connections; one of them brings changes.
const simultaneous = 5;
const rungs = [120, 180, 240, 360, 480, 720, 960];
// Milliseconds of a frame for what can wait for the next one.
const budget = 5;

// Counted for tests and measurements.
export const statistics = { started: 0, finished: 0, cancelled: 0, failed: 0, blocks: 0 };

// A grid of any number of pictures. Only what is near the window is in the document.
export class Grid {
  constructor(root, { open, place }) {
    this.root = root;
    this.open = open;
    this.place = place;
    this.blocks = [];
    this.total = 0;
    this.listing = "";
    this.path = "";
    this.known = new Map();
    // Of documents and videos, whose sizes no header tells, by their pictures.
    this.aspects = new Map();
    this.tiles = new Map();
    this.running = new Set();
    this.current = 0;
    this.speed = 0;
    this.lastTop = scrollY;
    this.lastTime = performance.now();
    this.scheduled = false;
    addEventListener("scroll", () => this.scrolled(), { passive: true });
    new ResizeObserver(() => this.resized()).observe(root);
    root.addEventListener("keydown", (event) => this.pressed(event));
    root.addEventListener("focusin", (event) => {
      const tile = event.target.closest(".tile");
      if (tile) this.select(Number(tile.dataset.index));
    });
    root.addEventListener("click", (event) => {
      const tile = event.target.closest(".tile");
      if (!tile || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
      event.preventDefault();
      this.open(Number(tile.dataset.index));
    });
    this.previews = new Previews(this);
  }

  key(item) { return `${item.name}\u0000${item.version}`; }

  // Shows a listing. Tiles that stay keep their pictures, and the first visible one its place in the window.
  show(listing, { path, keepsPlace = false, pages = [] }) {
    const anchor = keepsPlace ? this.anchor() : null;
    this.abort();
    this.listing = listing.listing;
    this.path = path;
    this.total = listing.total;
    // A list without items is none.
    if (this.total) this.root.setAttribute("role", "list"); else this.root.removeAttribute("role");
    const old = this.blocks;
    this.blocks = [];
    for (let start = 0; start < this.total; start += blockSize) {
      const count = Math.min(blockSize, this.total - start);
      this.blocks.push({ start, count, items: null, detailed: false, node: null, layout: null, top: 0, loading: null, hashed: false });
    }
    for (const page of [listing, ...pages]) this.receive(page);
    this.width = 0;
    const kept = this.tiles;
    this.tiles = new Map();
    this.spare = kept;
    for (const block of old) block.node?.remove();
    this.current = Math.min(this.current, Math.max(0, this.total - 1));
    this.resized();
    if (anchor) this.restore(anchor);
    this.update();
    for (const tile of this.spare.values()) this.discard(tile);
    this.spare = new Map();
  }

  receive(page) {
    const touched = new Set();
    for (let index = 0; index < page.items.length; index += 1) {
      const [name, bytes, time, kind, version] = page.items[index];
      const block = this.blocks[Math.floor((page.offset + index) / blockSize)];
      if (!block) return;
      block.items ??= new Array(block.count);
      touched.add(block);
      block.items[page.offset + index - block.start] = { name, bytes, time, kind, version };
    }
    for (const block of touched) if (block.items.includes(undefined)) block.items = null;
  }

  // The page of the listing.
  async read(block, signal) {
    if (block.items) return;
    this.receive(await server.folder({ listing: this.listing, path: this.path, offset: block.start, limit: block.count }, signal));
  }

  item(index) {
    const block = this.blocks[Math.floor(index / blockSize)];
    return block?.items?.[index - block.start] ?? null;
  }

  // The item with what is known of it, after waiting for its page of the listing and its size.
  async whole(index, signal) {
    const block = this.blocks[Math.floor(index / blockSize)];
    if (block) await this.read(block, signal);
    const item = this.item(index);
    if (!item) return null;
    if (!this.known.has(this.key(item))) {
      const answer = await server.details({ listing: this.listing, offset: index, limit: 1 }, signal).catch((error) => {
        if (error.name === "AbortError") throw error;
      });
      if (answer?.details[0]) this.known.set(this.key(item), answer.details[0]);
    }
    return { ...item, path: server.join(this.path, item.name), details: this.known.get(this.key(item)) ?? null };
  }

  // The code of the reason why an item cannot be shown, which the server finds out; null if it can be, or is not known.
  async failure(index, signal) {
    const item = this.item(index);
    if (!item) return null;
    const { listing } = this;
    const answer = await server.details({ listing, offset: index, limit: 1, placeholders: 1 }, signal).catch(() => null);
    const known = answer?.details[0];
    if (!known) return null;
    this.known.set(this.key(item), known);
    this.decorate(this.tiles.get(this.key(item)));
    return known[5];
  }

  indexOf(name) {
    for (const block of this.blocks) {
      const place = block.items?.findIndex((item) => item.name === name) ?? -1;
      if (place >= 0) return block.start + place;
    }
    return -1;
  }

  // Layout

  aspect(item) {
    const details = this.known.get(this.key(item));
    const aspect = details?.[0] ? details[0] / details[1]
      : this.aspects.get(this.key(item)) ?? kinds.usualAspects[item.kind];
    return Math.min(5, Math.max(0.3, aspect));
  }

  arrange(block, index) {
    const aspects = block.items
      ? block.items.map((item) => this.aspect(item)) : new Array(block.count).fill(usualAspect);
    block.layout = justify(aspects, this.width, this.wanted, this.gap, index === this.blocks.length - 1);
  }

  resized() {
    const width = this.root.clientWidth;
    // Below the lightbox, which takes the place of the scroll bar, nothing is seen.
    if (!width || width === this.width || (this.width && document.body.classList.contains("still"))) return;
    const anchor = this.width ? this.anchor() : null;
    this.width = width;
    this.wanted = wantedHeight(width);
    this.gap = parseFloat(getComputedStyle(this.root).getPropertyValue("--gap")) || 6;
    let usual = null;
    this.blocks.forEach((block, index) => {
      const isUsual = !block.items && block.count === blockSize && index < this.blocks.length - 1;
      if (isUsual && usual) { block.layout = usual; return; }
      this.arrange(block, index);
      if (isUsual) usual = block.layout;
    });
    this.stack();
    for (const block of this.blocks) if (block.node) this.position(block);
    if (anchor) this.restore(anchor);
    this.schedule();
  }

  stack() {
    let top = 0;
    for (const block of this.blocks) {
      if (block.top !== top || !block.node) {
        block.top = top;
        if (block.node) block.node.style.transform = `translateY(${top}px)`;
      }
      top += block.layout.height;
    }
    this.root.style.height = `${Math.max(0, top)}px`;
  }

  position(block) {
    block.node.style.transform = `translateY(${block.top}px)`;
    block.layout.boxes.forEach((box, index) => {
      const cell = block.node.children[index];
      if (!cell || !box) return;
      cell.style.transform = `translate(${box.x}px, ${box.y}px)`;
      cell.style.width = `${box.w}px`;
      cell.style.height = `${box.h}px`;
    });
  }

  offset() { return this.root.getBoundingClientRect().top + scrollY; }

  // The first visible picture and its distance to the top of the window.
  anchor() {
    const top = scrollY - this.offset();
    if (top <= 0) return null;
    const block = this.blocks[this.blockAt(top)];
    if (!block?.layout) return null;
    let place = block.layout.boxes.findIndex((box) => block.top + box.y + box.h > top);
    if (place < 0) place = block.count - 1;
    const item = block.items?.[place];
    return { index: block.start + place, name: item?.name, distance: block.top + block.layout.boxes[place].y - top };
  }

  restore({ index, name, distance }) {
    const found = name === undefined ? -1 : this.indexOf(name);
    const box = this.box(found >= 0 ? found : Math.min(index, this.total - 1));
    if (!box) return;
    const wanted = box.y - distance + this.offset();
    if (Math.abs(wanted - scrollY) >= 1) {
      this.lastTop += wanted - scrollY;
      scrollTo(0, wanted);
    }
  }

  box(index) {
    const block = this.blocks[Math.floor(index / blockSize)];
    const box = block?.layout?.boxes[index - block.start];
    return box ? { x: box.x, y: block.top + box.y, w: box.w, h: box.h } : null;
  }

  blockAt(y) {
    let low = 0, high = this.blocks.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.blocks[middle].top <= y) low = middle; else high = middle - 1;
    }
    return Math.max(0, low);
  }

  // Scrolling

  scrolled() {
    const now = performance.now();
    const passed = Math.max(8, now - this.lastTime);
    this.speed = 0.6 * (Math.abs(scrollY - this.lastTop) / passed) + 0.4 * (passed < 200 ? this.speed : 0);
    this.lastTop = scrollY;
    this.lastTime = now;
    clearTimeout(this.settling);
    this.settling = setTimeout(() => { this.speed = 0; this.schedule(); this.place?.(null); }, 120);
    this.schedule();
  }

  // More than two windows a second: nothing that passes by can be seen.
  get isFlung() { return this.speed > (2 * innerHeight) / 1000; }

  schedule() {
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame(() => { this.scheduled = false; this.update(); });
  }

  update() {
    if (!this.width) return;
    const top = scrollY - this.offset();
    const height = innerHeight;
    const ahead = this.isFlung ? 0 : height;
    const first = this.blockAt(top - ahead), last = this.blockAt(top + height + ahead);
    this.blocks.forEach((block, index) => {
      if (block.node && (index < first || index > last)) this.unmount(block);
    });
    let isFull = false;
    for (let index = first; index <= last && index < this.blocks.length; index += 1) {
      const block = this.blocks[index];
      if (!block.node) {
        // What is not in the window yet comes one block a frame.
        const isVisible = block.top < top + height && block.top + block.layout.height > top;
        if (!isVisible && isFull) { this.schedule(); continue; }
        this.mount(block);
        isFull = true;
      }
      if (!block.detailed && !block.loading && !this.isFlung) this.load(block, index);
    }
    if (this.isFlung && this.total > 500) {
      const item = this.item(this.blocks[first]?.start ?? 0);
      this.place?.(item);
    }
    this.feed(top, height);
  }

  mount(block) {
    block.node = element("div", { className: "block", role: "presentation" });
    statistics.blocks += 1;
    if (block.items) this.fill(block);
    this.root.append(block.node);
    this.position(block);
  }

  fill(block) {
    const cells = block.items.map((item, place) => this.cell(item, block.start + place));
    block.node.replaceChildren(...cells);
  }

  unmount(block) {
    block.loading?.abort();
    block.loading = null;
    for (const cell of block.node.children) {
      const tile = this.tiles.get(cell.dataset.key);
      if (tile) this.discard(tile);
      this.tiles.delete(cell.dataset.key);
    }
    block.node.remove();
    block.node = null;
  }

  // The page of the listing, then the sizes of its pictures.
  async load(block, index) {
    const abort = new AbortController();
    block.loading = abort;
    try {
      await this.read(block, abort.signal);
      const answer = await server.details({ listing: this.listing, offset: block.start, limit: block.count }, abort.signal);
      this.learn(block, index, answer.details);
      block.detailed = true;
      this.schedule();
    } catch (error) {
      if (error.name !== "AbortError") this.failed?.(error);
    } finally {
      if (block.loading === abort) block.loading = null;
    }
  }

  learn(block, index, details) {
    if (!block.items) return;
    details.forEach((known, place) => {
      if (known && block.items[place]) this.known.set(this.key(block.items[place]), known);
    });
    const anchor = this.anchor();
    this.arrange(block, index);
    this.stack();
    if (block.node) {
      if (block.node.childElementCount !== block.count) this.fill(block);
      this.position(block);
      for (const item of block.items) this.decorate(this.tiles.get(this.key(item)));
    }
    if (anchor) this.restore(anchor);
    this.schedule();
  }

  // Tiles

  cell(item, index) {
    const key = this.key(item);
    const old = this.spare?.get(key);
    if (old) {
      this.spare.delete(key);
      this.tiles.set(key, old);
      old.index = index;
      old.link.dataset.index = index;
      old.cell.setAttribute("aria-posinset", index + 1);
      old.cell.setAttribute("aria-setsize", this.total);
      old.link.tabIndex = index === this.current ? 0 : -1;
      return old.cell;
    }
    const shown = shownName(item.name);
    const link = element("a", {
      className: "tile", href: server.original(server.join(this.path, item.name)), draggable: false,
      tabIndex: index === this.current ? 0 : -1,
    }, element("span", { className: "label", dir: "auto", "aria-hidden": "true", textContent: shown }));
    link.dataset.index = index;
    link.dataset.name = shown;
    const cell = element("div", {
      className: "cell", role: "listitem", "aria-posinset": String(index + 1), "aria-setsize": String(this.total),
    }, link);
    cell.dataset.key = key;
    const tile = { item, index, key, cell, link, picture: null, state: "waiting", canvas: null, badge: null, about: null };
    this.tiles.set(key, tile);
    this.decorate(tile);
    return cell;
  }

  // The badge, the name for those who do not see the tile, and the plate of a file without a picture.
  decorate(tile) {
    if (!tile) return;
    const { item, link } = tile, details = this.known.get(tile.key), shown = shownName(item.name);
    const badge = this.badge(item, details);
    const about = [shown, kinds.names[item.kind], badge.spoken, bytesText(item.bytes)].filter(Boolean).join(", ");
    if (tile.about === null || (tile.state !== "failed" && tile.about !== about)) {
      tile.about = about;
      link.setAttribute("aria-label", about);
    }
    const text = `${badge.isMoving}${badge.text}`;
    if (tile.badge !== text) {
      tile.badge = text;
      link.querySelector(".badge")?.remove();
      if (badge.text || badge.isMoving) {
        link.append(element("span", { className: "badge", "aria-hidden": "true" }, badge.isMoving ? icon("play") : null, badge.text));
      }
    }
    if (details?.[5]) this.fail(tile, details[5]);
  }

  badge({ name, kind }, details) {
    const duration = details?.[4] >= 0.5 ? timeText(details[4]) : "";
    const pages = details?.[3] > 1 ? details[3] : 0;
    switch (kind) {
      case kinds.video: case kinds.recording: return { isMoving: kind === kinds.video, text: duration, spoken: duration };
      case kinds.document: return { isMoving: false, text: pages ? `PDF · ${pages}` : "PDF", spoken: pages ? `PDF, ${pages} pages` : "PDF" };
      case kinds.container: case kinds.font: return { isMoving: false, text: kinds.ending(name), spoken: kinds.ending(name) };
      default:
        if (!pages) return { isMoving: false, text: "", spoken: "" };
        if (server.isAnimated(name, details)) return { isMoving: true, text: duration, spoken: duration ? `animated, ${duration}` : "animated" };
        return { isMoving: false, text: `${pages} pages`, spoken: `${pages} pages` };
    }
  }

  // Shows a plate with the name in the place of a picture that there will never be.
  fail(tile, code) {
    if (["failed", "shown"].includes(tile.state)) return;
    this.cancel(tile);
    tile.state = "failed";
    tile.canvas?.remove();
    tile.canvas = null;
    const { kind } = tile.item, reason = kinds.shortReason(code, kind);
    tile.link.classList.add("failed");
    tile.link.setAttribute("aria-label", `${tile.about}, ${(reason || "no image").toLowerCase()}`);
    tile.link.append(element("span", { className: "plate", "aria-hidden": "true" },
      icon(reason ? "broken" : kinds.symbols[kind]), element("bdi", { textContent: tile.link.dataset.name }), reason ? element("small", { textContent: reason }) : null));
  }

  // Draws the placeholder of a tile; false if there is none to draw.
  sketch(tile) {
    const hash = this.known.get(tile.key)?.[2];
    if (!hash || tile.canvas || ["shown", "failed"].includes(tile.state) || tile.hash === hash) return false;
    tile.hash = hash;
    const canvas = element("canvas", { "aria-hidden": "true" });
    try { if (drawThumbHash(hash, canvas)) { tile.canvas = canvas; tile.link.prepend(canvas); } } catch { /* no placeholder */ }
    return true;
  }

  options(height) { return `h:${rungs.find((rung) => rung >= height) ?? rungs.at(-1)}`; }

  start(tile, box, isVisible) {
    tile.state = "running";
    this.running.add(tile);
    statistics.started += 1;
    const path = server.join(this.path, tile.item.name);
    const densities = [1, 1.5, 2, 3];
    const url = (density) =>
      server.image(path, this.options(box.h * density), tile.item.version, server.format(tile.item.name));
    const picture = element("img", { alt: "", decoding: "async", draggable: false });
    tile.picture = picture;
    picture.onload = () => this.done(tile, picture, true);
    picture.onerror = () => this.done(tile, picture, false);
    const show = () => { if (tile.picture === picture) picture.srcset = densities.map((density) => `${url(density)} ${density}x`).join(", "); };
    if (isVisible) return show();
    // What is not in the window yet waits behind what somebody sees.
    tile.abort = new AbortController();
    const density = densities.find((one) => one >= devicePixelRatio) ?? densities.at(-1);
    server.prepare(url(density), tile.abort.signal).then(show, (error) => { if (error.name !== "AbortError") show(); });
  }

  done(tile, picture, isGood) {
    if (tile.picture !== picture) return;
    this.running.delete(tile);
    if (isGood) {
      statistics.finished += 1;
      tile.state = "shown";
      if (!this.known.get(tile.key)?.[0] && picture.naturalWidth) {
        this.aspects.set(tile.key, picture.naturalWidth / picture.naturalHeight);
        this.rearrange(Math.floor(tile.index / blockSize));
      }
      tile.link.insertBefore(picture, tile.link.querySelector(".label"));
      requestAnimationFrame(() => picture.classList.add("shown"));
      if (tile.canvas) {
        const canvas = tile.canvas;
        tile.canvas = null;
        setTimeout(() => canvas.remove(), 400);
      }
    } else {
      statistics.failed += 1;
      tile.attempts = (tile.attempts ?? 0) + 1;
      tile.picture = null;
      tile.state = "asking";
      this.failure(tile.index).then((code) => {
        if (tile.state === "asking") this.pause(tile, code);
      });
    }
    this.schedule();
  }

  // A busy server is asked again, a broken file is not.
  pause(tile, code) {
    if (code || (navigator.onLine && tile.attempts > 2)) return this.fail(tile, code);
    tile.state = "paused";
    setTimeout(() => { if (tile.state === "paused") { tile.state = "waiting"; this.schedule(); } }, 1000 * tile.attempts ** 2);
  }

  rearrange(index) {
    clearTimeout(this.rearranging);
    (this.changedBlocks ??= new Set()).add(index);
    this.rearranging = setTimeout(() => {
      const anchor = this.anchor();
      for (const changed of this.changedBlocks) if (this.blocks[changed]) this.arrange(this.blocks[changed], changed);
      this.stack();
      for (const changed of this.changedBlocks) if (this.blocks[changed]?.node) this.position(this.blocks[changed]);
      this.changedBlocks.clear();
      if (anchor) this.restore(anchor);
    }, 200);
  }

  cancel(tile) {
    if (tile.state !== "running") return;
    statistics.cancelled += 1;
    tile.state = "waiting";
    this.running.delete(tile);
    const picture = tile.picture;
    tile.picture = null;
    tile.abort?.abort();
    // Without its addresses the browser ends the request, and the server sees that.
    picture.removeAttribute("srcset");
    picture.src = "";
    picture.removeAttribute("src");
  }

  discard(tile) {
    this.cancel(tile);
    tile.cell.remove();
  }

  abort() {
    for (const block of this.blocks) { block.loading?.abort(); block.loading = null; }
    for (const tile of [...this.running]) this.cancel(tile);
    this.hashing?.abort();
  }

  // Requests pictures: the visible ones from the top, then those near the window. Cancels what has left.
  feed(top, height) {
    const visible = [], near = [];
    const end = performance.now() + budget;
    let isLate = false;
    for (const tile of this.tiles.values()) {
      if (tile.state !== "waiting" && tile.state !== "running") continue;
      const box = this.box(tile.index);
      if (!box) continue;
      const isVisible = box.y + box.h > top && box.y < top + height;
      if (isVisible && !isLate && this.sketch(tile)) isLate = performance.now() > end;
      const distance = isVisible ? 0 : Math.min(Math.abs(box.y - top - height), Math.abs(box.y + box.h - top));
      if (tile.state === "running") {
        if (distance > height * 1.2 || (this.isFlung && !isVisible)) this.cancel(tile);
        continue;
      }
      if (isVisible) visible.push([tile.index, tile, box]);
      else if (distance < height) near.push([distance, tile, box]);
    }
    if (isLate) this.schedule();
    if (this.isFlung) return;
    visible.sort((one, other) => one[0] - other[0]);
    near.sort((one, other) => one[0] - other[0]);
    if (visible.length >= simultaneous - this.running.size) {
      for (const tile of [...this.running]) {
        const box = this.box(tile.index);
        if (box && (box.y + box.h < top || box.y > top + height)) this.cancel(tile);
      }
    }
    for (const [, tile, box] of visible) {
      if (this.running.size >= simultaneous) break;
      this.start(tile, box, true);
    }
    for (const [, tile, box] of this.speed > 0.5 ? [] : near) {
      if (this.running.size >= simultaneous) break;
      this.start(tile, box, false);
    }
    if (!visible.length && !near.length && this.running.size === 0) this.prepare(top, height);
  }

  // While nothing else is to be done: placeholders of the next windows.
  async prepare(top, height) {
    if (this.hashing || this.speed > 0) return;
    const first = this.blockAt(top - height), last = this.blockAt(top + 4 * height);
    const index = this.blocks.findIndex((block, place) => place >= first && place <= last && !block.hashed);
    if (index < 0) return;
    const block = this.blocks[index];
    const abort = new AbortController();
    this.hashing = abort;
    const stop = () => abort.abort();
    addEventListener("scroll", stop, { once: true, passive: true });
    try {
      await this.read(block, abort.signal);
      const step = 20;
      for (let offset = 0; offset < block.count; offset += step) {
        const answer = await server.details(
          { listing: this.listing, offset: block.start + offset, limit: Math.min(step, block.count - offset), placeholders: 1 },
          abort.signal);
        answer.details.forEach((known, place) => {
          const item = block.items?.[offset + place];
          if (known && item) this.known.set(this.key(item), known);
        });
      }
      block.hashed = true;
      if (block.node) for (const item of block.items) this.decorate(this.tiles.get(this.key(item)));
      else this.rearrange(index);
    } catch (error) {
      if (error.name !== "AbortError") block.hashed = true;
    } finally {
      removeEventListener("scroll", stop);
      this.hashing = null;
    }
    this.schedule();
  }

  // Keys

  select(index) {
    if (index === this.current) return;
    const old = this.tile(this.current);
    if (old) old.link.tabIndex = -1;
    this.current = index;
    const tile = this.tile(index);
    if (tile) tile.link.tabIndex = 0;
  }

  tile(index) {
    const item = this.item(index);
    return item ? this.tiles.get(this.key(item)) : null;
  }

  async focus(index) {
    if (index < 0 || index >= this.total) return;
    this.select(index);
    const box = this.box(index);
    const bar = document.querySelector(".bar").offsetHeight;
    const top = box.y + this.offset();
    if (top < scrollY + bar + 8) scrollTo(0, top - bar - 8);
    else if (top + box.h > scrollY + innerHeight - 8) scrollTo(0, top + box.h - innerHeight + 8);
    const block = this.blocks[Math.floor(index / blockSize)];
    if (!block.node) this.mount(block);
    if (!block.items) {
      try { await this.whole(index); } catch { return; }
      if (block.node && block.node.childElementCount !== block.count) { this.fill(block); this.position(block); }
    }
    if (this.current !== index) return;
    const tile = this.tile(index);
    if (!tile) return;
    tile.link.tabIndex = 0;
    tile.link.focus({ preventScroll: true });
    this.schedule();
  }

  pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !event.target.closest(".tile")) return;
    if (event.key === " ") { this.open(this.current); event.preventDefault(); return; }
    const rows = Math.max(1, Math.floor(innerHeight / (this.wanted + this.gap)) - 1);
    const index = neighbour(event.key, { index: this.current, total: this.total, rows, box: (other) => this.box(other) });
    if (index === null) return;
    event.preventDefault();
    this.focus(index);
  }
}
