# SPDX-License-Identifier: MIT
"""usage: page.py BROWSER PAGE.html FOLDER [NAME=VALUE…]

Opens a page of `peet … --format html` in a headless Chromium and complains, a line each, about what somebody would who reads it:
on a phone, with the keyboard, with a screen reader, or off-line. Prints nothing when all is well. FOLDER is for what the browser keeps.
The browser is spoken to through a pipe, by the DevTools protocol.

  tables=a,b      tables that must be there, with rows
  plots=bars,…    kinds of plots that must be drawn
  says=TEXT       must be there as text (may be given several times)
  picture=FILE    also takes a picture of the page
"""
import base64
import json
import os
import select
import subprocess
import sys
import time


class Browser:
    """One page in a browser."""

    def __init__(self, program, folder):
        to_browser, self.out = os.pipe()
        self.inn, from_browser = os.pipe()
        place = lambda: (os.dup2(to_browser, 13), os.dup2(from_browser, 14), os.dup2(13, 3), os.dup2(14, 4))
        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
             "--remote-debugging-pipe", "--user-data-dir=" + folder],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False, preexec_fn=place)
        os.close(to_browser)
        os.close(from_browser)
        self.rest, self.events, self.number, self.session = b"", [], 0, None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def close(self):
        self.process.kill()
        self.process.wait()

    def read(self, seconds):
        """The next message, or None."""
        end = time.time() + seconds
        while b"\0" not in self.rest:
            left = end - time.time()
            if left <= 0 or not select.select([self.inn], [], [], left)[0]:
                return None
            more = os.read(self.inn, 1 << 16)
            if not more:
                raise SystemExit("the browser has ended")
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read(30)
            if answer is None:
                raise SystemExit("%s: the browser does not answer" % method)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise SystemExit("%s: %s" % (method, answer["error"]["message"]))
                return answer["result"]
            self.events.append(answer)

    def open(self, url):
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.call(domain + ".enable")
        self.call("Page.navigate", url=url)
        end = time.time() + 30
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            if time.time() > end:
                raise SystemExit("the page is not there after 30 seconds")
            event = self.read(1)
            if event:
                self.events.append(event)
        self.settle()

    def settle(self):
        """Until it was drawn twice: figures are drawn when their width is known."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def run(self, script):
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise SystemExit("%s: %s" % (script[:80], answer["exceptionDetails"]["exception"].get("description")))
        return answer["result"].get("value")

    def key(self, key, code, text=""):
        down = {"type": "keyDown" if text else "rawKeyDown", "key": key, "code": key, "windowsVirtualKeyCode": code}
        if text:
            down["text"] = text
        self.call("Input.dispatchKeyEvent", **down)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, windowsVirtualKeyCode=code)

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.settle()


def events(browser):
    """What went wrong while the page was loaded, and what it asked for."""
    for e in browser.events:
        method, p = e.get("method"), e.get("params", {})
        if method == "Runtime.exceptionThrown":
            yield "a script failed: " + json.dumps(p["exceptionDetails"])[:300]
        elif method == "Runtime.consoleAPICalled":
            yield "the console says: " + json.dumps(p["args"])[:300]
        elif method == "Log.entryAdded":
            yield "the browser says: " + p["entry"]["text"][:300]
        elif method == "Page.javascriptDialogOpening":
            yield "a dialog opens: " + p["message"]
        elif method == "Network.requestWillBeSent":
            url = p["request"]["url"]
            if not url.startswith(("file:", "data:")):
                yield "it asks for " + url


STRUCTURE = r"""(() => {
  const bad = [];
  const all = (what, root = document) => Array.from(root.querySelectorAll(what));
  const one = (what) => all(what).length === 1 || bad.push(`${all(what).length} of ${what}`);
  const name = (e) => e.outerHTML.slice(0, 120);
  ["header", "nav", "main", "footer", "h1", "a.skip"].forEach(one);
  if (document.documentElement.lang !== "en") bad.push("the language is not said");
  if (!document.title) bad.push("it has no title");
  if (all("script").length > 2) bad.push("there are more than two scripts");
  all("img, iframe, object, embed, form, b[onclick], [onclick], [onerror]").forEach((e) => bad.push(`not ours: ${name(e)}`));
  let level = 0;
  for (const h of all("h1, h2, h3, h4")) {
    if (Number(h.tagName[1]) > level + 1) bad.push(`a heading too deep: ${name(h)}`);
    level = Number(h.tagName[1]);
    if (!h.textContent.trim()) bad.push("an empty heading");
  }
  for (const s of all("main > section"))
    if (!s.firstElementChild.matches("h2")) bad.push(`a section without heading: ${name(s)}`);
  for (const t of all("table")) {
    if (!t.caption || !t.caption.textContent.trim()) bad.push(`a table without caption: ${name(t)}`);
    all("thead th", t).forEach((h) => h.scope === "col" || bad.push(`no scope: ${name(h)}`));
    if (t.matches(".record")) all("th", t).forEach((h) => h.scope === "row" || bad.push(`no scope: ${name(h)}`));
    else {
      const heads = all("tbody tr", t).map((r) => all("th[scope=row]", r).length);
      const texts = Array.from(t.tHead.rows[0].cells).some((h) => !h.classList.contains("number"));
      if (texts && heads.some((n) => n !== 1)) bad.push(`rows without one heading: ${name(t)}`);
    }
    const box = t.closest(".scroll");
    if (!box || box.tabIndex !== 0 || box.getAttribute("role") !== "region") bad.push(`no scrolling box: ${name(t)}`);
  }
  for (const f of all("figure")) {
    if (!f.querySelector("figcaption").textContent.trim()) bad.push(`a figure without caption: ${name(f)}`);
    const drawn = f.querySelector(":scope > svg[role=img][aria-label], :scope > .scroll table.matrix");
    if (!drawn || !f.querySelector(".mark")) bad.push(`nothing is drawn: ${name(f)}`);
  }
  all("path, rect, circle, line").forEach((e) => /NaN|undefined/.test(e.outerHTML) && bad.push(`drawn nowhere: ${name(e)}`));
  const ids = all("[id]").map((e) => e.id);
  ids.filter((id, i) => ids.indexOf(id) !== i).forEach((id) => bad.push(`two have the id ${id}`));
  all("a[href^='#']").forEach((a) => ids.includes(a.hash.slice(1)) || bad.push(`leads nowhere: ${name(a)}`));
  return bad;
})()"""

# What is wider than the window must be in a box that scrolls, and that box must not be.
WIDTH = r"""(() => {
  const bad = [], width = document.documentElement.clientWidth;
  const scrolls = (e) => e && (["auto", "scroll"].includes(getComputedStyle(e).overflowX) ? e : scrolls(e.parentElement));
  if (document.scrollingElement.scrollWidth > width) bad.push(`the page is ${document.scrollingElement.scrollWidth} wide on ${width}`);
  for (const e of document.querySelectorAll("body *")) {
    const box = e.getBoundingClientRect();
    if (box.width === 0 || box.height === 0 || e.matches(".skip, script, title")) continue;
    if (box.right > width + 1 && !scrolls(e.parentElement)) bad.push(`${Math.round(box.right)} wide: ${e.outerHTML.slice(0, 120)}`);
    if (box.left < -1 && !scrolls(e.parentElement)) bad.push(`begins at ${Math.round(box.left)}: ${e.outerHTML.slice(0, 120)}`);
  }
  return bad.slice(0, 8);
})()"""

# The contrast of texts that stand on colour, against what is behind them (WCAG: 4.5).
CONTRAST = r"""(() => {
  const bad = [];
  const parse = (c) => { const n = c.match(/[\d.]+/g).map(Number); return n.length > 3 ? n : [...n, 1]; };
  const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3]));
  const light = (rgb) => {
    const [r, g, b] = rgb.map((v) => v / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const page = parse(getComputedStyle(document.body).backgroundColor);
  for (const e of document.querySelectorAll("td.number, td.share, td.code, th, p, h1, h2, a, figcaption, caption, .better, .worse")) {
    const style = getComputedStyle(e);
    const back = over(parse(style.backgroundColor), page.slice(0, 3));
    const ink = over(parse(style.color), back);
    const [a, b] = [light(ink), light(back)].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) bad.push(`contrast ${((a + 0.05) / (b + 0.05)).toFixed(1)}: ${e.outerHTML.slice(0, 120)}`);
  }
  return bad.slice(0, 5);
})()"""

USABLE = r"""window.usable = () => Array.from(document.querySelectorAll("a[href], button, summary, [tabindex='0']"))
  .filter((e) => e.getClientRects().length);
