#!/usr/bin/env python3
"""The lints' own test: snippets that each must reject, under the rule named, and snippets that it must accept."""

import unittest
from pathlib import Path

import coroutines
import doors
import folders
import include_graph
import layout
import machine
import parity


def rules(lint, path, text):
    return [rule for _, rule, _ in lint.check(Path(path), text)]


class IncludeGraph(unittest.TestCase):
    REJECTED = [   # path, include, rule
        ("instrumentation/ledger.cpp", "<drawpoint/pipeline/runtime/runtime.hpp>", "include-graph"),
        ("include/drawpoint/instrumentation/clock.hpp", "<drawpoint/loop/fit.hpp>", "include-graph"),
        ("pipeline/data_loader.cpp", "<drawpoint/loop/fit.hpp>", "include-graph"),
        ("pipeline/data_loader.cpp", "<drawpoint/instrumentation/report/simple.hpp>", "include-graph"),
        ("loop/fit.cpp", "<drawpoint/pipeline/loader/data_loader.hpp>", "include-graph"),
        ("loop/fit.cpp", '"pipeline/ring.hpp"', "include-graph"),
        ("loop/fit.cpp", "<drawpoint/pipeline/loader/core/batch_slots.hpp>", "include-graph"),
        ("loop/torch/learner.cpp", "<drawpoint/pipeline/loader/data_loader.hpp>", "include-graph"),
        ("loop/fit.cpp", '"../diagnosis/blame.hpp"', "include-graph"),
        ("loop/fit.cpp", "<drawpoint/diagnosis/blame/blame.hpp>", "include-graph"),
        ("diagnosis/blame.cpp", '"cli/options.hpp"', "include-graph"),
        ("pipeline/stage.cpp", "<torch/torch.h>", "include-library"),
        ("loop/fit.cpp", "<ATen/ATen.h>", "include-library"),
        ("instrumentation/clock.cpp", "<c10/util/Optional.h>", "include-library"),
        ("tests/loop/fit_test.cpp", "<torch/torch.h>", "include-library"),
        ("loop/fit.cpp", "<drawpoint/loop/torch/learner.hpp>", "include-library"),
        ("include/drawpoint/drawpoint.hpp", "<drawpoint/loop/torch/learner.hpp>", "include-library"),
        ("pipeline/data_loader.cpp", "<tbb/task_arena.h>", "include-library"),
        ("cli/doctor.cpp", "<oneapi/tbb/version.h>", "include-library"),
        ("instrumentation/recorder.cpp", "<asio/post.hpp>", "include-library"),
        ("instrumentation/ledger.cpp", "<asio.hpp>", "include-library"),
        ("diagnosis/replay.cpp", "<asio/post.hpp>", "include-library"),
        ("pipeline/data_loader.cpp", "<protozero/pbf_writer.hpp>", "include-library"),
        ("cli/profile.cpp", "<drawpoint/drawpoint.hpp>", "include-door"),
        ("tests/loop/fit_test.cpp", "<drawpoint/drawpoint.hpp>", "include-door"),
        ("cli/profile.cpp", "<drawpoint/loader.hpp>", "include-door"),
        ("include/drawpoint/loader.hpp", "<drawpoint/loop.hpp>", "include-door"),
        ("include/drawpoint/loader.hpp", "<drawpoint/loop/torch/learner.hpp>", "include-library"),
        ("diagnosis/replay.cpp", '"pipeline/loader/threads/claim_use.hpp"', "include-private"),
        ("cli/tune.cpp", '"diagnosis/verdict/interventions.hpp"', "include-private"),
        ("include/drawpoint/pipeline/loader/blocking.hpp", '"pipeline/loader/core/loader_core.hpp"', "include-private"),
        ("loop/fit.cpp", '"../instrumentation/clock_source.hpp"', "include-private"),
        ("cli/verification.cpp", '"diagnosis/verdict/refutation.hpp"', "include-private"),
        ("examples/first.cpp", "<drawpoint/diagnosis/verdict/detail/refutation.hpp>", "include-detail"),
        ("include/drawpoint/loader.hpp", "<drawpoint/pipeline/loader/machine/detail/loader_policy.hpp>", "include-detail"),
        ("include/drawpoint/newroom/thing.hpp", "<drawpoint/loop/fit.hpp>", "include-graph"),
    ]
    ACCEPTED = [
        ("instrumentation/ledger.cpp", "<drawpoint/instrumentation/event.hpp>"),
        ("instrumentation/trace_writer.cpp", "<protozero/pbf_writer.hpp>"),
        ("instrumentation/export/pprof.cpp", "<protozero/pbf_writer.hpp>"),
        ("pipeline/data_loader.cpp", "<drawpoint/instrumentation/recorder/recorder.hpp>"),
        ("pipeline/image/decode.cpp", "<drawpoint/pipeline/errors.hpp>"),
        ("pipeline/runtime/worker_pool.cpp", "<tbb/task_arena.h>"),
        ("include/drawpoint/pipeline/runtime/runtime.hpp", "<asio/awaitable.hpp>"),
        ("pipeline/torch/tensor.cpp", "<torch/torch.h>"),
        ("include/drawpoint/pipeline/torch/tensor.hpp", "<ATen/ATen.h>"),
        ("loop/fit.cpp", "<drawpoint/pipeline/loader/core/batch_source.hpp>"),
        ("loop/torch/learner.cpp", "<drawpoint/pipeline/torch/tensor.hpp>"),
        ("loop/torch/learner.cpp", "<drawpoint/loop/learner.hpp>"),
        ("include/drawpoint/loop/torch/learner.hpp", "<drawpoint/pipeline/loader/core/batch_slots.hpp>"),
        ("diagnosis/replay.cpp", "<drawpoint/pipeline/loader/machine/detail/loader_policy.hpp>"),
        ("cli/profile.cpp", "<drawpoint/loop/torch/learner.hpp>"),
        ("bench/rival.cpp", "<torch/torch.h>"),
        ("tests/torch/learner_test.cpp", "<torch/torch.h>"),
        ("tests/pipeline/worker_pool_test.cpp", "<tbb/task_arena.h>"),
        ("examples/first.cpp", "<drawpoint/drawpoint.hpp>"),
        ("include/drawpoint/drawpoint.hpp", "<drawpoint/loop.hpp>"),
        ("include/drawpoint/loop.hpp", "<drawpoint/loop/fit.hpp>"),
        ("include/drawpoint/torch.hpp", "<drawpoint/loop/torch/learner.hpp>"),
        ("examples/first.cpp", "<drawpoint/loader.hpp>"),
        ("pipeline/loader/data_loader.cpp", '"pipeline/loader/threads/prefetch_core.hpp"'),
        ("tests/pipeline/loader/data_loader_test.cpp", '"pipeline/loader/threads/prefetch_core.hpp"'),
        ("bench/draw.cpp", '"pipeline/loader/threads/prefetch_core.hpp"'),
        ("cli/verification.cpp", "<drawpoint/diagnosis/verdict/detail/refutation.hpp>"),
        ("loop/fit.cpp", "<vector>"),
        ("loop/fit.cpp", '"helper.hpp"'),
    ]

    def test_rejected(self):
        for path, include, rule in self.REJECTED:
            with self.subTest(path=path, include=include):
                self.assertIn(rule, rules(include_graph, path, f"#pragma once\n#include {include}\n"))

    def test_accepted(self):
        for path, include in self.ACCEPTED:
            with self.subTest(path=path, include=include):
                self.assertEqual([], rules(include_graph, path, f"#pragma once\n  # include {include}\n"))

    def test_names_the_line(self):
        finding, = include_graph.check(Path("loop/fit.cpp"), "#include <vector>\n\n#include <torch/torch.h>\n")
        self.assertEqual(3, finding[0])


