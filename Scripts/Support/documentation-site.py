"""Completes a documentation site of DocC: a landing page, a bar with one search, guides first in the side bar.

Usage: documentation-site.py SITE [--check]

With --check, instead checks that no link leads nowhere, that every guide is reached from the landing page and stands in
the side bar, and that every public symbol has documentation.
"""
import html, json, os, re, shutil, sys

site = sys.argv[1]
files = os.path.join(os.path.dirname(os.path.abspath(__file__)), "documentation")
bar = ('<header class="site-bar"><a class="site-skip" href="#app-main">Skip to content</a>'
       '<a class="site-name" href="/">Vitrine</a>'
       '<a href="/documentation/vitrine/">Guides</a><a href="/#modules">Modules</a>'
       '<form action="/search.html" role="search">'
       '<input name="q" type="search" placeholder="Search" aria-label="Search"></form></header>')


def load(path):
    with open(os.path.join(site, path), encoding="utf-8") as file: return json.load(file)


def save(path, text):
    with open(os.path.join(site, path), "w", encoding="utf-8") as file: file.write(text)


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


def rendered():
    """The path of each page and its content."""
    for directory, _, names in os.walk(os.path.join(site, "data", "documentation")):
        for name in sorted(names):
            if not name.endswith(".json"): continue
            page = load(os.path.relpath(os.path.join(directory, name), site))
            yield "/documentation/" + page["identifier"]["url"].split("/documentation/", 1)[-1].lower(), page


def abstract(page): return "".join(text(page.get("abstract", []), page.get("references", {})))


def complete():
    pages = dict(rendered())
    save_search(pages)
    root = load("data/documentation/vitrine.json")
    guides = [(section["title"], [root["references"][identifier] for identifier in section["identifiers"]])
              for section in root["topicSections"]]

    # Guides in reading order, then modules.
    index = load("index/index.json")
    for tree in index["interfaceLanguages"].values():
        [top] = tree
        [umbrella] = [node for node in top["children"] if node["path"] == "/documentation/vitrine"]
        others = [node for node in top["children"] if node is not umbrella]
        modules = [node["path"] for node in others]
        top["children"] = umbrella["children"] + [{"title": "Modules", "type": "groupMarker"}] + others
    save("index/index.json", json.dumps(index, ensure_ascii=False))

    # DocC's pages read this file: its own search stays away, and links have a contrast of 4.5 on every background.
    save("theme-settings.json", json.dumps({
        "theme": {"colors": {"link": {"light": "#0058d0", "dark": "#4aa3ff"}}},
        "features": {"docs": {"quickNavigation": {"enable": False}}},
    }))
    for name in ("site.css", "site.js", "search.js"): shutil.copy(os.path.join(files, name), site)
    item = lambda path, title, words: (
        f'<li><a href="{path}/">{html.escape(title)}</a><p>{html.escape(words)}</p></li>')
    body = ['<h1>Vitrine</h1><p class="abstract">' + html.escape(abstract(root)) + "</p>"]
    with open(os.path.join(files, "landing.html"), encoding="utf-8") as file: body.append(file.read())
    body.append('<h2 id="guides">Guides</h2>')
    for title, references in guides:
        body.append(f"<h3>{html.escape(title)}</h3><ul>")
        for reference in references:
            words = "".join(text(reference.get("abstract", []), root["references"]))
            body.append(item(reference["url"], reference["title"], words))
        body.append("</ul>")
    body.append('<h2 id="modules">Modules</h2><ul>')
    for path in modules: body.append(item(path, pages[path]["metadata"]["title"], abstract(pages[path])))
    body.append("</ul>")
    landing = document("Vitrine", "\n".join(body))
    for directory, _, names in os.walk(os.path.join(site, "documentation")):
        for name in names:
            if name != "index.html": continue
            path = os.path.relpath(os.path.join(directory, name), site)
            with open(os.path.join(site, path), encoding="utf-8") as file: source = file.read()
            source = source.replace("</head>", '<link href="/site.css" rel="stylesheet">'
                                    '<script src="/site.js" defer></script></head>', 1)
            save(path, re.sub(r"(<body[^>]*>)", lambda match: match[1] + bar, source, count=1))
    for path in ("index.html", "documentation/index.html"): save(path, landing)
    save("search.html", document("Search Vitrine", """<h1>Search</h1>
<form><input id="query" name="q" type="search" placeholder="Guides and symbols" aria-label="Search"></form>
<p id="count" role="status"></p><ul id="results"></ul><script src="/search.js"></script>""", search=False))
    print(f"search.html finds {len(pages)} pages")


