import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import java.time.Duration;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Reads every record of every topic with Kafka's own client and prints one line for each, tab-separated:
 * topic, partition, offset, timestamp, leader epoch, key, value, headers as name=value joined by commas.
 * Bytes are base64, null is "-". A partition that stops answering ends the program with an error after 60 s.
 * Arguments: bootstrap address, optionally --committed (isolation read_committed), then the topics (none: all).
 */
public final class ReadBack {
    public static void main(String[] arguments) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", arguments[0]);
        properties.put("enable.auto.commit", "false");
        properties.put("auto.offset.reset", "earliest");
        properties.put("check.crcs", "true");
        boolean committed = arguments.length > 1 && arguments[1].equals("--committed");
        properties.put("isolation.level", committed ? "read_committed" : "read_uncommitted");
        List<String> wanted = List.of(arguments).subList(committed ? 2 : 1, arguments.length);
        StringBuilder out = new StringBuilder();
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            List<TopicPartition> partitions = new ArrayList<>();
            for (Map.Entry<String, List<PartitionInfo>> topic : consumer.listTopics().entrySet()) {
                if (wanted.isEmpty() ? !topic.getKey().startsWith("__") : wanted.contains(topic.getKey())) {
                    for (PartitionInfo partition : topic.getValue()) {
                        partitions.add(new TopicPartition(partition.topic(), partition.partition()));
                    }
                }
            }
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = new HashMap<>(consumer.endOffsets(partitions));
            long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
            while (!ends.isEmpty()) {
                if (System.nanoTime() > deadline) {
                    throw new IllegalStateException("not read to their ends: " + ends);
                }
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                    append(out, record);
                }
                ends.entrySet().removeIf(end -> consumer.position(end.getKey()) >= end.getValue());
            }
        }
        System.out.print(out);
    }

    private static void append(StringBuilder out, ConsumerRecord<byte[], byte[]> record) {
        out.append(record.topic()).append('\t').append(record.partition()).append('\t').append(record.offset());
        out.append('\t').append(record.timestamp()).append('\t').append(record.leaderEpoch().orElse(-1));
        out.append('\t').append(text(record.key())).append('\t').append(text(record.value())).append('\t');
        String separator = "";
        for (Header header : record.headers()) {
            out.append(separator).append(header.key()).append('=').append(text(header.value()));
            separator = ",";
        }
        out.append('\n');
    }

    private static String text(byte[] bytes) {
        return bytes == null ? "-" : Base64.getEncoder().encodeToString(bytes);
    }
}
