"""How refusals are told in the schema: what each status means, with the codes that come with it."""

from collections.abc import Mapping

from drf_spectacular.utils import OpenApiResponse

from queueapi.rest.conventions.schema import ProblemSerializer

_COMMON: Mapping[int, str] = {
    503: "`provider_unavailable`: the provider does not answer; try again.",
}


def refusals(told: Mapping[int, str]) -> dict[tuple[int, str], OpenApiResponse]:
    """For the `responses` of an operation."""
    return {
        (status, "application/problem+json"): OpenApiResponse(ProblemSerializer, description=text)
        for status, text in {**told, **_COMMON}.items()
    }
