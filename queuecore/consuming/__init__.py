"""From a provider's partition to a handler, and back as a commit."""
