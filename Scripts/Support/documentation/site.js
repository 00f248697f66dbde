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
new MutationObserver(addButtons).observe(document.documentElement, { childList: true, subtree: true });
addButtons();

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
