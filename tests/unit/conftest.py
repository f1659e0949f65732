"""Property tests have no deadline: how long an example takes says more about the machine than about the code."""

from hypothesis import settings

settings.register_profile("switchyard", deadline=None)
settings.load_profile("switchyard")
