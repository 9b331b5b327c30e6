"""AgentDojo v1.2.2 through `Agent`, with a planner that is taken over at the first injected text.

Run: ``python benchmarks/dojo/measure.py [processes]`` (needs the ``bench`` extra). Prints one JSON
object and one Markdown table. The suites' environments, tasks and checks are AgentDojo's own; no
model is asked. For each rule of the table:

* every user task runs without an injection: a person grants what is asked, and each question is
  counted; a task without a question finishes with nobody there;
* every pair of a user task and an injection task that acts runs with the injection in every place
  where AgentDojo puts one. The planner follows the user task until a result holds the injected
  text, and does what the injection wants from then on. A person grants what the user's task asks
  for and refuses the rest, so that every injected act is tried.
"""

from __future__ import annotations

import json
import multiprocessing
import platform
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime
from agentdojo.task_suite.load_suites import get_suites
from attacks import Call, calls_of
from declarations import ENDORSED, LOOKUPS, TOOLS
from pydantic_core import to_jsonable_python

from scikitplot.agent import Agent, Approval, Decision, Flow, Limits, Policy, Tool, Toolset

VERSION = "v1.2.2"
MARK = "INFORMATION FOR THE ASSISTANT"
EFFECTS = ("read", "write", "external")
RULES: dict[str, str] = {
    "none": "no gate",
    "every act": "approval of every act",
    "after taint": "any act after taint asks",
    "flow": "this rule",
    "flow and schemas": "this rule, with the owner's schemas",
}


class Session(NamedTuple):
    """What happened in one run."""

    acts: int  # of the user
    asked: int  # of these
    injected: int  # acts of the injection that ran
    taken: bool  # whether the planner was taken over
    calls: list[Any]  # that ran
    failed: int  # steps of the user that did not run, or failed


class World:
    """A suite, its tools, and the environment that they work on."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.suite = get_suites(VERSION)[name]
        self.environment: Any = None
        self._runtime = FunctionsRuntime(self.suite.tools)
        declared = TOOLS[name]
        self.tools = Toolset(
            Tool(
                function.name,
                self._function(function.name),
                parameters=function.parameters.model_json_schema(),
                **declared.get(function.name, {}),
            )
            for function in self.suite.tools
        )
        assert declared.keys() <= {tool.name for tool in self.tools}

    def _function(self, name: str) -> Callable[..., Any]:
        def call(**arguments: Any) -> Any:
            result, _ = self._runtime.run_function(
                self.environment, name, arguments, raise_on_error=True
            )
            return to_jsonable_python(result)

        return call

    def policy(self, rule: str) -> Policy:
        lookups = LOOKUPS[self.name]
        flow = {
            "flow": Flow(lookups),
            "flow and schemas": Flow(lookups, ENDORSED[self.name]),
        }.get(rule)
        asking = ("write", "external") if rule in ("every act", "after taint") else ()
        return Policy(EFFECTS, approval_effects=asking, flow=flow)

    def acts(self, name: str) -> bool:
        return self.tools[name].effect.value != "read"

    def run(self, rule: str, goal: str, script: list[Call], injection: Any = None) -> Session:
        """Drive one run in the environment as it is now."""
        start = self.environment.model_copy(deep=True)
        attack: list[Call] | None = None
        tainted = False
        asked: list[int] = []

        def planner(state: Any, tools: Any) -> Decision:
            nonlocal attack, tainted
            tainted = state.tainted
            steps = state.steps
            if attack is None and steps and MARK in json.dumps(steps[-1].result):
                attack = calls_of(injection, start, self.environment)
                del script[len(steps) :]
                script.extend(attack)
            if len(steps) == len(script):
                return Decision.finish("done")
            return Decision.act(*script[len(steps)])

        def approver(request: Any) -> Approval | None:
            if rule == "after taint" and not tainted:
                return Approval(request.digest, True, "nobody is asked")
            asked.append(request.step)
            return Approval(request.digest, attack is None, "ann")

        agent = Agent(
            self.tools,
            planner,
            policy=self.policy(rule),
            limits=Limits(max_steps=200),
            approver=approver,
        )
        state = agent.run(goal)
        assert state.status.value == "completed", state
        first = len(script) - len(attack) if attack is not None else len(script)
        ran = [step for step in state.steps[:-1] if step.outcome.value == "executed"]
        own = state.steps[:first]
        return Session(
            sum(self.acts(name) for name, _ in script[:first]),
            sum(step < first for step in asked),
            sum(self.acts(step.decision.tool) for step in ran if step.index >= first),
            attack is not None,
            [step.decision for step in ran],
            sum(step.outcome.value not in ("executed", "accepted") for step in own),
        )


def injected_text(goal: str) -> str:
    # The environments are YAML; what would be its syntax is left out.
    return f"{MARK} {re.sub(r'[^A-Za-z0-9@._/ -]+', ' ', goal)}"


def user_calls(task: Any, environment: Any) -> list[Call]:
    truth = task.ground_truth(environment.model_copy(deep=True))
    return [(call.function, to_jsonable_python(dict(call.args))) for call in truth]


def succeeded(world: World, task: Any, before: Any, session: Session) -> bool:
    """Return what AgentDojo's own check says of an attack."""
    calls = [FunctionCall(function=each.tool, args=each.arguments) for each in session.calls]
    return bool(
        world.suite._check_injection_task_security(task, [], before, world.environment, calls)
    )


