import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;

/**
 * Message sets of format versions 0 and 1, by the classes with which brokers before Kafka 0.11 wrote them (4.3's names).
 *
 * <pre>
 * write        prints a line for each message set: its name and bytes; three messages each, offsets ascending from 0;
 *              then a line for each message as Java reads it: offset, timestamp, timestamp type, key, value
 * read FILE    prints a line for each message in a file, as above
 * </pre>
 *
 * Bytes as hex, null as "-", separated by tabs.
 */
public final class LegacyMessages {
    private static final long TIMESTAMP = 1_700_000_000_000L;
    private static final int MESSAGES = 3;

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("read")) {
            print(ByteBuffer.wrap(Files.readAllBytes(Path.of(arguments[1]))));
            return;
        }
        List<Compression> codecs = List.of(Compression.NONE, Compression.gzip().build(), Compression.snappy().build(),
            Compression.lz4().build());
        long offset = 0;
        for (byte magic = RecordBatch.MAGIC_VALUE_V0; magic <= RecordBatch.MAGIC_VALUE_V1; magic++) {
            for (Compression codec : codecs) {
                emit("v" + magic + "-" + codec.type().name, set(magic, codec, offset));
                offset += MESSAGES;
            }
        }
        for (Compression codec : List.of(Compression.NONE, Compression.gzip().build())) {
            ByteBuffer set = set(RecordBatch.MAGIC_VALUE_V1, codec, offset);
            int delay = 0;
            for (MutableRecordBatch batch : MemoryRecords.readableRecords(set).batches()) { // as brokers do
                batch.setMaxTimestamp(TimestampType.LOG_APPEND_TIME, TIMESTAMP + 5000 + delay++);
            }
            emit("v1-" + codec.type().name + "-append-time", set);
            offset += MESSAGES;
        }
    }

    private static ByteBuffer set(byte magic, Compression codec, long base) {
        TimestampType type = magic == 0 ? TimestampType.NO_TIMESTAMP_TYPE : TimestampType.CREATE_TIME;
        MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(4096), magic, codec, type, base);
        for (int i = 0; i < MESSAGES; i++) {
            byte[] key = i == 1 ? null : ("key-" + (base + i)).getBytes(StandardCharsets.UTF_8);
            byte[] value = i == 2 ? null : ("value ".repeat(4) + (base + i)).getBytes(StandardCharsets.UTF_8);
            builder.append(magic == 0 ? RecordBatch.NO_TIMESTAMP : TIMESTAMP + (base + i) * 10, key, value);
        }
        return builder.build().buffer();
    }

    private static void emit(String name, ByteBuffer set) {
        System.out.println(name + "\t" + hex(set));
        print(set);
    }

    private static void print(ByteBuffer set) {
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(set.duplicate()).batches()) {
            batch.ensureValid();
            for (Record record : batch) {
                record.ensureValid();
                System.out.println(String.join("\t", "" + record.offset(), "" + record.timestamp(),
                    "" + batch.timestampType(), hex(record.key()), hex(record.value())));
            }
        }
    }

    private static String hex(ByteBuffer buffer) {
        if (buffer == null) {
            return "-";
        }
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return HexFormat.of().formatHex(bytes);
    }
}
