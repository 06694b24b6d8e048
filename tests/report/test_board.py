"""TensorBoard's pages, read back."""

import io
import json
import math
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import metadata

from mathneuro.errors import InputError
from mathneuro.report import ReportFiles, write_report, write_setting_board
from tests.report.sweeps import TASKS, Sweep, change

LABELS = [*TASKS, "perplexity math", "perplexity race"]
NAME = "mathneuro_mmlu_n500_r2_p0.01_x0"


def opened(run: Path) -> EventAccumulator:
    """Read one run."""
    events = EventAccumulator(str(run), size_guidance={"images": 0, "tensors": 0})
    events.Reload()
    return events


def scalars(events: EventAccumulator, tag: str) -> dict[int, float]:
    """Return the values of a tag by step."""
    return {each.step: each.value for each in events.Scalars(tag)}


def hyperparameters(events: EventAccumulator) -> dict[str, str | float]:
    """Return the hyperparameters of a run."""
    content = events.SummaryMetadata(metadata.SESSION_START_INFO_TAG).plugin_data.content
    values = metadata.parse_session_start_info_plugin_data(content).hparams
    return {name: getattr(value, str(value.WhichOneof("kind"))) for name, value in values.items()}


def text(events: EventAccumulator) -> str:
    """Return the summary page."""
    return str(events.Tensors("summary/text_summary")[0].tensor_proto.string_val[0].decode())


def test_there_is_a_run_a_setting(sweep: Sweep, report: ReportFiles) -> None:
    """With its scores and nothing else."""
    runs = sorted(path.name for path in (report.tensorboard / "settings").iterdir())
    assert runs == sorted(sweep.records)
    events = opened(report.tensorboard / "settings" / NAME)
    assert sorted(events.Tags()["scalars"]) == sorted(f"result/{label}" for label in LABELS)
    record = sweep.records[NAME]["scores"]
    assert scalars(events, "result/race acc") == {
        0: pytest.approx(record["tasks"]["race"]["acc"]["value"])
    }
    assert scalars(events, "result/perplexity math") == {
        0: pytest.approx(record["perplexity"]["math"]["value"])
    }


def test_settings_have_hyperparameters(report: ReportFiles) -> None:
    """Those that apply; no run states the columns of all, which TensorBoard would take for them."""
    events = opened(report.tensorboard / "settings" / NAME)
    assert hyperparameters(events) == {
        "method": "mathneuro", "calibration": "mmlu", "num_samples": 500, "repeat": 2,
        "proportion": 0.01, "factor": 0, "selected_parameters": 1000,
    }  # fmt: skip
    before = opened(report.tensorboard / "settings" / "before")
    assert hyperparameters(before) == {"method": "none", "selected_parameters": 0}
    for each in (events, before):
        tags = each.summary_metadata
        assert metadata.SESSION_END_INFO_TAG in tags
        assert metadata.EXPERIMENT_TAG not in tags


def test_curves_are_means_over_repeats_by_proportion(sweep: Sweep, report: ReportFiles) -> None:
    """In steps of a ten-thousandth; perplexities by their logarithms."""
    runs = sorted(path.name for path in (report.tensorboard / "overview").iterdir())
    assert runs == ["mathneuro mmlu n500 x0", "mathneuro race n500 x0", "random mmlu n500 x0",
                    "random race n500 x0", "summary", "wanda n500 x0"]  # fmt: skip
    events = opened(report.tensorboard / "overview" / "mathneuro mmlu n500 x0")
    assert sorted(events.Tags()["scalars"]) == sorted(f"by_proportion/{each}" for each in LABELS)
    accuracy, perplexity = {}, {}
    for proportion in (0.001, 0.01, 0.1):
        names = [f"mathneuro_mmlu_n500_r{repeat}_p{proportion:g}_x0" for repeat in (1, 2, 3)]
        scores = [sweep.records[name]["scores"] for name in names]
        step = round(proportion * 10_000)
        accuracy[step] = np.mean([each["tasks"]["race"]["acc"]["value"] for each in scores])
        logarithms = [math.log(each["perplexity"]["race"]["value"]) for each in scores]
        perplexity[step] = math.exp(np.mean(logarithms))
    assert scalars(events, "by_proportion/race acc") == pytest.approx(accuracy)
    assert scalars(events, "by_proportion/perplexity race") == pytest.approx(perplexity)


