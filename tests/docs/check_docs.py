#!/usr/bin/env python3
"""check_docs.py PROJECT [PROGRAM]: README.md, CHANGELOG.md, CONTRIBUTING.md and docs/ say what is so. Commands and
options exist, and docs/cli.md lists all; quoted programs are pieces of examples/; quoted output has the shape of
today's; members of the program's JSON, facts, verdicts, causes, folders and benchmarks are described, and nothing else
is; links lead somewhere; lines are at most 120 columns wide. Without PROGRAM (a build without LibTorch) what needs it is
left out. Prints file:line: rule: text."""

import json
import lzma
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

MOST_COLUMNS, MOST_README_LINES = 120, 150
ROOMS = ("instrumentation", "pipeline", "loop", "diagnosis", "cli", "python")
ACTIONS = ("crops", "generate", "info", "pack")   # of `drawpoint dataset`
SPAN = re.compile(r"`([^`]+)`")


class Page:
    """A Markdown file: its text, its code blocks and the rest."""

    class Block:
        def __init__(self, line, language, marker, text):
            self.line, self.language, self.marker, self.text = line, language, marker, text

    def __init__(self, name, text):
        self.name, self.lines = name, text.splitlines()
        self.blocks, self.prose = [], []   # prose: (number, line)
        marker, block = None, None
        for number, line in enumerate(self.lines, 1):
            if block is not None:
                if line.strip() == "```":
                    self.blocks.append(Page.Block(block[0], block[1], marker, "\n".join(block[2])))
                    block, marker = None, None
                else:
                    block[2].append(line)
            elif line.strip().startswith("```"):
                block = (number, line.strip()[3:], [])
            else:
                found = re.fullmatch(r"<!-- (\w+): (.+) -->", line.strip())
                marker = found.groups() if found else marker if not line.strip() else None
                self.prose.append((number, line))

    def sections(self, level):
        """(title, [(number, line)]) of each heading of this level."""
        found = []
        for number, line in self.prose:
            heading = re.match(r"(#+) (.*)", line)
            if heading and len(heading.group(1)) == level:
                found.append((heading.group(2), []))
            elif heading and len(heading.group(1)) < level:
                found.append(("", []))
            elif found:
                found[-1][1].append((number, line))
        return [section for section in found if section[0]]


