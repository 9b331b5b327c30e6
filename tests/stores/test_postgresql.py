"""What holds for `SqlStore` on a PostgreSQL server alone: lost connections, tables, and drivers."""

from __future__ import annotations

import re
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import FREE, WRITES, approve, script, writer

from scikitplot.agent import (
    Agent,
    Approval,
    Decision,
    Policy,
    RunState,
    SqlStore,
    StateError,
    Tool,
    verify_audit,
)

from .test_stores import OTHER, RUN, head, in_threads, records_of

pytestmark = pytest.mark.usefixtures("postgres")

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide.rst"
ADDRESS = "host=db.example.org dbname=agents"
SAVES = [Decision.act("save", {"text": text}) for text in "abc"]


class Fragile:
    """A connection that can be broken around its COMMIT."""

    def __init__(self, real: Any, plan: Plan) -> None:
        self._real, self._plan = real, plan

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def commit(self) -> None:
        self._plan.commits += 1
        if self._plan.commits == self._plan.breaks_at:
            self._plan.broke += 1
            self._plan.how(self._real)
        self._real.commit()


class Plan:
    """Which COMMIT of a store's connections breaks, and how."""

    def __init__(self, connect: Callable[[], Any], how: Callable[[Any], None]) -> None:
        self.connect, self.how = connect, how
        self.commits = self.broke = 0
        self.breaks_at: int | None = None
        self.value: object = None

    def __call__(self) -> Fragile:
        return Fragile(self.connect(), self)


def terminate(connect: Callable[..., Any], pids: list[int] | None = None) -> int:
    """End the server's side of connections: these, or all others in use by the test."""
    with connect(autocommit=True) as connection:
        query = (
            "select pg_terminate_backend(pid, 10000) from pg_stat_activity "
            "where backend_type = 'client backend' and pid <> pg_backend_pid()"
        )
        if pids is None:
            return len(connection.execute(query).fetchall())
        return len(connection.execute(f"{query} and pid = any(%s)", (pids,)).fetchall())


# C82: connections that break


def test_a_connection_that_died_between_two_steps_is_replaced_and_the_run_goes_on(
    postgres: Any,
) -> None:
    calls: list[str] = []
    killed: list[int] = []
    store = SqlStore(postgres)

    def planner(state: RunState, tools: Any) -> Decision:
        in_threads(lambda _: store.load(RUN), range(4))  # so that several lie idle
        killed.append(terminate(postgres))
        return SAVES[len(state.steps)] if len(state.steps) < 3 else Decision.finish("end")

    def save(text: str) -> None:
        killed.append(terminate(postgres))
        calls.append(text)

    tool = Tool("save", save, effect="write", parameters=writer([]).parameters)
    with store:
        state = Agent([tool], planner, policy=FREE, store=store, audit=store).run("goal")
        assert (state.answer, calls) == ("end", ["a", "b", "c"])
        assert all(killed)
        assert len(killed) == 7
        assert verify_audit(store.read(), heads=store.heads()) == []


def kill_before(postgres: Any) -> Callable[[Any], None]:
    """Break a connection between its last statement and its COMMIT."""
    return lambda real: terminate(postgres, [real.info.backend_pid]) and None


def lose_the_answer(postgres: Any) -> Callable[[Any], None]:
    """Break a connection after its COMMIT was made and before that is known."""

    def how(real: Any) -> None:
        real.commit()
        real.close()

    return how


@pytest.mark.parametrize("how", [kill_before, lose_the_answer])
def test_a_connection_lost_in_any_commit_repeats_and_loses_nothing(
    postgres: Any, how: Callable[..., Any]
) -> None:
    breaks_at, broke = 0, 1
    while broke:
        breaks_at += 1
        calls: list[str] = []
        plan = Plan(postgres, how(postgres))
        with SqlStore(plan) as store:
            plan.commits, plan.breaks_at = 0, breaks_at
            agent = Agent([writer(calls)], script(*SAVES), policy=WRITES, store=store, audit=store)
            state = agent.run("goal")
            while state.pending is not None:
                state = agent.resume(state.run_id, approvals=approve(state))
            broke = plan.broke
            assert (state.answer, calls) == ("end", ["a", "b", "c"])
            assert len(store.load(state.run_id).steps) == 4  # type: ignore[union-attr]
            assert verify_audit(store.read(state.run_id)) == []
            assert store.head(state.run_id) == state.audit_head
    assert breaks_at > 20


