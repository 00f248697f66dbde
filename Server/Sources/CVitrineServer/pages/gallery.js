import { element, icon, shownName } from "./dom.js";
import { Grid, statistics } from "./grid.js";
import * as kinds from "./kinds.js";
import { Lightbox } from "./lightbox.js";
import { tileStatistics } from "./tiles.js";
import * as server from "./server.js";

const at = (id) => document.getElementById(id);
const pageSize = 100;
const shownAlbums = 60;

// The address: #/folder/folder?q=words&sort=date-&after=2026-01-01&before=…&view=name
function readAddress() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const parameters = new URLSearchParams(query);
  const decode = (text) => { try { return decodeURIComponent(text); } catch { return text; } };
  return {
    path: path.split("/").filter(Boolean).map(decode).join("/"),
    words: parameters.get("q") ?? "", sort: parameters.get("sort") ?? "name",
    after: parameters.get("after") ?? "", before: parameters.get("before") ?? "", view: parameters.get("view"),
  };
}

function address(place) {
  const query = new URLSearchParams();
  if (place.words) query.set("q", place.words);
  if (place.sort !== "name") query.set("sort", place.sort);
  if (place.after) query.set("after", place.after);
  if (place.before) query.set("before", place.before);
  if (place.view) query.set("view", place.view);
  const path = place.path.split("/").filter(Boolean).map(encodeURIComponent).join("/");
  return `#/${path}${query.size ? `?${query}` : ""}`;
}

let place = readAddress();
let loading = null;
let loaded = null;
let events = null;
let title = "Gallery";

const grid = new Grid(at("grid"), {
  open: async (index) => {
    const item = await grid.whole(index).catch(() => null);
    if (item) go({ ...place, view: item.name }, { index });
  },
  place: (item) => {
    const hint = at("when");
    if (item) {
      hint.textContent = place.sort.startsWith("date")
        ? new Date(item.time * 1000).toLocaleDateString(undefined, { year: "numeric", month: "long" })
        : shownName(item.name.split("/").at(-1)).slice(0, 18);
    }
    hint.classList.toggle("shown", Boolean(item));
  },
});
grid.failed = (error) => failed(error);

const lightbox = new Lightbox(grid, {
  changed: (item) => {
    place = { ...place, view: item.name };
    history.replaceState(history.state, "", address(place));
    document.title = `${shownName(item.name)} · ${title}`;
  },
  closed: (index) => {
    document.title = title;
    if (place.view !== null) {
      place = { ...place, view: null };
      if (history.state?.isView) history.back(); else history.replaceState(null, "", address(place));
    }
    if (index >= 0) grid.focus(index);
  },
});

function go(next, { index } = {}) {
  const isView = Boolean(next.view);
  history.pushState({ isView }, "", address(next));
  follow(index);
}

// Shows what the address says.
function follow(index) {
  const next = readAddress();
  const isSame = loaded && ["path", "words", "sort", "after", "before"].every((name) => next[name] === place[name]);
  place = next;
  if (!isSame) return load();
  if (place.view) {
    const found = index ?? grid.indexOf(place.view);
    if (found >= 0) lightbox.show(found); else find(place.view);
  } else if (lightbox.isOpen) {
    place = { ...place, view: null };
    lightbox.close();
  }
}

// A picture that is not on the pages that are read, or not in the listing yet.
async function find(name) {
  try {
    const { found } = await server.folder({ ...query(), listing: loaded.listing, find: name, limit: 1 });
    if (place.view !== name) return;
    if (found === undefined) load(); else lightbox.show(found);
  } catch (error) { failed(error); }
}

function query() {
  const day = (text, end) => (text ? Math.floor(new Date(`${text}T${end ? "23:59:59" : "00:00:00"}`).getTime() / 1000) : null);
  return {
    path: place.path, q: place.words, sort: place.sort.replace("-", ""), descending: place.sort.endsWith("-") ? 1 : null,
    after: day(place.after), before: day(place.before, true), limit: pageSize,
  };
}

