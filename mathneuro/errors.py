"""The one exception that means: the input is wrong, not the program."""


class InputError(ValueError):
    """A mistake in what the user gave us.

    The message is one sentence that names the field, what it held, what was expected and what to
    do. The command line prints it without a traceback and exits with status 2.
    """
