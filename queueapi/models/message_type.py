import uuid

from django.db import models
from django.db.models.functions import Lower
from django.utils.functional import cached_property


class MessageType(models.Model):
    """Which protobuf message some topics carry. Its versions stay: what was stored under each can still be read."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=100)
    # As protobuf calls it, with its package.
    message = models.CharField(max_length=255)
    # The newest of its versions.
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                Lower("name"),
                name="message_type_name_unique",
                violation_error_message="name: another message type is called so, whatever the case; choose another",
            ),
            models.CheckConstraint(condition=models.Q(version__gte=1), name="message_type_has_a_version"),
        ]

    def __str__(self) -> str:
        return self.name

    @cached_property
    def newest(self) -> "MessageTypeVersion":
        return self.versions.get(version=self.version)


class MessageTypeVersion(models.Model):
    """What a message type was from some moment on. Never changed."""

    message_type = models.ForeignKey(MessageType, on_delete=models.CASCADE, related_name="versions")
    version = models.PositiveIntegerField()
    # A serialised FileDescriptorSet.
    descriptors = models.BinaryField()
    # Of each file by its name; empty where only the description was given.
    files = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=150)

    class Meta:
        ordering = ["-version"]
        constraints = [
            models.UniqueConstraint(fields=["message_type", "version"], name="message_type_version_once"),
        ]

    def __str__(self) -> str:
        return f"{self.message_type} {self.version}"


class MessageTypeTopic(models.Model):
    """A topic and what it carries: of a queue, what the names of its partitions' topics begin with."""

    topic = models.CharField(max_length=249, unique=True)
    message_type = models.ForeignKey(MessageType, on_delete=models.CASCADE, related_name="topics")

    class Meta:
        ordering = ["topic"]

    def __str__(self) -> str:
        return self.topic