@pytest.mark.parametrize("how", [kill_before, lose_the_answer])
def test_a_connection_lost_in_any_commit_of_a_sink_repeats_and_loses_nothing(
    postgres: Any, how: Callable[..., Any]
) -> None:
    breaks_at, broke = 0, 1
    while broke:
        breaks_at += 1
        plan = Plan(postgres, how(postgres))
        with SqlStore(plan) as sink:
            plan.commits, plan.breaks_at = 0, breaks_at
            state = Agent([writer([])], script(*SAVES), policy=FREE, audit=sink).run("goal")
            broke = plan.broke
            assert verify_audit(sink.read(state.run_id)) == []
            assert sink.head(state.run_id) == state.audit_head
    assert breaks_at > 5


def test_a_commit_that_is_still_being_made_when_its_connection_is_lost_is_made_once(
    postgres: Any,
) -> None:
    """The network broke, and the server goes on with the COMMIT while the store asks for it."""
    import psycopg

    finished: list[threading.Thread] = []

    class Cut(Fragile):
        cut = False

        def commit(self) -> None:
            self._plan.commits += 1
            if self._plan.commits == self._plan.breaks_at:
                self.cut = True
                finished.append(threading.Thread(target=self._finish))
                finished[0].start()
                raise psycopg.OperationalError("the network broke")
            super().commit()

        def _finish(self) -> None:
            with postgres() as other:  # until the store waits for this transaction
                wait_for_a_lock(other)
            self._real.commit()
            self._real.close()

        def rollback(self) -> None:
            if self.cut:
                raise psycopg.OperationalError("the network broke")
            self._real.rollback()

        def close(self) -> None:
            if not self.cut:
                self._real.close()

    plan = Plan(postgres, lambda real: None)
    with SqlStore(lambda: Cut(postgres(), plan)) as store:
        for expected, breaks_at in ((None, 1), (0, 1)):
            plan.commits, plan.breaks_at = 0, breaks_at
            store.commit(RUN, head(0 if expected is None else 1), ["a"], expected=expected)
            finished.pop().join()
        assert store.load(RUN) == (head(1), ["a", "a"])


def is_waiting(connection: Any) -> bool:
    """Return whether some connection waits for another."""
    query = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'"
    (count,) = connection.execute(query).fetchone()
    connection.rollback()
    return bool(count)


def wait_for_a_lock(connection: Any) -> None:
    while not is_waiting(connection):
        time.sleep(0.01)


def test_an_equal_commit_of_another_process_is_not_taken_for_one_s_own(postgres: Any) -> None:
    """Two that claim one run write the same text; only the database knows whose it is."""

    def lose(real: Any) -> None:
        terminate(postgres, [real.info.backend_pid])
        with SqlStore(postgres) as other:
            other.commit(RUN, head(1), [], expected=0)

    plan = Plan(postgres, lose)
    with SqlStore(plan) as store:
        store.commit(RUN, head(0), [], expected=None)
        plan.commits, plan.breaks_at = 0, 1
        with pytest.raises(StateError, match="the store holds revision 1, not 0"):
            store.commit(RUN, head(1), [], expected=0)
        assert plan.broke == 1


