// Driver for Java's kafka-clients: one JSON request per line, one JSON answer per line; see ../python/loop.py.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.AppInfoParser;

public class Driver {
    private static final long TIMEOUT_S = 30;
    private static final int PROGRESS_EVERY = 200;
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final PrintStream OUT = System.out;
    private static final Transactions TRANSACTIONS = new Transactions();
    private static Admin admin;
    private static String adminOf;

    public static void main(String[] arguments) throws Exception {
        System.setOut(System.err); // loggers write to standard output, which is for answers
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                answer(JSON.readTree(line), answer);
            } catch (Throwable error) {
                error.printStackTrace();
                answer.removeAll();
                answer.put("error", error.toString());
            }
            say(answer);
        }
        System.exit(0);
    }

    private static synchronized void say(ObjectNode answer) throws Exception {
        OUT.println(JSON.writeValueAsString(answer));
        OUT.flush();
    }

    private static void answer(JsonNode request, ObjectNode answer) throws Exception {
        switch (request.get("op").asText()) {
            case "version" -> answer.put("version", AppInfoParser.getVersion());
            case "produce" -> produce(request, answer);
            case "stream" -> stream(request, answer);
            case "read" -> read(request, answer);
            case "offsets" -> offsets(request, answer);
            case "create_topic" -> createTopic(request);
            case "topics" -> topics(request, answer);
            case "describe_configs" -> describeConfigs(request, answer);
            case "alter_configs" -> alterConfigs(request);
            case "create_partitions" -> admin(request)
                .createPartitions(Map.of(topic(request), NewPartitions.increaseTo(request.get("partitions").asInt())))
                .all().get(TIMEOUT_S, TimeUnit.SECONDS);
            case "delete_records" -> answer.put("low_watermark", admin(request)
                .deleteRecords(Map.of(place(request), RecordsToDelete.beforeOffset(request.get("offset").asLong())))
                .lowWatermarks().get(place(request)).get(TIMEOUT_S, TimeUnit.SECONDS).lowWatermark());
            case "delete_topic" ->
                admin(request).deleteTopics(List.of(topic(request))).all().get(TIMEOUT_S, TimeUnit.SECONDS);
            case "cluster" -> cluster(request, answer);
            default -> {
                if (!TRANSACTIONS.answer(request, answer, sent -> say(JSON.createObjectNode().put("progress", sent)))) {
                    answer.put("unsupported", "no such call in this client");
                }
            }
        }
    }

    private static String topic(JsonNode request) {
        return request.get("topic").asText();
    }

    private static TopicPartition place(JsonNode request) {
        return new TopicPartition(topic(request), request.get("partition").asInt());
    }

    private static byte[] unpack(JsonNode value) {
        return value == null || value.isNull() ? null : Base64.getDecoder().decode(value.asText());
    }

    private static String pack(byte[] value) {
        return value == null ? null : Base64.getEncoder().encodeToString(value);
    }

    private static KafkaProducer<byte[], byte[]> producer(JsonNode request, boolean idempotence) {
        Map<String, Object> configs = new HashMap<>();
        configs.put("bootstrap.servers", request.get("bootstrap").asText());
        configs.put("acks", request.path("acks").asText("all"));
        configs.put("compression.type", request.path("codec").asText("none"));
        configs.put("enable.idempotence", idempotence);
        configs.put("max.request.size", 10_000_000);
        configs.put("linger.ms", 20);
        configs.put("key.serializer", ByteArraySerializer.class);
        configs.put("value.serializer", ByteArraySerializer.class);
        return new KafkaProducer<>(configs);
    }

    private static void produce(JsonNode request, ObjectNode answer) throws Exception {
        ArrayNode results = answer.putArray("results");
        try (KafkaProducer<byte[], byte[]> producer = producer(request, request.path("idempotence").asBoolean())) {
            List<Future<RecordMetadata>> futures = new ArrayList<>();
            for (JsonNode each : request.get("records")) {
                ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(
                    topic(request), each.get("partition").asInt(), each.get("timestamp").asLong(),
                    unpack(each.get("key")), unpack(each.get("value")));
                for (JsonNode header : each.get("headers")) {
                    record.headers().add(header.get(0).asText(), unpack(header.get(1)));
                }
                futures.add(producer.send(record));
            }
            for (Future<RecordMetadata> future : futures) {
                ObjectNode result = results.addObject();
                try {
                    result.put("offset", future.get(TIMEOUT_S, TimeUnit.SECONDS).offset());
                    result.putNull("error");
                } catch (ExecutionException error) {
                    result.putNull("offset");
                    result.put("error", Errors.forException(error.getCause()).code());
                }
            }
        }
    }

    private static void stream(JsonNode request, ObjectNode answer) throws Exception {
        Path until = Path.of(request.get("until").asText());
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        AtomicInteger acked = new AtomicInteger();
        List<String> failed = new ArrayList<>();
        int sent = 0;
        try (KafkaProducer<byte[], byte[]> producer = producer(request, true)) {
            while (!Files.exists(until) && System.nanoTime() < deadline) {
                Thread.sleep(1);
                byte[] value = String.valueOf(sent++).getBytes(StandardCharsets.UTF_8);
                producer.send(new ProducerRecord<>(topic(request), 0, null, value), (metadata, error) -> {
                    try {
                        if (error != null) {
                            failed.add(error.toString());
                        } else if (acked.incrementAndGet() % PROGRESS_EVERY == 0) {
                            say(JSON.createObjectNode().put("progress", acked.get()));
                        }
                    } catch (Exception impossible) {
                        failed.add(impossible.toString());
                    }
                });
            }
            producer.flush();
        }
        answer.put("sent", sent).put("acked", acked.get());
        ArrayNode errors = answer.putArray("failed");
        failed.stream().limit(5).forEach(errors::add);
    }

    private static KafkaConsumer<byte[], byte[]> consumer(JsonNode request) {
        Map<String, Object> configs = new HashMap<>();
        configs.put("bootstrap.servers", request.get("bootstrap").asText());
        configs.put("enable.auto.commit", false);
        configs.put("auto.offset.reset", "earliest");
        configs.put("key.deserializer", ByteArrayDeserializer.class);
        configs.put("value.deserializer", ByteArrayDeserializer.class);
        return new KafkaConsumer<>(configs);
    }

    private static void read(JsonNode request, ObjectNode answer) {
        ArrayNode records = answer.putArray("records");
        TopicPartition place = place(request);
        int count = request.get("count").asInt();
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(request)) {
            consumer.assign(List.of(place));
            if (request.hasNonNull("timestamp")) {
                consumer.seek(place, consumer.offsetsForTimes(Map.of(place, request.get("timestamp").asLong()))
                    .get(place).offset());
            } else if (request.hasNonNull("offset")) {
                consumer.seek(place, request.get("offset").asLong());
            } else {
                consumer.seekToBeginning(List.of(place));
            }
            long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(TIMEOUT_S);
            while (records.size() < count && System.nanoTime() < deadline) {
                for (ConsumerRecord<byte[], byte[]> found : consumer.poll(Duration.ofSeconds(1))) {
                    if (records.size() == count) {
                        break;
                    }
                    ObjectNode record = records.addObject();
                    record.put("offset", found.offset()).put("timestamp", found.timestamp());
                    record.put("key", pack(found.key())).put("value", pack(found.value()));
                    ArrayNode headers = record.putArray("headers");
                    for (Header header : found.headers()) {
                        headers.addArray().add(header.key()).add(pack(header.value()));
                    }
                }
            }
        }
    }

    private static void offsets(JsonNode request, ObjectNode answer) {
        TopicPartition place = place(request);
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(request)) {
            answer.put("earliest", consumer.beginningOffsets(List.of(place)).get(place));
            answer.put("latest", consumer.endOffsets(List.of(place)).get(place));
            answer.put("at",
                consumer.offsetsForTimes(Map.of(place, request.get("timestamp").asLong())).get(place).offset());
        }
    }

    private static Admin admin(JsonNode request) {
        String bootstrap = request.get("bootstrap").asText();
        if (!bootstrap.equals(adminOf)) {
            admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
            adminOf = bootstrap;
        }
        return admin;
    }

    private static Map<String, String> configs(JsonNode request) {
        Map<String, String> configs = new HashMap<>();
        request.get("configs").fields().forEachRemaining(entry -> configs.put(entry.getKey(), entry.getValue().asText()));
        return configs;
    }

    private static void createTopic(JsonNode request) throws Exception {
        NewTopic topic = new NewTopic(
            topic(request), Optional.of(request.get("partitions").asInt()), Optional.empty()).configs(configs(request));
        admin(request).createTopics(List.of(topic)).all().get(TIMEOUT_S, TimeUnit.SECONDS);
    }

    private static void topics(JsonNode request, ObjectNode answer) throws Exception {
        Collection<String> names = admin(request).listTopics().names().get(TIMEOUT_S, TimeUnit.SECONDS);
        ObjectNode topics = answer.putObject("topics");
        admin(request).describeTopics(names).allTopicNames().get(TIMEOUT_S, TimeUnit.SECONDS)
            .forEach((name, topic) -> topics.put(name, topic.partitions().size()));
    }

    private static void describeConfigs(JsonNode request, ObjectNode answer) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic(request));
        ObjectNode configs = answer.putObject("configs");
        for (ConfigEntry entry : admin(request).describeConfigs(List.of(resource)).all()
                .get(TIMEOUT_S, TimeUnit.SECONDS).get(resource).entries()) {
            configs.put(entry.name(), entry.value());
        }
    }

    private static void alterConfigs(JsonNode request) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic(request));
        List<AlterConfigOp> operations = new ArrayList<>();
        configs(request).forEach((name, value) ->
            operations.add(new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET)));
        Map<ConfigResource, Collection<AlterConfigOp>> changes = Map.of(resource, operations);
        admin(request).incrementalAlterConfigs(changes).all().get(TIMEOUT_S, TimeUnit.SECONDS);
    }

    private static void cluster(JsonNode request, ObjectNode answer) throws Exception {
        var found = admin(request).describeCluster();
        answer.put("cluster_id", found.clusterId().get(TIMEOUT_S, TimeUnit.SECONDS));
        ArrayNode brokers = answer.putArray("brokers");
        for (Node node : found.nodes().get(TIMEOUT_S, TimeUnit.SECONDS)) {
            brokers.add(node.host() + ":" + node.port());
        }
    }
}