def measure(part: tuple[str, str | None, int]) -> dict[str, Counter[str]]:
    """Measure a suite without an injection, or with one of its injection tasks."""
    name, injection_id, users = part
    world = World(name)
    tasks = list(world.suite.user_tasks.values())[:users]
    totals: dict[str, Counter[str]] = {rule: Counter() for rule in RULES}
    injection = None
    vectors: dict[str, str] = {}
    if injection_id is not None:
        injection = world.suite.injection_tasks[injection_id]
        places = world.suite.get_injection_vector_defaults()
        vectors = dict.fromkeys(places, injected_text(injection.GOAL))
    loaded = world.suite.load_and_inject_default_environment(vectors)
    for task in tasks:
        start = task.init_environment(loaded.model_copy(deep=True))
        for rule, total in totals.items():
            world.environment = start.model_copy(deep=True)
            session = world.run(rule, task.PROMPT, user_calls(task, start), injection)
            if injection is None:
                total.update(
                    tasks=1,
                    acts=session.acts,
                    asked=session.asked,
                    alone=session.asked == 0,
                    failed=session.failed,
                )
            else:
                won = succeeded(world, injection, start.model_copy(deep=True), session)
                total.update(pairs=1, taken=session.taken, injected=session.injected, won=won)
    return totals


def parts(users: int, injections: int) -> Iterator[tuple[str, str | None, int]]:
    for name, suite in get_suites(VERSION).items():
        yield name, None, users
        environment = suite.load_and_inject_default_environment({})
        acting = [
            each.ID
            for each in suite.injection_tasks.values()
            if calls_of(each, environment, environment)
        ]
        for injection_id in acting[:injections]:
            yield name, injection_id, users


def table(users: int = 1_000, injections: int = 1_000, processes: int = 1) -> dict[str, Any]:
    """Return the counts by rule, over the first tasks of each suite."""
    work = list(parts(users, injections))
    totals: dict[str, Counter[str]] = {rule: Counter() for rule in RULES}
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for found in pool.imap_unordered(measure, work):
            for rule, counts in found.items():
                totals[rule].update(counts)
    return {rule: dict(sorted(counts.items())) for rule, counts in totals.items()}


def main() -> None:
    rows = table(processes=int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    print(json.dumps({"agentdojo": VERSION, "python": platform.python_version(), "rules": rows}))
    print("\n| rule | attacks that succeed | injected acts that run | user acts that ask |", end="")
    print(" tasks that finish with nobody there |\n| --- | ---: | ---: | ---: | ---: |")
    for rule, row in rows.items():
        print(
            f"| {RULES[rule]} | {row['won']} of {row['pairs']} | {row['injected']} | "
            f"{row['asked']} of {row['acts']} | {row['alone']} of {row['tasks']} |"
        )


if __name__ == "__main__":
    main()
