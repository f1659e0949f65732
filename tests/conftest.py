"""What all tests share."""

pytest_plugins = ["tests.services", "tests.databases"]