class Doors(unittest.TestCase):
    def test_a_header_that_no_door_leads_to_is_found(self):
        headers = {"drawpoint/loop.hpp": "#include <drawpoint/loop/fit.hpp>", "drawpoint/loop/event.hpp": "",
                   "drawpoint/loop/fit.hpp": "#include <drawpoint/loop/event.hpp>", "drawpoint/loop/lost.hpp": "",
                   "drawpoint/loop/detail/own.hpp": ""}
        self.assertEqual(["drawpoint/loop/lost.hpp"], doors.check(headers))


class Folders(unittest.TestCase):
    A, B, C = (("pipeline/a/x.cpp", "<drawpoint/pipeline/b/y.hpp>"), ("pipeline/b/y.cpp", '"pipeline/c/z.hpp"'),
               ("include/drawpoint/pipeline/c/detail/z.hpp", "<drawpoint/pipeline/a/w.hpp>"))

    def paths(self, *files):
        return [str(path) for path, _, _ in folders.check([(path, f"#include {include}\n") for path, include in files])]

    def test_a_circle_of_folders_is_found_at_each_of_its_includes(self):
        self.assertEqual([self.A[0], self.B[0], self.C[0]], self.paths(self.A, self.B, self.C))

    def test_one_way_is_accepted(self):
        self.assertEqual([], self.paths(self.A, self.B, ("tests/c.cpp", "<drawpoint/pipeline/a/w.hpp>")))

    def test_an_entry_at_the_top_that_nobody_knows_is_found(self):
        found = folders.strays(["--list_content/classes.json", "README.md", "docs/a/b.md", "run"])
        self.assertEqual(["--list_content"], [name for name, _, _ in found])


