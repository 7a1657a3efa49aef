#!/usr/bin/env python3
"""Writes a moving picture: half a minute of the real program in a terminal. (The pictures of the README are made from the
golden frames by `src/tui/tests/picture.rs`.) With --guide it writes assets/guide/NAME.svg, a still of each page of docs/guide.

Usage: record.py OPDEV OUTPUT               (needs tmux; OPDEV is the program, OUTPUT an .svg file)
       record.py OPDEV --guide [NAME...]    (the pages of PAGES below; all of them without a name; my-chart needs helm)

Runs `opdev run --embedded` on a copy of the demo project in a terminal of 120 columns and 32 rows, presses keys, saves files,
and looks at the screen ten times a second. What changed between two looks is shown for as long as it stood there; a stretch in
which nothing changes is cut to what a reader needs. A row that stays the same is drawn once.

For a still, the page's own commands up to `opdev run` are run in a shell; keys and saved files do what the page does after
that; and the last screen is the picture.
"""

import html
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
COLUMNS, ROWS = 120, 32
CELL, LINE, LETTERS = 8.4, 18.0, 14
BACKGROUND, TEXT = "#1a1b26", "#c0caf5"
LOOK, LONGEST, CAPTION = 0.1, 2.5, 26.0


def go_env(name):
    """A folder of Go's, if Go is there."""
    return subprocess.run(["go", "env", name], capture_output=True, text=True, check=False).stdout.strip() if shutil.which("go") else ""


