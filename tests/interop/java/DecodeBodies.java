import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Iterator;
import java.util.zip.CRC32;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.CloseableIterator;

/**
 * Decodes record batches as Kafka's broker does at produce and as its consumer does (3.9 and 4.3, by reflection: the
 * package of the batches differs).
 *
 * <pre>
 * FILE   batches one after the other; prints for each: whether the broker takes it ("taken" or "refused"), and the
 *        CRC-32 of the values that a consumer reads, or "unreadable", and the reason; tab-separated
 * </pre>
 */
public final class DecodeBodies {
    public static void main(String[] arguments) throws Exception {
        ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(Path.of(arguments[0])));
        StringBuilder out = new StringBuilder();
        while (bytes.hasRemaining()) {
            ByteBuffer one = bytes.slice().limit(bytes.getInt(bytes.position() + 8) + 12).slice();
            bytes.position(bytes.position() + one.limit());
            String reason = "";
            String taken = "taken";
            String read;
            try {
                decode(one, "skipKeyValueIterator");
            } catch (ReflectiveOperationException | RuntimeException | Error error) {
                taken = "refused";
                reason = said(error);
            }
            try {
                read = Long.toHexString(decode(one, "streamingIterator"));
            } catch (ReflectiveOperationException | RuntimeException | Error error) {
                read = "unreadable";
                reason = reason.isEmpty() ? said(error) : reason;
            }
            out.append(String.join("\t", taken, read, reason)).append('\n');
        }
        System.out.print(out);
    }

    private static long decode(ByteBuffer buffer, String iterate) throws ReflectiveOperationException {
        Object records = type("MemoryRecords").getMethod("readableRecords", ByteBuffer.class)
            .invoke(null, buffer.duplicate());
        Object batch = ((Iterable<?>) type("MemoryRecords").getMethod("batches").invoke(records)).iterator().next();
        Method value = type("Record").getMethod("value");
        CRC32 sum = new CRC32();
        Object iterator = type("MutableRecordBatch").getMethod(
            iterate, BufferSupplier.class).invoke(batch, BufferSupplier.create());
        try (CloseableIterator<?> each = (CloseableIterator<?>) iterator) {
            while (each.hasNext()) {
                Object record = each.next();
                if (iterate.equals("streamingIterator")) {
                    sum.update((ByteBuffer) value.invoke(record));
                }
            }
        }
        return sum.getValue();
    }

    private static Class<?> type(String name) throws ClassNotFoundException {
        try {
            return Class.forName("org.apache.kafka.common.record.internal." + name);
        } catch (ClassNotFoundException error) {
            return Class.forName("org.apache.kafka.common.record." + name);
        }
    }

    private static String said(Throwable error) {
        Throwable cause = error;
        while (cause.getCause() != null) {
            cause = cause.getCause();
        }
        return cause.toString().replaceAll("\\s+", " ");
    }
}
