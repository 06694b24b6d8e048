"""Edited models as ordinary Hugging Face folders."""

from mathneuro.export.export import Export, export_model

__all__ = ["Export", "export_model"]
