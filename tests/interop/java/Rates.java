import java.util.concurrent.TimeUnit;
import java.util.Random;
import org.apache.kafka.common.metrics.*;
import org.apache.kafka.common.metrics.stats.*;
/** Prints what Kafka's Rate and TokenBucket compute for random values: tests/broker/quotas/kafka_rates.json. */
public class Rates {
  public static void main(String[] a) {
    StringBuilder out = new StringBuilder("{\"rate\": [\n");
    Random r = new Random(20);
    boolean first = true;
    int[][] shapes = {{11,1},{3,2},{1,1}};
    for (int[] s : shapes) {
      MetricConfig c = new MetricConfig().samples(s[0]).timeWindow(s[1], TimeUnit.SECONDS);
      Rate rate = new Rate();
      double bound = 1000;
      long now = 5000;
      for (int i = 0; i < 60; i++) {
        int k = r.nextInt(20);
        now += k < 8 ? 0 : k < 16 ? r.nextInt(700) : k < 19 ? r.nextInt(4000) : 9000 + r.nextInt(9000);
        double v = r.nextInt(5000);
        if (i % 17 == 16) v = -v;
        rate.record(c, v, now);
        double m = rate.measure(c, now);
        long t = m > bound ? Math.round((m - bound) / bound * rate.windowSize(c, now)) : 0;
        out.append(first ? "" : ",\n").append(String.format("[%d, %d, %d, %.0f, %s, %d]", s[0], s[1], now, v, Double.toString(m), t));
        first = false;
      }
    }
    out.append("],\n\"tokens\": [\n");
    TokenBucket b = new TokenBucket();
    double q = 3;
    long now = 1700000000000L;
    first = true;
    for (int i = 0; i < 80; i++) {
      if (i == 40) q = 0.5;
      MetricConfig c = new MetricConfig().samples(11).timeWindow(1, TimeUnit.SECONDS).quota(new Quota(q, true));
      now += r.nextInt(4) == 0 ? r.nextInt(9000) : r.nextInt(600);
      double v = r.nextInt(9);
      b.record(c, v, now);
      double m = b.measure(c, now);
      long t = m < 0 ? Math.round(-m / q * 1000) : 0;
      out.append(first ? "" : ",\n").append(String.format("[%s, %d, %.0f, %d]", Double.toString(q), now, v, t));
      first = false;
    }
    System.out.println(out.append("]}"));
  }
}