class Terminal:
    """A program in tmux, with every screen that it showed."""

    def __init__(self, command, folder, state):
        self.socket = f"opdev-picture-{os.getpid()}"
        self.frames, self.caption, self.began = [], "", time.monotonic()
        environment = {**os.environ, "COLORTERM": "truecolor", "XDG_STATE_HOME": state, "XDG_CONFIG_HOME": state, "HOME": state}
        # A home of its own would fill the caches of Go anew.
        environment |= {name: cache for name in ("GOMODCACHE", "GOCACHE") if (cache := go_env(name))}
        environment.pop("KUBECONFIG", None)
        environment.pop("TMUX", None)
        start = ["new-session", "-d", "-x", str(COLUMNS), "-y", str(ROWS), "-c", folder, command]
        subprocess.run(
            ["tmux", "-L", self.socket, "-f", "/dev/null", "set", "-g", "status", "off", ";", *start],
            env=environment, check=False, stderr=subprocess.DEVNULL,
        )
        self.tmux("set", "-g", "status", "off")
        self.tmux("resize-window", "-x", str(COLUMNS), "-y", str(ROWS))

    def tmux(self, *words):
        return subprocess.run(["tmux", "-L", self.socket, *words], check=True, capture_output=True, text=True).stdout

    def look(self):
        screen = self.tmux("capture-pane", "-p", "-e", "-N").rstrip("\n").split("\n")
        shown = (self.caption, screen)
        if not self.frames or self.frames[-1][1:] != shown:
            self.frames.append((time.monotonic() - self.began, *shown))
        return self.tmux("capture-pane", "-p")

    def until(self, *texts, deadline=60):
        """Looks until all texts are on the screen."""
        end = time.monotonic() + deadline
        while not all(text in (screen := self.look()) for text in texts):
            if time.monotonic() > end:
                sys.exit(f"no {texts} on:\n{screen}")
            time.sleep(LOOK)

    def hold(self, seconds):
        """Time to read; it is shown as long as it is."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.look()
            time.sleep(LOOK)

    def keys(self, *keys):
        for key in keys:
            self.tmux("send-keys", key)
            self.hold(0.25)

    def end(self):
        subprocess.run(["tmux", "-L", self.socket, "kill-server"], check=False, capture_output=True)


def tour(terminal, project):
    """What is shown."""
    terminal.caption = "opdev run --embedded: an API server and the operator, without a cluster"
    terminal.until("to apply a sample")
    terminal.hold(2)
    terminal.caption = "a: apply a sample. The chart is installed, its pods come up"
    terminal.keys("a")
    terminal.until("type to narrow")
    terminal.hold(0.8)
    terminal.tmux("send-keys", "-l", "memcached-sample")
    terminal.hold(0.8)
    terminal.keys("Enter")
    terminal.until("3/3")
    terminal.hold(3)
    template = project / "charts/memcached/templates/deployment.yaml"
    good = template.read_text()
    terminal.caption = "Save a template: it is live at once, and each reconcile says why it ran"
    template.write_text(good.replace("--conn-limit=", "--max-conns="))
    terminal.until("edit deployment.yaml")
    terminal.hold(4)
    terminal.caption = "Save a broken one: file, line and column; the last working version keeps running"
    template.write_text(good.replace("{{", "{{ nope", 1))
    terminal.until("last working version")
    terminal.hold(4)
    terminal.caption = "Fix it, and the error is gone"
    template.write_text(good)
    deadline = time.monotonic() + 60
    while "last working version" in terminal.look() and time.monotonic() < deadline:
        time.sleep(LOOK)
    terminal.hold(2)
    terminal.caption = "s: scale. Causes, calls and the diff of the status are on the right"
    terminal.keys("s")
    terminal.until("replicas  3")
    terminal.hold(0.8)
    terminal.keys("5", "Enter")
    terminal.until("5/5")
    terminal.hold(4)


def sample(terminal, name=""):
    """Applies a sample; where there are several, the one whose path has the name."""
    terminal.until("a apply")
    terminal.hold(0.5)
    terminal.keys("a")
    terminal.until("type to narrow")
    if name:
        terminal.tmux("send-keys", "-l", name)
        terminal.hold(0.5)
    terminal.keys("Enter")


def helm_chart(terminal, project):
    terminal.caption = "opdev run --embedded, then a: the sample's release, its pods, and what the reconcile did"
    sample(terminal)
    terminal.until("1/1")
    # From the newest reconcile to the first one.
    terminal.keys("Tab", "Tab", "Down")
    terminal.until("#1 ")


def inner_loop(terminal, project):
    terminal.caption = "A saved template is the cause of the next reconcile; the changed field of the Service is on the right"
    sample(terminal)
    terminal.until("1/1")
    template = project / "helm-charts/site/templates/service.yaml"
    template.write_text(template.read_text().replace("\nspec:", "\nspec:\n  sessionAffinity: ClientIP"))
    terminal.until("edit service.yaml")


def hybrid(terminal, project):
    terminal.caption = "One project, two kinds: a chart installs the Cache, a script makes what there is for the Backup"
    sample(terminal, "cache-sample")
    terminal.until("1/1")
    sample(terminal, "backup-sample")
    terminal.until("Backup ")
    terminal.keys("Up")
    terminal.until("Reconciles · backup-sample", "ConfigMap")


def podset(terminal, project):
    terminal.caption = "s, then 3: the script makes two more pods, and each reconcile says what woke it"
    sample(terminal)
    terminal.until("PodSet", "podset-sample")
    terminal.keys("s")
    terminal.until("replicas  1")
    terminal.keys("3", "Enter")
    terminal.until("3/3")


def armada(terminal, project):
    terminal.caption = "The manifest asks for its groups, the groups for their charts, one after the other"
    for name in ("blog-1", "blog-2", "blog-group", "simple-armada"):
        sample(terminal, name)
        terminal.hold(1)
    terminal.until("deployed")


def go_operator(terminal, project):
    terminal.caption = "The first reconcile of a Go operator: its cause, what it read from the cache, what it created, and from which line"
    terminal.until("May opdev run this project?")
    terminal.keys("H")
    terminal.until("[t] Trust")
    terminal.keys("t")
    terminal.until("operator runs", deadline=600)
    sample(terminal)
    terminal.until("greeting-sample", "created 1")
    terminal.keys("Tab", "Tab", "End")
    terminal.until("#1 applied")


def two_bugs(terminal, project):
    terminal.caption = "A hot loop: the row says it, the reconciles are one row, the finding names the field that differs each time"
    terminal.until("May opdev run this project?")
    terminal.keys("H")
    terminal.until("[t] Trust")
    terminal.keys("t")
    terminal.until("operator runs", deadline=600)
    sample(terminal)
    terminal.until("greeting-sample", "created 1")
    code = project / "internal/controller/greeting_controller.go"
    code.write_text(code.read_text().replace('{"message": obj.Spec.Message}', '{"message": obj.Spec.Message, "at": metav1.Now().String()}'))
    terminal.until("hot loop", deadline=600)
    terminal.until("×")


def my_chart(terminal, project):
    terminal.caption = "A saved template is live at once; the reconcile names the file and shows the field that changed"
    sample(terminal)
    terminal.until("1/1")
    template = project / "helm-charts/my-chart/templates/deployment.yaml"
    template.write_text(template.read_text().replace("\nspec:", "\nspec:\n  minReadySeconds: 5", 1))
    terminal.until("edit deployment.yaml")


def typed(terminal, command, end):
    """Types a command into the shell, and waits for its end."""
    terminal.until("$")
    terminal.tmux("send-keys", "-l", command)
    terminal.keys("Enter")
    terminal.until(*end)


def release(terminal, project):
    terminal.caption = "opdev upgrade: what happens to the objects that version 1.0.0 has made"
    typed(terminal, "opdev upgrade --from v1.0.0", ["again: opdev upgrade", "objects the same"])


def in_ci(terminal, project):
    terminal.caption = "opdev ci: a time in an annotation, which each reconcile writes anew, fails the scenario"
    typed(terminal, "opdev ci", ["of 1 scenarios passed"])


# Page of docs/guide → what is done there, and whether it begins in a checkout.
PAGES = {"go-operator": (go_operator, False), "two-bugs": (two_bugs, False), "my-chart": (my_chart, False), "release": (release, False),
         "ci": (in_ci, False), "helm-chart": (helm_chart, False), "inner-loop": (inner_loop, False),
         "hybrid": (hybrid, False), "podset": (podset, False), "armada": (armada, True)}

# Pages whose picture is that of a command in a shell; their own commands are run up to this one.
IN_A_SHELL = {"release": "! opdev upgrade", "ci": "! opdev ci"}


SGR = re.compile(r"\x1b\[([0-9;:]*)m")
SIXTEEN = ["#15161e", "#f7768e", "#9ece6a", "#e0af68", "#7aa2f7", "#bb9af7", "#7dcfff", "#a9b1d6",
           "#414868", "#f7768e", "#9ece6a", "#e0af68", "#7aa2f7", "#bb9af7", "#7dcfff", "#c0caf5"]


def colour(codes):
    """The colour after 38 or 48, and what is left of the codes."""
    if codes[:1] == [2]:
        return "#%02x%02x%02x" % tuple(codes[1:4]), codes[4:]
    number = codes[1]
    if number < 16:
        return SIXTEEN[number], codes[2:]
    if number < 232:
        levels = [0, 95, 135, 175, 215, 255]
        number -= 16
        return "#%02x%02x%02x" % (levels[number // 36], levels[number // 6 % 6], levels[number % 6]), codes[2:]
    grey = 8 + 10 * (number - 232)
    return "#%02x%02x%02x" % (grey, grey, grey), codes[2:]


def runs(line, style):
    """Pieces of a row that look the same: text, colour of the text and of the ground, bold. A style lasts over rows."""
    out = []
    for at, part in enumerate(SGR.split(line)):
        if at % 2 == 0:
            if part:
                fore, ground, bold, swapped = style
                if swapped:
                    fore, ground = ground or BACKGROUND, fore or TEXT
                out.append((part, fore or TEXT, ground, bold))
            continue
        codes = [int(code or 0) for code in part.replace(":", ";").split(";")]
        while codes:
            code, codes = codes[0], codes[1:]
            fore, ground, bold, swapped = style
            if code == 0:
                style = (None, None, False, False)
            elif code in (1, 22):
                style = (fore, ground, code == 1, swapped)
            elif code in (7, 27):
                style = (fore, ground, bold, code == 7)
            elif code == 38:
                fore, codes = colour(codes)
                style = (fore, ground, bold, swapped)
            elif code == 48:
                ground, codes = colour(codes)
                style = (fore, ground, bold, swapped)
            elif code == 39:
                style = (None, ground, bold, swapped)
            elif code == 49:
                style = (fore, None, bold, swapped)
            elif 30 <= code <= 37 or 90 <= code <= 97:
                style = (SIXTEEN[code - 30 if code < 90 else code - 82], ground, bold, swapped)
            elif 40 <= code <= 47 or 100 <= code <= 107:
                style = (fore, SIXTEEN[code - 40 if code < 100 else code - 92], bold, swapped)
    return out, style


def row(pieces, y):
    top, x, out = CAPTION + 12 + y * LINE, 0, []
    for text, fore, ground, bold in pieces:
        left, wide = 12 + x * CELL, len(text) * CELL
        x += len(text)
        if ground:
            out.append(f'<rect x="{left:.1f}" y="{top:.1f}" width="{wide:.1f}" height="{LINE}" fill="{ground}"/>')
        # Wide gaps are no text: not every viewer keeps them.
        for words in re.finditer(r"\S+(?: \S+)*", text):
            at, wide = left + words.start() * CELL, len(words.group()) * CELL
            weight = ' font-weight="bold"' if bold else ""
            out.append(f'<text x="{at:.1f}" y="{top + LINE * 0.76:.1f}" textLength="{wide:.1f}" fill="{fore}"{weight}>'
                       f"{html.escape(words.group(), quote=False)}</text>")
    return "".join(out)


def caption(text):
    return f'<text x="12" y="22" fill="{TEXT}" font-weight="bold">{html.escape(text, quote=False)}</text>'


def picture(frames, label):
    # Stretches in which nothing changes are cut.
    starts, now = [], 0.0
    for at, frame in enumerate(frames):
        starts.append(now)
        if at + 1 < len(frames):
            now += min(frames[at + 1][0] - frame[0], LONGEST)
    length = now + LONGEST
    drawn = []
    for frame in frames:
        lines, style = [caption(frame[1])], (None, None, False, False)
        for y, line in enumerate(frame[2]):
            pieces, style = runs(line, style)
            lines.append(row(pieces, y))
        drawn.append(lines + [""] * (ROWS + 1 - len(lines)))
    width, height = COLUMNS * CELL + 24, ROWS * LINE + 24 + CAPTION
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
           f'aria-label="{html.escape(label)}">\n<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>\n'
           f'<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" '
           f'font-size="{LETTERS}" xml:space="preserve">\n']
    for y in range(ROWS + 1):
        at = 0
        while at < len(drawn):
            end = at
            while end < len(drawn) and drawn[end][y] == drawn[at][y]:
                end += 1
            begin, stop = starts[at], starts[end] if end < len(drawn) else length
            if drawn[at][y] and (at, end) == (0, len(drawn)):
                out.append(f"<g>{drawn[at][y]}</g>\n")
            elif drawn[at][y]:
                values, times = ["hidden", "visible", "hidden"], [0.0, begin / length, stop / length]
                if at == 0:
                    values, times = values[1:], [0.0, stop / length]
                elif end == len(drawn):
                    values, times = values[:2], times[:2]
                # Where nothing moves, the last screen is seen.
                still = "visible" if end == len(drawn) else "hidden"
                out.append(
                    f'<g visibility="{still}">{drawn[at][y]}<animate attributeName="visibility" values="{";".join(values)}" '
                    f'keyTimes="{";".join(f"{one:.4f}" for one in times)}" dur="{length:.1f}s" calcMode="discrete" '
                    'repeatCount="indefinite"/></g>\n'
                )
            at = end
    out.append("</g>\n</svg>\n")
    return "".join(out), length


def demo(folder):
    """A copy of the project of this repository."""
    for part in ("charts", "config", "samples"):
        shutil.copytree(ROOT / part, folder / part)
    return folder


def project_of(page, scratch):
    """The folder after the commands of a page up to `opdev run`."""
    text = (ROOT / "docs/guide" / f"{page}.md").read_text()
    commands = "\n".join(re.findall(r"```sh\n(.*?)```", text, re.S)).split(IN_A_SHELL.get(page, "opdev run"))[0]
    path = f"{scratch / 'bin'}:{os.environ['PATH']}"
    script = f"set -euo pipefail\n{commands}\npwd > {scratch / 'pwd'}"
    subprocess.run(["bash", "-c", script], cwd=scratch, check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "PATH": path, "HOME": str(scratch)})
    return pathlib.Path((scratch / "pwd").read_text().strip())


def still(program, page):
    """The last screen of a page."""
    script, in_checkout = PAGES[page]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        scratch = pathlib.Path(folder)
        (scratch / "bin").mkdir()
        (scratch / "bin/opdev").symlink_to(program)
        project = demo(scratch / "demo") if in_checkout else project_of(page, scratch)
        command = f"{scratch / 'bin/opdev'} run --embedded"
        if page in IN_A_SHELL:
            command = f"env PATH={scratch / 'bin'}:$PATH PS1='$ ' bash --norc --noprofile"
        terminal = Terminal(command, str(project), folder)
        try:
            script(terminal, project)
            terminal.hold(2)
        finally:
            terminal.end()
        text, _ = picture(terminal.frames[-1:], f"opdev in a terminal: {terminal.caption}")
        if folder in text or str(ROOT) in text:
            sys.exit(f"{page}: the picture shows a path of this machine")
    output = ROOT / "assets/guide" / f"{page}.svg"
    output.parent.mkdir(exist_ok=True)
    output.write_text(text)
    print(f"{output.relative_to(ROOT)}: {len(text)} bytes")


def moving(program, output):
    with tempfile.TemporaryDirectory() as scratch:
        project = demo(pathlib.Path(scratch) / "demo")
        terminal = Terminal(f"{program} run --embedded", str(project), scratch)
        try:
            tour(terminal, project)
        finally:
            terminal.end()
    text, length = picture(terminal.frames, "half a minute of opdev in a terminal")
    output.write_text(text)
    print(f"{len(terminal.frames)} screens, {length:.0f} s, {len(text)} bytes")


def main():
    words = sys.argv[1:]
    if len(words) < 2 or (len(words) > 2 and words[1] != "--guide") or any(name not in PAGES for name in words[2:]):
        sys.exit(__doc__)
    program = pathlib.Path(words[0]).resolve()
    if words[1:2] == ["--guide"]:
        for page in words[2:] or PAGES:
            still(program, page)
    else:
        moving(program, pathlib.Path(words[1]))


if __name__ == "__main__":
    main()
