"""The front door for programs and notebooks: what `import pldp` offers, over the same flows as the commands.

A spec is a path, or a mapping of what its file would say; a source is a path, or a frame: of Polars, also a
lazy one, of Arrow or of pandas. A frame is written to the vault's side of the home before any flow is called, so that
parameters of flows and tasks stay paths and names, and is deleted with the call.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import yaml

from pldp.errors import GateFailed, Outcome, RequestError
from pldp.spec.runner import RunnerOptions
from pldp.tasks.analyst import ask, ask_difference, ask_group
from pldp.tasks.frame_files import FrameLike, frame_file
from pldp.tasks.home import Home
from pldp.tasks.results import PublishedRelease, list_releases, read_release
from pldp.tasks.specfile import load_spec

if TYPE_CHECKING:
    from pldp.flows.evaluate import Evaluated
    from pldp.flows.planned import Planned

SpecLike = str | Path | Mapping[str, Any]
DEFAULT_HOME = "data/home"


@dataclass(frozen=True)
class Published:
    """One published release: its tables as Polars frames, by name."""

    home: Path
    release: PublishedRelease

    @property
    def release_id(self) -> str:
        return self.release.release_id

    @property
    def statement(self) -> dict[str, Any] | None:
        """The privacy statement."""
        return self.release.statement

    def __getitem__(self, table: str) -> pl.DataFrame:
        """A table of the release, such as `histograms`, `means` or `validations`; empty where it has no rows."""
        try:
            return self.release.tables[table]
        except KeyError:
            known = ", ".join(self.release.tables)
            raise RequestError(f"{table!r} is no published table: there are {known}", Outcome.NOTHING_CHANGED) from None

    def group(self, attribute: str, *values: str, confidence: float = 0.95) -> dict[str, Any]:
        """The share of several values together, with its right error."""
        return ask_group(self.home, self.release_id, attribute, values, confidence=confidence)

    def difference(
        self, attribute: str, values: Sequence[str], minus: Sequence[str], *, confidence: float = 0.95
    ) -> dict[str, Any]:
        """The share of some values minus that of others, with its right error."""
        return ask_difference(self.home, self.release_id, attribute, values, minus, confidence=confidence)


@dataclass(frozen=True)
class Results:
    """What a home has published."""

    home: Path

    @property
    def releases(self) -> pl.DataFrame:
        """Every release, newest first, with the most that a person spent on it."""
        return list_releases(self.home)

    def latest(self, name: str) -> Published:
        """The newest release of a name, or the one of an id."""
        return Published(self.home, read_release(self.home, name))

    def query(self, sql: str) -> pl.DataFrame:
        """What a query in DuckDB's SQL returns; it can only read, and only the results."""
        answer = ask(self.home, sql)
        return pl.DataFrame(answer.rows, schema=list(answer.columns), orient="row", infer_schema_length=None)


def open(home: str | Path = DEFAULT_HOME) -> Results:
    """The results of a home, to read."""
    return Results(Path(home))


def plan(spec: SpecLike, *, target_error: float | None = None) -> Planned:
    """What a spec promises, from the spec alone: budgets, predicted errors, assumptions. No data are read."""
    from pldp.flows.planned import predict

    with _spec_file(spec) as path:
        return predict(load_spec(path, evaluation=True), target_error)


def release(
    spec: SpecLike,
    home: str | Path = DEFAULT_HOME,
    *,
    source: str | Path | FrameLike | None = None,
    slot: str = "manual",
    runner: RunnerOptions = None,
    wait: bool = False,
) -> Published:
    """Perturb, estimate, validate and publish; the same spec, source and slot resume, or are found done.

    `GateFailed` where a gate refused the release: nothing of it but its gates was published. Inside a flow of your own
    it runs as a flow below it, without persisted results or caches.
    """
    folder = Path(home).absolute()
    prepared = Home(folder).prepare()
    with _spec_file(spec) as path, _source_file(prepared, path, source) as file, _settled(folder):
        from pldp.flows import release as flows

        done = flows.release(path, folder, slot=slot, source=file, wait=wait, runner=runner)
    published = Published(folder, read_release(folder, done.release_id))
    if done.status != "published":
        raise GateFailed(f"Release {done.release_id} was refused: {published.release.failed_gates()}", Outcome.SPENT)
    return published


def evaluate(
    spec: SpecLike,
    home: str | Path = DEFAULT_HOME,
    *,
    source: str | Path | FrameLike | None = None,
    repeat: int | None = None,
    seed: int | None = None,
    keep_levels: bool = False,
    dependence: float | None = None,
) -> Evaluated:
    """The release's own stages with the truth beside them. It stays on the vault's side and is never published.

    Repetitions deal people's levels by chance, or with `keep_levels` not at all; with `dependence`, a Γ of at least 1,
    also by what people hold as far as that allows, and `tables["coverage"]` shows what this does.
    """
    folder = Path(home).absolute()
    prepared = Home(folder).prepare()
    with _spec_file(spec) as path, _source_file(prepared, path, source) as file, _settled(folder):
        from pldp.flows import evaluate as flows

        return flows.evaluate(
            path, folder, repeat=repeat, seed=seed, keep_levels=keep_levels, dependence=dependence, source=file
        )


@contextmanager
def _settled(home: Path) -> Iterator[None]:
    from pldp.tasks.settings import settle

    settle(home)  # before Prefect is imported, which reads its settings then
    yield


@contextmanager
def _spec_file(spec: SpecLike) -> Iterator[Path]:
    """A path to the spec; a mapping becomes a file for this call, its paths relative to the working folder."""
    if not isinstance(spec, Mapping):
        yield Path(spec).absolute()
        return
    with tempfile.TemporaryDirectory(prefix="pldp-") as folder:
        path = Path(folder) / "spec.yaml"
        path.write_text(yaml.safe_dump(_absolute(dict(spec)), sort_keys=False, allow_unicode=True))
        yield path


def _absolute(part: Any) -> Any:
    if isinstance(part, Mapping):
        return {
            key: str(Path(value).absolute())
            if key in ("path", "reports") and isinstance(value, str)
            else _absolute(value)
            for key, value in part.items()
        }
    return [_absolute(one) for one in part] if isinstance(part, list | tuple) else part


@contextmanager
def _source_file(home: Home, spec: Path, source: str | Path | FrameLike | None) -> Iterator[Path | None]:
    """A path to the source. A frame lies in the home (0700) while the call lasts, under the name that the spec gives
    its file: names are part of a release's identity, and so is what the file holds."""
    if source is None or isinstance(source, str | Path):
        yield None if source is None else Path(source).absolute()
        return
    stated = load_spec(spec, evaluation=True).spec.source.path or "frame.parquet"
    with frame_file(home, stated, source) as path:
        yield path
