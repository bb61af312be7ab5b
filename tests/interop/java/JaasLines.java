// Reads a file with one text in base64 per line, and prints what Kafka's clients read from it as sasl.jaas.config: for
// each text "refused", or module, flag and the sorted options in base64, separated by spaces.

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.JaasContext;

public class JaasLines {
    public static void main(String[] arguments) throws Exception {
        StringBuilder printed = new StringBuilder();
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            String text = new String(Base64.getDecoder().decode(line), StandardCharsets.UTF_8);
            printed.append(read(text)).append('\n');
        }
        System.out.print(printed);
    }

    private static String read(String text) {
        try {
            JaasContext context = JaasContext.loadClientContext(Map.of("sasl.jaas.config", new Password(text)));
            AppConfigurationEntry entry = context.configurationEntries().get(0);
            List<String> words = new ArrayList<>();
            words.add(encode(entry.getLoginModuleName()));
            words.add(encode(entry.getControlFlag().toString().replaceAll(".*: ", "")));
            // A missing name is null, which a tree map does not take: no such option can be looked up.
            for (Map.Entry<String, ?> option : new TreeMap<>(entry.getOptions()).entrySet()) {
                words.add(encode(option.getKey()));
                words.add(encode((String) option.getValue()));
            }
            return String.join(" ", words);
        } catch (RuntimeException error) {
            return "refused";
        }
    }

    private static String encode(String text) {
        return "=" + Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }
}
