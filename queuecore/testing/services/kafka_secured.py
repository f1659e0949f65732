"""Kafka that does not trust everybody: encrypted listeners, passwords, certificates and access rights."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from queuecore.testing.services.certificates import Authority, missing_openssl
from queuecore.testing.services.kafka import BROKER, KafkaService
from queuecore.testing.services.ports import LOOPBACK

PLAIN, TLS, MUTUAL_TLS, SASL = BROKER, "TLS", "MUTUAL", "SASL"
SCRAM = "SCRAM-SHA-512"
MODULES = "org.apache.kafka.common.security"


class SecuredKafka(KafkaService):
    """A single broker with one listener for each way to be sure of the other side, see `servers`.

    users           names and passwords, for PLAIN and for SCRAM-SHA-512
    administrators  who of them, or of those with a certificate, may do everything; the others what ACLs allow

    Its plain listener trusts everybody: the broker itself uses it, and tests give out rights there.
    """

    further_listeners: ClassVar[Mapping[str, str]] = {TLS: "SSL", MUTUAL_TLS: "SSL", SASL: "SASL_SSL"}

    def __init__(self, data_dir: Path, *, users: Mapping[str, str], administrators: Collection[str] = ()) -> None:
        super().__init__(data_dir, ephemeral=True)
        self._users = users
        self._administrators = administrators

    def missing(self) -> str | None:
        return super().missing() or missing_openssl()

    @property
    def authority(self) -> Authority:
        """Who vouches for the broker, and for clients; once started."""
        return Authority(self.data_dir / "certificates")

    def servers(self, listener: str) -> str:
        """The address of the listener that is encrypted (`TLS`), wants a certificate of the client's as well
        (`MUTUAL_TLS`), or a password (`SASL`), or is none of that (`PLAIN`); once started."""
        return self.address if listener == PLAIN else f"{LOOPBACK}:{self._ports[listener]}"

    def _all_settings(self) -> dict[str, str]:
        authority = self.authority
        administrators = ("ANONYMOUS", *self._administrators)
        passwords = " ".join(f'user_{name}="{password}"' for name, password in self._users.items())
        sasl = f"listener.name.{SASL.lower()}"
        return {
            **super()._all_settings(),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(authority.issue("broker").in_one_file()),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(authority.own.certificate),
            f"listener.name.{MUTUAL_TLS.lower()}.ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/",
            f"{sasl}.sasl.enabled.mechanisms": f"PLAIN,{SCRAM}",
            f"{sasl}.plain.sasl.jaas.config": f"{MODULES}.plain.PlainLoginModule required {passwords};",
            f"{sasl}.{SCRAM.lower()}.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": ";".join(f"User:{name}" for name in administrators),
        }

    def _format_arguments(self) -> Sequence[str]:
        return [f'--add-scram={SCRAM}=[name="{name}",password="{password}"]' for name, password in self._users.items()]
