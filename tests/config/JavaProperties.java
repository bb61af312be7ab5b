// Reads 0.properties, 1.properties, ... of a folder (arguments: folder, count) with java.util.Properties and prints:
// one line a file, "<hexadecimal key>=<hexadecimal value>" for each entry, sorted, in UTF-16; "refused" where it throws.

import java.io.FileInputStream;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Properties;
import java.util.stream.Collectors;

public class JavaProperties {
    public static void main(String[] arguments) throws Exception {
        for (int number = 0; number < Integer.parseInt(arguments[1]); number++) {
            String path = arguments[0] + "/" + number + ".properties";
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