def anchor(title):
    """As GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower().replace("`", "")).replace(" ", "-")


def rows_of(lines):
    """(number, cells) of each row of the tables in these lines, without heads."""
    table = [(number, [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
             for number, line in lines if line.startswith("|")]
    rules = {number for number, cells in table if all(re.fullmatch(r":?-+:?", cell) for cell in cells)}
    return [(number, cells) for number, cells in table if number not in rules and number + 1 not in rules]


# ---------------------------------------------------------------------------------------------------------------------
# Checks of text alone: each yields (line, rule, words).

def check_width(page):
    for number, line in enumerate(page.lines, 1):
        is_row_of_parity = page.name == "docs/parity.md" and line.startswith("|")   # they have a lint of their own
        if len(line) > MOST_COLUMNS and not is_row_of_parity:
            yield number, "docs-width", f"{len(line)} columns, {MOST_COLUMNS} are the most"
    if page.name == "README.md" and len(page.lines) > MOST_README_LINES:
        yield len(page.lines), "docs-length", f"{len(page.lines)} lines, {MOST_README_LINES} are the most"


def check_links(page, pages, exists):
    for number, line in page.prose:
        for target in re.findall(r"\]\(([^)\s]+)\)", line):
            if target.startswith("http"):
                continue
            file, _, mark = target.partition("#")
            path = os.path.normpath(os.path.join(os.path.dirname(page.name), file)) if file else page.name
            if not exists(path):
                yield number, "docs-link", f"{target}: there is no {path}"
            elif mark and path in pages and mark not in {
                    anchor(line.lstrip("#")) for _, line in pages[path].prose if line.startswith("#")}:
                yield number, "docs-link", f"{target}: {path} has no such heading"
        for path in SPAN.findall(line):
            if re.fullmatch(rf"(?:examples|tests|bench|docs|include|cmake|\.ci|{'|'.join(ROOMS)})/[\w./-]+", path) \
                    and not exists(path.rstrip("/")):
                yield number, "docs-path", f"there is no {path}"


def is_piece(text, program):
    """Of a program, whole lines of it; a line `// …` stands for any number of lines."""
    program, at = "\n" + program, 0
    for piece in re.split(r"^ *// …$", text.rstrip() + "\n", flags=re.MULTILINE):
        found = program.find("\n" + piece.strip("\n") + "\n", at)
        if found < 0:
            return False
        at = found + len(piece.strip("\n"))
    return True


def check_programs(page, examples):
    """A C++ block is a piece of an example."""
    for block in page.blocks:
        if block.language != "cpp":
            continue
        if not block.marker or block.marker[0] != "example":
            yield block.line, "docs-program", "no <!-- example: FILE --> before it"
        elif block.marker[1] not in examples:
            yield block.line, "docs-program", f"there is no examples/{block.marker[1]}"
        elif not is_piece(block.text, examples[block.marker[1]]):
            yield block.line, "docs-program", f"is no piece of examples/{block.marker[1]}"


# ---------------------------------------------------------------------------------------------------------------------
# Commands

def command_lines(page):
    """(number, words) of each command quoted: whole lines of blocks, and spans of text."""
    starts = re.compile(r"(?:\w+=\S+ )*(?:drawpoint|\./run)(?: |$)")
    for block in page.blocks:
        number, pending = block.line, ""
        for line in block.text.splitlines():
            number += 1
            line = pending + line.split("  #")[0].split(" # ")[0].strip()
            pending = line[:-1] if line.endswith("\\") else ""
            if not pending and block.language in ("", "sh") and not block.marker and starts.match(line):
                yield number, words_of(line)
    for number, line in page.prose:
        for span in SPAN.findall(line.replace("\\|", "|")):
            if starts.match(span):
                yield number, words_of(span)


def words_of(line):
    return [word for word in line.split() if not re.fullmatch(r"[A-Z_]+=\S+", word)]


def option_names(words):
    return [word.split("=")[0] for word in words if re.match(r"--?[a-zA-Z]", word)]


class Tools:
    """What commands there are: `options` of each of the program's, `verbs` of ./run, options of each of `suites`."""

    def __init__(self, options, verbs, suites):
        self.options, self.verbs, self.suites = options, verbs, suites

    def faults(self, words):
        if words[0] == "./run":
            return self.faults_of_run(words[1:])
        return self.faults_of_program(words[1:])

    def faults_of_run(self, words):
        verb = words[0] if words else "help"
        if verb not in self.verbs and not verb.isupper() and verb != "…":
            return [f"./run has no verb {verb}"]
        if verb == "drawpoint":
            return self.faults_of_program(words[1:])
        if verb == "demo":
            return self.unknown("profile", words[1:])
        return self.faults_of_suite(words[1:]) if verb == "bench" else []

    def faults_of_suite(self, words):
        if not words or words[0].startswith("-") or words[0].isupper():
            return []
        if words[0] not in self.suites:
            return [f"there is no benchmark {words[0]}"]
        return [f"bench {words[0]} has no option {name}" for name in option_names(words[1:])
                if name not in self.suites[words[0]] | {"--json", "--help"}]

    def faults_of_program(self, words):
        if not self.options or not words or words[0] in ("COMMAND", "…") or words[0].startswith("--"):
            return [f"drawpoint has no option {words[0]}" for _ in words[:1]
                    if words[0].startswith("--") and words[0] not in ("--help", "--version")]
        if words[0] == "bench":
            return self.faults_of_suite(words[1:])
        command = " ".join(words[:2]) if words[0] == "dataset" and len(words) > 1 else words[0]
        if command == "dataset":
            return []
        if command not in self.options:
            return [f"drawpoint has no command {command}"]
        return self.unknown(command, words[len(command.split()):])

    def unknown(self, command, words):
        if not self.options:
            return []
        faults = [f"drawpoint {command} has no option {name}" for name in option_names(words)
                  if name not in self.options[command]]
        for name, value in zip(words, words[1:]):   # values of those that are one of a list
            known = self.options[command].get(name, "")
            if name in ("--style", "--to", "--profiler", "--report") and value.islower() and value not in known:
                faults.append(f"drawpoint {command} {name} knows no {value}")
        return faults