async function load() {
  loading?.abort();
  const abort = new AbortController();
  loading = abort;
  if (lightbox.isOpen && !place.view) lightbox.close();
  bar();
  at("summary").textContent = place.words ? "Searching…" : "";
  try {
    const listing = await server.folder({ ...query(), find: place.view }, abort.signal);
    if (abort.signal.aborted) return;
    loaded = listing;
    failure(null);
    grid.current = 0;
    grid.show(listing, { path: place.path });
    scrollTo(0, 0);
    described(listing);
    listen();
    if (place.view) {
      if (listing.found !== undefined) lightbox.show(listing.found); else missing();
    }
  } catch (error) {
    if (error.name !== "AbortError") { loaded = null; failed(error); }
  }
}

// The address names a file that is not in its folder.
function missing() {
  if (lightbox.isOpen) lightbox.close();
  notice(`There is no file “${shownName(place.view)}” here. It may have been renamed or deleted.`, { lasts: 12000 });
  place = { ...place, view: null };
  history.replaceState(null, "", address(place));
}

function described(listing) {
  title = place.path ? shownName(place.path.split("/").at(-1)) : listing.title;
  document.title = title;
  bar();
  const isSearch = place.words || place.after || place.before;
  const parts = [];
  if (listing.folders.length) parts.push(kinds.counted(listing.folders.length, "album", "albums"));
  if (isSearch) parts.push(kinds.counted(listing.total, "result", "results")); else parts.push(...kinds.counts(listing.kinds));
  if (listing.truncated) parts.push("more than a list can hold: some are left out");
  at("summary").textContent = parts.join(" · ");
  albums(listing.folders);
  if (listing.total) at("grid").setAttribute("aria-label", isSearch ? "Results" : "Photos and files"); else at("grid").removeAttribute("aria-label");
  if (!listing.total && !listing.folders.length) {
    if (isSearch) failure("picture", "Nothing found", "No name in this folder and those below it has all of these words.");
    else failure("folder", "An empty folder", "Photos, videos, music, books, documents and fonts appear here as soon as they are copied into it.");
  } else failure(null);
}

// The bar

function bar() {
  const names = place.path.split("/").filter(Boolean);
  const entries = [["", loaded?.title ?? "Gallery"], ...names.map((name, index) => [names.slice(0, index + 1).join("/"), shownName(name)])];
  at("crumbs").replaceChildren(...entries.map(([path, text], index) => element("li", {},
    index === entries.length - 1
      ? element("h1", { "aria-current": "page" }, element("bdi", { textContent: text }))
      : element("a", { href: address({ path, sort: place.sort }) }, element("bdi", { textContent: text })))));
  if (document.activeElement !== at("words")) at("words").value = place.words;
  at("sort").value = place.sort;
  at("after").value = place.after;
  at("before").value = place.before;
  at("dates").classList.toggle("set", Boolean(place.after || place.before));
}

let typing;
at("words").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => change({ words: at("words").value.trim() }), 220);
});
at("search").addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(typing);
  change({ words: at("words").value.trim() });
  grid.focus(0);
});

// Typing does not fill the history.
function change(values) {
  const next = { ...place, ...values, view: null };
  if (address(next) === address(place)) return;
  history.replaceState(null, "", address(next));
  follow();
}

at("sort").addEventListener("change", () => change({ sort: at("sort").value }));
for (const id of ["after", "before"]) at(id).addEventListener("change", () => change({ [id]: at(id).value }));
at("clear-dates").addEventListener("click", () => { at("after").value = ""; at("before").value = ""; change({ after: "", before: "" }); });
at("dates").addEventListener("click", () => {
  const panel = at("date-panel");
  panel.hidden = !panel.hidden;
  at("dates").setAttribute("aria-expanded", String(!panel.hidden));
  if (!panel.hidden) at("after").focus();
});
at("skip").addEventListener("click", (event) => { event.preventDefault(); if (grid.total) grid.focus(grid.current); else at("content").focus(); });
addEventListener("scroll", () => document.querySelector(".bar").classList.toggle("raised", scrollY > 4), { passive: true });

const dark = matchMedia("(prefers-color-scheme: dark)");
function theme(name) {
  if (name) document.documentElement.dataset.theme = name;
  const isDark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : dark.matches;
  at("theme").setAttribute("aria-pressed", String(isDark));
  return isDark;
}
let kept = null;
try { kept = localStorage.getItem("theme"); } catch { /* not allowed */ }
theme(kept);
dark.addEventListener("change", () => theme());
at("theme").addEventListener("click", () => {
  const name = theme() ? "light" : "dark";
  theme(name);
  try { localStorage.setItem("theme", name); } catch { /* not allowed */ }
});

