"""The cluster's store: leases, epochs and routing, in tables of their own.

With SQLite they are in a file of their own as well: however much is written to the control plane's, no lease is late.
"""
