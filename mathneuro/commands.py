"""The commands' names, by what they need."""

NEED_MODEL = ("operate", "predict", "validate", "sweep", "export", "show")
"""The commands that need a model."""

ALONE = ("combine", "prepare", "report")
"""The commands that need neither model nor data nor a Trainer, but files alone."""

NO_FOLDER = ("export", "show")
"""The commands that need a model and leave nothing in the folder of the run."""
