"""Which installation a page is of, so that it is seen on every one of them."""

from dataclasses import dataclass

from queueapi.config import Config


@dataclass(frozen=True, slots=True)
class Environment:
    """`is_banded`: a band in its colour is above every page."""

    name: str
    colour: str
    is_banded: bool

    @classmethod
    def of(cls, settings: Config) -> "Environment":
        """Production is red where nobody says otherwise, and never without a band."""
        is_production = settings.mode == "production"
        colour = settings.environment_colour or ("red" if is_production else "blue")
        is_told = bool(settings.environment_name or settings.environment_colour)
        return cls(settings.environment_name or settings.mode, colour, is_production or is_told)