def check_commands(page, tools):
    for number, words in command_lines(page):
        for fault in tools.faults(words):
            yield number, "docs-command", fault
    everywhere = {name for options in tools.options.values() for name in options}
    everywhere |= {name for options in tools.suites.values() for name in options} | {"--json", "--install"}
    for number, line in page.prose:
        for span in SPAN.findall(line):
            if tools.options and re.match(r"--[a-z]", span) and words_of(span)[0].split("=")[0] not in everywhere:
                yield number, "docs-command", f"no command has an option {span}"


def check_listing(page, tools):
    """docs/cli.md: every command has a section that names its options, and those that it names, it has."""
    shared = {"--help", "--config", "--print-config", "--json", "--csv", "--markdown", "--color"}
    text = "\n".join(line for _, line in page.prose)
    sections = {title: "\n".join(line for _, line in lines) for title, lines in page.sections(2)}
    numbers = {title: lines[0][0] for title, lines in page.sections(2) if lines}
    for command, options in tools.options.items():
        section = command.split()[0]
        if section not in sections:
            yield 1, "docs-listing", f"no section on {section}"
            continue
        base = set(tools.options["profile"]) - {"--output"} if command == "tune" else set()   # it takes those, too
        for name in options:
            if name.startswith("--") and name not in base | shared and f"`{name}" not in sections[section]:
                yield numbers[section], "docs-listing", f"{command} has an option {name} that is not listed"
    for name in shared - {"--help"}:
        if tools.options and f"`{name}" not in text:
            yield 1, "docs-listing", f"the option {name} is not listed"
    for title, lines in page.sections(2):
        known = {name for command, options in tools.options.items() if command.split()[0] == title for name in options}
        for number, cells in rows_of(lines):
            for name in re.findall(r"`(--[a-z-]+)", cells[0]):
                if known and name not in known:
                    yield number, "docs-listing", f"{title} has no option {name}"
    for verb in tools.verbs:
        if f"`./run {verb}`" not in text:
            yield 1, "docs-listing", f"./run has a verb {verb} that is not listed"


# ---------------------------------------------------------------------------------------------------------------------
# Quoted output: shapes of lines, in which a number is a number

NUMBER = re.compile(r"(?<![\w#])[-+×]?\d[\d,.]*(?: ?(?:ns|µs|ms|s|%|B|kB|MB|GB)(?![\w/]))?")
VERDICT_LINE = re.compile(r"(verdict|why the draw waits): [a-z-]+(?:, together with [a-z, -]+)?")


def shapes(text):
    """Of each line, or of each clause of a line that begins with a label."""
    lines = []
    for line in text.splitlines():
        line = re.sub(r"\s*[①-⑨]$", "", line).rstrip()
        is_continuation = line.startswith(" " * 11) and line[11:12].strip() and lines and lines[-1][:1].islower()
        if is_continuation and not lines[-1].endswith(":"):
            lines[-1] += " " + line.strip()
        else:
            lines.append(line)
    return [shape for line in lines if line and line != "…" for shape in shapes_of(line)]


def is_labelled(line):
    head = line[:11].strip()
    return (line[10:11] == " " and line[11:12].strip() != "" and "  " not in head and
            re.fullmatch(r"[a-zA-Z][a-zA-Z ]*", head))


def shapes_of(line):
    if is_labelled(line):
        label, rest = line[:11].strip(), line[11:]
        if label in ("machine", "digest", "recording", "run", "blame", "stopped"):   # names and places
            return [label]
        return sorted({f"{label}: {masked(clause)}" for clause in rest.split(", ")})
    if VERDICT_LINE.match(line):
        return [VERDICT_LINE.match(line).group(1) + ": WORD"]
    if re.match(r"\s*(predicted|advice): ", line):
        line = re.sub(r": .*(?=: [-+]\d)", ": CHANGE", line)
    text = masked(line)
    for row in (r".+ (# # … #)", r".+ (# #)"):   # what one change does; what draws waited for
        if line.startswith("  ") and not line.startswith("  -") and re.fullmatch(row, text.strip()):
            return ["NAME " + re.fullmatch(row, text.strip()).group(1)]
    return [text]


