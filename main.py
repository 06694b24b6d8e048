"""The program: gives the callbacks to the command line and starts it."""


def main() -> None:
    """Run the command line."""
    from mathneuro.terminal import settle

    settle()

    import callbacks
    from mathneuro.cli import run

    run(
        {
            "importance": callbacks.AccumulateImportance,
            "selection": callbacks.SelectParameters,
            "intervention": callbacks.Intervene,
            "lm_eval": callbacks.LMEval,
            "record": callbacks.RecordRun,
            "output": callbacks.PrintRun,
        },
        callbacks.SaveRunConfig,
    )


if __name__ == "__main__":
    main()
