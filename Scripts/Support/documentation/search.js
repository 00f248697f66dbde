// Finds guides and types before members.
const [input, list, count] = ["#query", "#results", "#count"].map(name => document.querySelector(name));
let pages = [];
function score(page, words) {
  let sum = 0;
  for (const word of words) {
    const title = page.title.toLowerCase();
    const found = title === word ? 100 : title.startsWith(word) ? 40 : title.includes(word) ? 20
      : page.parent.toLowerCase().includes(word) ? 10
      : page.abstract.toLowerCase().includes(word) ? 8
      : page.text.toLowerCase().includes(word) ? 3 : 0;
    if (!found) return 0;
    sum += found;
  }
  return sum;
}
function search() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = words.length ? pages.map(page => [score(page, words), page]).filter(hit => hit[0] > 0) : [];
  // Guides and types in one order by how well they match, then members.
  const isMember = hit => hit[1].rank === 2;
  found.sort((a, b) => isMember(a) - isMember(b) || b[0] - a[0] || a[1].rank - b[1].rank);
  count.textContent = words.length ? `${found.length} results` : `${pages.length} pages`;
  list.replaceChildren(...found.slice(0, 50).map(([, page]) => {
    const item = document.createElement("li"), link = document.createElement("a"), kind = document.createElement("small");
    link.href = page.path;
    link.textContent = page.parent ? `${page.parent}.${page.title}` : page.title;
    kind.textContent = ` ${page.kind} · ${page.module}`;
    const abstract = document.createElement("p");
    abstract.textContent = page.abstract;
    item.append(link, kind, abstract);
    return item;
  }));
}
input.addEventListener("input", search);
document.querySelector("main form").addEventListener("submit", event => event.preventDefault());
fetch("/search.json").then(response => response.json()).then(found => {
  pages = found;
  input.value = new URLSearchParams(location.search).get("q") ?? "";
  input.focus();
  search();
});
