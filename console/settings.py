"""The one settings module. Everything an installation decides comes from `SWITCHYARD_*` (see queueapi/config.py)."""

import os
from pathlib import Path

import dj_database_url

from console.secrets import kept_secret
from queueapi.celery_config import celery_settings
from queueapi.config import Config
from queueapi.rest.v1.tags import TAGS
from queuecore.config import load
from queuecore.processing.strategies import ProcessingStrategyType
from queuecore.submit.strategies import SubmitStrategyType
from queuecore.topics import ServiceType

BASE_DIR = Path(__file__).resolve().parent.parent

SWITCHYARD = load(Config, os.environ)
SWITCHYARD.check()
SWITCHYARD.folder()
PRODUCTION = SWITCHYARD.mode == "production"

DEBUG = False
SECRET_KEY = SWITCHYARD.secret_key or kept_secret(SWITCHYARD.data / "secret-key")
ALLOWED_HOSTS = list(SWITCHYARD.allowed_hosts)
CSRF_TRUSTED_ORIGINS = list(SWITCHYARD.trusted_origins)

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django_filters",
    "django_htmx",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "queueapi",
    "queueapi.cluster",
    "console",
]

MIDDLEWARE = [
    "queueapi.rest.middleware.request_id",
    "queueapi.rest.middleware.api_answers",
    "django.middleware.security.SecurityMiddleware",
    "console.static_files.StaticFilesMiddleware",
    "console.middleware.compressed_pages",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "console.middleware.sessions_end_unused",
    "console.middleware.content_security_policy",
]

ROOT_URLCONF = "console.urls"
ASGI_APPLICATION = "console.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "console.access.standing",
                "console.navigation.firing",
            ],
        },
    }
]

if SWITCHYARD.database_url:
    DATABASES = {"default": dj_database_url.parse(SWITCHYARD.database_url, conn_max_age=60, conn_health_checks=True)}
    # A server that has gone silent is noticed while there is still a lease. What the address says counts.
    DATABASES["default"]["OPTIONS"] = {
        "connect_timeout": 3,
        "tcp_user_timeout": 5000,
        "keepalives_idle": 3,
        "keepalives_interval": 1,
        "keepalives_count": 3,
    } | DATABASES["default"].get("OPTIONS", {})
else:
    DATABASES = {
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "CONN_MAX_AGE": None,
            "NAME": str(SWITCHYARD.data / "switchyard.sqlite3"),
            "TEST": {"NAME": str(SWITCHYARD.data / "test.sqlite3")},
            "OPTIONS": {
                "timeout": 30,
                "transaction_mode": "IMMEDIATE",
                # The cache holds what a bulk change touches: without room for it, pages are written and read again.
                "init_command": "pragma journal_mode = wal; pragma synchronous = full; pragma busy_timeout = 30000; "
                "pragma cache_size = -32768;",
            },
        },
        # Leases, epochs and routing: whatever is written to the other, these are renewed in time. What a power cut
        # takes is what processes knew that it has ended as well.
        "cluster": {
            "ENGINE": "django.db.backends.sqlite3",
            "CONN_MAX_AGE": None,
            "NAME": str(SWITCHYARD.data / "cluster.sqlite3"),
            "TEST": {"NAME": str(SWITCHYARD.data / "test-cluster.sqlite3")},
            "OPTIONS": {
                "timeout": 2,
                "transaction_mode": "IMMEDIATE",
                "init_command": "pragma journal_mode = wal; pragma synchronous = normal; pragma busy_timeout = 2000;",
            },
        },
    }
