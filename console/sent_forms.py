"""A form that changes something, from when it is opened to when that is done: what others have changed meanwhile is
shown, the plan comes first, and refusals stand where they belong."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from django.forms import BaseForm
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render

from console.changes import metric_of, readable, refuse
from console.meanwhile import Clash, Seen, Thing, clashes, forms_in, merged
from console.plan_digests import digest, is_confirmed
from queueapi.actions.rehearsing import rehearse
from queueapi.change_plans import ChangePlan
from queueapi.errors import ActionError, ChangedMeanwhile

Form = TypeVar("Form", bound=BaseForm)
Made = TypeVar("Made")

_CONFLICT: Final = 409


@dataclass(frozen=True, slots=True)
class Sent(Generic[Form, Made]):
    """What came of it.

    form     as it is to be shown
    made     what the action answered with; None: it is not done
    plan     what it would do, where that is to be looked at first
    planned  a digest of what that plan is for
    is_anew  whether something else was confirmed than what had been planned
    seen     the thing as the form shows it, signed
    clashes  what others have changed since somebody opened it
    """

    form: Form
    thing: Thing | None = None
    made: Made | None = None
    plan: ChangePlan | None = None
    planned: str = ""
    is_anew: bool = False
    seen: str = ""
    clashes: Sequence[Clash] = field(default_factory=list)

    def show(self, request: HttpRequest, template: str, context: Mapping[str, Any]) -> HttpResponse:
        told = {
            "form": self.form,
            "plan": self.plan,
            "planned": self.planned,
            "is_planned_anew": self.is_anew,
            "seen": self.seen,
            "clashes": self.clashes,
            "changed": self.thing and self.thing.what,
            "label": "Change" if self.thing else "Create",
            "leave": "Don't change" if self.thing else "Don't create",
        }
        return render(request, template, {**told, **context}, status=_CONFLICT if self.clashes else 200)


@dataclass(frozen=True, slots=True)
class FormOf(Generic[Form, Made]):
    """A form, and what is done with it.

    make     the form with what was sent; with nothing, as the thing is now: it asks the database each time
    act      what is done; ActionError refuses it
    refusal  what is said of that first
    thing    what is changed; None: something new is made
    plan     what `act` would do, where another can tell it than `act` itself
    plans    whether the plan comes first, and what is done is what it was shown for
    """

    make: Callable[[QueryDict | None], Form]
    act: Callable[[Form], Made]
    refusal: str
    thing: Thing | None = None
    plan: Callable[[Form], ChangePlan] | None = None
    plans: bool = True

    def sent(self, request: HttpRequest) -> Sent[Form, Made]:
        """What was sent with a POST; else the form as it is opened."""
        opened = self.make(None)
        now = self._seen_in(opened)
        if request.method != "POST":
            return self._shown(opened, now)
        seen = self._read(request, now)
        if seen and now and not seen.is_still(now):
            return self._clashing(request, seen, now)
        form = self.make(request.POST)
        if not form.is_valid():
            return self._shown(form, now)
        try:
            planned = digest({"seen": seen and seen.values, **entered(form)})
            if not self.plans or is_confirmed(request, planned):
                return Sent(form, self.thing, made=self._done(form, seen))
            is_anew = "confirm" in request.POST
            return self._shown(form, now, plan=self._plan(form), planned=planned, is_anew=is_anew)
        except ChangedMeanwhile:
            # In this very moment: the same again, with what is there now.
            return self.sent(request)
        except ActionError as error:
            refuse(form, self.refusal, error)
        return self._shown(form, now)

    def _plan(self, form: Form) -> ChangePlan:
        told = self.plan or (lambda given: readable(rehearse(lambda: self.act(given)), metric_of(given)))
        return told(form)

    def _done(self, form: Form, seen: Seen | None) -> Made:
        """Compared and changed with nobody in between. ChangedMeanwhile."""
        if self.thing is None or seen is None:
            return self.act(form)
        with self.thing.holding(self.thing.row):
            now = self._seen_in(self.make(None))
            if now is None or not seen.is_still(now):
                raise ChangedMeanwhile(f"somebody has just changed the {self.thing.what}; look again")
            return self.act(form)

    def _seen_in(self, opened: Form) -> Seen | None:
        return None if self.thing is None else Seen.of(self.thing, opened)

    def _read(self, request: HttpRequest, now: Seen | None) -> Seen | None:
        if self.thing is None or now is None:
            return None
        return Seen.read(request.POST.get("seen", ""), self.thing, now)

    def _clashing(self, request: HttpRequest, seen: Seen, now: Seen) -> Sent[Form, Made]:
        assert self.thing is not None  # noqa: S101 (for the type checker)
        typed = self.make(request.POST)
        both = self.make(merged(request.POST, seen, now, typed))
        return self._shown(both, now, clashes=clashes(self.thing, seen, now, typed))

    def _shown(self, form: Form, now: Seen | None, **more: Any) -> Sent[Form, Made]:
        signed = now.signed(self.thing) if self.thing and now else ""
        return Sent(form, self.thing, seen=signed, **more)


def entered(form: BaseForm) -> dict[str, Any]:
    """What was entered, in the form and in those in it, by the names that it has on the page."""
    forms = [one for one in forms_in(form) if hasattr(one, "cleaned_data")]
    return {one.add_prefix(name): value for one in forms for name, value in one.cleaned_data.items()}
