"""Views as HTML and as Markdown: whole, bounded, and nothing from outside is part of the page."""

from __future__ import annotations

import ast
import inspect
import re
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from support import FREE, WRITES, ByAgent, approve, script, writer
from test_display import DENIALS, INVISIBLE, SAVE

from scikitplot.agent import (
    Agent,
    Approval,
    Decision,
    Flow,
    JsonlAuditSink,
    Limits,
    MemoryAuditSink,
    Policy,
    RunState,
    Tool,
    ToolError,
    Toolset,
    gates,
)
from scikitplot.agent.state.timeline import _GATES as GATES_SHOWN
from scikitplot.agent.state.timeline import GATE_OF
from scikitplot.agent.views import Heading, Shown, Table, View

HOSTILE = {
    "a closed element": "</code></td></tr></table></div><img src=x onerror=alert(1)>",
    "a script": "<script>alert(1)</script><style>*{display:none}</style>",
    "a quoted attribute": "\"'><svg onload=alert(1)> x=\"y' onclick='z",
    "entities": "&lt;b&gt; &#60;script&#62; &amp;lt; &NewLine; &#0;",
    "a comment": "<!-- --> <!DOCTYPE html> <![CDATA[ ]]> <?php ?>",
    "a cell and a row": "a | b |\n| --- | --- |\n| c \\| d",
    "a link": "[ok](javascript:alert(1)) ![x](http://evil.example/x.png) [r]: http://e.com",
    "a reference": "[ok][r]\n\n[r]: http://evil.example 'x'\n",
    "an address": "<http://evil.example> https://evil.com www.evil.com evil.com a@evil.com",
    "emphasis": "**bold** _em_ __b__ *i* ~~s~~ ^^u^^ ==m== `code` ``c``",
    "a formula": "$x$ $$y$$ \\(z\\) \\[w\\]",
    "a block": "\n# heading\n> quote\n- item\n1. one\n\n    code\n```\nfence\n```\n---\n***\n",
    "a directive": ":::{eval}\n:::\n```{code-cell}\n{{ x }} {% y %} <%= z %> @import",
    "escapes": "a\x1b[2K\x1b]8;;http://evil.example\x07b\r\x9b2J\x00\x7f",
    "bidi and zero width": "safe\u202egnp.exe\u2066 pay\u200bpal\u2060\ufeff",
    "line separators": "a\u2028b\u2029c\x85d\x0be\x0cf",
    "fillers and tags": "a\u3164\u115f\u2800\uffa0b\ufe0f\U000e0100\U000e0041",
    "piled marks": "a" + "\u0301" * 50,
    "backslashes": "\\ \\\\ \\| \\` \\<b>",
    "long": "x" * 3_000,
}
hostile = pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)


def shown_things(text: str) -> dict[str, Shown]:
    """Return one of each kind that is shown, with `text` wherever something comes from outside."""

    def fail() -> None:
        raise ToolError(text)

    parameters = {"type": "object", "properties": {text: {}, "text": {}}}
    tools = [
        Tool("echo", lambda **given: {text: given}, description=text, parameters=parameters),
        Tool("fail", fail),
        writer([], description=text),
    ]
    policy = Policy(
        ["read", "write"],
        approval_tools=["echo"],
        arguments={"save": {"description": text}},
        flow=Flow(endorsed={"save": {"text": {"const": text}}}),
    )
    planner = script(
        Decision.act("echo", {"text": text, text: [text]}, reason=text),
        Decision.act(text[:200]),
        Decision.act("echo", {text: text}),
        Decision.act("fail"),
        Decision.act("save", {"text": text}, reason=text),
        Decision.finish({text: text}, reason=text),
    )
    folder = tempfile.mkdtemp()
    trail = JsonlAuditSink(Path(folder, "trail.jsonl"))

    def approver(request: Any) -> Approval | None:
        if request.tool == "save":
            return None
        return Approval(request.digest, True, text[:900], reason=text)

    agent = Agent(tools, planner, policy=policy, approver=approver, audit=trail)
    waiting = agent.run(text)
    assert waiting.pending is not None
    ended = agent.resume(waiting, approvals=[Approval(waiting.pending.digest, True, text[:900])])
    memory = MemoryAuditSink()
    Agent(tools, planner, policy=policy, audit=memory).run(text)
    records = list(trail.read())
    assert ended.status.value == "completed"
    return {
        "a run that waits": waiting,
        "a run": ended,
        "a run with its trail": ended.timeline(records),
        "a request": waiting.pending,
        "tools": Toolset(tools),
        "a policy": policy,
        "a trail in memory": memory,
        "a trail in a file": trail,
        "a view": View(Heading(text), Table(("", text), [(text, text)], 3)),
    }


