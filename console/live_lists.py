"""Lists that keep themselves up to date: the page whole, or only its rows when htmx asks for them."""

from typing import Any, ClassVar

from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers

from console.lists import ListPage


class LiveListPage(ListPage):
    """`part_name` is the template of what changes; the page includes it."""

    part_name: ClassVar[str]

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response = super().get(request, *args, **kwargs)
        patch_vary_headers(response, ["HX-Request"])
        return response

    def get_template_names(self) -> list[str]:
        return [self.part_name] if getattr(self.request, "htmx", False) else super().get_template_names()
