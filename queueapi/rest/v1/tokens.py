"""API tokens over REST: look, make, revoke."""

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from queueapi.access.table import SCOPES, Resource
from queueapi.actions.tokens import LIFETIME, create_token, revoke_token
from queueapi.choices import Role
from queueapi.models import ApiToken, Tenant
from queueapi.rest.actors import actor_of
from queueapi.rest.conventions.bodies import StrictSerializer
from queueapi.rest.conventions.dry_runs import rehearsed
from queueapi.rest.conventions.idempotency import answers_with_a_secret
from queueapi.rest.conventions.views import Conventional
from queueapi.rest.permissions import Access, requester_of
from queueapi.rest.tenancy import VisibleField
from queueapi.selectors.tokens import tokens_seen_by


class TokenSerializer(serializers.ModelSerializer[ApiToken]):
    created_by = serializers.CharField(source="created_by.username", help_text="Who may at least what it may.")
    scopes = serializers.ListField(child=serializers.ChoiceField(SCOPES), read_only=True)

    class Meta:
        model = ApiToken
        fields = [
            "id", "name", "prefix", "scopes", "role", "tenant", "created_by", "created_at", "expires_at",
            "last_used_at", "revoked_at",
        ]  # fmt: skip


class NewTokenSerializer(StrictSerializer):
    name = serializers.CharField(help_text="What it is for.")
    scopes = serializers.ListField(child=serializers.CharField(), help_text=f"Of {', '.join(SCOPES)}.")
    role = serializers.ChoiceField(Role.choices, required=False, help_text="The most it may do. Left out: your own.")
    tenant = VisibleField(
        queryset=Tenant.objects.all(), required=False, allow_null=True, help_text="For a tenant's role."
    )
    expires_at = serializers.DateTimeField(
        required=False, allow_null=True, help_text=f"Left out: in {LIFETIME.days} days. Null: never."
    )


class MadeTokenSerializer(TokenSerializer):
    token = serializers.SerializerMethodField(help_text="The secret. It is shown here, and never again.")

    class Meta(TokenSerializer.Meta):
        fields = [*TokenSerializer.Meta.fields, "token"]

    def get_token(self, _: ApiToken) -> str:
        return str(self.context["secret"])


class TokenViewSet(Conventional, viewsets.ReadOnlyModelViewSet[ApiToken]):
    """Newest first: your own; your tenant's, where you are a tenant's; everyone's for those who see users."""

    access = Access(Resource.TOKENS)
    summaries = {
        "list": "List API tokens",
        "retrieve": "Show an API token",
    }
    queryset = ApiToken.objects.select_related("created_by")
    serializer_class = TokenSerializer
    filterset_fields = {"revoked_at": ["isnull"], "tenant": ["exact"], "created_by__username": ["exact"]}

    def get_queryset(self) -> QuerySet[ApiToken]:
        tokens = super().get_queryset()
        if getattr(self, "swagger_fake_view", False):
            return tokens
        return tokens_seen_by(requester_of(self.request), tokens)

    @extend_schema(request=NewTokenSerializer, responses={201: MadeTokenSerializer}, summary="Make a token")
    @rehearsed
    @answers_with_a_secret
    def create(self, request: Request) -> Response:
        """The answer shows the secret, once. Who was let in by a token makes no others."""
        given = NewTokenSerializer(data=request.data, context={"request": request})
        given.is_valid(raise_exception=True)
        asked: dict[str, Any] = given.validated_data
        token, secret = create_token(
            actor_of(request),
            asked["name"],
            asked["scopes"],
            role=Role(asked["role"]) if "role" in asked else None,
            tenant=asked.get("tenant"),
            expires_at=asked.get("expires_at", timezone.now() + LIFETIME),
        )
        shown = MadeTokenSerializer(token, context={"secret": secret})
        return Response(shown.data, status=status.HTTP_201_CREATED, headers={"Cache-Control": "no-store"})

    @extend_schema(request=None, responses=TokenSerializer, summary="Revoke a token")
    @action(detail=True, methods=["post"])
    @rehearsed
    def revoke(self, request: Request, **_: Any) -> Response:
        """Nobody is let in by it any more: within seconds, and for good."""
        revoke_token(actor_of(request), self.get_object())
        return Response(self.get_serializer(self.get_object()).data)
