#!/usr/bin/env python3
"""Words per sentence, and the share of sentences with more than 25 words: README, pages, help texts, messages, comments.

usage: measure.py [--at COMMIT] [--worst N]     (run in a checkout; needs git and nothing else)

Prose is what a reader reads as sentences: paragraphs, list items and cells of tables, without code blocks. Code in backticks
counts as one word. A fragment of fewer than four words (a heading, a cell such as `true`) is no sentence. Help texts are those of
docs/commands.md, which is made from the commands; messages are the string literals of src with a blank and four words or more.
Also counts the comment lines that begin with a word that hangs on the line above, and those wider than 110 columns.
"""

import re
import subprocess
import sys

BEGINS = re.compile(r"(What|Who|Whether|Which|Of|The same)\b")
COMMENT = re.compile(r"^\s*(//[/!]?) ?(.*)$")
WIDTH = 110


def git(*words):
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout


def files(commit):
    """Path → text, of a commit or of the checkout."""
    if commit is None:
        names = git("ls-files").split("\n")
        return lambda path: open(path, encoding="utf-8").read(), names
    names = git("ls-tree", "-r", "--name-only", commit).split("\n")
    return lambda path: git("show", f"{commit}:{path}"), names


def paragraphs(markdown):
    """Texts that end where a paragraph, a list item or a cell ends."""
    text = re.sub(r"```.*?```", "\n", markdown, flags=re.S)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", " ", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`]*`", "code", text)
    block = []
    for line in text.split("\n") + [""]:
        bare = line.strip()
        if not bare or bare.startswith(("|", "#", "- ", "* ")) or re.match(r"\d+\. ", bare):
            yield " ".join(block)
            block = []
        if bare.startswith("|"):
            yield from bare.strip("|").split("|")
        elif bare and not bare.startswith("#"):
            block.append(re.sub(r"^(?:[-*]|\d+\.) ", "", bare))


def sentences(text):
    """The sentences of a text, as lists of words."""
    for part in re.split(r"(?<=[.!?])\)?\s+(?=[A-Z\"(`]|code\b|opdev\b)", re.sub(r"\*+", "", text)):
        words = [word for word in part.split() if re.search(r"\w", word)]
        if len(words) >= 4:
            yield words


def literals(code):
    """String literals of Rust that read like messages; a line that goes on after a backslash is one."""
    code = re.sub(r"(?s)\n#\[cfg\(test\)\].*", "", code)
    code = re.sub(r"(?m)^\s*//.*$", "", code)
    for found in re.finditer(r'(?<![\w#])"((?:[^"\\]|\\.)*)"', code):
        text = re.sub(r"\\\n\s*", "", found.group(1))
        text = re.sub(r"\{[^{}]*\}", "code", text.replace("\\n", ". "))
        if re.match(r"[\w`{][^=<>;/]*$", text) and len(text.split()) >= 4 and not re.search(r"[{}|\\]", text):
            yield text


def figures(name, texts, worst):
    found = [(len(words), " ".join(words)) for text in texts for words in sentences(text)]
    if not found:
        return
    long = [one for one in found if one[0] > 25]
    mean = sum(size for size, _ in found) / len(found)
    print(f"{name:<22}{len(found):>8}{mean:>8.1f}{100 * len(long) / len(found):>9.1f} %")
    for size, text in sorted(long, reverse=True)[:worst]:
        print(f"    {size}: {text[:300]}")


def comments(read, rust):
    """Lines of comments, blocks that begin badly, lines that are too wide."""
    lines = begins = wide = 0
    for path in rust:
        before = None
        for line in read(path).split("\n"):
            found = COMMENT.match(line)
            if found:
                lines += 1
                wide += len(line) > WIDTH
                first = before is None or before[0] != found.group(1) or not before[1].strip()
                begins += bool(first and BEGINS.match(found.group(2)))
                before = found.groups()
            else:
                before = None
    return lines, begins, wide


def main():
    words = sys.argv[1:]
    value = lambda name: words[words.index(name) + 1] if name in words else None
    commit, worst = value("--at"), int(value("--worst") or 0)
    read, names = files(commit)
    pages = [path for path in names if re.match(r"docs/[^/]*\.md$|docs/guide/.*\.md$", path)]
    made = ("docs/commands.md", "docs/keys.md", "docs/settings.md")
    rust = [path for path in names if path.endswith(".rs")]
    print(f"{'':<22}{'sentences':>9}{'words':>7}{'over 25':>11}")
    figures("README.md", paragraphs(read("README.md")), worst)
    figures("docs", (text for page in pages if page not in made for text in paragraphs(read(page))), worst)
    if "--pages" in words:
        for page in pages:
            figures("  " + page.removeprefix("docs/"), paragraphs(read(page)), 0)
    if "docs/commands.md" in names:
        figures("help (commands.md)", paragraphs(read("docs/commands.md")), worst)
    else:
        helps = (re.sub(r"(?m)^\s*/// ?", "", block) for path in rust if path.startswith("src/cli/")
                 for block in re.findall(r"(?m)((?:^\s*///.*\n)+)(?=\s*#\[(?:arg|command))", read(path)))
        figures("help", (text for block in helps for text in paragraphs(block)), worst)
    code = [path for path in rust if path.startswith("src/") and "/tests" not in path]
    figures("messages", (text for path in code for text in literals(read(path))), worst)
    lines, begins, wide = comments(read, rust)
    print(f"comments: {lines} lines; {begins} begin with What, Who, Whether, Which, Of, The same; {wide} are wider than {WIDTH} columns")


if __name__ == "__main__":
    main()
