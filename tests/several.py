"""Commands one after the other in one process, of which a test starts several."""

import sys

import main


def run(commands: list[list[str]]) -> None:
    """Run each as ``python main.py COMMAND...`` would."""
    for command in commands:
        sys.argv = ["main.py", *command]
        main.main()