def masked(text):
    text = re.sub(r"[▁-█]{2,}", "CHART", text)
    text = re.sub(r"[\w./-]+\.pftrace\b", "RUN", text)
    text = re.sub(r"[▒▓█░*>]", " ", text) if re.match(r"\s*\d+ .*\d", text) else text
    text = NUMBER.sub("#", text)
    text = re.sub(r"(?<= )-(?= |$)", "#", text)
    text = re.sub(r"# (worker|sample|step|epoch|event|slot|core|batch)(?:e?s)\b(?!/)", r"# \1", text)
    text = re.sub(r"first (draw|batch)(?:e?s)\b", r"first \1", text)
    return re.sub(r"\s+", " ", text).strip()


def check_output(page, outputs):
    """`outputs`: what a command prints today, by its name."""
    for block in page.blocks:
        if not block.marker or block.marker[0] != "output":
            continue
        if block.marker[1] not in outputs:
            yield block.line, "docs-output", f"nothing is known of the output of {block.marker[1]}"
            continue
        known = set(shapes(outputs[block.marker[1]]))
        for shape in shapes(block.text):
            if shape not in known:
                yield block.line, "docs-output", f"drawpoint {block.marker[1]} prints no line of this shape: {shape}"


# ---------------------------------------------------------------------------------------------------------------------
# Members of JSON, facts, words

OPEN = ("machine.libraries", "facts")   # objects whose members depend on the run


def members(value, path="", found=None):
    """All paths of a document's members: run.steps, rows[].phase. A value that is null or empty is one, too."""
    found = {} if found is None else found
    if isinstance(value, dict) and path not in OPEN:
        for key, inner in value.items():
            members(inner, f"{path}.{key}" if path else key, found)
    elif isinstance(value, list):
        found.setdefault(path, None)
        for inner in value:
            members(inner, path + "[]", found)
    if path:
        found.setdefault(path, value)
    return found


def ancestors(path):
    return [path[:found.start()] for found in re.finditer(r"\.|\[\]", path)]


def tail_of(path):
    return re.split(r"\.|\[\]\.", path)[-1].removesuffix("[]")


def check_members(page, documents, source):
    """`documents`: those printed, by schema; `source`: of the programs that print others."""
    common, described = set(), {}
    for level in (2, 3):
        for title, lines in page.sections(level):
            rows = [(number, SPAN.findall(cells[0]), " ".join(cells)) for number, cells in rows_of(lines) if cells]
            if title == "JSON documents":
                common = {name for _, names, _ in rows for name in names}
            if title.startswith("drawpoint."):
                described[title] = rows
    for schema in documents:
        if schema not in described:
            yield 1, "docs-member", f"{schema} is not described"
    for schema, rows in described.items():
        names = {name.removesuffix("[]") for _, all_names, _ in rows for name in all_names} | common
        tails = {tail_of(name) for _, _, text in rows for name in SPAN.findall(text)}
        real = {}
        for document in documents.get(schema, []):
            for path, value in members(document).items():
                real[path] = real.get(path) or value
        for path in real:
            if any(name.startswith((path + ".", path + "[]")) for name in names):
                continue   # it holds what is described
            if path.removesuffix("[]") not in names and not (names & set(ancestors(path)) and tail_of(path) in tails):
                yield rows[0][0], "docs-member", f"{schema} has a member {path} that is not described"
        for number, all_names, _ in rows:
            for name in all_names:
                above = [path for path in ancestors(name) if path in real]
                unseen = not above or any(real[path] in (None, [], {}) for path in above)   # then the sources have it
                if name.removesuffix("[]") not in real and not (unseen and re.search(rf"\b{tail_of(name)}\b", source)):
                    yield number, "docs-member", f"{schema} has no member {name}"


def check_advice(page, documents):
    """The reports of slow.pftrace must give the same advice, and the same command to refute it."""
    found = {(advice["change"], advice["how_to_refute"].partition(": ")[0])
             for schema in ("drawpoint.report/1", "drawpoint.diagnosis/1")
             for document in documents[schema] if "slow.pftrace" in document["command"]
             for advice in [document.get("diagnosis", document)["advice"]]}
    if len(found) != 1:
        line = next((number for number, text in page.prose if "`advice.how_to_refute`" in text), 0)
        yield line, "docs-advice", f"of one recording the reports advise {found}"


