# The playground of treelm, from released packages: docker build -t treelm - < Dockerfile
FROM python:3.13-slim AS build
ARG PACKAGES="treelm[web] treelm-en"
ARG PIP_INDEX_URL=
RUN python -m venv /opt/treelm && /opt/treelm/bin/pip install --no-cache-dir \
    ${PIP_INDEX_URL:+--index-url "$PIP_INDEX_URL"} ${PACKAGES}

FROM python:3.13-slim
COPY --from=build /opt/treelm /opt/treelm
RUN useradd --system --no-create-home treelm
USER treelm
ENV PYTHONDONTWRITEBYTECODE=1
EXPOSE 8700
HEALTHCHECK --start-period=30s --interval=30s --timeout=5s CMD ["/opt/treelm/bin/python", "-c", \
    "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8700/api/health', timeout=4)"]
ENTRYPOINT ["/opt/treelm/bin/treelm", "serve", "--host", "0.0.0.0"]
