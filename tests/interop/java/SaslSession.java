import java.util.*;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.*;

/**
 * Kafka's admin client on sessions that are short: it must authenticate again on its connection.
 *
 * <pre>
 * SaslSession BOOTSTRAP USER PASSWORD MILLISECONDS   describes the cluster for that time; prints "= REQUESTS"
 * </pre>
 */
public class SaslSession {
    public static void main(String[] arguments) throws Exception {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", arguments[0], "security.protocol", "SASL_PLAINTEXT", "sasl.mechanism", "PLAIN",
            "sasl.jaas.config", "org.apache.kafka.common.security.plain.PlainLoginModule required username=\""
                + arguments[1] + "\" password=\"" + arguments[2] + "\";",
            "retries", 0);
        int requests = 0;
        try (Admin admin = Admin.create(settings)) {
            long end = System.currentTimeMillis() + Long.parseLong(arguments[3]);
            while (System.currentTimeMillis() < end) {
                admin.describeCluster().nodes().get(30, TimeUnit.SECONDS);
                requests++;
                Thread.sleep(50);
            }
        }
        System.out.println("\n= " + requests);
    }
}
