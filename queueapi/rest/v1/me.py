"""Who am I? For programs that want to know what their token is good for."""

from typing import Any

from django.contrib.auth import SESSION_KEY, update_session_auth_hash
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from queueapi.actions.users import change_own_password, plan_own_password
from queueapi.choices import Role
from queueapi.models import ApiToken
from queueapi.rest.actors import actor_of
from queueapi.rest.conventions.bodies import StrictSerializer
from queueapi.rest.conventions.dry_runs import ChangePlanSerializer, is_dry_run, plans_itself
from queueapi.rest.conventions.idempotency import leaves_the_database
from queueapi.rest.conventions.views import Conventional
from queueapi.rest.permissions import HasRole, requester_of
from queueapi.rest.v1.tokens import TokenSerializer


class MeSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    role = serializers.ChoiceField(Role.choices)
    tenant = serializers.UUIDField(allow_null=True, help_text="Whose things you see. Null: everyone's.")
    scopes = serializers.ListField(child=serializers.CharField(), help_text="What you may do, as a token's scopes.")
    token = TokenSerializer(allow_null=True, help_text="The one by which you were let in, if by one.")


class OwnPasswordSerializer(StrictSerializer):
    current = serializers.CharField(trim_whitespace=False, write_only=True)
    password = serializers.CharField(trim_whitespace=False, write_only=True)


class MeView(Conventional):
    permission_classes = (HasRole,)
    has_etag = True

    @extend_schema(summary="Who you are, and what you may", responses=MeSerializer)
    def get(self, request: Request) -> Response:
        """The role is the lesser of yours and your token's."""
        asking = requester_of(request)
        told = {
            "name": request.user.get_username(),
            "role": asking.role,
            "tenant": asking.tenant_id,
            "scopes": sorted(asking.effective_scopes),
            "token": request.auth if isinstance(request.auth, ApiToken) else None,
        }
        return Response(MeSerializer(told).data)


class OwnPasswordView(Conventional):
    permission_classes = (HasRole,)

    @extend_schema(summary="Change your password", request=OwnPasswordSerializer, responses={204: None})
    @plans_itself(ChangePlanSerializer)
    # That a wrong one was tried is counted whatever becomes of the request: no transaction takes it back.
    @leaves_the_database
    def put(self, request: Request) -> Response:
        """Ends your other sessions. A wrong one counts as at sign-in."""
        given = OwnPasswordSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        if is_dry_run(request):
            plan = plan_own_password(actor_of(request), **given.validated_data)
            return Response(ChangePlanSerializer(plan).data)
        user = change_own_password(actor_of(request), **given.validated_data)
        if SESSION_KEY in request.session:
            update_session_auth_hash(request, user)
        return Response(status=status.HTTP_204_NO_CONTENT)
