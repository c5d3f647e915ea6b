"""Metrics: requests, entries per commit and its duration, listeners of event streams."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
ENTRIES = (1, 2, 4, 8, 16, 32, 64)


class Metrics:
    """The instruments of one app."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        labels = ("method", "route", "status")
        self.requests = Counter("sidestep_requests", "Requests.", labels, registry=registry)
        self.seconds = Histogram(
            "sidestep_request_seconds",
            "Time to answer.",
            labels[:2],
            buckets=SECONDS,
            registry=registry,
        )
        self.group = Histogram(
            "sidestep_commit_entries",
            "Requests that one commit saved.",
            buckets=ENTRIES,
            registry=registry,
        )
        self.streams = Gauge("sidestep_streams", "Listeners to events.", registry=registry)
        self.studies = Gauge("sidestep_open_studies", "Studies open here.", registry=registry)
        self.notices = Counter(
            "sidestep_notices", "Webhook notices.", ("result",), registry=registry
        )

    def text(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return generate_latest(self._registry)
