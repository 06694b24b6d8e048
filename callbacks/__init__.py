"""Lightning's side of MathNeuro: when things happen."""

from callbacks.accumulate_importance import AccumulateImportance
from callbacks.intervene import Intervene
from callbacks.lm_eval import LMEval
from callbacks.print_run import PrintRun
from callbacks.print_sweep import PrintSweep
from callbacks.progress import TransientProgressBar
from callbacks.record_run import RecordRun
from callbacks.record_sweep import RecordSweep
from callbacks.save_config import SaveRunConfig
from callbacks.select_parameters import SelectParameters

__all__ = [
    "AccumulateImportance",
    "Intervene",
    "LMEval",
    "PrintRun",
    "PrintSweep",
    "RecordRun",
    "RecordSweep",
    "SaveRunConfig",
    "SelectParameters",
    "TransientProgressBar",
]
