"""Edited models as ordinary Hugging Face folders."""

from mathneuro.export.export import Export, export_model, left_behind

__all__ = ["Export", "export_model", "left_behind"]
