// Prints every property that a Kafka version defines, one a line, tab-separated:
// scope (broker, topic), name, type, default, rule, update mode.
// Run with that version's jars: java -cp "<folder>/*" KafkaConfigs.java
// data/kafka-configs.tsv is this for 3.7.2, 3.8.1, 3.9.1, 4.0.0, 4.1.0, 4.2.0 and 4.3.0 (test_kafka_tables.py says how).

import java.util.HashMap;
import java.util.Map;
import java.util.TreeSet;
import org.apache.kafka.common.config.ConfigDef;

public class KafkaConfigs {
    public static void main(String[] arguments) throws Exception {
        Map<String, String> modes = updateModes();
        print("broker", definition("kafka.server.KafkaConfig", "org.apache.kafka.server.config.AbstractKafkaConfig"), modes);
        print("topic", definition("org.apache.kafka.storage.internals.log.LogConfig"), Map.of());
    }

    static void print(String scope, ConfigDef definition, Map<String, String> modes) {
        for (String name : new TreeSet<>(definition.configKeys().keySet())) {
            ConfigDef.ConfigKey key = definition.configKeys().get(name);
            String value = key.hasDefault() ? String.valueOf(key.defaultValue) : "<required>";
            String rule = key.validator == null ? "" : key.validator.toString().replaceAll("\\s+", " ");
            System.out.println(String.join("\t", scope, name, key.type.toString(), value, rule, modes.getOrDefault(name, "read-only")));
        }
    }

    static ConfigDef definition(String... classNames) throws Exception {
        for (String className : classNames) {
            try {
                Class<?> owner = Class.forName(className);
                for (String method : new String[] {"configDef", "configDefCopy"}) {
                    try {
                        return (ConfigDef) owner.getMethod(method).invoke(null);
                    } catch (NoSuchMethodException absent) {
                        // another version's name
                    }
                }
                return (ConfigDef) owner.getField("CONFIG_DEF").get(null);
            } catch (ClassNotFoundException | NoSuchFieldException absent) {
                // another version's place
            }
        }
        throw new IllegalStateException("no ConfigDef in " + String.join(", ", classNames));
    }

    static Map<String, String> updateModes() throws Exception {
        Map<String, String> modes = new HashMap<>();
        try {
            Class<?> owner = Class.forName("org.apache.kafka.server.config.DynamicBrokerConfig");
            for (Map.Entry<?, ?> mode : ((Map<?, ?>) owner.getMethod("dynamicConfigUpdateModes").invoke(null)).entrySet())
                modes.put((String) mode.getKey(), (String) mode.getValue());
        } catch (ClassNotFoundException | NoSuchMethodException absent) {
            // before 4.2 it is in Scala; only the newest version's modes are used
        }
        return modes;
    }
}