def test_a_connection_that_breaks_again_and_again_is_one_error_and_nothing_is_repeated(
    postgres: Any,
) -> None:
    def how(real: Any) -> None:
        terminate(postgres, [real.info.backend_pid])
        plan.breaks_at = plan.commits + 2  # the next one is that of opening a connection

    plan = Plan(postgres, how)
    with SqlStore(plan) as store:
        plan.commits, plan.breaks_at = 0, 1
        with pytest.raises(StateError, match=r"^database: the connection was lost \("):
            store.commit(RUN, head(0), ["a"], expected=None)
        assert plan.broke == 3  # the commit, the same again, and asking what became of the first
        plan.breaks_at = None
        assert store.load(RUN) is None
        store.commit(RUN, head(0), ["a"], expected=None)
        assert store.load(RUN) == (head(0), ["a"])


@pytest.mark.parametrize("where", ["planner", "tool"])
def test_a_server_that_is_away_is_one_error_and_the_run_resumes_when_it_is_back(
    postgres: Any, postgres_server: Any, where: str
) -> None:
    calls: list[str] = []
    stops = [where]

    def away(place: str) -> None:
        if place in stops:
            stops.remove(place)
            postgres_server.stop()

    def planner(state: RunState, tools: Any) -> Decision:
        away("planner" if state.steps else "")
        return SAVES[len(state.steps)] if len(state.steps) < 3 else Decision.finish("end")

    def save(text: str) -> str:
        calls.append(text)
        away("tool")
        return text

    tool = Tool("save", save, effect="write", parameters=writer([]).parameters, idempotent=False)
    with SqlStore(postgres) as store:
        agent = Agent([tool], planner, policy=FREE, store=store, audit=store)
        try:
            with pytest.raises(StateError, match="no connection can be opened") as caught:
                agent.run("goal", run_id=RUN)
            assert "\n" not in str(caught.value)
            with pytest.raises(StateError, match="no connection can be opened"):
                agent.resume(RUN)
            with pytest.raises(StateError, match="no connection can be opened"):
                SqlStore(postgres)
        finally:
            postgres_server.start()
        state = agent.resume(RUN)
        outcomes = [step.outcome.value for step in state.steps]
        if where == "planner":
            assert calls == ["a", "b", "c"]
            assert outcomes == ["executed"] * 3 + ["accepted"]
        else:  # what became of the first call was not saved, so it is not started again
            assert calls == ["a", "b", "c"]
            assert outcomes == ["interrupted", "executed", "executed", "accepted"]
        assert verify_audit(store.read(), heads=store.heads()) == []


# What two do at once


def test_a_run_that_another_process_adds_at_the_same_moment_is_refused_and_nothing_is_written(
    postgres: Any,
) -> None:
    with SqlStore(postgres) as store, postgres() as other, postgres() as watch:
        other.execute("insert into agent_run (run_id) values (%s)", (RUN,))
        raised: list[BaseException] = []

        def add() -> None:
            try:
                store.commit(RUN, head(0), ["a"], expected=None, records=records_of(1))
            except StateError as error:
                raised.append(error)

        thread = threading.Thread(target=add)
        thread.start()
        wait_for_a_lock(watch)
        other.commit()
        thread.join()
        assert ["another process went on with it" in str(error) for error in raised] == [True]
        assert store.load(RUN) is None
        assert list(store.read()) == []


class Between(Fragile):
    """A connection whose cursors call a function after the first row that holds a value."""

    def cursor(self) -> Any:
        real, plan = self._real.cursor(), self._plan

        class Cursor:
            def __getattr__(self, name: str) -> Any:
                return getattr(real, name)

            def fetchone(self) -> Any:
                row = real.fetchone()
                if row is not None and plan.value in row:
                    plan.value = object()
                    plan.how(real)
                return row

        return Cursor()


def test_the_head_and_the_steps_that_are_loaded_are_of_one_moment(postgres: Any) -> None:
    def how(real: Any) -> None:
        other.commit(RUN, head(1), ["b"], expected=0)

    plan = Plan(postgres, how)
    plan.value = head(0)
    with SqlStore(postgres) as other, SqlStore(lambda: Between(postgres(), plan)) as store:
        other.commit(RUN, head(0), ["a"], expected=None)
        assert store.load(RUN) == (head(0), ["a"])
        assert store.load(RUN) == (head(1), ["a", "b"])


