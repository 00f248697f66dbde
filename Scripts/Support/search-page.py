"""Adds a search page to a documentation site of DocC: search.html, which finds articles and symbols by words.

Usage: search-page.py SITE
"""
import json, os, sys

site = sys.argv[1]


def text(node, references):
    """All words of rendered content."""
    if isinstance(node, dict):
        if node.get("type") == "reference":
            return [references.get(node["identifier"], {}).get("title", "")]
        if node.get("type") in ("text", "codeVoice"): return [node.get("text", node.get("code", ""))]
        if node.get("type") == "codeListing": return node.get("code", [])
        return [word for key, value in node.items() if key != "references" for word in text(value, references)]
    if isinstance(node, list): return [word for value in node for word in text(value, references)]
    return []


pages = []
for directory, _, files in os.walk(os.path.join(site, "data", "documentation")):
    for name in sorted(files):
        if not name.endswith(".json"): continue
        with open(os.path.join(directory, name), encoding="utf-8") as file: page = json.load(file)
        references = page.get("references", {})
        metadata = page.get("metadata", {})
        path = page["identifier"]["url"].split("/documentation/", 1)[-1]
        module = path.split("/")[0]
        pages.append({
            "title": metadata.get("title", path), "path": "documentation/" + path.lower() + "/", "module": module,
            "kind": metadata.get("roleHeading") or page.get("kind", ""),
            "abstract": "".join(text(page.get("abstract", []), references)),
            # The text of articles is searched whole, that of symbols by title and summary.
            "text": " ".join(text(page.get("primaryContentSections", []), references))[:20000] if page.get("kind") == "article" else "",
        })
pages.sort(key=lambda page: (page["kind"] != "Article", len(page["path"]), page["path"]))
with open(os.path.join(site, "search.json"), "w", encoding="utf-8") as file: json.dump(pages, file, ensure_ascii=False)

with open(os.path.join(site, "search.html"), "w", encoding="utf-8") as file: file.write("""<!doctype html>
<html lang="en">
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Search Vitrine</title>
<style>
  body { font: 17px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; color: #1d1d1f; }
  input { font: inherit; width: 100%; box-sizing: border-box; padding: .5rem .75rem; border: 1px solid #888; border-radius: 8px; }
  li { margin: 1rem 0; } ul { list-style: none; padding: 0; } small { color: #666; } a { color: #0066cc; }
  p { margin: 0; } @media (prefers-color-scheme: dark) { body { background: #1d1d1f; color: #f5f5f7; } a { color: #2997ff; } }
</style>
<h1>Search Vitrine</h1>
<form><input name="q" type="search" placeholder="Search guides and symbols" aria-label="Search" autofocus></form>
<p id="count" role="status"></p>
<ul id="results"></ul>
<p><a href="documentation/vitrine/">Guides</a> · <a href="documentation/">Modules</a></p>
<script>
const input = document.querySelector("input"), list = document.querySelector("#results"), count = document.querySelector("#count");
let pages = [];
function score(page, words) {
  let sum = 0;
  for (const word of words) {
    const title = page.title.toLowerCase();
    const found = title === word ? 100 : title.startsWith(word) ? 40 : title.includes(word) ? 20
      : page.abstract.toLowerCase().includes(word) ? 8 : page.text.toLowerCase().includes(word) ? 3 : 0;
    if (!found) return 0;
    sum += found;
  }
  return sum * (page.kind === "Article" ? 2 : 1);
}
function search() {
  const words = input.value.toLowerCase().split(/\\s+/).filter(Boolean);
  const found = words.length ? pages.map(page => [score(page, words), page]).filter(hit => hit[0] > 0) : [];
  found.sort((a, b) => b[0] - a[0]);
  count.textContent = words.length ? found.length + " results" : pages.length + " pages";
  list.replaceChildren(...found.slice(0, 50).map(([, page]) => {
    const item = document.createElement("li"), link = document.createElement("a"), kind = document.createElement("small");
    link.href = page.path; link.textContent = page.title;
    kind.textContent = " " + page.kind + " · " + page.module;
    const abstract = document.createElement("p");
    abstract.textContent = page.abstract;
    item.append(link, kind, abstract);
    return item;
  }));
}
input.addEventListener("input", search);
document.querySelector("form").addEventListener("submit", event => event.preventDefault());
fetch("search.json").then(response => response.json()).then(found => {
  pages = found;
  input.value = new URLSearchParams(location.search).get("q") ?? "";
  search();
});
</script>
</html>
""")
print(f"search.html finds {len(pages)} pages")