def check_facts(page, header):
    keys = dict(re.findall(r"string_view (\w+) =\s*\"([^\"]+)\"", header))
    lines = [lines for title, lines in page.sections(2) if title == "Facts"]
    named = {(number, name) for number, cells in rows_of(lines[0] if lines else []) for name in SPAN.findall(cells[0])}
    known = {key for key in keys.values() if not key.endswith(".")}
    prefixes = {key for key in keys.values() if key.endswith(".")}
    for key in sorted(known - {name for _, name in named}):
        yield 1, "docs-fact", f"the fact {key} is not described"
    for prefix in sorted(prefixes - {re.sub(r"[A-Z]+$", "", name) for _, name in named}):
        yield 1, "docs-fact", f"facts {prefix}… are not described"
    for number, name in sorted(named):
        if name not in known and re.sub(r"[A-Z]+$", "", name) not in prefixes:
            yield number, "docs-fact", f"there is no fact {name}"


def check_verdicts(page, words, causes):
    """`words`: every word a verdict can be; `causes`: keys of blame."""
    named = {title.strip("`"): lines for title, lines in page.sections(3) if title.startswith("`")}
    for word in sorted(words - set(named)):
        yield 1, "docs-verdict", f"the verdict {word} is not described"
    for word, lines in named.items():
        text = "\n".join(line for _, line in lines)
        if word not in words:
            yield lines[0][0], "docs-verdict", f"there is no verdict {word}"
        for part in ("* Means: ", "* Do: ", "* Check: "):
            if part not in text:
                yield lines[0][0], "docs-verdict", f"{word} has no line '{part.strip()}'"
    text = "\n".join(page.lines)
    for cause in sorted(causes):
        if f"`{cause}`" not in text:
            yield 1, "docs-verdict", f"the cause {cause} is not described"


def check_rooms(page, folders):
    """docs/design.md's table against the folders of sources."""
    lines = [lines for title, lines in page.sections(2) if title == "Rooms"]
    rows = [(number, [name.rstrip("/") for name in SPAN.findall(cells[0])], cells)
            for number, cells in rows_of(lines[0] if lines else [])]
    named = {name for _, names, _ in rows for name in names}
    inside = {f"{name}/{inner}" for _, names, cells in rows for name in names
              for inner in re.findall(r"`(\w+)/`", " ".join(cells[1:]))}
    for folder in sorted(folders - named - inside):
        yield 1, "docs-room", f"the folder {folder} is not in the table of rooms"
    for number, names, _ in rows:
        for name in names:
            if name not in folders:
                yield number, "docs-room", f"there is no folder {name}"


def check_suites(page, suites):
    lines = [lines for title, lines in page.sections(2) if title == "All suites"]
    named = {name: number for number, cells in rows_of(lines[0] if lines else []) for name in SPAN.findall(cells[0])}
    for suite in sorted(set(suites) - set(named)):
        yield 1, "docs-suite", f"the benchmark {suite} is not listed"
    for suite, number in named.items():
        if suite not in suites:
            yield number, "docs-suite", f"there is no benchmark {suite}"


def check_tests(page, names):
    """`ctest -R PATTERN` finds something."""
    for number, line in page.prose:
        for pattern in re.findall(r"ctest (?:--preset \w+ )?-R '?([^`' ]+)", line.replace("\\|", "|")):
            for part in re.split(r"[|/]", pattern):
                if not part.isupper() and not any(re.search(part, name) for name in names):
                    yield number, "docs-test", f"ctest has no test {part}"


# ---------------------------------------------------------------------------------------------------------------------
# What there is: sources and the program

def text_of(project, *patterns):
    return "\n".join(path.read_text(encoding="utf-8") for pattern in patterns for path in sorted(project.glob(pattern)))


def suites_of(project):
    """The options of each benchmark, by the strings in its source."""
    shared = set(re.findall(r'"(--[a-z][a-z_-]*)', text_of(project, "bench/program.cpp")))
    of_main = set(re.findall(r'"(--[a-z][a-z_-]*)', text_of(project, "bench/suite/main.cpp", "bench/photos.cpp")))
    suites = {}
    for path in [*project.glob("bench/*.cpp"), *project.glob("bench/*.py")]:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".py" or re.search(r"^int main\(|BENCHMARK_MAIN", text, re.MULTILINE):
            more = of_main if "bench::main(" in text else shared
            suites[path.stem.replace("_", "-")] = set(re.findall(r'"(--[a-z][a-z_-]*)', text)) | more
    for text in re.findall(r'"([^"\n]*--[^"\n]*)"', text_of(project, "bench/accuracy.cpp")):   # "--tune,!--no-tune"
        suites["accuracy"] |= set(re.findall(r"--[a-z-]+", text))
    return suites


