"""The commands' names, by what they need."""

NEED_MODEL = ("operate", "predict", "validate", "sweep", "consistency", "export", "show")
"""The commands that need a model."""

ALONE = ("combine", "inspect", "prepare", "report")
"""The commands that need neither model nor data nor a Trainer, but files alone."""

NO_FOLDER = ("consistency", "export", "show")
"""The commands that need a model and make no folder of a run."""
