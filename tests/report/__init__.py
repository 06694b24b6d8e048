"""Tests of the report on synthetic sweeps."""
