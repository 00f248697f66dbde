import { element, icon, bytesText, shownName, timeText } from "./dom.js";
import * as kinds from "./kinds.js";
import { drawThumbHash } from "./thumbhash.js";
import { Zoom, rungs } from "./zoom.js";
import * as server from "./server.js";

// One photo, document, video or recording in the whole window.
export class Lightbox {
  constructor(grid, { changed, closed }) {
    this.grid = grid;
    this.changed = changed;
    this.index = -1;
    const button = (name, label, body, key) =>
      element("button", { type: "button", className: "icon", "aria-label": label, title: key ? `${label} (${key})` : label, onclick: body }, icon(name));
    this.title = element("h2", { id: "lightbox-title" });
    this.infoButton = button("info", "Information", () => this.toggleInfo(), "i");
    this.infoButton.setAttribute("aria-pressed", "false");
    this.download = element("a", { className: "icon", "aria-label": "Download the original", title: "Download the original (d)", download: "" }, icon("download"));
    this.previous = element("button", { type: "button", className: "side previous", "aria-label": "Previous", onclick: () => this.step(-1) }, element("span", {}, icon("previous")));
    this.next = element("button", { type: "button", className: "side next", "aria-label": "Next", onclick: () => this.step(1) }, element("span", {}, icon("next")));
    // A finger that begins at the edge steps by its movement.
    for (const side of [this.previous, this.next]) {
      side.addEventListener("pointerdown", (event) => { if (event.pointerType === "touch") this.zoom?.begin(event); });
    }
    this.body = element("div", { className: "body" });
    this.info = element("aside", { className: "info", hidden: true, "aria-label": "Information", tabIndex: 0 });
    this.zoomText = element("div", { className: "zoom", "aria-hidden": "true" });
    this.said = element("p", { className: "hidden", role: "status" });
    this.dialog = element("dialog", { className: "lightbox", tabIndex: -1, "aria-labelledby": "lightbox-title" },
      this.body, this.previous, this.next,
      element("div", { className: "top" }, this.title, this.infoButton, this.download, button("close", "Close", () => this.close(), "Escape")),
      this.info, this.zoomText, this.said);
    document.body.append(this.dialog);
    this.dialog.addEventListener("keydown", (event) => this.pressed(event));
    this.dialog.addEventListener("close", () => {
      const index = this.index;
      this.clear();
      this.index = -1;
      document.body.classList.remove("still");
      closed(index);
    });
    this.dialog.addEventListener("pointermove", (event) => {
      if (event.pointerType === "touch") return;
      this.dialog.classList.add("moved");
      clearTimeout(this.resting);
      this.resting = setTimeout(() => this.dialog.classList.remove("moved"), 1500);
    });
  }

  get isOpen() { return this.dialog.open; }

  async show(index) {
    if (index === this.index && this.isOpen && !this.isGone) return;
    this.clear();
    this.index = index;
    const abort = new AbortController();
    this.abort = abort;
    if (!this.isOpen) {
      this.dialog.showModal();
      this.dialog.focus();
      document.body.classList.add("still");
    }
    let item;
    try { item = await this.grid.whole(index, abort.signal); } catch (error) { if (!abort.signal.aborted) this.broken("The list cannot be read.", error.message); return; }
    if (abort.signal.aborted || !item) return;
    this.item = item;
    const name = shownName(item.name);
    this.number();
    this.said.textContent = `${kinds.names[item.kind]} ${name}, ${index + 1} of ${this.grid.total}`;
    this.download.href = server.original(item.path, true);
    this.changed(item);
    const code = item.details?.[5];
    if (item.kind === kinds.recording) this.showRecording(item, code);
    else if (code) this.refuse(item, code);
    else if (item.kind === kinds.video) this.showVideo(item);
    else if (item.kind === kinds.document) this.showDocument(item);
    else this.showPicture(item);
    if (!this.info.hidden) this.describe();
    this.preload(index + 1);
    this.preload(index - 1);
  }

