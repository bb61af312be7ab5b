// A group member on Java's consumer; tests/support/groups/group_member.py specifies its behavior.

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.serialization.StringDeserializer;

public class Member {
    private static volatile boolean stopping;

    public static void main(String[] arguments) {
        String assignor = arguments[3];
        String instance = arguments.length > 4 ? arguments[4] : null;
        Map<String, Object> configs = new HashMap<>();
        configs.put("bootstrap.servers", arguments[0]);
        configs.put("group.id", arguments[1]);
        configs.put("auto.offset.reset", "earliest");
        configs.put("enable.auto.commit", false);
        configs.put("reconnect.backoff.max.ms", 200);
        configs.put("key.deserializer", StringDeserializer.class);
        configs.put("value.deserializer", StringDeserializer.class);
        if (assignor.equals("consumer")) {
            configs.put("group.protocol", "consumer");
        } else {
            configs.put("session.timeout.ms", instance == null ? 6000 : 30_000);
            configs.put("heartbeat.interval.ms", 300);
            configs.put("partition.assignment.strategy",
                (assignor.equals("range") ? RangeAssignor.class : CooperativeStickyAssignor.class).getName());
        }
        if (instance != null) {
            configs.put("group.instance.id", instance);
        }
        Thread consuming = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            stopping = true;
            try {
                consuming.join(20_000);
            } catch (InterruptedException impossible) {
                Thread.currentThread().interrupt();
            }
        }));
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(configs)) {
            consumer.subscribe(List.of(arguments[2]));
            while (!stopping) {
                ConsumerRecords<String, String> found = consumer.poll(Duration.ofMillis(100));
                for (ConsumerRecord<String, String> record : found) {
                    System.out.println("got " + record.value());
                }
                if (!found.isEmpty()) {
                    try {
                        consumer.commitSync(Duration.ofSeconds(5));
                    } catch (KafkaException notCommitted) {
                        System.err.println(notCommitted);
                    }
                }
            }
        }
    }
}
