from django.db import models


class SignInFailures(models.Model):
    """How often somebody at an address has given a wrong password for a name, since the last right one."""

    # In lower case, and whether or not there is such a user.
    name = models.CharField(max_length=150)
    address = models.CharField(max_length=64, blank=True)
    failures = models.PositiveIntegerField(default=0)
    last_at = models.DateTimeField(db_index=True)
    # Until then no password is even looked at; None: there is no lock.
    locked_until = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-last_at"]
        verbose_name_plural = "sign-in failures"
        constraints = [models.UniqueConstraint(fields=["name", "address"], name="sign_in_failures_once")]

    def __str__(self) -> str:
        return f"{self.name} from {self.address or 'nowhere'}: {self.failures}"