  // The neighbours, behind the work of everyone else.
  preload(index) {
    const item = this.grid.item(index);
    if (!item || item.kind === kinds.video || this.grid.known.get(this.grid.key(item))?.[5]) return;
    const { signal } = this.abort;
    setTimeout(() => {
      if (signal.aborted) return;
      const side = rungs.find((one) => one >= Math.max(innerWidth, innerHeight) * devicePixelRatio * 0.95) ?? rungs.at(-1);
      const url = server.image(server.join(this.grid.path, item.name), `rs:fit:${side}:${side}`, item.version, server.format(item.name));
      server.prepare(url, signal).catch(() => { /* it is asked for when it is shown */ });
    }, 500);
  }

  // The shown file has gone or is another one by now.
  async follow(index, item) {
    if (!this.isOpen) return;
    if (!item) {
      if (this.isGone) return;
      this.isGone = true;
      this.said.textContent = "The file is gone.";
      this.zoom?.destroy();
      this.body.replaceChildren();
      this.broken("This file is gone.", "It was deleted or renamed.");
      return;
    }
    const isSame = item.version === this.item?.version && !this.isGone;
    this.index = index;
    if (isSame) return this.number();
    this.isGone = true;
    await this.show(index);
  }

  // The place of the picture among the others.
  number() {
    const name = shownName(this.item.name);
    this.title.replaceChildren(element("bdi", { textContent: name }), " ", element("small", { textContent: `${(this.index + 1).toLocaleString()} of ${this.grid.total.toLocaleString()}` }));
    this.previous.disabled = this.index === 0;
    this.next.disabled = this.index >= this.grid.total - 1;
  }

  placeholder(item) {
    const tile = this.grid.tiles.get(this.grid.key(item));
    if (tile?.picture?.complete && tile.state === "shown") return element("img", { src: tile.picture.currentSrc, alt: "" });
    if (!item.details?.[2]) return null;
    const canvas = element("canvas");
    try { return drawThumbHash(item.details[2], canvas) ? canvas : null; } catch { return null; }
  }

  size(item) { return item.details?.[0] ? { width: item.details[0], height: item.details[1] } : null; }

  // The proportions of a document's pages, as far as they are known.
  shape(item) {
    const aspect = this.zoom?.size ? this.zoom.size.width / this.zoom.size.height : this.grid.aspects.get(this.grid.key(item));
    return aspect ? { width: 1000 * aspect, height: 1000 } : this.size(item);
  }

  stage(className = "") {
    const stage = element("div", { className: `stage ${className}`, role: "img", "aria-label": shownName(this.item.name) });
    this.body.append(stage);
    return stage;
  }

  attach(zoom) {
    this.zoom = zoom;
    const { item, index } = this, { signal } = this.abort;
    zoom.broken = async () => {
      const code = await this.grid.failure(index, signal);
      if (!signal.aborted) this.refuse(item, code);
    };
    zoom.changed = (scale, relative) => {
      this.zoomText.textContent = `${Math.round(relative * 100)} %`;
      this.zoomText.classList.toggle("shown", scale > 1.01);
    };
  }

  async showPicture(item) {
    const { signal } = this.abort;
    const format = server.format(item.name);
    const isAnimated = server.isAnimated(item.name, item.details) && item.bytes < 32e6;
    const isVector = item.kind === kinds.font || /\.svgz?$/i.test(item.name);
    let size = this.size(item);
    if (!size) {
      // Its header tells nothing to those who do not decode it.
      const known = await server.information(item.path, item.version, signal).catch(() => null);
      if (signal.aborted) return;
      if (known?.width) size = { width: known.width, height: known.height };
    }
    this.attach(new Zoom(this.stage(), {
      url: (side) => (isAnimated ? server.original(item.path) : server.image(item.path, `rs:fit:${side}:${side}`, item.version, format)),
      size, tile: isAnimated || isVector || item.kind !== kinds.image ? null : server.tile(item.path, item.version, format),
      placeholder: this.placeholder(item), isVector,
      swiped: (direction) => (direction ? this.step(direction) : this.close()),
    }));
  }

  // A document: a strip of pages, and the current one.

