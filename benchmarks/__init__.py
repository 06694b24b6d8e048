"""Measurements that anyone can repeat; each prints a ratio of two things timed in one run."""
