// Writes each value of a topic to another one, in capitals, with checkpoints once a second. A new process goes on from
// the latest checkpoint.
//
//     java Capitals BOOTSTRAP INPUT OUTPUT AT_LEAST_ONCE|EXACTLY_ONCE CHECKPOINTS

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Comparator;
import java.util.Locale;
import java.util.Optional;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.ExternalizedCheckpointRetention;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.configuration.StateRecoveryOptions;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

public class Capitals {
    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0];
        Path checkpoints = Path.of(arguments[4]).toAbsolutePath();
        Configuration configuration = new Configuration();
        configuration.set(RestartStrategyOptions.RESTART_STRATEGY, "fixed-delay");
        configuration.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_ATTEMPTS, 1000);
        configuration.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_DELAY, Duration.ofMillis(200));
        configuration.set(CheckpointingOptions.CHECKPOINTS_DIRECTORY, checkpoints.toUri().toString());
        configuration.set(
                CheckpointingOptions.EXTERNALIZED_CHECKPOINT_RETENTION,
                ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION);
        latest(checkpoints).ifPresent(each -> configuration.set(StateRecoveryOptions.SAVEPOINT_PATH, each));

        StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(1, configuration);
        environment.enableCheckpointing(1000);
        KafkaSource<String> source = KafkaSource.<String>builder()
                .setBootstrapServers(bootstrap)
                .setTopics(arguments[1])
                .setGroupId("flink")
                .setStartingOffsets(OffsetsInitializer.earliest())
                .setValueOnlyDeserializer(new SimpleStringSchema())
                .build();
        KafkaSink<String> sink = KafkaSink.<String>builder()
                .setBootstrapServers(bootstrap)
                .setRecordSerializer(KafkaRecordSerializationSchema.<String>builder()
                        .setTopic(arguments[2])
                        .setValueSerializationSchema(new SimpleStringSchema())
                        .build())
                .setDeliveryGuarantee(DeliveryGuarantee.valueOf(arguments[3]))
                .setTransactionalIdPrefix("capitals")
                .setProperty("transaction.timeout.ms", "600000")
                .build();
        environment
                .fromSource(source, WatermarkStrategy.noWatermarks(), "input")
                .uid("input")
                .map(value -> value.toUpperCase(Locale.ROOT))
                .returns(Types.STRING)
                .uid("capitals")
                .sinkTo(sink)
                .uid("output");
        environment.execute();
    }

    private static Optional<String> latest(Path checkpoints) throws IOException {
        if (!Files.isDirectory(checkpoints)) {
            return Optional.empty();
        }
        try (var files = Files.walk(checkpoints)) {
            return files.filter(each -> each.endsWith("_metadata"))
                    .max(Comparator.comparingLong(each -> each.toFile().lastModified()))
                    .map(each -> each.getParent().toUri().toString());
        }
    }
}
