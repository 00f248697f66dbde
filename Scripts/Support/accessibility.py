"""Checks pages with axe in Chromium, light and dark, wide and narrow. Prints the findings; fails if there are any.

Usage: accessibility.py URL...

axe comes from PyPI into .build/axe; without it, or without Chromium, this says that it is skipped. Chromium is driven through
the pipes of its option --remote-debugging-pipe, for which Python needs no package.
"""
import glob, json, os, shutil, subprocess, sys, tempfile

root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
urls = sys.argv[1:]


def axe_file():
    """The path of axe, which is installed if it is missing; None if it cannot be."""
    environment = os.path.join(root, ".build/axe")
    files = lambda: glob.glob(f"{environment}/lib/python*/site-packages/axe_playwright_python/axe.min.js")
    if not files():
        subprocess.run([sys.executable, "-m", "venv", environment], capture_output=True)
        try:
            subprocess.run([f"{environment}/bin/pip", "install", "--quiet", "--no-deps", "axe-playwright-python==0.1.8"],
                           capture_output=True, timeout=120)
        except (OSError, subprocess.TimeoutExpired):
            pass
    return next(iter(files()), None)


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(0)


browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
if not browser: skip("Chromium is not installed")
axe_path = axe_file()
if not axe_path: skip("pip installs no axe-playwright-python")
with open(axe_path, encoding="utf-8") as file: axe = file.read()

# Ready when the text no longer grows and images are there: DocC and the gallery draw their pages by scripts, in several
# steps.
settled = """new Promise((resolve, reject) => {
  let before = -1, same = 0;
  setTimeout(() => reject(location + " is not drawn after 60 s"), 60000);
  const timer = setInterval(() => {
    const complete = document.readyState === "complete" && [...document.images].every(image => image.complete);
    const now = complete ? document.body.innerHTML.length : -1;
    same = now === before && now > 0 && document.querySelector("h1") ? same + 1 : 0;
    before = now;
    if (same >= 3) { clearInterval(timer); resolve(true); }
  }, 50);
})"""
# Transitions end at once, so that colours are those that a reader sees.
still = """document.head.append(Object.assign(document.createElement("style"),
  { textContent: "*, *::before, *::after { transition: none !important; animation: none !important }" }))"""
# Identifiers that appear twice are no error for axe any more, but they are one in HTML.
run = """axe.run(document, { resultTypes: ["violations"], rules: { "duplicate-id": { enabled: true } } }).then(result => JSON.stringify(
  result.violations.map(found => [found.id, found.help, found.nodes.map(node => [node.target.join(" "),
    (node.any[0] ?? node.all[0] ?? node.none[0])?.message ?? ""])])))"""


class Browser:
    def __init__(self, profile):
        # The browser reads commands from descriptor 3 and writes answers to 4.
        commands, self.output = os.pipe()
        self.input, answers = os.pipe()

        def descriptors():
            # Copies above both numbers first: either pipe may already have one of them.
            first, second = os.dup(commands), os.dup(answers)
            high = [os.dup2(first, 20), os.dup2(second, 21)]
            os.dup2(high[0], 3), os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             f"--user-data-dir={profile}", "--remote-debugging-pipe"],
            preexec_fn=descriptors, close_fds=False, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        os.close(commands), os.close(answers)
        self.buffer, self.count, self.session = b"", 0, None

    def call(self, method, **parameters):
        """Sends a command, and waits for its answer. Events before it are dropped."""
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        if self.session: message["sessionId"] = self.session
        os.write(self.output, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.buffer:
                read = os.read(self.input, 1 << 20)
                if not read: sys.exit("accessibility: Chromium ended")
                self.buffer += read
            line, self.buffer = self.buffer.split(b"\0", 1)
            answer = json.loads(line)
            if answer.get("id") != self.count: continue
            if "error" in answer: sys.exit(f"accessibility: {method}: {answer['error']['message']}")
            return answer["result"]

    def evaluate(self, source):
        answer = self.call("Runtime.evaluate", expression=source, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer: sys.exit(f"accessibility: {answer['result'].get('value', answer)}")
        return answer["result"].get("value")


with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
    chromium, findings = Browser(profile), 0
    target = chromium.call("Target.createTarget", url="about:blank")["targetId"]
    chromium.session = chromium.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    # Policies of pages would forbid the style below.
    chromium.call("Page.setBypassCSP", enabled=True)
    for url in urls:
        # An address that differs only behind # would not open anew.
        chromium.call("Page.navigate", url="about:blank")
        # Chromium's own page about a failure would have no findings.
        failure = chromium.call("Page.navigate", url=url).get("errorText")
        if failure: sys.exit(f"accessibility: {url}: {failure}")
        chromium.evaluate(settled)
        chromium.evaluate(still)
        chromium.evaluate(axe + "; 0")
        for width, scheme in ((1280, "light"), (1280, "dark"), (400, "light")):
            chromium.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1,
                          mobile=False)
            chromium.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            chromium.evaluate(settled)
            for rule, help, nodes in json.loads(chromium.evaluate(run)):
                findings += len(nodes)
                print(f"{url} ({width} points, {scheme}): {rule}: {help}", file=sys.stderr)
                for selector, message in nodes[:5]: print(f"    {selector}: {message}", file=sys.stderr)
                if len(nodes) > 5: print(f"    and {len(nodes) - 5} more", file=sys.stderr)
    chromium.process.terminate()
    chromium.process.wait()
print(f"axe checks {len(urls)} pages, {findings} findings")
sys.exit(1 if findings else 0)
