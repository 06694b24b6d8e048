"""The commands' names, by what they need."""

NEED_MODEL = ("operate", "predict", "validate", "sweep", "export")
"""The commands that need a model."""

ALONE = ("combine", "report")
"""The commands that need neither model nor data nor a Trainer, but files alone."""