def test_the_revision_that_is_expected_is_still_there_when_it_is_replaced(postgres: Any) -> None:
    """Two that claim a run write no step and no record that could collide."""
    ended: list[str] = []

    def claim(store: SqlStore) -> None:
        try:
            store.commit(RUN, head(1), [], expected=0)
            ended.append("claimed")
        except StateError as error:
            ended.append(str(error))

    def how(real: Any) -> None:
        thread.start()
        with postgres() as watch:
            while not ended and not is_waiting(watch):
                time.sleep(0.01)

    plan = Plan(postgres, how)
    with SqlStore(postgres) as other, SqlStore(lambda: Between(postgres(), plan)) as store:
        thread = threading.Thread(target=claim, args=(other,))
        other.commit(RUN, head(0), [], expected=None)
        plan.value = 0  # the revision that is read to be compared
        claim(store)
        thread.join()
        # Which of the two notes its end first says nothing of which came first.
        (refused,) = [told for told in ended if told != "claimed"]
        assert "the store holds revision 1, not 0" in refused


def test_many_that_make_the_tables_at_once_all_succeed(postgres: Any) -> None:
    def opens(number: int) -> None:
        with SqlStore(postgres) as store:
            store.commit(f"{number:064x}", head(0), [], expected=None)

    in_threads(opens, range(10))
    with SqlStore(postgres) as store:
        assert len(store.runs()) == 10


# Tables, databases and drivers that are refused, and those that are taken


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "comment on table agent_run is 'scikitplot.agent 2'",
            "database: its version is 2, newer than 1, the newest this release reads; "
            "upgrade the package",
        ),
        ("comment on table agent_run is null", "its table agent_run is one of another program"),
        ("comment on table agent_run is 'x 1'", "its table agent_run is one of another program"),
    ],
)
def test_tables_of_a_newer_version_or_another_program_are_refused_in_one_sentence(
    postgres: Any, statement: str, message: str
) -> None:
    with SqlStore(postgres) as store:
        store.commit(RUN, head(0), ["a"], expected=None)
    with postgres() as connection:
        connection.execute(statement)
    with pytest.raises(StateError, match=message):
        SqlStore(postgres)
    with postgres() as connection:
        assert connection.execute("select count(*) from agent_step").fetchone() == (1,)


def test_a_foreign_table_in_the_way_is_refused_and_left_as_it_is(postgres: Any) -> None:
    with postgres() as connection:
        connection.execute("create table agent_step (mine text)")
    with pytest.raises(StateError, match="it refused a statement"):
        SqlStore(postgres)
    with postgres() as connection:
        query = "select relname from pg_class where relnamespace = current_schema::regnamespace"
        assert connection.execute(query).fetchall() == [("agent_step",)]


def test_a_database_of_another_encoding_is_refused(postgres: Any) -> None:
    import psycopg

    with postgres(autocommit=True) as connection:
        connection.execute("create database ascii encoding 'SQL_ASCII' template template0")
    try:
        with pytest.raises(StateError, match="must both be UTF8"):
            SqlStore(lambda: psycopg.connect(postgres.address, dbname="ascii"))
    finally:
        with postgres(autocommit=True) as connection:
            connection.execute("drop database ascii")
    with pytest.raises(StateError, match="must both be UTF8"):
        SqlStore(lambda: psycopg.connect(postgres.address, client_encoding="latin1"))


