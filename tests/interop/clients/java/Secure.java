// Driver of Java's kafka-clients that logs in; see ../python/secure.py.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import javax.security.auth.callback.Callback;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.auth.SaslExtensionsCallback;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerTokenCallback;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Secure {
    private static final String MODULES = "org.apache.kafka.common.security.";
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        PrintStream out = System.out;
        System.setOut(System.err); // loggers write to standard output, which is for answers
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                round(JSON.readTree(line), answer);
            } catch (Throwable error) {
                Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
                answer.removeAll();
                answer.put("error", cause.getClass().getName() + ": " + cause.getMessage());
            }
            out.println(JSON.writeValueAsString(answer));
            out.flush();
        }
        System.exit(0);
    }

    private static void round(JsonNode request, ObjectNode answer) throws Exception {
        Map<String, Object> settings = settings(request);
        String topic = request.get("topic").asText();
        String value = request.get("value").asText();
        long timeoutMs = request.get("timeout_ms").asLong();
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            producer.send(new ProducerRecord<>(topic, value)).get(timeoutMs, TimeUnit.MILLISECONDS);
        }
        settings.put("group.id", request.get("group").asText());
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", false);
        ArrayNode values = answer.putArray("values");
        try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMs);
            boolean arrived = false;
            while (!arrived && System.nanoTime() < deadline) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(500))) {
                    values.add(record.value());
                    arrived |= record.value().equals(value);
                }
            }
            consumer.commitSync();
        }
    }

    private static Map<String, Object> settings(JsonNode request) {
        JsonNode login = request.get("login");
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", request.get("bootstrap").asText());
        settings.put("security.protocol", login.hasNonNull("mechanism") ? "SASL_SSL" : "SSL");
        settings.put("ssl.truststore.type", "PEM");
        settings.put("ssl.truststore.location", login.get("ca").asText());
        settings.put("max.block.ms", request.get("timeout_ms").asLong());
        if (login.hasNonNull("certificate")) {
            settings.put("ssl.keystore.type", "PEM");
            settings.put("ssl.keystore.location", login.get("certificate").asText());
        }
        if (login.hasNonNull("mechanism")) {
            settings.put("sasl.mechanism", login.get("mechanism").asText());
            settings.put("sasl.jaas.config", jaas(login) + ";");
        }
        if (login.hasNonNull("token")) {
            settings.put("sasl.login.callback.handler.class", GivenToken.class);
        }
        return settings;
    }

    private static String jaas(JsonNode login) {
        String mechanism = login.get("mechanism").asText();
        if (mechanism.equals("OAUTHBEARER")) {
            return MODULES + "oauthbearer.OAuthBearerLoginModule required token=\"" + login.get("token").asText() + "\"";
        }
        return MODULES + (mechanism.equals("PLAIN") ? "plain.PlainLoginModule" : "scram.ScramLoginModule")
            + " required username=\"" + login.get("user").asText() + "\" password=\"" + login.get("password").asText()
            + "\"" + (login.path("is_delegated").asBoolean() ? " tokenauth=\"true\"" : "");
    }

    /** Returns the token of the JAAS entry, valid for an hour, so that the broker judges an expired one. */
    public static class GivenToken implements AuthenticateCallbackHandler {
        private String token;

        @Override
        public void configure(Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {
            token = (String) entries.get(0).getOptions().get("token");
        }

        @Override
        public void handle(Callback[] callbacks) {
            for (Callback callback : callbacks) {
                if (callback instanceof OAuthBearerTokenCallback wanted) {
                    wanted.token(new Token(token, System.currentTimeMillis()));
                } else {
                    assert callback instanceof SaslExtensionsCallback;
                }
            }
        }

        @Override
        public void close() { }
    }

    private record Token(String value, Long startTimeMs) implements OAuthBearerToken {
        @Override
        public Set<String> scope() {
            return Set.of();
        }

        @Override
        public long lifetimeMs() {
            return startTimeMs + TimeUnit.HOURS.toMillis(1);
        }

        @Override
        public String principalName() {
            return "dave";
        }
    }
}