def verdicts_of(project):
    text = text_of(project, "include/drawpoint/diagnosis/verdict/words.hpp")
    names = re.search(r"enum class Verdict\b[^{]*\{(.*?)\}", text, re.DOTALL).group(1)
    names = re.sub(r"//[^\n]*", "", names)
    return {name.strip().replace("_", "-") for name in names.split(",") if name.strip()}


def causes_of(project):
    keys = set(re.findall(r'case Cause::\w+: return "(\w+)"', text_of(project, "diagnosis/blame/cause.cpp")))
    return {"stage:NAME" if key == "stage" else key for key in keys}


def folders_of(project):
    folders = set(ROOMS)
    for room in ROOMS:
        folders |= {str(path.parent.relative_to(project)) for path in (project / room).rglob("*.?pp")}
    public = project / "include/drawpoint"   # of bench only the library's folders are a room's
    return folders | {str(path.parent.relative_to(public)).removesuffix("/detail")
                      for path in (public / "bench").rglob("*.hpp")}


def test_names(project):
    """What ctest knows: suites, examples and scripts."""
    names = set(re.findall(r"BOOST_AUTO_TEST_SUITE\((\w+)\)", text_of(project, "tests/**/*_test.cpp")))
    lists = text_of(project, "tests/**/CMakeLists.txt", "examples/CMakeLists.txt")
    return names | set(re.findall(r"NAME (\w+)", lists))


