// Reads lines "scope<TAB>name<TAB>hexadecimal UTF-16 of a text" and prints, for each, how Kafka understands that text as
// the only setting: the hexadecimal value as Kafka writes it, "refused", or "unknown" for a name that it does not define.
// Scopes: broker, topic, group, client-metrics.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.metrics.ClientMetricsConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;

public class ConfigTexts {
    public static void main(String[] arguments) throws Exception {
        Map<String, ConfigDef> definitions = Map.of(
            "broker", AbstractKafkaConfig.CONFIG_DEF,
            "topic", LogConfig.configDefCopy(),
            "group", GroupConfig.CONFIG_DEF,
            "client-metrics", ClientMetricsConfigs.configDef());
        Map<String, ConfigDef> alone = new HashMap<>();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] parts = line.split("\t", -1);
            ConfigDef.ConfigKey key = definitions.get(parts[0]).configKeys().get(parts[1]);
            if (key == null) {
                System.out.println("unknown");
                continue;
            }
            // Of one property: parse() would parse the defaults of all others for each text.
            ConfigDef definition = alone.computeIfAbsent(parts[0] + key.name, absent -> new ConfigDef().define(
                key.name, key.type, ConfigDef.NO_DEFAULT_VALUE, key.validator, key.importance, key.documentation));
            System.out.println(understood(definition, key, text(parts[2])));
        }
    }

    static String understood(ConfigDef definition, ConfigDef.ConfigKey key, String text) {
        try {
            Object value = definition.parse(Map.of(key.name, text)).get(key.name);
            if (value instanceof org.apache.kafka.common.config.types.Password password)
                value = password.value();
            return "=" + HexFormat.of().formatHex(
                ConfigDef.convertToString(value, key.type == ConfigDef.Type.PASSWORD ? null : key.type)
                    .getBytes(StandardCharsets.UTF_16BE));
        } catch (RuntimeException refused) {
            return "refused";
        }
    }

    static String text(String hexadecimal) {
        return new String(HexFormat.of().parseHex(hexadecimal), StandardCharsets.UTF_16BE);
    }
}