def test_the_summary_and_figures_are_shown(report: ReportFiles) -> None:
    """The text explains the steps; images are the figures, pixel by pixel."""
    events = opened(report.tensorboard / "overview" / "summary")
    page = text(events)
    assert "one step is a proportion of 1/10,000, so that step 500 is the proportion 0.05" in page
    assert "\n# Sweep of tiny-math\n" in page
    assert "](figures/" not in page
    pngs = {f"figures/{path.stem}": path for path in report.figures if path.suffix == ".png"}
    assert sorted(events.Tags()["images"]) == sorted(pngs)
    for tag, path in pngs.items():
        (image,) = events.Images(tag)
        with Image.open(io.BytesIO(image.encoded_image_string)) as shown, Image.open(path) as drawn:
            assert np.array_equal(
                np.asarray(shown.convert("RGB")), np.asarray(drawn.convert("RGB"))
            )


def test_fine_proportions_get_finer_steps(tmp_path: Path) -> None:
    """So that no two share one."""
    sweep = Sweep(methods=("wanda",), repeats=1, proportions=(0.00002, 0.00005), tasks=TASKS[:1],
                  perplexities=())  # fmt: skip
    report = write_report(sweep.write(tmp_path / "sweep"))
    events = opened(report.tensorboard / "overview" / "wanda n500 x0")
    assert list(scalars(events, f"by_proportion/{TASKS[0]}")) == [2, 5]
    assert "1/100,000" in text(opened(report.tensorboard / "overview" / "summary"))


def test_all_pages_are_written_anew(tmp_path: Path) -> None:
    """Runs that are no part of the sweep any more are gone."""
    sweep = Sweep(methods=("wanda",), repeats=1, proportions=(0.01, 0.1), tasks=(),
                  perplexities=("math", "race"))  # fmt: skip
    folder = sweep.write(tmp_path / "sweep")
    for record in sweep.records.values():
        write_setting_board(folder, record)
    assert len(list((folder / "tensorboard" / "settings").iterdir())) == 3
    (folder / "settings" / "wanda_n500_r1_p0.01_x0.json").unlink()
    for _ in range(2):
        report = write_report(folder)
    runs = [path for path in report.tensorboard.rglob("*") if path.is_file()]
    assert sorted(str(path.parent.relative_to(report.tensorboard)) for path in runs) == [
        "overview/summary", "overview/wanda n500 x0", "settings/before",
        "settings/wanda_n500_r1_p0.1_x0",
    ]  # fmt: skip
    assert sorted(path.name for path in folder.iterdir()) == [
        "report", "settings", "study.json", "tensorboard",
    ]  # fmt: skip


def test_a_setting_that_has_just_finished_is_shown(sweep: Sweep, tmp_path: Path) -> None:
    """At once, as the report shows it later; a second time too."""
    for _ in range(2):
        write_setting_board(tmp_path, sweep.records[NAME])
    assert [path.name for path in tmp_path.iterdir()] == ["tensorboard"]
    events = opened(tmp_path / "tensorboard" / "settings" / NAME)
    assert hyperparameters(events)["proportion"] == 0.01
    value = sweep.records[NAME]["scores"]["tasks"]["race"]["acc"]["value"]
    assert scalars(events, "result/race acc") == {0: pytest.approx(value)}


def test_all_texts_and_overflows_are_shown_as_they_are(tmp_path: Path) -> None:
    """The first by name, the second not at all."""
    sweep = Sweep(methods=("wanda",), repeats=1, proportions=(0.1,), num_samples=(None,))
    folder = sweep.write(tmp_path / "sweep")
    path = folder / "settings" / "wanda_all_r1_p0.1_x0.json"
    change(path, scores__perplexity__math__value=None)
    write_setting_board(folder, json.loads(path.read_text()))
    events = opened(folder / "tensorboard" / "settings" / path.stem)
    found = hyperparameters(events)
    assert (found["num_samples"], found["calibration"]) == ("all", "none")
    assert "result/perplexity math" not in events.Tags()["scalars"]
    assert "result/perplexity race" in events.Tags()["scalars"]


def test_a_record_of_something_else_is_refused(tmp_path: Path) -> None:
    """Before anything is written."""
    with pytest.raises(InputError, match="as format, but 'mathneuro-setting-2' was expected"):
        write_setting_board(tmp_path, {"format": "other"})
    assert list(tmp_path.iterdir()) == []
