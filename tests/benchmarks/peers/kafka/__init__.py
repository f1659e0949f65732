"""Frameworks that read Kafka, each in an environment of its own: their requirements clash with ours and each other's.

`make bench NAME=kafka` installs a peer's `.lock` under `var/peers/`; the module of its name runs there. All of them,
and ours, do one `work`. So these modules import nothing but it and their framework.
"""
