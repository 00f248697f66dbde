// A button that copies each block of code, on pages that DocC draws by scripts at any time.
function addButtons() {
  for (const block of document.querySelectorAll(".code-listing:not(.site-copied)")) {
    block.classList.add("site-copied");
    if (block.querySelector(".copy-button")) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "site-copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(block.querySelector("pre").innerText.trimEnd());
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    block.append(button);
  }
}

// The side bar keeps entries for reuse far above the page. They repeat identifiers of the entries in sight, and may have
// a link that the keyboard would reach.
const kept = new WeakMap();
function setAsideUnusedEntries() {
  for (const entry of document.querySelectorAll(".navigator .vue-recycle-scroller__item-view")) {
    const isUnused = entry.style.transform.includes("-9999px");
    entry.toggleAttribute("inert", isUnused);
    for (const element of entry.querySelectorAll("*")) {
      if (isUnused && element.id) {
        kept.set(element, element.id);
        element.removeAttribute("id");
      } else if (!isUnused && kept.has(element)) {
        if (!element.id) element.id = kept.get(element);
        kept.delete(element);
      }
    }
  }
}

// What DocC's pages lack for the keyboard and for screen readers.
function completeElements() {
  addButtons();
  setAsideUnusedEntries();
  // The dots in the place of the pages above this one.
  for (const button of document.querySelectorAll(".hierarchy-collapsed-items > button"))
    button.setAttribute("aria-label", "Pages above this one");
  // A table that is wider than the page scrolls.
  for (const table of document.querySelectorAll(".table-wrapper")) {
    if (table.scrollWidth > table.clientWidth) table.setAttribute("tabindex", "0");
    else table.removeAttribute("tabindex");
  }
}
new MutationObserver(completeElements).observe(document.documentElement,
  { childList: true, subtree: true, attributeFilter: ["style"] });
addEventListener("resize", completeElements);
completeElements();

// The landing page is not one of DocC's, whose links would draw its own in the place.
document.addEventListener("click", event => {
  const link = event.target.closest?.("a[href]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (/^\/documentation\/?$/.test(link.pathname) && link.origin === location.origin) {
    event.preventDefault();
    event.stopImmediatePropagation();
    location.assign("/");
  }
}, true);