addEventListener("keydown", (event) => {
  if (lightbox.isOpen || event.ctrlKey || event.metaKey || event.altKey) return;
  const isText = event.target.closest?.("input, select");
  if (event.key === "/" && !isText) { event.preventDefault(); at("words").focus(); at("words").select(); }
  if (event.key === "Escape") {
    if (!at("date-panel").hidden) { at("date-panel").hidden = true; at("dates").setAttribute("aria-expanded", "false"); at("dates").focus(); }
    else if (event.target === at("words")) { at("words").value = ""; change({ words: "" }); at("words").blur(); }
  }
  if (event.key === "ArrowDown" && event.target === at("words") && grid.total) { event.preventDefault(); grid.focus(0); }
  if (["ArrowDown", "ArrowRight"].includes(event.key) && event.target === document.body && grid.total) { event.preventDefault(); grid.focus(grid.current); }
});

// Albums

const covers = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting || target.dataset.asked) continue;
    target.dataset.asked = "1";
    covers.unobserve(target);
    cover(target);
  }
}, { rootMargin: "200px" });

async function cover(album) {
  const path = album.dataset.path;
  try {
    const { names } = await server.cover(path);
    if (!names.length || !album.isConnected) return;
    const picture = element("img", { alt: "", decoding: "async", draggable: false });
    // The first file that has a picture.
    const show = () => {
      const name = names.shift();
      if (!name) return picture.remove();
      const file = server.join(path, name);
      const url = (width) => server.image(file, `rs:fill:${width}:${Math.round(width * 0.75)}`, "c", server.format(file));
      picture.srcset = `${url(320)} 1x, ${url(640)} 2x`;
    };
    picture.onload = () => picture.classList.add("shown");
    picture.onerror = show;
    show();
    album.querySelector(".cover").append(picture);
  } catch (error) {
    if (error.code !== "not-readable") return;
    album.querySelector(".cover").replaceChildren(icon("closed"));
    album.querySelector(".name").append(element("small", { textContent: "Not readable" }));
  }
}

function albums(folders, isAll = false) {
  const section = at("albums");
  section.hidden = folders.length === 0;
  covers.disconnect();
  const known = new Map([...section.querySelectorAll(".album")].map((node) => [node.dataset.path, node.parentElement]));
  const nodes = (isAll ? folders : folders.slice(0, shownAlbums)).map((name) => {
    const path = server.join(place.path, name);
    const old = known.get(path);
    if (old) return old;
    const link = element("a", { className: "album", href: address({ path, words: "", sort: place.sort }) },
      element("span", { className: "cover" }, icon("folder")), element("span", { className: "name" }, element("bdi", { textContent: shownName(name) })));
    link.dataset.path = path;
    return element("li", {}, link);
  });
  if (nodes.length < folders.length) {
    nodes.push(element("li", {}, element("button", { type: "button", className: "plain", textContent: `Show all ${folders.length.toLocaleString()} albums`, onclick: () => albums(folders, true) })));
  }
  section.replaceChildren(...nodes);
  for (const node of section.querySelectorAll(".album")) if (!node.dataset.asked) covers.observe(node);
}

// Failures and changes

function failure(symbol, heading, text, retry) {
  const state = at("state");
  state.hidden = !symbol;
  if (!symbol) return state.replaceChildren();
  state.setAttribute("role", retry ? "alert" : "status");
  state.replaceChildren(icon(symbol), element("h2", { textContent: heading }), element("p", { textContent: text }));
  if (retry) state.append(element("button", { type: "button", className: "plain", textContent: "Try again", onclick: retry }));
}

