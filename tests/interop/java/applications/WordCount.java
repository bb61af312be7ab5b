// Word count on Kafka Streams. Arguments: bootstrap, application id, input topic, output topic, state directory, then
// settings as name=value, or name= without it; processing.guarantee is exactly_once_v2 unless it is one of them. Prints
// "running" when it processes records. The record cache is off, so each occurrence of a word gives one record of its new
// count.

import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Produced;

public class WordCount {
    public static void main(String[] arguments) throws Exception {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(arguments[2], Consumed.with(Serdes.String(), Serdes.String()))
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
            .count()
            .toStream()
            .mapValues(count -> count.toString())
            .to(arguments[3], Produced.with(Serdes.String(), Serdes.String()));

        Properties settings = new Properties();
        settings.putAll(Map.of(
            "bootstrap.servers", arguments[0],
            "application.id", arguments[1],
            "state.dir", arguments[4],
            "processing.guarantee", "exactly_once_v2",
            "commit.interval.ms", "200",
            "statestore.cache.max.bytes", "0",
            "replication.factor", "1",
            "auto.offset.reset", "earliest"));
        settings.putAll(Map.of(
            // A static member: a killed application gets its tasks back without waiting for the session timeout.
            "group.instance.id", "word-count",
            "session.timeout.ms", "30000",
            "heartbeat.interval.ms", "500",
            "reconnect.backoff.max.ms", "200"));
        for (String setting : Arrays.copyOfRange(arguments, 5, arguments.length)) {
            String[] parts = setting.split("=", 2);
            if (parts[1].isEmpty()) {
                settings.remove(parts[0]);
            } else {
                settings.put(parts[0], parts[1]);
            }
        }
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        streams.setStateListener((state, before) -> {
            if (state == KafkaStreams.State.RUNNING) {
                System.out.println("running");
            }
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(10))));
        streams.start();
    }
}
