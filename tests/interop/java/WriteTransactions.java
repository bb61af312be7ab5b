import java.nio.charset.StandardCharsets;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Writes transactions to one partition with Kafka's own client. Two producers have overlapping transactions, which are
 * committed or aborted in turn, and a plain producer writes in between. At the end both have an open transaction,
 * and the program exits immediately, so that these stay open; with "finish" the first one commits and the second one
 * aborts before that. Arguments: bootstrap address, topic, rounds, optionally "finish".
 */
public final class WriteTransactions {
    private static String topic;
    private static int written;

    public static void main(String[] arguments) throws Exception {
        topic = arguments[1];
        int rounds = Integer.parseInt(arguments[2]);
        KafkaProducer<byte[], byte[]> first = producer(arguments[0], "first");
        KafkaProducer<byte[], byte[]> second = producer(arguments[0], "second");
        KafkaProducer<byte[], byte[]> plain = producer(arguments[0], null);
        for (int round = 0; round < rounds; round++) {
            first.beginTransaction();
            send(first, "first", 3);
            second.beginTransaction();
            send(second, "second", 2);
            send(plain, "plain", 1);
            send(first, "first", 1);
            end(first, round % 3 == 0);
            send(second, "second", 1);
            end(second, round % 2 == 0);
        }
        first.beginTransaction();
        send(first, "first", 2);
        send(plain, "plain", 1);
        second.beginTransaction();
        send(second, "second", 2);
        if (arguments.length > 3) {
            end(first, true);
            end(second, false);
        }
        System.out.println(written);
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static KafkaProducer<byte[], byte[]> producer(String bootstrap, String id) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("acks", "all");
        if (id != null) {
            properties.put("transactional.id", id);
            properties.put("transaction.timeout.ms", "600000");
        }
        KafkaProducer<byte[], byte[]> producer =
            new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
        if (id != null) {
            producer.initTransactions();
        }
        return producer;
    }

    private static void send(KafkaProducer<byte[], byte[]> producer, String name, int count) {
        for (int i = 0; i < count; i++) {
            byte[] value = (name + "-" + written + ".".repeat(60)).getBytes(StandardCharsets.UTF_8);
            producer.send(new ProducerRecord<>(topic, 0, 1700000000000L + written++, null, value));
        }
        producer.flush();
    }

    private static void end(KafkaProducer<byte[], byte[]> producer, boolean commit) {
        if (commit) {
            producer.commitTransaction();
        } else {
            producer.abortTransaction();
        }
    }
}
