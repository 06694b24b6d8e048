"""Tests of `mathneuro.data`."""
