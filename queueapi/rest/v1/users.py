"""Users over REST: who may sign in, and what they are here to do."""

from contextlib import AbstractContextManager
from typing import Any

from django.contrib.auth import SESSION_KEY, update_session_auth_hash
from django.contrib.auth.models import User
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from queueapi.access.principals import role_of
from queueapi.access.table import Resource
from queueapi.actions.users import (
    create_user,
    set_user_active,
    set_user_password,
    set_user_role,
    user_locked,
)
from queueapi.choices import Role
from queueapi.models import Tenant
from queueapi.rest import pagination
from queueapi.rest.actors import actor_of
from queueapi.rest.conventions.bodies import StrictSerializer
from queueapi.rest.conventions.dry_runs import rehearsed
from queueapi.rest.conventions.views import Conventional
from queueapi.rest.filters import TrueOrFalseFilter
from queueapi.rest.permissions import Access
from queueapi.rest.tenancy import VisibleField


class UserSerializer(serializers.ModelSerializer[User]):
    name = serializers.CharField(source="username", help_text="By which they sign in.")
    role = serializers.SerializerMethodField(help_text="Null: none, and nothing is allowed.")
    tenant = serializers.SerializerMethodField(help_text="For whom a tenant's role is.")
    active = serializers.BooleanField(source="is_active", help_text="Whether they are let in.")

    class Meta:
        model = User
        fields = ["id", "name", "role", "tenant", "active", "last_login", "date_joined"]

    @extend_schema_field(serializers.ChoiceField(Role.choices, allow_null=True))
    def get_role(self, user: User) -> str | None:
        standing = role_of(user)
        return None if standing is None else standing[0].value

    @extend_schema_field(serializers.UUIDField(allow_null=True))
    def get_tenant(self, user: User) -> str | None:
        standing = role_of(user)
        return None if standing is None or standing[1] is None else str(standing[1])


class RoleSerializer(StrictSerializer):
    role = serializers.ChoiceField(Role.choices)
    tenant = VisibleField(
        queryset=Tenant.objects.all(), required=False, allow_null=True, default=None, help_text="For a tenant's role."
    )


class PasswordSerializer(StrictSerializer):
    password = serializers.CharField(trim_whitespace=False, write_only=True)


class NewUserSerializer(RoleSerializer, PasswordSerializer):
    name = serializers.CharField()


class UserFilter(filters.FilterSet):
    role = filters.ChoiceFilter(field_name="account__role", choices=Role)
    tenant = filters.UUIDFilter("account__tenant", label="Whose people.")
    active = TrueOrFalseFilter("is_active", label="Whether they are let in.")

    class Meta:
        model = User
        fields: list[str] = []


class UserViewSet(Conventional, viewsets.ReadOnlyModelViewSet[User]):
    """By name. A user is never removed, as what they did stays known: deactivate them."""

    access = Access(Resource.USERS)
    summaries = {
        "list": "List users",
        "retrieve": "Show a user",
    }
    queryset = User.objects.select_related("account")
    serializer_class = UserSerializer
    pagination_class = pagination.ByUserName
    filterset_class = UserFilter

    def holding(self) -> AbstractContextManager[None]:
        return user_locked(self._get_thing())

    @extend_schema(request=NewUserSerializer, responses={201: UserSerializer}, summary="Create a user")
    @rehearsed
    def create(self, request: Request) -> Response:
        """Somebody who can sign in at once."""
        given = self._given(NewUserSerializer)
        role = Role(given["role"])
        user = create_user(actor_of(request), given["name"], given["password"], role, given["tenant"])
        return Response(self.get_serializer(user).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=RoleSerializer, responses=UserSerializer, summary="Change a user's role")
    @action(detail=True, methods=["put"])
    @rehearsed
    def role(self, request: Request, **_: Any) -> Response:
        """It holds from their next request on. The last administrator stays one."""
        given = self._given(RoleSerializer)
        set_user_role(actor_of(request), self.get_object(), Role(given["role"]), given["tenant"])
        return self._shown()

    @extend_schema(request=PasswordSerializer, responses={204: None}, summary="Set a user's password")
    @action(detail=True, methods=["put"])
    @rehearsed
    def password(self, request: Request, **_: Any) -> Response:
        """Ends their sessions, but for the one in which somebody sets their own."""
        user = self.get_object()
        set_user_password(actor_of(request), user, self._given(PasswordSerializer)["password"])
        if user == request.user and SESSION_KEY in request.session:
            update_session_auth_hash(request, user)
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(request=None, responses=UserSerializer, summary="Let a user in no more")
    @action(detail=True, methods=["post"])
    @rehearsed
    def deactivate(self, request: Request, **_: Any) -> Response:
        """Neither by password nor by session at once, nor by token within seconds. The last administrator stays."""
        set_user_active(actor_of(request), self.get_object(), active=False)
        return self._shown()

    @extend_schema(request=None, responses=UserSerializer, summary="Let a user in again")
    @action(detail=True, methods=["post"])
    @rehearsed
    def activate(self, request: Request, **_: Any) -> Response:
        """With the role, the password and the tokens that they had."""
        set_user_active(actor_of(request), self.get_object(), active=True)
        return self._shown()

    def _given(self, kind: type[serializers.Serializer[Any]]) -> dict[str, Any]:
        given = kind(data=self.request.data, context={"request": self.request})
        given.is_valid(raise_exception=True)
        checked: dict[str, Any] = given.validated_data
        return checked

    def _shown(self) -> Response:
        return Response(self.get_serializer(self.get_object()).data)
