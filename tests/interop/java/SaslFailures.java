import java.util.*;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.*;

/**
 * What Kafka's admin client reports about a login.
 *
 * <pre>
 * SaslFailures BOOTSTRAP,... MECHANISM USER PASSWORD [MECHANISM USER PASSWORD]...
 * </pre>
 *
 * Prints a line for each broker and login: "=", the broker, the mechanism, the user, and "ok" or the class and message of
 * the failure. Other lines are the client's log.
 */
public class SaslFailures {
    public static void main(String[] arguments) throws Exception {
        for (String broker : arguments[0].split(",")) {
            for (int i = 1; i + 2 < arguments.length; i += 3) {
                String outcome = login(broker, arguments[i], arguments[i + 1], arguments[i + 2]);
                System.out.println("\n= " + broker + " " + arguments[i] + " " + arguments[i + 1] + ": " + outcome);
            }
        }
    }

    private static String login(String bootstrap, String mechanism, String user, String password) throws Exception {
        String module = mechanism.equals("PLAIN") ? "plain.PlainLoginModule" : "scram.ScramLoginModule";
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", bootstrap, "security.protocol", "SASL_PLAINTEXT", "sasl.mechanism", mechanism,
            "sasl.jaas.config", "org.apache.kafka.common.security." + module + " required username=\"" + user
                + "\" password=\"" + password + "\";",
            "request.timeout.ms", 20000, "default.api.timeout.ms", 20000, "retries", 0);
        try (Admin admin = Admin.create(settings)) {
            admin.describeCluster().nodes().get(30, TimeUnit.SECONDS);
            return "ok";
        } catch (ExecutionException error) {
            return error.getCause().getClass().getSimpleName() + ": " + error.getCause().getMessage();
        }
    }
}
