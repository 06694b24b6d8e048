"""Tests of what is told of selections: where they lie, and what they have in common."""
