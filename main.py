"""The program: gives the callbacks to the command line and starts it."""


def main() -> None:
    """Run the command line."""
    from mathneuro.terminal import quieten, settle

    settle()

    import callbacks
    from mathneuro.cli import run

    quieten()

    run(
        {
            "importance": callbacks.AccumulateImportance,
            "selection": callbacks.SelectParameters,
            "intervention": callbacks.Intervene,
            "lm_eval": callbacks.LMEval,
            "record": callbacks.RecordRun,
            "output": callbacks.PrintRun,
        },
        (callbacks.RecordSweep, callbacks.PrintSweep),
        callbacks.SaveRunConfig,
        callbacks.TransientProgressBar,
    )


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        # Lightning tells of an interruption while it runs; before that there is nothing to tell.
        raise SystemExit(130) from None
