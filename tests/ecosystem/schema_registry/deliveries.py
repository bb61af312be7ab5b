"""A producer and a consumer with the Avro, JSON and Protobuf serializers of confluent-kafka.

    deliveries.py produce REGISTRY BOOTSTRAP TOPIC COUNT
    deliveries.py consume REGISTRY BOOTSTRAP TOPIC GROUP

Each partition has one kind of record: see tests/support/ecosystem/exchange.py for what both programs must do.
"""

import json
import sys
import time

from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

FIELD = {"name": "value", "type": "string"}
AVRO = json.dumps({"type": "record", "name": "AvroRecord", "fields": [FIELD]})
JSON = json.dumps({"title": "JsonRecord", "type": "object", "properties": {"value": {"type": "string"}}})


def protobuf_record():
    """Return the class of a message, which protoc would otherwise generate."""
    file = FileDescriptorProto(name="record.proto", package="deliveries", syntax="proto3")
    message = file.message_type.add(name="ProtobufRecord")
    message.field.add(name="value", number=1, type="TYPE_STRING", label="LABEL_OPTIONAL", json_name="value")
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName("deliveries.ProtobufRecord"))


def produce(registry, bootstrap, topic, count):
    """Produce the records, each acknowledged before the next one."""
    record = protobuf_record()
    # Each kind registers its schema in a subject of its own.
    by_record = {"subject.name.strategy": lambda context, name: f"{context.topic}-{name}"}
    avro = AvroSerializer(registry, AVRO, conf=by_record)
    as_json = JSONSerializer(JSON, registry, conf=by_record)
    protobuf = ProtobufSerializer(record, registry, by_record)
    kinds = [
        lambda value, context: avro({"value": value}, context),
        lambda value, context: as_json({"value": value}, context),
        lambda value, context: protobuf(record(value=value), context),
    ]
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    for number in range(count):
        partition = number % len(kinds)
        context = SerializationContext(topic, MessageField.VALUE)
        producer.produce(topic, kinds[partition](f"record {number}", context), partition=partition)
        if producer.flush(60):
            sys.exit("not acknowledged")
        time.sleep(0.002)


def consume(registry, bootstrap, topic, group):
    """Print the value of each record and commit it."""
    avro = AvroDeserializer(registry)
    as_json = JSONDeserializer(JSON, schema_registry_client=registry)
    # With the registry it would ask for the schema in a form that Apicurio Registry cannot make.
    protobuf = ProtobufDeserializer(protobuf_record(), {})
    kinds = [
        lambda found, context: avro(found, context)["value"],
        lambda found, context: as_json(found, context)["value"],
        lambda found, context: protobuf(found, context).value,
    ]
    settings = {"auto.offset.reset": "earliest", "session.timeout.ms": 6000, "heartbeat.interval.ms": 500}
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, **settings})
    consumer.subscribe([topic])
    while True:
        message = consumer.poll(1)
        if message is None or message.error():
            continue
        context = SerializationContext(topic, MessageField.VALUE)
        print(kinds[message.partition()](message.value(), context), flush=True)
        consumer.commit(message, asynchronous=True)


mode, url, bootstrap, topic, last = sys.argv[1:]
with SchemaRegistryClient({"url": url}) as registry:
    if mode == "produce":
        produce(registry, bootstrap, topic, int(last))
    else:
        consume(registry, bootstrap, topic, last)
