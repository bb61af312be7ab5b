import java.nio.charset.StandardCharsets;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Writes records with Kafka's own client: key "k<i>", value "<prefix>-<i>" padded to 100 bytes, timestamp
 * 1700000000000 + i, round robin over the partitions. Waits for all acknowledgements.
 * Arguments: bootstrap address, topic, partitions, count, prefix, codec, idempotence (true or false).
 */
public final class WriteRecords {
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", arguments[0]);
        properties.put("acks", "all");
        properties.put("linger.ms", "5");
        properties.put("batch.size", "4096");
        properties.put("compression.type", arguments[5]);
        properties.put("enable.idempotence", arguments[6]);
        int partitions = Integer.parseInt(arguments[2]);
        int count = Integer.parseInt(arguments[3]);
        Exception[] failure = new Exception[1];
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int i = 0; i < count; i++) {
                byte[] key = ("k" + i).getBytes(StandardCharsets.UTF_8);
                StringBuilder value = new StringBuilder(arguments[4] + "-" + i);
                while (value.length() < 100) {
                    value.append('.');
                }
                ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(arguments[1], i % partitions,
                    1700000000000L + i, key, value.toString().getBytes(StandardCharsets.UTF_8));
                producer.send(record, (metadata, error) -> {
                    if (error != null) {
                        failure[0] = error;
                    }
                });
            }
            producer.flush();
        }
        if (failure[0] != null) {
            throw failure[0];
        }
    }
}
