#!/usr/bin/env python3
"""coroutines.py [PROJECT]: the coroutine rules C3 and C6 of CONTRIBUTING.md. GCC 12 destroys some temporaries of an
awaited expression twice, so co_await stands only where it is known to be right. Prints file:line: rule: text."""

import re
import sys
from fnmatch import fnmatch

from sources import code_only, line_of, main

EXEMPT = ["tests/canary/*"]   # shows the very bugs
LIBTORCH = ["*/torch/*", "cli/*", "bench/*", "examples/*"]   # in a file without threads detach() is a tensor's
SUSPENDING = ["pipeline/*", "loop/*", "include/drawpoint/pipeline/*", "include/drawpoint/loop/*"]

DETACH = r"(?:\.|->)\s*detach\s*\("
BANNED = [   # C6, C11, C12, C13
    (r"\bdetached\b", "C6", "detached work outlives what it uses: complete into a handler", ["*"]),
    (DETACH, "C6", "a detached thread outlives what it uses: join it", ["*"]),
    (r"\basio\s*::\s*experimental\b|#\s*include\s*<asio/experimental/", "C12", "asio/experimental stays out", ["*"]),
    (r"\batomic_thread_fence\b", "C13", "ThreadSanitizer cannot see fences: order the atomic operation itself", ["*"]),
    (r"\bthread_local\b", "C11", "a coroutine may resume on another thread", SUSPENDING),
]

# What may stand before co_await in its statement.
NAMED_RESULT = re.compile(r"(?:\[\[[\w\s:,]*\]\]\s*)?(?:[\w:]+(?:\s*<[^=;(){}?]*>)?[\s&*]+)+\w+\s*=\s*$")
CONTROL = re.compile(r"^(?:else\b|do\b|default\s*:|case\b[^:]*(?:::[^:]*)*:(?!:)"
                     r"|(?:if|for|while|switch)\s*(?:constexpr\s*)?\()")


def skip_control(prefix):
    """The prefix without `if (…)`, `else`, `case x:` and the like before a statement that has no braces of its own."""
    prefix = prefix.strip()
    while (found := CONTROL.match(prefix)):
        end = found.end()
        if prefix[end - 1] == "(":
            depth = 1
            while depth and end < len(prefix):
                depth += {"(": 1, ")": -1}.get(prefix[end], 0)
                end += 1
            if depth:
                return prefix   # co_await is inside the condition itself
        prefix = prefix[end:].strip()
    return prefix


def statement_start(code, position):
    """Where the statement around position begins, and the bracket that encloses it ('' at file level)."""
    depth = 0
    at = position - 1
    start = None
    while at >= 0:
        c = code[at]
        if c in ")]":
            depth += 1
        elif c == "}":
            if depth == 0 and start is None:
                start = at + 1
            depth += 1
        elif c in "([{":
            if depth == 0:
                return (at + 1 if start is None else start), c
            depth -= 1
        elif c == ";" and depth == 0 and start is None:
            start = at + 1
        at -= 1
    return (0 if start is None else start), ""


def operand(code, position):
    """The awaited expression up to its semicolon, or None if a bracket closes first."""
    depth = 0
    for at in range(position, len(code)):
        c = code[at]
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
            if depth < 0:
                return None
        elif c == ";" and depth == 0:
            return code[position:at]
    return None


def awaits(code):
    """(position, what is wrong) of every co_await that breaks C3."""
    for found in re.finditer(r"\bco_await\b", code):
        if re.search(r"\boperator\s*$", code[:found.start()]):
            continue
        start, bracket = statement_start(code, found.start())
        prefix = skip_control(code[start:found.start()])
        awaited = operand(code, found.end())
        if bracket in ("(", "["):
            wrong = "inside parentheses, a condition or an argument list"
        elif awaited is None:
            wrong = "inside a braced list"
        elif prefix not in ("", "co_return") and not (NAMED_RESULT.fullmatch(prefix) and not prefix.startswith("return")):
            wrong = f"after '{' '.join(prefix.split())}'"
        elif "?" in awaited:
            wrong = "with a ternary in its statement"
        elif "co_await" in awaited:
            wrong = "twice in one statement"
        elif "{" in awaited:
            wrong = "with a closure or a braced list in its statement"
        else:
            continue
        yield found.start(), wrong


def check(path, text):
    name = str(path)
    if any(fnmatch(name, pattern) for pattern in EXEMPT):
        return []
    code = code_only(text)
    findings = []
    for position, wrong in awaits(code):
        findings.append((line_of(code, position), "C3", f"co_await {wrong}: write `co_await f(named);`, "
                         "`auto x = co_await f(named);` or `co_return co_await f(named);`"))
    tensors = any(fnmatch(name, place) for place in LIBTORCH) and not re.search(r"\bj?thread\b", code)
    for pattern, rule, words, places in BANNED:
        if tensors and pattern == DETACH:
            continue
        if any(fnmatch(name, place) for place in places):
            findings += [(line_of(code, found.start()), rule, words) for found in re.finditer(pattern, code)]
    return sorted(findings)


if __name__ == "__main__":
    sys.exit(main(check))
