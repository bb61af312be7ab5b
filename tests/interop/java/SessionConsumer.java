import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;

/**
 * Reads all topics that match a pattern until a file exists, and writes each value in a line when it first sees it.
 * Arguments: bootstrap, group, pattern, the file that ends it, seconds after which it ends anyway, the file of values.
 */
public class SessionConsumer {
    public static void main(String[] arguments) throws Exception {
        String deserializer = "org.apache.kafka.common.serialization.StringDeserializer";
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", arguments[0],
            "group.id", arguments[1],
            "auto.offset.reset", "earliest",
            "metadata.max.age.ms", "500",
            "reconnect.backoff.max.ms", "200",
            "key.deserializer", deserializer,
            "value.deserializer", deserializer);
        Path stop = Path.of(arguments[3]);
        long end = System.nanoTime() + Long.parseLong(arguments[4]) * 1_000_000_000L;
        Set<String> values = new HashSet<>();
        try (PrintWriter seen = new PrintWriter(arguments[5]);
                KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings)) {
            consumer.subscribe(Pattern.compile(arguments[2]));
            while (!Files.exists(stop) && System.nanoTime() < end) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(100))) {
                    if (values.add(record.value())) {
                        seen.println(record.value());
                    }
                }
                seen.flush();
            }
        }
    }
}
