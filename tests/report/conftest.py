"""One whole report, made once."""

from pathlib import Path

import pytest

from mathneuro.report import ReportFiles, write_report
from tests.report.sweeps import Sweep


@pytest.fixture(scope="session")
def sweep() -> Sweep:
    """Two methods with two sets, one without: three repeats of three proportions."""
    return Sweep()


@pytest.fixture(scope="session")
def folder(sweep: Sweep, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of that sweep; to be read alone."""
    return sweep.write(tmp_path_factory.mktemp("whole") / "sweep")


@pytest.fixture(scope="session")
def report(folder: Path) -> ReportFiles:
    """The report of that sweep."""
    return write_report(folder)