def document(title, body, search=True):
    head = bar if search else re.sub(r"<form.*</form>", "", bar)
    return ('<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="/favicon.ico">'
            f'<title>{title}</title><link href="/site.css" rel="stylesheet"></head><body class="site-page">{head}\n'
            f'<main id="app-main">\n{body}\n</main></body></html>\n')


def save_search(pages):
    entries = []
    for path, page in pages.items():
        metadata, references = page.get("metadata", {}), page.get("references", {})
        # The types around a member, without its module.
        paths = page["hierarchy"]["paths"]
        around = [references.get(identifier, {}) for identifier in (paths[-1][1:] if paths else [])]
        parents = [reference["title"] for reference in around if reference.get("role") == "symbol"]
        is_article = page.get("kind") == "article"
        title = metadata.get("title", path)
        kind = metadata.get("roleHeading") or ("Guide" if is_article else "")
        # The title of a type within another one has its whole name.
        if parents and title.startswith(parents[0] + "."): parents = []
        symbol = metadata.get("symbolKind")
        types = ("class", "struct", "enum", "protocol", "macro", "typealias")
        rank = 0 if is_article or symbol == "module" else 1 if symbol in types else 2
        entries.append({
            "title": title, "path": path + "/",
            "module": page["identifier"]["url"].split("/documentation/", 1)[-1].split("/")[0],
            "kind": "Guide" if kind == "Article" else kind, "parent": ".".join(parents), "rank": rank,
            "abstract": abstract(page),
            # The text of articles is searched whole, that of symbols by title and summary.
            "text": " ".join(text(page.get("primaryContentSections", []), references))[:20000] if is_article else "",
        })
    entries.sort(key=lambda entry: (entry["rank"], len(entry["path"]), entry["path"]))
    save("search.json", json.dumps(entries, ensure_ascii=False))


def check():
    findings = []
    pages = dict(rendered())

    def is_there(target):
        path = os.path.join(site, target.lstrip("/"))
        return os.path.isfile(os.path.join(path, "index.html") if os.path.isdir(path) else path)

    for path, page in pages.items():
        for reference in page.get("references", {}).values():
            # What DocC wrote, with the pictures in all their sizes.
            targets = [variant["url"] for variant in reference.get("variants", [])] + [reference.get("url", "")]
            for target in targets:
                target = target.split("#")[0]
                if target.startswith("/") and not is_there(target): findings.append(f"{path}: {target} does not exist")
        # Types of other modules that a module extends have their documentation there.
        is_extended = page.get("metadata", {}).get("roleHeading", "").startswith("Extended")
        if page.get("kind") == "symbol" and not is_extended and not page.get("abstract"):
            findings.append(f"{path} has no documentation")
    for name in ("index.html", "documentation/index.html", "search.html"):
        with open(os.path.join(site, name), encoding="utf-8") as file: source = file.read()
        links = re.findall(r'(?:href|src|action)="(/[^"#]*)', source)
        findings += [f"{name}: {target} does not exist" for target in links if not is_there(target)]
        if name != "index.html": continue
        index = json.dumps(load("index/index.json"))
        for path, page in pages.items():
            if page.get("kind") != "article" or not path.startswith("/documentation/vitrine/"): continue
            if path + "/" not in links: findings.append(f"the landing page does not lead to {path}")
            if f'"{path}"' not in index: findings.append(f"the side bar does not lead to {path}")
    for finding in sorted(set(findings)): print(finding, file=sys.stderr)
    print(f"{len(pages)} pages, {len(set(findings))} findings")
    sys.exit(1 if findings else 0)


check() if "--check" in sys.argv[2:] else complete()
