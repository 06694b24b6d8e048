"""Programs of a language model, run where they can do nothing but compute."""

from mathneuro.sandbox.run import Limits, Outcome, check_sandbox, run_programs

__all__ = ["Limits", "Outcome", "check_sandbox", "run_programs"]
