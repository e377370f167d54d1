#!/usr/bin/env python3
"""The docs test's own test: pages that each check must accept, and the same with one mistake that it must find."""

import unittest

from check_docs import (Page, Tools, anchor, check_advice, check_commands, check_facts, check_links, check_listing,
                        check_members, check_output, check_programs, check_rooms, check_suites, check_tests,
                        check_verdicts, check_width, options_in, shapes)


def rules(check, text, *rest, name="docs/page.md"):
    return [rule for _, rule, _ in check(Page(name, text), *rest)]


class Mistakes(unittest.TestCase):
    """Each case: a text that is right, and what replaces what to make it wrong."""

    def find(self, check, right, mistakes, rule, *rest):
        self.assertEqual([], list(check(Page("docs/page.md", right), *rest)))
        for old, new in mistakes:
            with self.subTest(old=old, new=new):
                self.assertIn(old, right)
                self.assertIn(rule, rules(check, right.replace(old, new, 1), *rest))


class Text(Mistakes):
    def test_lines_and_the_readme_have_a_limit(self):
        self.find(check_width, "x" * 120, [("x", "xx")], "docs-width")
        self.assertEqual([], rules(check_width, "x\n" * 150, name="README.md"))
        self.assertEqual(["docs-length"], rules(check_width, "x\n" * 151, name="README.md"))

    def test_links_lead_to_files_and_headings(self):
        pages = {"docs/other.md": Page("docs/other.md", "# A `b`: c\n")}
        right = ("[a](other.md#a-b-c), [b](https://x.y), `tests/a.cpp`", pages,
                 lambda path: path in ("docs/other.md", "tests/a.cpp"))
        self.find(check_links, right[0], [("other.md", "another.md"), ("#a-b-c", "#a")], "docs-link", *right[1:])
        self.find(check_links, right[0], [("tests/a.cpp", "tests/b.cpp")], "docs-path", *right[1:])
        self.assertEqual("drawpointreport1", anchor("drawpoint.report/1"))

    def test_a_program_is_a_piece_of_an_example(self):
        self.find(check_programs, "<!-- example: a.cpp -->\n```cpp\n    f();\n    g();\n```\n",
                  [("g();", "h();"), ("    g", "  g"), ("a.cpp", "b.cpp"), ("<!-- example: a.cpp -->\n", "")],
                  "docs-program", {"a.cpp": "int main() {\n    f();\n    g();\n}\n"})

    def test_lines_of_a_program_may_be_left_out_but_not_change_places(self):
        self.find(check_programs, "<!-- example: a.cpp -->\n```cpp\nf();\n    // …\nh();\n```\n",
                  [("f();", "h();"), ("    // …\n", ""), ("h();", "e();")], "docs-program", {"a.cpp": "e();\nf();\ng();\nh();\n"})


class Commands(Mistakes):
    TOOLS = Tools({"profile": {"--data": "", "--epochs": "", "-o": ""}, "report": {"--style": "simple, tree"},
                   "dataset info": {"--check": ""}}, ["demo", "drawpoint", "bench"], {"loader": {"--data"}})

    def test_commands_verbs_benchmarks_and_options_exist(self):
        self.find(check_commands,
                  "```\n./run demo --epochs 2   # words\ndrawpoint profile --data A \\\n    --epochs 2 -o x\n"
                  "./run bench loader --data A\n```\n`drawpoint dataset info --check` and `--style simple`, "
                  "`drawpoint report RUN --style tree`, `./run drawpoint profile`\n",
                  [("demo", "dmeo"), ("--epochs", "--epoch"), ("profile", "profiel"), ("    --epochs", "    --epoch"),
                   ("loader", "loaders"), ("loader --data", "loader --date"), ("--check", "--chek"), ("info", "inof"),
                   ("`--style", "`--styel"), ("--style tree", "--style tere"),
                   ("./run drawpoint profile", "./run drawpoint p")],
                  "docs-command", self.TOOLS)

    def test_all_options_and_verbs_are_listed_and_no_others(self):
        shared = "`--config` `--print-config` `--json` `--csv` `--markdown` `--color`"
        right = (f"{shared} `./run demo` `./run drawpoint` `./run bench`\n## profile\n| `--data` | `--epochs` |\n"
                 "## report\n\n| option | does |\n|---|---|\n| `--style` | x |\n"
                 "## dataset\n\n| option | does |\n|---|---|\n| `--check` | x |\n")
        self.find(check_listing, right, [("| `--check`", "| `--chek`"), ("`--epochs`", ""), ("`./run bench`", ""),
                                         ("`--csv`", ""), ("## report", "## repor"), ("`--style`", "`--style` `--other`")],
                  "docs-listing", self.TOOLS)

    def test_help_is_read(self):
        text = "Options:\n  -o,--output TEXT=x     where\n  --drop,--no-drop{false}\n" + " " * 34 + "first\n"
        self.assertEqual(["--drop", "--no-drop", "--output", "-o"], sorted(options_in(text)))


