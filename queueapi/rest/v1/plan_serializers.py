"""Plans of changes on the wire."""

from rest_framework import serializers

from queueapi.rest.conventions.dry_runs import ChangePlanSerializer


class RefusablePlanSerializer(ChangePlanSerializer):
    """A plan that is also there where the change would be refused."""

    why_not = serializers.CharField(allow_blank=True, help_text="Why it would be refused; empty: it would be done.")
