// Reads every file named in the arguments with java.util.Properties and prints what it holds:
// one line a file, "<hexadecimal key>=<hexadecimal value>" for each entry, sorted, in UTF-16; "refused" where it throws.

import java.io.FileInputStream;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Properties;
import java.util.stream.Collectors;

public class JavaProperties {
    public static void main(String[] paths) throws Exception {
        for (String path : paths) {
            Properties properties = new Properties();
            try (InputStream input = new FileInputStream(path)) {
                properties.load(input);
                System.out.println(properties.entrySet().stream()
                    .map(entry -> hex(entry.getKey()) + "=" + hex(entry.getValue()))
                    .sorted().collect(Collectors.joining(",")));
            } catch (IllegalArgumentException refused) {
                System.out.println("refused");
            }
        }
    }

    static String hex(Object text) {
        return HexFormat.of().formatHex(((String) text).getBytes(StandardCharsets.UTF_16BE));
    }
}