DATABASE_ROUTERS = ["queueapi.cluster.databases.ClusterRouter"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

EMAIL_HOST, EMAIL_PORT = SWITCHYARD.email.host, SWITCHYARD.email.port
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = SWITCHYARD.email.user, SWITCHYARD.email.password
EMAIL_USE_TLS, EMAIL_USE_SSL = SWITCHYARD.email.security == "starttls", SWITCHYARD.email.security == "tls"
EMAIL_TIMEOUT = SWITCHYARD.email.timeout_s
DEFAULT_FROM_EMAIL = SWITCHYARD.email.sender

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
AUTHENTICATION_BACKENDS = ["queueapi.access.backends.LockingBackend"]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "overview"
LOGOUT_REDIRECT_URL = "login"

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = False
USE_TZ = True

STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = SWITCHYARD.folder("static")
# Files are served from where the wheels and the tree have them: no collecting step before the first start.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False

# Since the last click: `console.middleware.sessions_end_unused` writes it anew.
SESSION_COOKIE_AGE = SWITCHYARD.session_minutes * 60
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_NAME = "switchyard_session"
CSRF_COOKIE_NAME = "switchyard_csrf"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = PRODUCTION
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if PRODUCTION else None
SECURE_HSTS_SECONDS = 365 * 24 * 60 * 60 if PRODUCTION else 0
# Our own host alone: whether its owner's whole domain is reached over HTTPS is not ours to promise for a year.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
X_FRAME_OPTIONS = "DENY"

DATA_UPLOAD_MAX_MEMORY_SIZE = SWITCHYARD.rest.max_body_bytes
# A form that asks several things of each queue is sent without scripts as well, and then all of it.
DATA_UPLOAD_MAX_NUMBER_FIELDS = 10_000

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "queueapi.rest.authentication.PasswordAuthentication",
        "queueapi.rest.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["queueapi.rest.permissions.Allowed"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["queueapi.rest.conventions.bodies.BoundedJSONParser"],
    "DEFAULT_THROTTLE_CLASSES": ["queueapi.rest.conventions.rates.PrincipalThrottle"],
    "DEFAULT_PAGINATION_CLASS": "queueapi.rest.pagination.NewestFirst",
    "DEFAULT_FILTER_BACKENDS": ["queueapi.rest.filters.ByIdFilterBackend"],
    "DEFAULT_SCHEMA_CLASS": "queueapi.rest.conventions.schema.ConventionalSchema",
    "EXCEPTION_HANDLER": "queueapi.rest.problems.problem_response",
    # Another form is asked for in `Accept` alone; `?format=` is a parameter that nobody reads.
    "URL_FORMAT_OVERRIDE": None,
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Switchyard",
    "VERSION": "1",
    "SERVE_PUBLIC": False,
    "SERVE_PERMISSIONS": ["queueapi.rest.permissions.HasRole"],
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "queueapi.rest.v1.examples.add_examples",
    ],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    # Swagger UI draws no more than fits on the screen where there are 150 rows: a reader would see ten operations and
    # find none with the browser's search. So groups are closed at first, and each is drawn whole.
    "SWAGGER_UI_SETTINGS": {
        "deepLinking": True,
        "docExpansion": "none",
        "filter": True,
        "displayRequestDuration": True,
        "validatorUrl": None,
    },
    "TAGS": TAGS,
    # Many things have a state; each kind of state has a name of its own.
    "ENUM_NAME_OVERRIDES": {
        "ServiceTypeEnum": [(kind.value, kind.value) for kind in ServiceType],
        "SubmitStrategyEnum": [(kind.value, kind.value) for kind in SubmitStrategyType],
        "ProcessingStrategyEnum": [(kind.value, kind.value) for kind in ProcessingStrategyType],
        "LagStatusEnum": "queueapi.choices.LagStatus",
        **{
            f"{name}StateEnum": f"queueapi.choices.{name}State"
            for name in ("Operation", "Letter", "ReplayItem", "Process", "Consumer", "Rebalance", "Tenant", "Alert")
        },
        "AlertMetricEnum": "queueapi.choices.AlertMetric",
        "AlertSeverityEnum": "queueapi.choices.AlertSeverity",
        "ChannelKindEnum": "queueapi.choices.ChannelKind",
        "HealthStatusEnum": "queueapi.rest.v1.health.STATUSES",
        "TopicKindEnum": "queueapi.rest.v1.topic_serializers.TOPIC_KINDS",
        "NoticeKindEnum": "queueapi.choices.NoticeKind",
        "DeliveryStateEnum": "queueapi.choices.DeliveryState",
    },
}

CELERY = celery_settings(SWITCHYARD)

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"request": {"()": "queueapi.request_ids.RequestIdFilter"}},
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s%(request_tag)s: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["request"]}},
    "root": {"handlers": ["stderr"], "level": SWITCHYARD.log_level},
    "loggers": {
        "py4j": {"level": "WARNING"},
        # A line for every task, every few seconds, would hide the lines that matter.
        "celery.app.trace": {"level": "WARNING"},
        "celery.worker.request": {"level": "WARNING"},
        "celery.worker.strategy": {"level": "WARNING"},
    },
}
