import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * Produces to a topic, prints its client instance id, and pushes its metrics (KIP-714) until a file exists.
 * Arguments: bootstrap, topic, the file that ends it, seconds after which it ends anyway.
 */
public class PushMetrics {
    public static void main(String[] arguments) throws Exception {
        String serializer = "org.apache.kafka.common.serialization.StringSerializer";
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", arguments[0],
            "client.id", "java-pusher",
            "key.serializer", serializer,
            "value.serializer", serializer);
        Path stop = Path.of(arguments[2]);
        long end = System.nanoTime() + Long.parseLong(arguments[3]) * 1_000_000_000L;
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            producer.send(new ProducerRecord<>(arguments[1], "pushed")).get();
            System.out.println(producer.clientInstanceId(Duration.ofSeconds(30)));
            while (!Files.exists(stop) && System.nanoTime() < end) {
                Thread.sleep(50);
            }
        }
    }
}
