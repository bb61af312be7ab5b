import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.metrics.stats.TokenBucket;

/**
 * Prints what Kafka's Rate and TokenBucket compute for a fixed sequence of random values:
 * tests/broker/quotas/kafka_rates.json. Rows of rates: samples, seconds of each, time in ms, value, rate, throttle time
 * in ms; of tokens: rate, time, value, throttle time.
 */
public class Rates {
    private static final int[][] WINDOWS = {{11, 1}, {3, 2}, {1, 1}};
    private static final double BOUND = 1000;
    private static final Random RANDOM = new Random(20);

    public static void main(String[] arguments) {
        StringBuilder out = new StringBuilder("{\"rate\": [\n");
        for (int[] windows : WINDOWS) {
            printRates(out, windows[0], windows[1]);
        }
        out.setLength(out.length() - 2);
        out.append("],\n\"tokens\": [\n");
        printTokens(out);
        out.setLength(out.length() - 2);
        System.out.println(out.append("]}"));
    }

    private static void printRates(StringBuilder out, int samples, int seconds) {
        MetricConfig config = new MetricConfig().samples(samples).timeWindow(seconds, TimeUnit.SECONDS);
        Rate rate = new Rate();
        long now = 5000;
        for (int i = 0; i < 60; i++) {
            int kind = RANDOM.nextInt(20);
            now += kind < 8 ? 0
                : kind < 16 ? RANDOM.nextInt(700)
                : kind < 19 ? RANDOM.nextInt(4000)
                : 9000 + RANDOM.nextInt(9000);
            double value = RANDOM.nextInt(5000);
            if (i % 17 == 16) {
                value = -value;
            }
            rate.record(config, value, now);
            double perSecond = rate.measure(config, now);
            long throttleMs = perSecond > BOUND
                ? Math.round((perSecond - BOUND) / BOUND * rate.windowSize(config, now))
                : 0;
            out.append(String.format(
                "[%d, %d, %d, %.0f, %s, %d],\n", samples, seconds, now, value, perSecond, throttleMs));
        }
    }

    private static void printTokens(StringBuilder out) {
        TokenBucket bucket = new TokenBucket();
        double perSecond = 3;
        long now = 1700000000000L;
        for (int i = 0; i < 80; i++) {
            if (i == 40) {
                perSecond = 0.5;
            }
            MetricConfig config =
                new MetricConfig().samples(11).timeWindow(1, TimeUnit.SECONDS).quota(new Quota(perSecond, true));
            now += RANDOM.nextInt(4) == 0 ? RANDOM.nextInt(9000) : RANDOM.nextInt(600);
            double value = RANDOM.nextInt(9);
            bucket.record(config, value, now);
            double tokens = bucket.measure(config, now);
            long throttleMs = tokens < 0 ? Math.round(-tokens / perSecond * 1000) : 0;
            out.append(String.format("[%s, %d, %.0f, %d],\n", perSecond, now, value, throttleMs));
        }
    }
}
