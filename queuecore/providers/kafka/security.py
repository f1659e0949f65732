"""How a client proves who it is, and whom it believes, in the library's words."""

from typing import Final

from queuecore.providers.options import KafkaSecurity

_PROTOCOLS: Final = {
    (False, False): "plaintext",
    (True, False): "ssl",
    (False, True): "sasl_plaintext",
    (True, True): "sasl_ssl",
}


def security_settings(security: KafkaSecurity) -> dict[str, str]:
    """What is not set is left to the library, which then takes the system's certificates."""
    settings = {
        "security.protocol": _PROTOCOLS[security.tls, bool(security.sasl_mechanism)],
        "ssl.ca.location": security.ca,
        "ssl.certificate.location": security.certificate,
        "ssl.key.location": security.key,
        "ssl.key.password": security.key_password,
        "ssl.endpoint.identification.algorithm": "https" if security.check_hostname else "none",
        "sasl.mechanism": security.sasl_mechanism,
        "sasl.username": security.username,
        "sasl.password": security.password,
    }
    return {name: value for name, value in settings.items() if value}
