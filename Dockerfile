# One image for every role: web, Celery workers, beat, and the Spark master and workers. Executors therefore run the
# same Python, the same Spark and the same queuecore as the driver.

FROM python:3.11-slim-bookworm AS packages

ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/venv
COPY requirements.lock ./
RUN /opt/venv/bin/pip install --require-hashes -r requirements.lock


FROM python:3.11-slim-bookworm

# Spark's driver, master and workers run on Java.
RUN apt-get update \
    && apt-get install -y --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/*

RUN useradd --uid 10001 --create-home --shell /usr/sbin/nologin switchyard \
    && install -d -o switchyard -g switchyard /data

COPY --from=packages /opt/venv /opt/venv

WORKDIR /app
COPY manage.py pyproject.toml ./
COPY scripts/ scripts/
COPY static/ static/
COPY templates/ templates/
COPY queuecore/ queuecore/
COPY queueapi/ queueapi/
COPY console/ console/
COPY workers/ workers/

# PYTHONPATH: executors start their own Python, elsewhere, and import queuecore and workers too.
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONPATH=/app \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    SWITCHYARD_DATA_DIR=/data \
    SWITCHYARD_WEB_HOST=0.0.0.0

USER switchyard
VOLUME /data
EXPOSE 8080

HEALTHCHECK --interval=15s --timeout=10s --start-period=30s --retries=3 \
    CMD ["python", "-m", "scripts.healthcheck", "web"]
CMD ["python", "manage.py", "web"]
