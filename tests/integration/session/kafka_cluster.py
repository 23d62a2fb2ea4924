"""A cluster of Kafka that librdkafka plays in this process, over loopback. It keeps what aborted transactions wrote."""

from __future__ import annotations

from typing import Any

import confluent_kafka as client
import numpy as np

from differential.session import Change
from differential.session.sinks import Mark, Outlet, Sink, SinkWriter

CHANGE = Change(1, ("x",), (np.array([1]),), np.array([1]))


def two_writers(sink: Sink) -> tuple[SinkWriter, SinkWriter]:
    """Return two writers of one name, of which the first has written a change before the second one was opened."""
    first = sink.open(Outlet("all", ("x",)))
    assert first.mark() is None
    first.write([CHANGE], Mark("a", 1))
    second = sink.open(Outlet("all", ("x",)))
    assert second.mark() == Mark("a", 1)
    return first, second


class Cluster:
    """Brokers, as long as this object lives."""

    def __init__(self) -> None:
        self._mock = client.Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 0})
        found = self._mock.list_topics(timeout=10)
        self.servers = ",".join(f"{broker.host}:{broker.port}" for broker in found.brokers.values())
        self._producer = client.Producer({"bootstrap.servers": self.servers, "log_level": 0})

    def end(self) -> None:
        """End the brokers."""
        del self._producer, self._mock

    def make(self, *topics: str) -> None:
        """Make topics, of four partitions each."""
        for topic in topics:
            self._producer.list_topics(topic, 10)

    def send(self, topic: str, *messages: tuple[int, bytes | None, bytes | None]) -> None:
        """Write messages of (partition, key, value), and wait until they are there."""
        for partition, key, value in messages:
            self._producer.produce(topic, key=key, value=value, partition=partition)
        assert self._producer.flush(10) == 0

    def read(self, topic: str) -> list[tuple[Any, Any]]:
        """Return the keys and values of all messages, partition by partition."""
        config = {"bootstrap.servers": self.servers, "group.id": "test", "log_level": 0, "enable.partition.eof": True}
        consumer = client.Consumer(config)
        found = []
        try:
            for partition in range(4):
                place = client.TopicPartition(topic, partition, client.OFFSET_BEGINNING)
                consumer.assign([place])
                while (message := consumer.poll(10)) is not None and message.error() is None:
                    found.append((message.key(), message.value()))
                assert message is not None, f"{topic} cannot be read"
        finally:
            consumer.close()
        return found
