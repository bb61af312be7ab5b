import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.Utils;

/**
 * Reads and writes record batches with the classes of Kafka's broker and clients (4.3's package names).
 *
 * <pre>
 * read FILE...           prints for each batch of each file a line of its header fields, then a line for each record:
 *                        offset, timestamp, key, value, headers as name=value; bytes as hex, null as "-"; tab-separated
 * write DIRECTORY COUNT  writes a file for each codec, named after it, with one batch of COUNT records from offset 100
 * murmur2 HEX...         prints the hash of each key
 * </pre>
 */
public final class RecordBatches {
    public static void main(String[] arguments) throws Exception {
        List<String> rest = List.of(arguments).subList(1, arguments.length);
        switch (arguments[0]) {
            case "read" -> read(rest);
            case "write" -> write(Path.of(rest.get(0)), Integer.parseInt(rest.get(1)));
            case "murmur2" -> rest.forEach(key -> System.out.println(Utils.murmur2(HexFormat.of().parseHex(key))));
            default -> throw new IllegalArgumentException(arguments[0]);
        }
    }

    private static void read(List<String> files) throws Exception {
        StringBuilder out = new StringBuilder();
        for (String file : files) {
            ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(Path.of(file)));
            for (MutableRecordBatch batch : MemoryRecords.readableRecords(bytes).batches()) {
                batch.ensureValid();
                int skipped = 0;
                try (var iterator = batch.skipKeyValueIterator(BufferSupplier.create())) { // as the broker does
                    for (; iterator.hasNext(); iterator.next()) {
                        skipped++;
                    }
                }
                out.append(String.join("\t", "batch", batch.compressionType().name, "" + batch.timestampType(),
                    "" + batch.baseOffset(), "" + batch.lastOffset(), "" + batch.maxTimestamp(),
                    "" + batch.producerId(), "" + batch.producerEpoch(), "" + batch.baseSequence(),
                    "" + batch.partitionLeaderEpoch(), "" + batch.isTransactional(), "" + batch.isControlBatch(),
                    "" + batch.countOrNull(), "" + skipped)).append('\n');
                for (org.apache.kafka.common.record.internal.Record record : batch) {
                    out.append(record.offset()).append('\t').append(record.timestamp());
                    out.append('\t').append(hex(record.key())).append('\t').append(hex(record.value())).append('\t');
                    for (Header header : record.headers()) {
                        byte[] value = header.value();
                        out.append(header.key()).append('=').append(value == null ? "-" : HexFormat.of().formatHex(value));
                        out.append(' ');
                    }
                    out.append('\n');
                }
            }
        }
        System.out.write(out.toString().getBytes(StandardCharsets.UTF_8));
        System.out.flush();
    }

    private static void write(Path directory, int count) throws Exception {
        List<Compression> codecs = List.of(Compression.NONE, Compression.gzip().build(), Compression.snappy().build(),
            Compression.lz4().build(), Compression.zstd().build());
        for (Compression codec : codecs) {
            MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(1 << 16), RecordBatch.MAGIC_VALUE_V2,
                codec, TimestampType.CREATE_TIME, 100L, RecordBatch.NO_TIMESTAMP, 7L, (short) 2, 9, false, 5);
            for (int i = 0; i < count; i++) {
                byte[] key = i % 3 == 1 ? null : ("key-" + i).getBytes(StandardCharsets.UTF_8);
                byte[] value = i % 3 == 2 ? null : ("value-" + "abc".repeat(i % 20)).getBytes(StandardCharsets.UTF_8);
                Header[] headers = i % 3 != 0 ? new Header[0] : new Header[] {
                    new RecordHeader("h", ("x" + i).getBytes(StandardCharsets.UTF_8)), new RecordHeader("ü", null)};
                builder.append(1_700_000_000_000L + i, key, value, headers);
            }
            ByteBuffer built = builder.build().buffer();
            byte[] bytes = new byte[built.remaining()];
            built.get(bytes);
            Files.write(directory.resolve(codec.type().name), bytes);
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
