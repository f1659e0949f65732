"""Measurements of Switchyard beside its peers: `python -m tests.benchmarks [GROUP]`, or `make bench NAME=GROUP`."""