class Page(HTMLParser):
    """What a browser is told to do by a page."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        if tag not in ("br", "hr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += f" {data} "

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(f"a declaration: {decl}")

    def handle_pi(self, data: str) -> None:
        raise AssertionError(f"an instruction: {data}")

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(f"a declaration: {data}")


OUTER = "skp-agent tex2jax_ignore mathjax_ignore"  # the classes that MathJax 2 and 3 pass over
CLASSES = {OUTER, "scroll", "soft", "narrow", "time", "bar"}
CLASSES |= {f"chip {kind}" for kind in ("", "good", "bad", "wait")}


@hostile
def test_nothing_from_outside_is_an_element_or_an_attribute_of_a_page(text: str) -> None:
    for name, thing in shown_things(text).items():
        html = thing._repr_html_()
        page = Page(html)
        assert page.open == [], name
        for tag, attributes in page.tags:
            assert tag in {"div", "style", "b", "table", "tr", "th", "td", "code", "span"}, name
            for attribute, value in attributes.items():
                place = r"margin-left:[0-9.]+%;width:[0-9.]+%"
                assert attribute in ("class", "style")
                if attribute == "class":
                    assert value in CLASSES, name
                else:
                    assert re.fullmatch(place, str(value)), name
        assert [tag for tag, _ in page.tags].count("style") == 1
        assert html.isprintable(), name
        assert not INVISIBLE.search(html), name


def test_a_notebook_looks_for_no_formula_in_a_page() -> None:
    for thing in shown_things("$x$").values():
        tag, attributes = Page(thing._repr_html_()).tags[0]
        assert (tag, attributes) == ("div", {"class": OUTER})


MARKDOWNS = {
    "CommonMark": MarkdownIt("commonmark", {"html": True}).enable("table"),
    "GitHub": MarkdownIt("gfm-like", {"html": True}),
    "typographic": MarkdownIt("js-default", {"html": True, "typographer": False}),
}


@hostile
@pytest.mark.parametrize("name", MARKDOWNS)
def test_nothing_from_outside_is_markup_of_a_document(name: str, text: str) -> None:
    for kind, thing in shown_things(text).items():
        markdown = thing._repr_markdown_()
        page = Page(MARKDOWNS[name].render(markdown))
        own = {"p", "strong", "table", "thead", "tbody", "tr", "th", "td", "code", "br"}
        assert {tag for tag, _ in page.tags} <= own, kind
        assert all(attributes == {} for _, attributes in page.tags), kind
        assert "$" not in markdown
        assert all(line.isprintable() for line in markdown.split("\n")), kind
        assert not INVISIBLE.search(markdown), kind


@hostile
def test_each_character_that_means_something_in_a_document_is_its_own(text: str) -> None:
    for kind, thing in shown_things(text).items():
        for line in thing._repr_markdown_().split("\n"):
            rest = re.sub(r"</?code>|<br>|\*\*|&#[0-9]+;|^\| | \| ?| --- ", " ", line)
            rest = re.sub(r"\([0-9,]+ more characters\)|\b[0-9]+\.[0-9]+\b|:(?= |$)|---", " ", rest)
            assert not set(rest) & set("!\"#$&'()*+-.:<=>@[\\]^_`{|}~"), kind


@hostile
def test_no_cell_of_a_document_begins_another(text: str) -> None:
    for kind, thing in shown_things(text).items():
        bars: list[int] = []
        for line in thing._repr_markdown_().split("\n"):
            if not line.startswith("|"):
                bars = []
                continue
            bars.append(line.count("|"))
            assert bars[0] == bars[-1], kind
        if kind == "a run":
            assert bars == []
            assert "| step | proposed |" in thing._repr_markdown_()


@pytest.mark.parametrize("kind", shown_things("x"))
def test_the_three_forms_tell_the_same(kind: str) -> None:
    thing = shown_things("nothing special")[kind]
    text = thing.to_text(200).replace("awaiting_approval", "awaiting approval")
    words = set(re.findall(r"[a-z_]{4,}", text)) - {"shown", "here"}
    assert len(words) > 3 or kind == "a view"
    for page in (
        Page(thing._repr_html_()).text,
        Page(MARKDOWNS["CommonMark"].render(thing._repr_markdown_())).text,
    ):
        rows = set(re.findall(r"[a-z_]{4,}", page))
        assert words <= rows | {"call", "all", "shown", "here", "none"}, kind


def test_a_value_is_on_the_page_as_the_text_that_it_is() -> None:
    text = "<b>&lt; \\n \u202e"
    tools = Toolset([Tool("look", lambda: "", description=text)])
    for page in (
        Page(tools._repr_html_()),
        Page(MARKDOWNS["CommonMark"].render(tools._repr_markdown_())),
    ):
        assert "<b>&lt; \\\\n \\u202e" in page.text


# A run


@pytest.mark.parametrize("said", DENIALS)
def test_without_its_trail_a_run_tells_of_the_gates_what_its_codes_tell(said: str) -> None:
    options = {"tools": [writer([])], **DENIALS[said]}
    driver = ByAgent(planner=script(SAVE), **options)
    state = driver.run()
    [line] = [line.strip() for line in state.to_text().split("\n") if "Validation" in line]
    assert line == re.sub("granted|not needed", "ok", said)


def test_each_code_of_a_denial_has_its_gate() -> None:
    denials = {}
    for node in ast.walk(ast.parse(inspect.getsource(gates))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Denial":
            gate, code = node.args[:2]
            if isinstance(code, ast.Constant) and isinstance(gate, ast.Constant):
                denials[code.value] = gate.value
    assert len(denials) > 8
    assert denials.items() <= GATE_OF.items()
    assert set(GATE_OF.values()) == set(GATES_SHOWN)
    assert tuple(name for name, _ in gates.GATES) == GATES_SHOWN
    limits = set(Limits().to_dict()) - {"max_result_bytes"}
    assert limits <= {code for code, gate in GATE_OF.items() if gate == "budget"}


def test_of_a_long_run_the_last_steps_are_shown_and_the_others_counted() -> None:
    planner = script(*[SAVE] * 200)
    driver = ByAgent([writer([])], planner, policy=FREE, limits=Limits(max_steps=300))
    state = driver.run()
    for form in (state.to_text(), state._repr_html_(), state._repr_markdown_()):
        assert "151 steps before these are not shown" in form
        assert form.count("call save") == 49
    assert state.timeline().to_text().count("call save") == 200
    assert len(state._repr_html_()) < 200_000


def test_what_is_shown_of_a_large_run_is_bounded() -> None:
    driver = ByAgent([Tool("read", lambda: "y" * 900_000)], script(*[Decision.act("read")] * 3))
    state = driver.run("z" * 50_000)
    for form in (state.to_text(), state._repr_html_(), state._repr_markdown_()):
        assert len(form) < 10_000
        assert "more characters)" in form


def test_a_run_that_waits_shows_what_for() -> None:
    driver = ByAgent([writer([])], script(SAVE), policy=WRITES)
    paused = driver.run()
    for form in (paused.to_text(), paused._repr_html_(), paused._repr_markdown_()):
        assert "A call waits for a person" in form
        assert paused.pending is not None
        assert paused.pending.digest in form
    ended = driver.resume(paused, approve(paused))
    assert "waits" not in ended.to_text()


def test_a_call_that_has_no_outcome_yet_is_shown_as_such() -> None:
    def dies(text: str) -> None:
        raise KeyboardInterrupt

    tool = Tool("save", dies, parameters=writer([]).parameters, effect="write")
    driver = ByAgent([tool], script(SAVE), policy=FREE)
    with pytest.raises(KeyboardInterrupt):
        driver.run()
    [run_id] = driver.store.runs()
    head, steps = driver.store.load(run_id)
    state = RunState.view(head, steps)
    for form in (state.to_text(), state._repr_html_(), state._repr_markdown_()):
        assert "call save" in form
        assert "it was started, and has no outcome yet" in form


def test_what_a_call_cost_is_told_where_it_is_known() -> None:
    driver = ByAgent([writer([], cost=0.25)], script(SAVE), policy=FREE)
    state = driver.run()
    assert "executed, 0." in state.to_text()
    assert "executed, cost 0.25, 0." in state.timeline(driver.records).to_text()
    assert "cost 0.25" in state.to_text()


# The others


def test_a_policy_says_what_runs_what_asks_and_what_is_denied() -> None:
    policy = Policy(
        ["read", "external"],
        ["shop"],
        allow_tools=["order", "look"],
        deny_tools=["rm"],
        approvers=["ann", "bob"],
        approvals_needed=2,
        approval_seconds=3_600,
        approval_arguments={"order": {"properties": {"count": {"maximum": 2}}}},
    )
    text = policy.to_text(200)
    for line in (
        "  read      runs",
        "  write     denied",
        "  external  asks; unless the arguments are those that are said below to run freely: order",
        "  tools      only look, order; never rm",
        "  scopes     shop",
        "  approvers  2 of: ann, bob",
        "  in time    within 3,600 seconds of the request",
        '    order: {"properties": {"count": {"maximum": 2}}}',
    ):
        assert line in text.split("\n"), text
    assert Policy().to_text().split("\n") == [
        "Policy",
        "  read      runs",
        "  write     denied",
        "  external  denied",
        "  tools      any",
        "  scopes     none is granted",
        "  approvers  anybody",
    ]
    assert "nobody" in Policy(approvers=[]).to_text()
    assert "  tools      none" in Policy(allow_tools=[]).to_text()


def test_tools_are_shown_with_what_an_owner_must_know() -> None:
    tools = Toolset(
        [
            writer([], cost=0.5, scopes=["b", "a"], secret=True),
            Tool("look", lambda: "", description="Look.\nMore.", trusted=True),
        ]
    )
    assert tools.to_text(120).split("\n") == [
        "2 tools",
        "  save  effect write; arguments text; scopes a, b; cost 0.5; untrusted results, secret",
        "  look  Look.; effect read; idempotent",
    ]
    assert Toolset([]).to_text() == "no tools"


def test_of_a_long_trail_the_first_records_are_shown_and_no_more_are_read(tmp_path: Path) -> None:
    trail = JsonlAuditSink(tmp_path / "trail.jsonl")
    planner = script(*[Decision.act("fly")] * 40)
    Agent([], planner, audit=trail, limits=Limits(max_steps=60)).run("x")
    text = trail.to_text()
    assert "; the first of them:" in text.replace("\n| ", "")
    assert text.count("; event ") == 50
    assert "fly" in text


def test_a_damaged_line_of_a_trail_is_shown_as_one(tmp_path: Path) -> None:
    path = tmp_path / "trail.jsonl"
    trail = JsonlAuditSink(path)
    Agent([], script(), audit=trail).run("x")
    with path.open("a") as file:
        file.write("<script>\x1b[2K\n")
    for form in (trail.to_text(), trail._repr_html_(), trail._repr_markdown_()):
        assert "damaged" in form
        assert "script" not in form