  async showDocument(item) {
    const { signal } = this.abort;
    this.page = 0;
    const strip = element("nav", { className: "strip", "aria-label": "Pages" });
    this.body.append(strip);
    this.strip = strip;
    this.turn(0);
    let known;
    try { known = await server.information(item.path, item.version, signal); } catch { return; }
    if (signal.aborted) return;
    this.pages = known.pages;
    if (known.pages < 2) return this.withoutStrip();
    const observer = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        const picture = target.querySelector("img");
        if (isIntersecting && !picture.src) {
          picture.src = server.image(item.path, `pg:${target.dataset.page}/w:208`, item.version, "jpg");
        } else if (!isIntersecting && picture.src && !picture.complete) picture.removeAttribute("src");
      }
    }, { root: strip, rootMargin: "200px" });
    signal.addEventListener("abort", () => observer.disconnect());
    for (let page = 0; page < Math.min(known.pages, 2000); page += 1) {
      const entry = element("button", { type: "button", "aria-label": `Page ${page + 1}`, "aria-current": String(page === this.page), onclick: () => this.turn(page) },
        element("img", { alt: "" }), String(page + 1));
      entry.dataset.page = page;
      strip.append(entry);
      observer.observe(entry);
    }
  }

  // One page alone has the whole window.
  withoutStrip() {
    this.strip.remove();
    this.body.querySelector(".stage")?.classList.remove("paged");
  }

  turn(page) {
    if (page < 0 || (this.pages && page >= this.pages)) return;
    const { item } = this;
    this.page = page;
    this.zoom?.destroy();
    this.body.querySelector(".stage")?.remove();
    const stage = this.stage("paged");
    stage.setAttribute("aria-label", `${shownName(item.name)}, page ${page + 1}`);
    this.attach(new Zoom(stage, {
      url: (side) => server.image(item.path, `pg:${page}/rs:fit:${side}:${side}`, item.version, "jpg"),
      size: this.shape(item), tile: null, placeholder: null, isVector: true, swiped: (direction) => (direction ? this.turn(page + direction) : this.close()),
    }));
    for (const entry of this.strip.children) {
      const isCurrent = Number(entry.dataset.page) === page;
      entry.setAttribute("aria-current", String(isCurrent));
      if (isCurrent) entry.scrollIntoView({ block: "nearest" });
    }
    this.said.textContent = `Page ${page + 1}`;
  }

  // A video: the file itself, and frames of it to jump to.

  async showVideo(item) {
    const { signal } = this.abort;
    const video = element("video", {
      controls: true, preload: "metadata", playsInline: true, src: server.original(item.path), tabIndex: 0,
      poster: server.image(item.path, "h:720", item.version, "jpg"), "aria-label": shownName(item.name),
    });
    video.addEventListener("error", () => {
      if (signal.aborted) return;
      video.removeAttribute("controls");
      this.said.textContent = "This browser cannot play the video. Frames of it are shown.";
    });
    this.body.append(video);
    signal.addEventListener("abort", () => { video.pause(); video.removeAttribute("src"); video.load(); });
    let known;
    try { known = await server.information(item.path, item.version, signal); } catch (error) {
      if (!signal.aborted && error.status) this.refuse(item, error.code);
      return;
    }
    if (signal.aborted || !known.duration) return;
    const length = known.duration;
    const frame = (second, height) => server.image(item.path, `second:${second.toFixed(2)}/h:${height}`, item.version, "jpg");
    const frames = element("div", { className: "frames", role: "slider", tabIndex: 0, "aria-label": "Storyboard", "aria-valuemin": "0", "aria-valuemax": String(Math.round(length)), "aria-valuenow": "0" });
    const count = Math.max(4, Math.min(14, Math.round(innerWidth / 130)));
    for (let step = 0; step < count; step += 1) frames.append(element("img", { alt: "", src: frame((length * (step + 0.5)) / count, 120), draggable: false }));
    const needle = element("div", { className: "needle" });
    frames.append(needle);
    const peek = element("div", { className: "peek", hidden: true }, element("img", { alt: "" }), element("span"));
    const board = element("div", { className: "storyboard" }, frames, peek);
    this.body.append(board);
    const show = () => {
      needle.style.left = `${(video.currentTime / length) * 100}%`;
      frames.setAttribute("aria-valuenow", String(Math.round(video.currentTime)));
      frames.setAttribute("aria-valuetext", timeText(video.currentTime));
    };
    video.addEventListener("timeupdate", show);
    video.addEventListener("seeking", show);
    let wanted = null, isLoading = false;
    const image = peek.querySelector("img");
    const look = () => {
      if (wanted === null || isLoading) return;
      isLoading = true;
      image.onload = image.onerror = () => { isLoading = false; look(); };
      image.src = frame(wanted, 240);
      wanted = null;
    };
    const place = (event) => {
      const box = frames.getBoundingClientRect();
      const part = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
      peek.hidden = false;
      peek.style.left = `${Math.min(innerWidth - 130, Math.max(130, event.clientX))}px`;
      peek.querySelector("span").textContent = timeText(part * length);
      // A hundred frames at most, so that they are made once.
      wanted = (Math.floor(part * 100) / 100) * length;
      look();
      return part * length;
    };
    frames.addEventListener("pointermove", (event) => { const second = place(event); if (event.buttons & 1) video.currentTime = second; });
    frames.addEventListener("pointerdown", (event) => { frames.setPointerCapture(event.pointerId); video.currentTime = place(event); });
    frames.addEventListener("pointerleave", () => { peek.hidden = true; });
    frames.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -length / 20, ArrowRight: length / 20 }[event.key];
      if (!by) return;
      event.preventDefault();
      event.stopPropagation();
      video.currentTime = Math.min(length, Math.max(0, video.currentTime + by));
    });
    this.video = video;
  }

  // A recording: its cover, if it has one, and its sound.

  async showRecording(item, code) {
    const { signal } = this.abort;
    const plate = (reason) => this.body.prepend(element("div", { className: "broken sound" }, icon("music"), element("strong", {}, element("bdi", { textContent: shownName(item.name) })), reason ? element("span", { textContent: reason }) : null));
    const audio = element("audio", { controls: true, preload: "metadata", src: server.original(item.path), "aria-label": shownName(item.name) });
    audio.addEventListener("error", () => {
      if (signal.aborted) return;
      audio.remove();
      this.body.append(element("p", { className: "mute", role: "status", textContent: "This browser cannot play the recording. Download it to hear it." }));
    });
    signal.addEventListener("abort", () => { audio.pause(); audio.removeAttribute("src"); audio.load(); });
    this.body.append(audio);
    if (code) plate(kinds.longReason(code, item.kind)[1]);
    else {
      await this.showPicture(item);
      if (signal.aborted) return;
      // The plate stands in the place of the cover.
      this.zoom.broken = async () => {
        const found = await this.grid.failure(this.index, signal);
        if (signal.aborted) return;
        this.body.querySelector(".stage")?.remove();
        plate(kinds.longReason(found, item.kind)[1]);
      };
    }
  }

  // Tells why a file cannot be shown.
  refuse(item, code) {
    if (this.body.querySelector(".broken")) return;
    this.zoom?.destroy();
    this.zoom = null;
    this.body.replaceChildren();
    this.strip = null;
    const [title, reason] = kinds.longReason(code, item.kind);
    this.broken(title, reason);
  }

  broken(title, reason) {
    this.body.append(element("div", { className: "broken", role: "alert" }, element("strong", { textContent: title }), element("span", { textContent: reason })));
  }

  clear() {
    this.abort?.abort();
    this.zoom?.destroy();
    this.zoom = null;
    this.video = null;
    this.strip = null;
    this.isGone = false;
    this.pages = 0;
    this.zoomText.classList.remove("shown");
    this.body.replaceChildren();
  }

  step(by) {
    // In the place of a file that is gone is the next one.
    const index = this.index + (this.isGone && by > 0 ? 0 : by);
    if (index >= 0 && index < this.grid.total) this.show(index);
  }

  close() { this.dialog.close(); }

  // Information

  toggleInfo() {
    this.info.hidden = !this.info.hidden;
    this.dialog.classList.toggle("informed", !this.info.hidden);
    this.infoButton.setAttribute("aria-pressed", String(!this.info.hidden));
    if (!this.info.hidden) this.describe();
  }

  async describe() {
    const { item } = this;
    const { signal } = this.abort;
    const list = element("dl");
    const add = (name, value) => { if (value) list.append(element("dt", { textContent: name }), element("dd", {}, value)); };
    this.info.replaceChildren(element("h3", {}, element("bdi", { textContent: shownName(item.name) })), list);
    add("Folder", element("bdi", { textContent: shownName(this.grid.path) || "/" }));
    add("Size", bytesText(item.bytes));
    add("Changed", new Date(item.time * 1000).toLocaleString());
    let known;
    try { known = await server.information(item.path, item.version, signal); } catch (error) {
      if (!signal.aborted) add("Content", error.code ? kinds.longReason(error.code, item.kind)[1] : "It cannot be read.");
      return;
    }
    if (signal.aborted) return;
    add("Type", known.mediaType);
    if (known.width) add(known.kind === "document" ? "Page" : "Dimensions", `${known.width} × ${known.height}${known.kind === "document" ? " pt" : ` · ${((known.width * known.height) / 1e6).toFixed(1)} MP`}`);
    if (known.pages > 1) add(known.kind === "document" ? "Pages" : "Frames", String(known.pages));
    if (known.duration) add("Duration", timeText(known.duration));
    if (known.hasAlpha) add("Transparency", "Yes");
    const exif = known.exif ?? {};
    add("Taken", exif.dateTaken?.replace(/^(\d+):(\d+):/, "$1-$2-"));
    // Many models begin with the name of the maker.
    const isNamed = exif.make && exif.model?.toLowerCase().startsWith(exif.make.split(" ")[0].toLowerCase());
    add("Camera", isNamed ? exif.model : [exif.make, exif.model].filter(Boolean).join(" "));
    if (exif.exposureTime) add("Exposure", exif.exposureTime < 0.5 ? `1/${Math.round(1 / exif.exposureTime)} s` : `${exif.exposureTime} s`);
    if (exif.aperture) add("Aperture", `f/${exif.aperture.toFixed(1)}`);
    if (exif.sensitivity) add("ISO", String(exif.sensitivity));
    if (exif.focalLength) add("Focal length", `${Math.round(exif.focalLength)} mm`);
    add("Artist", exif.artist);
    add("Copyright", exif.copyright);
    if (known.dominantColors?.length) {
      const swatches = element("span", { className: "swatches", role: "img", "aria-label": known.dominantColors.join(", ") });
      for (const colour of known.dominantColors) {
        const swatch = element("i", { title: colour });
        swatch.style.background = colour;
        swatches.append(swatch);
      }
      add("Colours", swatches);
    }
  }

  // Keys

  pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const isVideo = event.target.matches("video, audio");
    const isZoomed = this.zoom && this.zoom.scale > 1.01;
    const far = 120;
    switch (event.key) {
      case "ArrowLeft": if (isVideo) return; if (isZoomed) this.zoom.pan(far, 0); else this.step(-1); break;
      case "ArrowRight": if (isVideo) return; if (isZoomed) this.zoom.pan(-far, 0); else this.step(1); break;
      case "ArrowUp": if (isVideo) return; if (isZoomed) this.zoom.pan(0, far); else if (this.strip) this.turn(this.page - 1); else return; break;
      case "ArrowDown": if (isVideo) return; if (isZoomed) this.zoom.pan(0, -far); else if (this.strip) this.turn(this.page + 1); else return; break;
      case "PageUp": if (this.strip) this.turn(this.page - 1); else this.step(-1); break;
      case "PageDown": if (this.strip) this.turn(this.page + 1); else this.step(1); break;
      case "Home": this.show(0); break;
      case "End": this.show(this.grid.total - 1); break;
      case "+": case "=": this.zoom?.zoom(this.zoom.scale * 1.4); break;
      case "-": this.zoom?.zoom(this.zoom.scale / 1.4); break;
      case "0": this.zoom?.zoom(1); break;
      case "i": this.toggleInfo(); break;
      case "d": this.download.click(); break;
      default: return;
    }
    event.preventDefault();
  }
}
