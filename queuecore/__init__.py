"""The queue runtime: messages, names, routing, providers and consuming. Plain typed Python."""