class Machine(unittest.TestCase):
    SPIN = ("include/drawpoint/pipeline/loader/machine/spin.hpp", "constexpr std::int64_t spin_ns = 5, long_spin_ns = f(1, 2);")

    def rules(self, *files):
        return [(path, rule) for path, _, rule, _ in machine.check(files)]

    def test_a_constant_that_stands_twice(self):
        for text in ("constexpr std::int64_t long_spin_ns = 80'000;", "static constexpr int a_b = 1, spin_ns = 2;",
                     "inline constexpr std::uint64_t spin_ns = 1 + 2;"):
            for path in ("diagnosis/replay/loop.cpp", "pipeline/loader/threads/core.hpp", "pipeline/loader/machine/a.cpp"):
                with self.subTest(text=text, path=path):
                    self.assertEqual([(path, "machine-once")], self.rules(self.SPIN, (path, text)))

    def test_a_decision_that_is_not_pure(self):
        for text in ("#include <atomic>", "#include <drawpoint/instrumentation/clock.hpp>", "std::mutex m;",
                     '#include "pipeline/loader/threads/core.hpp"'):
            with self.subTest(text=text):
                self.assertEqual([("pipeline/loader/machine/a.cpp", "machine-pure")],
                                 self.rules(("pipeline/loader/machine/a.cpp", text)))

    def test_accepted(self):
        self.assertEqual([], self.rules(
            self.SPIN, ("diagnosis/a.cpp", "constexpr int other_ns = 5; int spin_ns = 3;  // constexpr int spin_ns = 1;"),
            ("tests/a.cpp", "constexpr int spin_ns = 5;"),
            ("pipeline/loader/machine/b.cpp", "#include <vector>\n#include <drawpoint/pipeline/loader/machine/spin.hpp>\n")))


class Coroutines(unittest.TestCase):
    REJECTED = [   # body of a coroutine, rule
        ("co_await f([cap] { return cap; });", "C3"),
        ("auto x = co_await f([&] { return 1; });", "C3"),
        ("co_await f(Agg{1, 2});", "C3"),
        ("co_await f({.a = 1});", "C3"),
        ("co_await Awaiter{T{}};", "C3"),
        ("T x = c ? co_await a() : co_await b();", "C3"),
        ("T x = co_await f(c ? T(1) : T(2));", "C3"),
        ("while (co_await g()) { work(); }", "C3"),
        ("do { work(); } while (co_await g());", "C3"),
        ("if (co_await g()) work();", "C3"),
        ("if (auto x = co_await g(); x) work();", "C3"),
        ("for (auto& item : co_await items()) work(item);", "C3"),
        ("for (; co_await g();) work();", "C3"),
        ("switch (co_await g()) { default: break; }", "C3"),
        ("std::vector<T> v{co_await a(), co_await b()};", "C3"),
        ("T x{co_await a()};", "C3"),
        ("T x(co_await a());", "C3"),
        ("f(co_await a());", "C3"),
        ("BOOST_TEST(co_await a() == 1);", "C3"),
        ("auto x = 1 + co_await a();", "C3"),
        ("x = co_await a();", "C3"),
        ("auto [a, b] = co_await pair();", "C3"),
        ("auto x = co_await f(co_await a());", "C3"),
        ("bool b = ready && co_await a();", "C3"),
        ("return co_await a();", "C3"),
        ("throw co_await a();", "C3"),
        ("asio::co_spawn(executor, work(), asio::detached);", "C6"),
        ("std::thread(work).detach();", "C6"),
        ("worker->detach();", "C6"),
        ("asio::experimental::channel<void()> c(executor);", "C12"),
        ("std::atomic_thread_fence(std::memory_order_seq_cst);", "C13"),
        ("static thread_local int count;", "C11"),
    ]
    ACCEPTED = [
        "co_await f();",
        "co_await f(std::move(named), 3, other);",
        "co_await std::move(task);",
        "auto x = co_await f(named);",
        "const auto x = co_await f(named);",
        "auto&& x = co_await f(named);",
        "std::optional<Batch> batch = co_await pass.next();",
        "std::map<int, std::pair<int, int>> found = co_await table.find(key);",
        "[[maybe_unused]] auto x = co_await f();",
        "auto executor = co_await asio::this_coro::executor;",
        "co_return co_await f(named);",
        "co_return Agg{1, 2};",
        "if (ready) co_await f();",
        "if (ready) { co_await f(); } else co_await g();",
        "for (int i = 0; i < n; ++i) co_await f(i);",
        "for (;;) { auto x = co_await g(); if (!x) break; }",
        "switch (kind) { case Kind::a: co_await f(); break; default: co_await g(); }",
        "co_await f(values[0], table[i]);",
        "auto fn = [cap] { return cap; }; co_await f(std::move(fn));",
        "auto loop = [&]() -> Awaitable<void> { co_await f(); };",
        "// co_await f({1}) in words",
        'say("while (co_await g()) asio::detached");',
        'auto s = R"(co_await f({1}))"; auto n = 1\'000\'000; co_await f(n);',
        "auto operator co_await() const;",
    ]

    def test_rejected(self):
        for body, rule in self.REJECTED:
            with self.subTest(body=body):
                self.assertIn(rule, rules(coroutines, "loop/fit.cpp", "Awaitable<void> c() {\n" + body + "\n}\n"))

    def test_accepted(self):
        for body in self.ACCEPTED:
            with self.subTest(body=body):
                self.assertEqual([], rules(coroutines, "loop/fit.cpp", "Awaitable<void> c() {\n" + body + "\n}\n"))

    def test_a_tensor_may_be_detached_and_a_thread_may_not(self):
        self.assertEqual([], rules(coroutines, "loop/torch/learner.cpp", "auto value = loss.detach();"))
        self.assertEqual(["C6"], rules(coroutines, "loop/torch/learner.cpp", "std::thread t(work); t.detach();"))

    def test_thread_local_is_for_code_without_coroutines(self):
        self.assertEqual([], rules(coroutines, "instrumentation/recorder.cpp", "thread_local int ring;"))

    def test_names_the_line(self):
        finding, = coroutines.check(Path("loop/fit.cpp"), "void f() {\n  /* a\n  b */ g(co_await h());\n}")
        self.assertEqual(3, finding[0])


