// Transactions of Java's kafka-clients; see ../python/loop.py.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

class Transactions {
    private static final long TIMEOUT_S = 30;
    private static final long READ_ON_MS = 500;
    private static final long TRANSFORM_LIMIT_S = 150;

    private final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();
    private final Map<String, Boolean> inTransaction = new HashMap<>();

    /** Takes each line of progress. */
    interface Progress {
        void say(long records) throws Exception;
    }

    /** Answers the request, or returns false if it is of another kind. */
    boolean answer(JsonNode request, ObjectNode answer, Progress progress) throws Exception {
        String name = request.path("name").asText();
        switch (request.get("op").asText()) {
            case "txn_open" -> producers.put(name, open(request));
            case "txn_send" -> {
                List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
                for (JsonNode value : request.get("values")) {
                    byte[] bytes = value.asText().getBytes(StandardCharsets.UTF_8);
                    records.add(new ProducerRecord<>(topic(request), request.get("partition").asInt(), null, bytes));
                }
                send(begun(name), records);
            }
            case "txn_offsets" -> {
                TopicPartition place = new TopicPartition(topic(request), request.get("partition").asInt());
                begun(name).sendOffsetsToTransaction(
                    Map.of(place, new OffsetAndMetadata(request.get("offset").asLong())),
                    new ConsumerGroupMetadata(request.get("group").asText()));
            }
            case "txn_end" -> {
                inTransaction.remove(name);
                if (request.get("commit").asBoolean()) {
                    producers.get(name).commitTransaction();
                } else {
                    producers.get(name).abortTransaction();
                }
            }
            case "txn_close" -> {
                inTransaction.remove(name);
                producers.remove(name).close(Duration.ofSeconds(1));
            }
            case "read_values" -> readValues(request, answer);
            case "transform" -> transform(request, answer, progress);
            default -> {
                return false;
            }
        }
        return true;
    }

    private static String topic(JsonNode request) {
        return request.get("topic").asText();
    }

    private static KafkaProducer<byte[], byte[]> open(JsonNode request) {
        Map<String, Object> configs = new HashMap<>();
        configs.put("bootstrap.servers", request.get("bootstrap").asText());
        configs.put("transactional.id", request.get("transactional_id").asText());
        configs.put("key.serializer", ByteArraySerializer.class);
        configs.put("value.serializer", ByteArraySerializer.class);
        KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(configs);
        producer.initTransactions();
        return producer;
    }

    private KafkaProducer<byte[], byte[]> begun(String name) {
        KafkaProducer<byte[], byte[]> producer = producers.get(name);
        if (inTransaction.put(name, true) == null) {
            producer.beginTransaction();
        }
        return producer;
    }

    private static void send(
            KafkaProducer<byte[], byte[]> producer, List<ProducerRecord<byte[], byte[]>> records) throws Exception {
        List<Future<RecordMetadata>> futures = new ArrayList<>();
        for (ProducerRecord<byte[], byte[]> record : records) {
            futures.add(producer.send(record));
        }
        for (Future<RecordMetadata> future : futures) {
            future.get(TIMEOUT_S, TimeUnit.SECONDS);
        }
    }

    private static Map<String, Object> consumerConfigs(JsonNode request, boolean committed) {
        Map<String, Object> configs = new HashMap<>();
        configs.put("bootstrap.servers", request.get("bootstrap").asText());
        configs.put("enable.auto.commit", false);
        configs.put("auto.offset.reset", "earliest");
        configs.put("isolation.level", committed ? "read_committed" : "read_uncommitted");
        configs.put("key.deserializer", ByteArrayDeserializer.class);
        configs.put("value.deserializer", ByteArrayDeserializer.class);
        return configs;
    }

    private static void readValues(JsonNode request, ObjectNode answer) {
        ArrayNode values = answer.putArray("values");
        TopicPartition place = new TopicPartition(topic(request), request.get("partition").asInt());
        int count = request.get("count").asInt();
        Map<String, Object> configs = consumerConfigs(request, request.get("committed").asBoolean());
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(configs)) {
            consumer.assign(List.of(place));
            consumer.seekToBeginning(List.of(place));
            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(TIMEOUT_S);
            boolean isComplete = false;
            while (System.nanoTime() < end) {
                if (values.size() >= count && !isComplete) {
                    isComplete = true;
                    end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(READ_ON_MS);
                }
                for (ConsumerRecord<byte[], byte[]> found : consumer.poll(Duration.ofMillis(100))) {
                    values.add(new String(found.value(), StandardCharsets.UTF_8));
                }
            }
        }
    }

    private static void transform(JsonNode request, ObjectNode answer, Progress progress) throws Exception {
        Path until = Path.of(request.get("until").asText());
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(TRANSFORM_LIMIT_S);
        long[] sent = {0};
        ArrayNode failed = answer.putArray("failed");
        while (!Files.exists(until) && System.nanoTime() < end) {
            try {
                transformUntil(request, until, end, records -> progress.say(sent[0] += records));
            // AsyncKafkaConsumer checks a position and sets it later; a new leader epoch in between makes poll() throw
            // IllegalStateException("Cannot set a new position without a valid current position").
            } catch (KafkaException | IllegalStateException | java.util.concurrent.ExecutionException error) {
                error.printStackTrace();
                failed.add(error.toString());
                Thread.sleep(200);
            }
        }
        answer.put("sent", sent[0]);
    }

    private static void transformUntil(JsonNode request, Path until, long end, Progress progress) throws Exception {
        Map<String, Object> configs = consumerConfigs(request, true);
        configs.put("group.id", request.get("group").asText());
        configs.put("group.protocol", request.get("protocol").asText());
        if (request.get("protocol").asText().equals("classic")) {
            configs.put("group.instance.id", "transformer");
            configs.put("session.timeout.ms", 30_000);
            configs.put("heartbeat.interval.ms", 300);
        }
        try (KafkaProducer<byte[], byte[]> producer = open(request);
                KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(configs)) {
            consumer.subscribe(List.of(topic(request)));
            while (!Files.exists(until) && System.nanoTime() < end) {
                ConsumerRecords<byte[], byte[]> found = consumer.poll(Duration.ofMillis(100));
                if (found.isEmpty()) {
                    continue;
                }
                List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                for (ConsumerRecord<byte[], byte[]> each : found) {
                    records.add(new ProducerRecord<>(
                        request.get("output").asText(), each.partition(), null, each.value()));
                    offsets.put(new TopicPartition(each.topic(), each.partition()),
                        new OffsetAndMetadata(each.offset() + 1));
                }
                producer.beginTransaction();
                send(producer, records);
                producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                producer.commitTransaction();
                progress.say(records.size());
            }
        }
    }
}
