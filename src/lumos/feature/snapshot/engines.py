"""Who works on snapshots: this process, or Spark where that is asked for or worth its start."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING

import orjson
from typing_extensions import override

from lumos.core.errors import LumosError
from lumos.feature.snapshot.bucket_work import (
    LOCAL,
    BucketEngine,
    BucketWork,
    Fact,
    FactIndex,
    Result,
    Task,
)
from lumos.feature.snapshot.engine_choice import Engine

if TYPE_CHECKING:
    from lumos.spark.handles import SparkSession
    from lumos.spark.stages.snapshots import DoBucket, DoneBuckets, Found

_RESULT, _ERROR = b"r", b"e"


class SparkEngine(BucketEngine):
    """Tasks on the executors of a Spark session, which have to see the snapshots' folders."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    @property
    @override
    def reads_parts_only(self) -> bool:
        return True

    @override
    def run(self, work: BucketWork[Task, Result], tasks: Sequence[Task]) -> Iterator[Result]:
        from lumos.spark.failures import spark_failures

        if tasks:
            with spark_failures():
                yield from _results(self._done(work, tasks), work)

    @override
    def check(
        self, work: BucketWork[Task, Result | Fact], tasks: Sequence[Task]
    ) -> tuple[list[Result], FactIndex]:
        from lumos.spark.failures import spark_failures

        with spark_failures():
            done = self._done(work, tasks)
            results = [each for each in _results(done, work) if not isinstance(each, Fact)]
        return results, _SparkFacts(done)

    def _done(self, work: BucketWork[Task, Result], tasks: Sequence[Task]) -> DoneBuckets:
        from lumos.spark.stages.snapshots import DoneBuckets

        encoded = [work.tasks.encode(task) for task in tasks]
        return DoneBuckets(self._session, encoded, do=_doing(work), together=work.together)


class _SparkFacts(FactIndex):
    def __init__(self, done: DoneBuckets) -> None:
        self._done = done

    @override
    def repeated(self, spaces: Collection[str]) -> Iterator[tuple[str, str]]:
        from lumos.spark.failures import spark_failures

        with spark_failures():
            yield from self._done.repeated(spaces)

    @override
    def missing(self) -> Iterator[tuple[str, str]]:
        from lumos.spark.failures import spark_failures

        with spark_failures():
            yield from self._done.missing()

    @override
    def wanted(self) -> dict[str, int]:
        from lumos.spark.failures import spark_failures

        with spark_failures():
            return self._done.wanted()


def _doing(work: BucketWork[Task, Result]) -> DoBucket:
    """Return what the executors call: bytes in, rows out, an error of the kernel as a row too."""

    def do(task: bytes) -> Iterator[Found]:
        from lumos.spark.stages.snapshots import Found

        try:
            for result in work.kernel(work.tasks.decode(task)):
                if isinstance(result, Fact):
                    kind, name = (result.kind, result.name) if result.kind else (None, None)
                    yield Found(None, result.space, result.key, kind, name)
                else:
                    yield Found(_RESULT + work.results.encode(result))
        except LumosError as error:
            yield Found(_ERROR + encoded_error(error))

    return do


def _results(done: DoneBuckets, work: BucketWork[Task, Result]) -> Iterator[Result]:
    for content in done.contents():
        if content.startswith(_ERROR):
            raise decoded_error(content[1:])
        yield work.results.decode(content[1:])


def encoded_error(error: LumosError) -> bytes:
    """Write an error down so that another process can raise it as it was."""
    kind = type(error)
    return orjson.dumps([kind.__module__, kind.__qualname__, error.as_json()])


def decoded_error(content: bytes) -> LumosError:
    """Return the error that `encoded_error` wrote down; one of an unknown kind is the base's."""
    module, name, told = orjson.loads(content)
    kinds = [LumosError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    known = (kind for kind in kinds if (kind.__module__, kind.__qualname__) == (module, name))
    kind = next(known, LumosError)
    error = kind.__new__(kind, told["message"])
    error.message, error.hint, error.retryable = told["message"], told["hint"], told["retryable"]
    return error


class Engines:
    """Finds the engine for some work, and starts Spark only where the work goes to it."""

    def __init__(
        self,
        *,
        open_session: Callable[[Callable[[str], None]], AbstractContextManager[SparkSession]],
        runs_here: Callable[[], bool],
    ) -> None:
        """Take a way to a session, and whether its executors see the files of this machine."""
        self._open_session = open_session
        self._runs_here = runs_here

    @contextmanager
    def opened(
        self, engine: Engine, *, worth_spark: bool, tell: Callable[[str], None]
    ) -> Iterator[BucketEngine]:
        """Yield the engine that was asked for.

        Args:
            engine: what the user wants.
            worth_spark: whether there is so much to do that starting Spark pays.
            tell: is told what is being waited for.
        """
        with ExitStack() as stack:
            session = None
            if engine is Engine.SPARK:
                session = stack.enter_context(self._open_session(tell))
            elif engine is Engine.AUTO and worth_spark and self._runs_here():
                session = self._session_if_possible(stack, tell)
            yield SparkEngine(session) if session else LOCAL

    def _session_if_possible(
        self, stack: ExitStack, tell: Callable[[str], None]
    ) -> SparkSession | None:
        """Open a session that nobody asked for; without Java the work is done here."""
        try:
            return stack.enter_context(self._open_session(tell))
        except LumosError as error:
            tell(f"without Spark: {error.message}")
            return None
