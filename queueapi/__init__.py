"""The control plane: models, the actions that change them, and the REST interface."""