class Output(Mistakes):
    REPORT = ("wall       5.78 s, 8 epochs, 240 steps, 2,631 samples/s\n"
              "draw       4.0 % of wall (230 ms), starved 151 ms (91 %),\n           first draws 64.5 ms\n\n"
              "phase  action         calls     mean  samples/s\ntrain  step             191  24.6 ms      2,700\n\n"
              "why the draw waits: read-latency\n  predicted: num_workers 1 -> 2: +98 % (77 … 124 %)\n")

    def quoted(self, text):
        return f"<!-- output: profile -->\n```\n{text}```\n"

    def test_numbers_units_and_names_of_causes_may_differ(self):
        today = (self.REPORT.replace("5.78 s", "91 ms").replace("8 epochs", "1 epoch").replace("read-latency", "decode")
                 .replace("2,700", "-").replace("num_workers 1 -> 2", "order in -> out").replace("64.5 ms", "0 s"))
        self.assertEqual([], rules(check_output, self.quoted(self.REPORT), {"profile": today}))

    def test_lines_labels_columns_and_words_may_not(self):
        self.find(check_output, self.quoted(self.REPORT.replace("mean  samples/s", "mean  samples/s   ①")),
                  [("wall  ", "walls "), ("starved", "hungry"), ("first draws", "early draws"),
                   ("calls     mean", "calls     min"),
                   ("step  ", "steps "), ("  24.6 ms      2,700", "  24.6 ms"), ("why the draw waits", "why it waits"),
                   ("predicted", "foretold"), ("(77 … 124 %)", "(77 %)"), ("output: profile", "output: unknown")],
                  "docs-output", {"profile": self.REPORT})

    def test_an_ellipsis_stands_for_lines(self):
        self.assertEqual(shapes("a 1\nb 2\n"), shapes("a 3\n…\nb 4\n"))


class Members(Mistakes):
    RIGHT = ("## JSON documents\n\n| member | is |\n|---|---|\n| `schema` | x |\n\n### drawpoint.a/1\n\n| member | is |\n"
             "|---|---|\n| `run.steps` | x |\n| `rows[].mean_s`, `rows[].calls` | x |\n| `best` | with `slots` |\n"
             "| `errors[].path` | x |\n\n## Facts\n\n| key | is |\n|---|---|\n| `run.command`, `option.NAME` | x |\n")
    DOCUMENT = {"schema": "drawpoint.a/1", "run": {"steps": 1}, "rows": [{"mean_s": 1, "calls": 2}], "best": {"slots": 2},
                "errors": []}

    def test_all_members_are_described_and_no_others(self):
        self.find(check_members, self.RIGHT,
                  [("`run.steps`", "`run.step`"), ("`rows[].calls`", "`rows[].mean_s`"), ("`best`", "`worst`"),
                   ("with `slots`", "x"), ("`schema`", "`shema`"), ("errors[].path", "errors[].pth"),
                   ("drawpoint.a/1", "drawpoint.b/1")],
                  "docs-member", {"drawpoint.a/1": [self.DOCUMENT]}, '"path"')
        more = self.DOCUMENT | {"run": {"steps": 1, "wall_s": 2}}
        self.assertEqual(["docs-member"], rules(check_members, self.RIGHT, {"drawpoint.a/1": [more]}, '"path"'))

    def test_reports_of_one_recording_advise_the_same(self):
        def advice(how):
            return {"change": "num_workers 1 -> 2", "how_to_refute": how}
        def found(report, other="--b 1: +98 %"):
            return rules(check_advice, "", {
                "drawpoint.report/1": [{"command": "report slow.pftrace", "diagnosis": {"advice": advice(report)}},
                                       {"command": "report run.pftrace", "diagnosis": {"advice": advice("--c 1")}}],
                "drawpoint.diagnosis/1": [{"command": "diagnose slow.pftrace", "advice": advice(other)}]})
        self.assertEqual([], found("--b 1: +97 %"))
        self.assertEqual(["docs-advice"], found("--a 1 --b 1: +98 %"))

    def test_all_facts_are_described_and_no_others(self):
        header = 'constexpr std::string_view command = "run.command";\nstd::string_view option_prefix =\n    "option.";\n'
        self.find(check_facts, self.RIGHT, [("`run.command`", "`run.commands`"), ("`option.NAME`", "`options.NAME`")],
                  "docs-fact", header)


class Words(Mistakes):
    def test_all_verdicts_and_causes_are_described_and_no_others(self):
        self.find(check_verdicts, "### `decode`\n\n* Means: x\n* Do: x\n* Check: x\n\n### Blame\n`order`\n",
                  [("`decode`", "`decod`"), ("* Do: ", "* Does: "), ("`order`", "order")],
                  "docs-verdict", {"decode"}, {"order"})
        self.assertEqual(["docs-verdict"], rules(check_verdicts, "", {"decode"}, set()))

    def test_the_table_of_rooms_has_all_folders_and_no_others(self):
        self.find(check_rooms,
                  "## Rooms\n\n| folder | knows |\n|---|---|\n| `loop/` | x |\n| `loop/a`, `loop/b` | `c/`: x |\n",
                  [("`loop/b`", ""), ("`loop/a`", "`loop/z`"), ("`c/`", "c")],
                  "docs-room", {"loop", "loop/a", "loop/b", "loop/a/c"})

    def test_all_benchmarks_are_listed_and_no_others(self):
        self.find(check_suites, "## All suites\n\n| suite | measures |\n|---|---|\n| `draw` | x |\n", [("`draw`", "`drow`")],
                  "docs-suite", {"draw": set()})

    def test_patterns_of_tests_find_some(self):
        self.find(check_tests, "`ctest -R 'fit_loop\\|ledger'`", [("ledger", "leger")], "docs-test",
                  {"fit_loop", "ledger_json"})


if __name__ == "__main__":
    unittest.main()
