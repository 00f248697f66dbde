import { element, isMotionReduced } from "./dom.js";
import * as server from "./server.js";

// Animations and videos of a grid that move below the pointer.
export class Previews {
  constructor(grid) {
    this.grid = grid;
    grid.root.addEventListener("pointerover", (event) => this.entered(event));
    grid.root.addEventListener("pointerout", (event) => this.left(event));
  }

  entered(event) {
    const link = event.target.closest(".tile");
    if (!link || link === this.hovered || event.pointerType === "touch" || isMotionReduced()) return;
    this.leave();
    this.hovered = link;
    this.hovering = setTimeout(() => this.preview(link), 350);
  }

  left(event) { if (this.hovered && !this.hovered.contains(event.relatedTarget)) this.leave(); }

  leave() {
    clearTimeout(this.hovering);
    this.hovered = null;
    this.stopPreview?.();
    this.stopPreview = null;
  }

  async preview(link) {
    const { grid } = this;
    const tile = [...grid.tiles.values()].find((one) => one.link === link);
    if (!tile || tile.state !== "shown") return;
    const path = server.join(grid.path, tile.item.name);
    const still = tile.picture;
    let details = grid.known.get(tile.key);
    const show = (sources, pause) => {
      let isOn = true, index = 0, timer;
      const moving = element("img", { className: "shown", alt: "", decoding: "async" });
      moving.onload = () => {
        if (!isOn) return;
        if (!moving.isConnected) still.after(moving);
        if (sources.length > 1) timer = setTimeout(next, pause);
      };
      const next = () => { if (isOn) { moving.src = sources[index % sources.length]; index += 1; } };
      moving.onerror = () => { if (sources.length > 1 && index < sources.length) next(); };
      next();
      this.stopPreview = () => { isOn = false; clearTimeout(timer); moving.removeAttribute("src"); moving.remove(); };
    };
    if (tile.item.kind === 0) {
      if (server.isAnimated(tile.item.name, details) && tile.item.bytes < 12e6) show([server.original(path)], 0);
    } else if (tile.item.kind === 2) {
      if (!details?.[4]) {
        const known = await server.information(path, tile.item.version).catch(() => null);
        if (!known?.duration || this.hovered !== link) return;
        details = [known.width, known.height, known.thumbHash, 1, known.duration];
        grid.known.set(tile.key, details);
        grid.decorate(tile);
      }
      const box = grid.box(tile.index);
      show(Array.from({ length: 8 }, (_, step) => server.image(
        path, `second:${((details[4] * (step + 0.5)) / 8).toFixed(2)}/${grid.options(box.h)}`, tile.item.version, "jpg")), 450);
    }
  }
}