window.focused = [];
document.addEventListener("focusin", (e) => {
  window.focused.push(window.usable().indexOf(e.target));
  const style = getComputedStyle(e.target);
  if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 1) window.unseen = e.target.outerHTML.slice(0, 120);
});
window.usable().length"""


def keyboard(browser):
    """Tab goes through all that can be used, in its order; Enter sorts, opens and leads to the tables."""
    count = browser.run(USABLE)
    for _ in range(count):
        browser.key("Tab", 9)
    order = browser.run("window.focused")
    if order != list(range(count)):
        yield "Tab goes through %s of %d" % (order, count)
    unseen = browser.run("window.unseen")
    if unseen:
        yield "where the focus is cannot be seen: " + unseen
    browser.run("document.querySelector('tbody').closest('table'); document.querySelector('section table:not(.record) thead th.number button').focus()")
    browser.key("Enter", 13, "\r")
    if browser.run("document.activeElement.closest('th').getAttribute('aria-sort')") != "descending":
        yield "Enter on a heading does not sort"
    if browser.run("Boolean(document.querySelector('details'))"):
        browser.run("document.querySelector('details').open = false; document.querySelector('summary').focus()")
        browser.key("Enter", 13, "\r")
        if not browser.run("document.querySelector('details').open"):
            yield "Enter does not open what is folded"
    browser.run("document.querySelector('a.skip').focus()")
    browser.key("Enter", 13, "\r")
    browser.settle()
    if browser.run("document.activeElement.tagName") != "MAIN":
        yield "the first link does not lead to the tables"


def heard(browser):
    """What a screen reader is told: everything that can be used or looked at has a name."""
    need = {"button", "link", "region", "img", "table", "navigation", "figure", "heading", "columnheader", "rowheader", "SvgRoot", "image"}
    roles = []
    for node in browser.call("Accessibility.getFullAXTree")["nodes"]:
        role = node.get("role", {}).get("value")
        if node.get("ignored"):
            continue
        roles.append(role)
        if role in need and not node.get("name", {}).get("value", "").strip():
            yield "a %s without a name" % role
    for landmark in ("banner", "navigation", "main", "contentinfo"):
        if roles.count(landmark) != 1:
            yield "%d landmarks %s" % (roles.count(landmark), landmark)


def main(program, page, folder, wants):
    browser = Browser(program, folder)
    try:
        browser.size(1200, 900)
        browser.open("file://" + os.path.abspath(page))
        complaints = browser.run(STRUCTURE)
        text = browser.run("document.body.innerText + document.body.textContent")
        for want in wants:
            what, value = want.split("=", 1)
            if what == "tables":
                for name in value.split(","):
                    if not browser.run("document.querySelectorAll('#%s table tr').length > 0" % name):
                        complaints.append("no table " + name)
            elif what == "plots":
                for kind in value.split(","):
                    if not browser.run("Boolean(document.querySelector('figure[data-plot=%s] .mark'))" % kind):
                        complaints.append("no plot of " + kind)
            elif what == "says" and value not in text:
                complaints.append("it does not say " + value)
            elif what == "picture":
                take_pictures(browser, value)
        complaints += list(heard(browser)) + browser.run(CONTRAST)
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        complaints += ["in the dark: " + c for c in browser.run(CONTRAST)]
        browser.size(360, 740)
        complaints += browser.run(WIDTH)
        browser.run("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        complaints += browser.run(WIDTH)
        browser.size(1200, 900)
        complaints += list(keyboard(browser)) + list(events(browser))
        if browser.run("document.title").strip() == "owned":
            complaints.append("a name was executed")
    finally:
        browser.close()
    print("\n".join(dict.fromkeys(complaints)), end="")


def take_pictures(browser, path):
    for name, width in (("wide", 1200), ("phone", 360)):
        browser.size(width, 900)
        shot = browser.call("Page.captureScreenshot", captureBeyondViewport=True)
        with open("%s-%s.png" % (path, name), "wb") as out:
            out.write(base64.b64decode(shot["data"]))
    browser.size(1200, 900)


if len(sys.argv) < 4:
    sys.exit(__doc__)
main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