class Parity(unittest.TestCase):
    TESTS = {"suite/case"}
    WHOLE = [f"| {kind}{n} | api | `suite/case` | exact |" for kind, last in parity.ROWS.items() for n in range(1, last + 1)]

    def faults(self, *lines):
        return [rule for _, rule, _ in parity.check("\n".join(lines), self.TESTS)]

    def test_a_whole_table_passes(self):
        self.assertEqual([], self.faults(*self.WHOLE))

    def test_a_missing_row_and_a_row_too_many_are_found(self):
        self.assertEqual(["parity-row"], self.faults(*self.WHOLE[1:]))
        self.assertEqual(["parity-row"], self.faults(*self.WHOLE, self.WHOLE[0]))
        self.assertEqual(["parity-row"], self.faults(*self.WHOLE, "| T25 | api | `suite/case` | exact |"))

    def test_a_row_needs_a_test_that_exists_and_a_status(self):
        for line, rule in [("| E1 | api | `suite/other` | exact |", "parity-test"), ("| E1 | api | – | exact |", "parity-test"),
                           ("| E1 | api | `suite/case` | nearly |", "parity-status"),
                           ("| E1 | api | `suite/case` | corrected |", "parity-status"),
                           ("| E1 |  | `suite/case` | exact |", "parity-row")]:
            with self.subTest(line=line):
                self.assertEqual([rule], self.faults(line, *self.WHOLE[1:]))


class Layout(unittest.TestCase):
    HERE = "pipeline/image/crop.cpp"

    def test_a_line_of_more_than_120_columns_is_rejected(self):
        finding, = layout.check(Path(self.HERE), "int a;\n// " + "x" * 118 + "\n")
        self.assertEqual((2, "layout"), finding[:2])

    def test_120_columns_are_accepted_whatever_their_bytes(self):
        self.assertEqual([], rules(layout, self.HERE, "// " + "≤" * 117 + "\n"))

    def test_the_lines_of_a_raw_string_are_accepted(self):
        self.assertEqual([], rules(layout, self.HERE, 'auto a = R"(\n' + "x" * 130 + '\n)";\n'))

    def test_a_long_string_of_another_kind_is_rejected(self):
        self.assertEqual(["layout"], rules(layout, self.HERE, 'auto a = "' + "x" * 130 + '";\n'))


if __name__ == "__main__":
    unittest.main()