function failed(error) {
  if (error.status === 401) return askForToken();
  if (error.status === 410 && loaded) return refresh();
  if (loaded) return notice("The server cannot be reached. What is loaded stays here.");
  at("summary").textContent = "";
  at("albums").hidden = true;
  grid.show({ listing: "", total: 0, offset: 0, items: [] }, { path: place.path });
  if (error.status === 404) failure("folder", "No such folder", "It may have been renamed or deleted.", load);
  else if (error.code === "not-readable") failure("closed", "This folder may not be read", "The server has no right to open it.", load);
  else if (error.status) failure("broken", "The server cannot show this folder", error.message, load);
  else failure("broken", "The server cannot be reached", "The connection may be interrupted, or the server stopped.", load);
}

// Above the lightbox, too.
let isTransient = false, resting;
function notice(text, { lasts = Infinity } = {}) {
  const node = at("notice");
  clearTimeout(resting);
  isTransient = lasts < Infinity;
  if (isTransient) resting = setTimeout(() => notice(null), lasts);
  node.textContent = text ?? "";
  if (Boolean(text) === node.matches(":popover-open")) return;
  if (text) node.showPopover(); else node.hidePopover();
}

// The server asks other machines for its token.
function askForToken() {
  loaded = null;
  events?.source.close();
  events = null;
  if (lightbox.isOpen) lightbox.close();
  for (const node of [document.querySelector(".bar"), at("content"), at("skip")]) node.hidden = true;
  at("door").hidden = false;
  at("token").focus();
}
at("door").addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = at("door-text");
  try {
    if (await server.signIn(at("token").value)) return location.reload();
    text.textContent = "This is not the token.";
  } catch { text.textContent = "The server cannot be reached."; }
  text.classList.add("bad");
  at("token").select();
});

function listen() {
  if (events?.path === place.path && events.source.readyState !== EventSource.CLOSED) return;
  events?.source.close();
  const source = server.changes(place.path);
  events = { path: place.path, source };
  let wasLost = false;
  source.addEventListener("changed", () => refresh());
  source.addEventListener("open", () => {
    if (!isTransient) notice(null);
    if (wasLost) refresh();
    wasLost = false;
  });
  source.addEventListener("error", () => {
    if (events?.source !== source) return;
    wasLost = true;
    notice("Offline. What is loaded stays here.");
    if (source.readyState === EventSource.CLOSED) setTimeout(() => { if (events?.source === source) { events = null; listen(); } }, 3000);
  });
}
addEventListener("offline", () => notice("Offline. What is loaded stays here."));
addEventListener("online", () => { notice(null); if (!loaded) load(); else refresh(); });

// Reads the folder again, and changes only what is different.
let refreshing = null, isStale = false;
async function refresh() {
  if (refreshing) { isStale = true; return; }
  refreshing = true;
  const began = performance.now();
  try {
    const asked = address({ ...place, view: null });
    const listing = await server.folder(query());
    const first = grid.blockAt(scrollY - grid.offset() - innerHeight), last = grid.blockAt(scrollY - grid.offset() + 2 * innerHeight);
    const pages = [];
    for (let block = Math.max(1, first); block <= last && block * pageSize < listing.total; block += 1) {
      pages.push(await server.folder({ ...query(), listing: listing.listing, offset: block * pageSize }));
    }
    if (asked !== address({ ...place, view: null })) return;
    loaded = listing;
    grid.show(listing, { path: place.path, keepsPlace: true, pages });
    described(listing);
    if (lightbox.isOpen && place.view) {
      let index = grid.indexOf(place.view);
      if (index < 0) {
        // It may be on a page that is not read.
        index = (await server.folder({ ...query(), listing: listing.listing, find: place.view, limit: 1 })).found ?? -1;
      }
      await lightbox.follow(index, index < 0 ? null : await grid.whole(index));
    }
  } catch (error) {
    if (error.status) failed(error);
  } finally {
    refreshing = null;
    // A folder that changes all the time is read a fifth of it.
    if (isStale) { isStale = false; setTimeout(refresh, Math.max(500, 4 * (performance.now() - began))); }
  }
}

addEventListener("popstate", () => follow());
addEventListener("hashchange", () => { if (address(readAddress()) !== address(place)) follow(); });
addEventListener("pagehide", () => events?.source.close());
addEventListener("pageshow", (event) => { if (event.persisted) { events = null; listen(); } });

// For tests and measurements.
globalThis.gallery = { grid, lightbox, statistics, tileStatistics, refresh };
if ("scrollRestoration" in history) history.scrollRestoration = "manual";
load();
