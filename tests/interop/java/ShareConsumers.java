import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Reads a topic as a member of a share group until `count` records were accepted or rejected.
 *
 * Arguments: bootstrap servers, topic, group, mode, count. Prints for each record that was delivered
 * "value deliveryCount what", where what is accept, release, reject or renew.
 *
 * Modes: implicit; explicit (values that end in 1 are released once, those in 2 rejected, those in 3 renewed first);
 * limit (record_limit, one record a poll); crash (reads once, says so, and halts without closing).
 */
public final class ShareConsumers {
    /** Values of records whose lock was renewed: the next poll returns them again. */
    private static final Set<String> RENEWED = new HashSet<>();

    public static void main(String[] arguments) {
        String mode = arguments[3];
        int left = Integer.parseInt(arguments[4]);
        Properties properties = new Properties();
        properties.put("bootstrap.servers", arguments[0]);
        properties.put("group.id", arguments[2]);
        properties.put("key.deserializer", StringDeserializer.class.getName());
        properties.put("value.deserializer", StringDeserializer.class.getName());
        properties.put("share.acknowledgement.mode", mode.equals("implicit") ? "implicit" : "explicit");
        if (mode.equals("limit")) {
            properties.put("share.acquire.mode", "record_limit");
            properties.put("max.poll.records", "1");
        }
        long deadline = System.nanoTime() + Duration.ofSeconds(60).toNanos();
        try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(properties)) {
            consumer.subscribe(List.of(arguments[1]));
            while (left > 0) {
                if (System.nanoTime() > deadline) {
                    throw new IllegalStateException(left + " records are missing");
                }
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(500));
                for (ConsumerRecord<String, String> record : records) {
                    AcknowledgeType type = mode.equals("explicit") ? typeOf(record) : AcknowledgeType.ACCEPT;
                    System.out.println(record.value() + " " + record.deliveryCount().get() + " " + type);
                    if (mode.equals("crash")) {
                        continue;
                    }
                    if (!mode.equals("implicit")) {
                        consumer.acknowledge(record, type);
                    }
                    if (type == AcknowledgeType.ACCEPT || type == AcknowledgeType.REJECT) {
                        left--;
                    }
                }
                if (mode.equals("crash") && !records.isEmpty()) {
                    System.out.flush();
                    Runtime.getRuntime().halt(0);
                }
                ensure(consumer.commitSync());
            }
        }
    }

    private static AcknowledgeType typeOf(ConsumerRecord<String, String> record) {
        if (record.value().endsWith("1") && record.deliveryCount().get() == 1) {
            return AcknowledgeType.RELEASE;
        }
        if (record.value().endsWith("2")) {
            return AcknowledgeType.REJECT;
        }
        return record.value().endsWith("3") && RENEWED.add(record.value()) ? AcknowledgeType.RENEW : AcknowledgeType.ACCEPT;
    }

    private static void ensure(Map<TopicIdPartition, Optional<KafkaException>> results) {
        results.values().forEach(result -> result.ifPresent(failed -> {
            throw failed;
        }));
    }
}