@pytest.mark.parametrize("kind", ["autocommit", "serializable", "repeatable read", "named tuples"])
def test_connections_of_any_settings_serve(postgres: Any, kind: str) -> None:
    from psycopg import IsolationLevel
    from psycopg.rows import namedtuple_row

    def connect() -> Any:
        if kind == "autocommit":
            return postgres(autocommit=True)
        if kind == "named tuples":
            return postgres(row_factory=namedtuple_row)
        connection = postgres()
        name = kind.upper().replace(" ", "_")
        connection.isolation_level = IsolationLevel[name]
        return connection

    def write(store: SqlStore, number: int) -> None:
        for revision in range(5):
            expected = revision - 1 if revision else None
            store.commit(f"{number:064x}", head(revision), ["a"], expected=expected)

    with SqlStore(connect) as store:
        in_threads(lambda number: write(store, number), range(6))
        assert [len(store.load(f"{n:064x}").steps) for n in range(6)] == [5] * 6  # type: ignore[union-attr]
        with postgres() as connection:
            connection.execute("alter table agent_run add constraint c check (status <> 'no')")
        with pytest.raises(StateError, match="it refused a statement"):
            store.commit(f"{0:064x}", head(5, "no"), ["b"], expected=4)
        assert store.load(f"{0:064x}") == (head(4), ["a"] * 5)


def test_rows_that_are_no_sequences_are_refused(postgres: Any) -> None:
    from psycopg.rows import dict_row

    with pytest.raises(TypeError, match="connection whose rows are sequences"):
        SqlStore(lambda: postgres(row_factory=dict_row))


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (["host=x"], {}, TypeError, "connect must be callable, not str"),
        ([None], {}, TypeError, "connect must be callable, not None"),
        ([dict], {"dialect": 3}, TypeError, "dialect must be a str, not int"),
        ([dict], {"dialect": "oracle"}, ValueError, "dialect must be one of: postgresql"),
        ([dict], {"dialect": "PostgreSQL"}, ValueError, "dialect must be one of: postgresql"),
        ([dict], {}, TypeError, "a PEP 249 connection; dict has no cursor"),
    ],
)
def test_an_argument_that_is_none_is_refused(
    arguments: Any, options: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        SqlStore(*arguments, **options)


def test_an_error_tells_the_type_and_the_state_and_keeps_the_server_s_text_to_its_cause(
    postgres: Any,
) -> None:
    import psycopg

    store = SqlStore(postgres)
    with store, postgres() as connection:
        connection.execute("alter table agent_run add constraint c check (status <> 'secret')")
        connection.commit()
        with pytest.raises(StateError) as caught:
            store.commit(RUN, head(0, "secret"), [], expected=None)
        assert "SQLSTATE 23514" in str(caught.value)
        assert "secret" not in str(caught.value)
        assert isinstance(caught.value.__cause__, psycopg.errors.CheckViolation)


def test_no_connection_is_held_more_than_were_in_use_at_once(postgres: Any) -> None:
    opened: list[int] = []

    def connect() -> Any:
        opened.append(1)
        return postgres()

    with SqlStore(connect) as store:
        agent = Agent([writer([])], script(*SAVES), policy=FREE, store=store, audit=store)
        agent.run("goal", run_id=RUN)
        agent.run("goal", run_id=OTHER)
        assert len(opened) == 1


def test_the_example_of_the_guide_runs(postgres: Any) -> None:
    """It needs a server, so it is no block of the page's program; here it runs behind that."""
    text = GUIDE.read_text("utf-8")
    [example] = re.findall(r"::\n\n((?:   .*\n|\n)*?   import psycopg\n(?:   .*\n|\n)+)", text)
    source = textwrap.dedent(example)
    assert source.count(ADDRESS) == 1
    orders: list[tuple[str, int]] = []
    item = {"item": {"type": "string"}, "count": {"type": "integer"}}
    given = {
        "Agent": Agent,
        "Approval": Approval,
        "order": Tool(
            "order",
            lambda item, count: orders.append((item, count)),
            parameters={"type": "object", "properties": item, "required": ["item", "count"]},
            effect="external",
        ),
        "order_salt": lambda state, tools: (
            Decision.finish("ordered")
            if state.steps
            else Decision.act("order", {"item": "salt", "count": 2})
        ),
        "buying": Policy(allow_effects={"external"}),
    }
    exec(source.replace(ADDRESS, postgres.address.replace("'", "\\'")), given)
    assert orders == [("salt", 2)]
