#!/usr/bin/env python3
"""What the program makes of its own tables of options agrees: --help of every command, its manual page, and what bash
completes. Help fits in 80 columns. Where there is mandoc, it finds nothing to say of the manual pages; where there are zsh and
fish, they can read their completions.
usage: option_tables.py DRAWPOINT"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

WIDTH = 80
ACTIONS = ("crops", "generate", "info", "pack")   # of dataset
faults = []


def check(holds, what):
    if not holds:
        faults.append(what)


def output_of(*command):
    answer = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "COLUMNS": str(WIDTH)})
    check(answer.returncode == 0, f"{' '.join(map(str, command))}: exit code {answer.returncode}: {answer.stderr}")
    return answer.stdout


def options_of(help_text):
    """{option: its values} of what --help prints; values are those that it lists in place of one."""
    options = {}
    for names, value in re.findall(r"^  (-[^ \n]+)(?: (\S+))?", help_text, re.MULTILINE):
        for name in names.split(","):
            options[name] = [word.split("[")[0] for word in (value or "").split("|") if word and not re.search("[A-Z]", word)]
    return options


def completed(script, words):
    """What bash offers for the last of these words."""
    quoted = " ".join(f"'{word}'" for word in words)
    program = f"source {script}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _drawpoint; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    return subprocess.run(["bash", "-c", program], capture_output=True, text=True).stdout.splitlines()


def main():
    program = Path(sys.argv[1]).resolve()
    commands = re.findall(r"^  ([a-z]+)  ", output_of(program, "--help"), re.MULTILINE)
    check(len(commands) >= 16, f"only these commands: {commands}")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)   # which has no files to complete
        script = Path(folder) / "drawpoint.bash"
        script.write_text(output_of(program, "completion", "bash"))
        offered = completed(script, ["drawpoint", ""])
        check(set(commands) <= set(offered), f"commands that bash does not offer: {set(commands) - set(offered)}")
        check(completed(script, ["drawpoint", "dataset", ""]) == list(ACTIONS), "the actions of dataset")
        check(completed(script, ["drawpoint", "prof"]) == ["profile"], "prof is completed to profile")
        for command in [[name] for name in commands if name != "dataset"] + [["dataset", action] for action in ACTIONS]:
            asked = ["bench", "--rounds", "0"] if command == ["bench"] else command
            text, name = output_of(program, *asked, "--help"), " ".join(command)
            wide = [line for line in text.splitlines() if len(line) > WIDTH]
            check(not wide, f"{name} --help is wider than {WIDTH} columns: {wide[:1]}")
            options = options_of(text)
            check("--help" in options, f"{name} --help lists no options")
            offered = completed(script, ["drawpoint", *command, ""])
            names = {word for word in offered if word.startswith("-")}
            check(set(options) == names, f"{name}: bash and --help differ in {set(options) ^ names}")
            manual = output_of(program, "man", *command).replace("\\-", "-")
            for option, values in options.items():
                check(re.search(rf"\\fB(.*, )?{option}(, .*)?\\fR", manual), f"the manual page of {name} lacks {option}")
                if values:
                    for words in ([option, ""], [option, "=", ""], [option, "="]):
                        offered = completed(script, ["drawpoint", *command, *words])
                        check(set(values) <= set(offered), f"{name} {' '.join(words)}: bash offers {offered}, not {values}")
        check({"auto", "always", "never"} <= set(completed(script, ["drawpoint", "report", "--color", ""])), "--color's values")
        check(completed(script, ["drawpoint", "profile", "--log", "j"]) == ["jsonl="], "--log's formats")
        check("perfetto-sql" in completed(script, ["drawpoint", "export", "--to", ""]), "--to's formats")
        Path("my run.pftrace").touch()
        for command, *words in (["profile", "--log", "jsonl", "=", "my"], ["profile", "--log", "=", "jsonl", "=", "my"],
                                ["report", "--html", "my"], ["report", "--json", "=", "my"], ["report", "my"]):
            offered = completed(script, ["drawpoint", command, *words])
            check(offered == ["my run.pftrace"], f"{command} {words}: bash offers {offered}")
        for shell, form in (("zsh", "_drawpoint"), ("fish", "drawpoint.fish")):
            Path(form).write_text(output_of(program, "completion", shell))
            if shutil.which(shell):
                read = subprocess.run([shell, "-n", form], capture_output=True, text=True)
                check(read.returncode == 0, f"{shell} -n: {read.stderr}")
        subprocess.run([program, "man", "--folder", "man"], check=True)
        pages = sorted(Path("man").iterdir())
        check(len(pages) == len(commands) + len(ACTIONS), f"{len(pages)} manual pages")
        if shutil.which("mandoc"):
            for page in pages:
                said = subprocess.run(["mandoc", "-T", "lint", page], capture_output=True, text=True).stdout
                check(not said, f"mandoc of {page.name}: {said}")
        os.chdir("/")
    print("\n".join(faults) or f"{len(commands)} commands: help, manual pages and completions agree")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
