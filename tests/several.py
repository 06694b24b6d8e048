"""Commands one after the other in one process; torchrun starts several of them."""

import json
import sys

import main


def run(commands: list[list[str]]) -> None:
    """Run each as ``python main.py COMMAND...`` would."""
    for command in commands:
        sys.argv = ["main.py", *command]
        main.main()


if __name__ == "__main__":
    run(json.loads(sys.argv[1]))
