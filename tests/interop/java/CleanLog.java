import java.io.File;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.CleanerStats;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Cleans one partition's directory with Kafka's own Cleaner, in several rounds, and prints one line per round: the next
 * dirty offset, records read in the first pass, read and written in the second, records without a key. A round
 * without dirty records starts at 0 again.
 * Arguments: directory, first dirty offset, bytes of the offset map, load factor, bytes of an I/O buffer, then the times
 * in ms of the rounds joined by commas, then topic configs as name=value. Ends with the log closed cleanly.
 */
public final class CleanLog {
    private static volatile long now;

    public static void main(String[] arguments) throws Exception {
        long firstDirty = Long.parseLong(arguments[1]);
        int ioBytes = Integer.parseInt(arguments[4]);
        String[] rounds = arguments[5].split(",");
        Properties properties = new Properties();
        for (int index = 6; index < arguments.length; index++) {
            int equals = arguments[index].indexOf('=');
            properties.put(arguments[index].substring(0, equals), arguments[index].substring(equals + 1));
        }
        now = Long.parseLong(rounds[0]);
        InvocationHandler clock = (proxy, method, values) -> {
            if (method.getName().equals("milliseconds")) {
                return now;
            }
            try {
                return method.invoke(Time.SYSTEM, values);
            } catch (InvocationTargetException error) {
                throw error.getCause();
            }
        };
        Time time = (Time) Proxy.newProxyInstance(CleanLog.class.getClassLoader(), new Class<?>[] {Time.class}, clock);
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        UnifiedLog log = UnifiedLog.create(
            new File(arguments[0]), new LogConfig(properties), 0, 0, scheduler, new BrokerTopicStats(), time, 3600000,
            new ProducerStateManagerConfig(86400000, false), 600000, new LogDirFailureChannel(1), true, Optional.empty());
        Cleaner cleaner = new Cleaner(
            0, new SkimpyOffsetMap(Integer.parseInt(arguments[2])), ioBytes, Integer.MAX_VALUE,
            Double.parseDouble(arguments[3]), new Throttler(Double.MAX_VALUE, 1000, "throttler", "entries", time), time,
            partition -> { });
        for (String round : rounds) {
            now = Long.parseLong(round);
            if (firstDirty == log.activeSegment().baseOffset()) {
                firstDirty = 0;
            }
            LogToClean cleanable = new LogToClean(log, firstDirty, log.activeSegment().baseOffset(), false);
            Map.Entry<Long, CleanerStats> result = cleaner.doClean(cleanable, now);
            CleanerStats stats = result.getValue();
            firstDirty = result.getKey();
            System.out.println(firstDirty + " " + stats.mapMessagesRead() + " " + stats.messagesRead() + " "
                + stats.messagesWritten() + " " + stats.invalidMessagesRead());
        }
        log.close();
        scheduler.shutdown();
    }
}