def output_of(*command, folder, fails=False):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("DRAWPOINT_")}
    environment |= {"NO_COLOR": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([str(word) for word in command], cwd=folder, env=environment, capture_output=True, text=True,
                          encoding="utf-8", timeout=300, check=False)
    if done.returncode != 0 and not fails:
        sys.exit(f"check_docs.py: {' '.join(map(str, command))}: exit code {done.returncode}: {done.stderr}")
    return done.stdout or done.stderr


class Program:
    """The program: its options, what it prints, its JSON."""

    def __init__(self, project, program, folder):
        self.project, self.program, self.folder = project, program, folder

    def __call__(self, *words):
        return output_of(self.program, *words, folder=self.folder)

    def options(self):
        """Of each command: its options, with the rest of their lines."""
        commands = re.findall(r"^  ([a-z]+) ", self("--help"), re.MULTILINE)
        commands = [name for name in commands if name not in ("bench", "dataset")]
        commands += [f"dataset {name}" for name in ACTIONS]
        found = {name: options_in(self(*name.split(), "--help")) for name in commands}
        return found | {"bench": options_in(self("bench", "--rounds", 0, "--help"))}

    def record(self):
        """Pictures, a training run on them, and a recording of slow reads on a quiet machine."""
        self("dataset", "generate", "--count", 3, "--out", "pictures")
        self("dataset", "crops", "--from", "pictures", "--out", "photos", "--per-image", 30, "--size", "160x120")
        self("dataset", "pack", "--from", "photos/train", "--out", "shards")
        (Path(self.folder) / "slow.pftrace").write_bytes(
            lzma.open(self.project / "tests/docs/slow_reads.pftrace.xz").read())
        return self("profile", "--data", "photos/train", "--valid", "photos/valid", "--model", "mlp", "--epochs", 2,
                    "--batch-size", 8, "--image-size", 32, "--read-concurrency", 8, "--inject", "read-latency=2ms",
                    "-o", "run.pftrace")

    def outputs(self, trained):
        grid = ("--num-workers", "1..8", "--prefetch-depth", "1,2,4")
        nothing = "leave the settings as they are: no change of them gains 3 %"
        nothing = f"  predicted: {nothing}" if nothing in text_of(self.project, "diagnosis/verdict/*.cpp") else ""
        reports = [self("report", file, *full) for file in ("run.pftrace", "slow.pftrace") for full in ((), ("--full",))]
        return {"profile": "\n".join([trained, *reports, nothing]),
                "diagnose": self("diagnose", "slow.pftrace"), "whatif": self("whatif", "slow.pftrace", *grid)}

    def documents(self):
        quick = ("profile", "--data", "synthetic:400", "--model", "none", "--batch-size", 8, "--num-workers", 1,
                 "--image-size", 8, "--epochs", 2, "-o", "quick.pftrace")
        self(*quick)
        trace = self.project / "tests/golden/g6_kineto/cpu_workers2_gz.json.gz"
        texts = [self("report", "slow.pftrace", "--json"), self("report", "run.pftrace", "--json"),
                 self("diagnose", "slow.pftrace", "--json"), self("diagnose", "slow.pftrace", "--explain", "--json"),
                 self("diagnose", trace, "--json"), self("doctor", "--json"),
                 self("whatif", "slow.pftrace", "--json"),
                 self("whatif", "quick.pftrace", "--num-workers", "1,2", "--prefetch-depth", 2, "--verify",
                      "--rounds", 1, "--json"),
                 self("tune", "--data", "synthetic:400", "--model", "none", "--batch-size", 8, "--num-workers", 1,
                      "--image-size", 8, "--most-steps", 200, "--most-workers", 2, "--json", "-o", "tuned.toml"),
                 self("dataset", "info", "photos/train", "--json"), self("dataset", "info", "shards", "--json"),
                 self("export", "run.pftrace", "--to", "json", "-o", "-"),
                 self("export", "slow.pftrace", "--to", "json", "-o", "-"),
                 self("compare", "run.pftrace", "slow.pftrace", "--json"),
                 self("bench", "--command", "a=true", "--command", "b=true", "--rounds", 2, "--turn-ms", 0, "--json"),
                 self("gate", "--base", "true", "--self-test", "--rounds", 12, "--turn-ms", 0, "--json")]
        documents = {}
        for text in texts:
            document = json.loads(text)
            documents.setdefault(document["schema"], []).append(document)
        return documents


def options_in(text):
    """{option: its line} of what --help prints."""
    found = {}
    for line in re.sub(r"\n {30,}", " ", text).splitlines():
        head = re.match(r"  (-[^ ]+)", line)
        for name in re.findall(r"--?[a-zA-Z][\w-]*", head.group(1)) if head else []:
            found[name] = line
    return found


def main():
    project = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    names = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"]
    names += sorted(f"docs/{path.name}" for path in project.glob("docs/*.md"))
    pages = {name: Page(name, (project / name).read_text(encoding="utf-8")) for name in names}
    examples = {path.name: path.read_text(encoding="utf-8") for path in project.glob("examples/*.cpp")}
    verbs = re.findall(r"^  ([a-z]+) ", output_of(project / "run", "help", folder=project), re.MULTILINE)
    tools, outputs, documents = Tools({}, verbs, suites_of(project)), None, None
    with tempfile.TemporaryDirectory() as folder:
        if len(sys.argv) > 2:
            program = Program(project, Path(sys.argv[2]).resolve(), folder)
            tools.options = program.options()
            outputs = program.outputs(program.record())
            documents = program.documents()

    faults = []
    def run(name, check, *rest):
        faults.extend((name, *fault) for fault in check(pages[name], *rest))
    tests = test_names(project)
    for name in names:
        run(name, check_width)
        if name != "docs/parity.md":
            run(name, check_tests, tests)
        run(name, check_links, pages, lambda path: (project / path).exists())
        run(name, check_programs, examples)
        run(name, check_commands, tools)
        if outputs:
            run(name, check_output, outputs)
    run("docs/formats.md", check_facts, text_of(project, "include/drawpoint/instrumentation/facts.hpp"))
    run("docs/verdicts.md", check_verdicts, verdicts_of(project), causes_of(project))
    run("docs/design.md", check_rooms, folders_of(project))
    run("docs/benchmarks.md", check_suites, tools.suites)
    run("docs/cli.md", check_listing, tools)
    if documents:
        run("docs/formats.md", check_members, documents,
            text_of(project, "instrumentation/**/*.?pp", "cli/*.cpp", "diagnosis/**/*.cpp", "bench/**/*.cpp",
                    "bench/*.py"))
        run("docs/formats.md", check_advice, documents)
    for name, line, rule, words in faults:
        print(f"{name}:{line}: {rule}: {words}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
