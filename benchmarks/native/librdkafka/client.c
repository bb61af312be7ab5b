/* librdkafka as a load generator: produces to, or consumes from, partition 0 of a topic.
 *
 *     client produce BOOTSTRAP TOPIC RECORDS VALUE_BYTES [NAME=VALUE ...]
 *     client consume BOOTSTRAP TOPIC RECORDS [NAME=VALUE ...]
 *
 * BOOTSTRAP "mock" is librdkafka's mock cluster inside this process (test.mock.num.brokers), which stores nothing: the
 * limit of the client itself. All records have the same value of VALUE_BYTES and no key. The time runs from the first
 * record to the last delivery report, or to the last record received. Prints one JSON object; exits 1 with an error
 * message when a record is not delivered.
 */
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { BATCH = 10000, WAIT_MS = 20000 };

static long delivered, failed;
static char error_text[512];

static void die(const char *what, const char *why) {
    fprintf(stderr, "librdkafka: %s: %s\n", what, why);
    exit(1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static double cpu_seconds(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
    (void)client;
    (void)opaque;
    delivered++;
    if (message->err) {
        failed++;
        snprintf(error_text, sizeof error_text, "%s", rd_kafka_err2str(message->err));
    }
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
    char text[512];
    if (rd_kafka_conf_set(conf, name, value, text, sizeof text) != RD_KAFKA_CONF_OK) die(name, text);
}

static rd_kafka_t *make(rd_kafka_type_t type, const char *bootstrap, int count, char **settings) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char text[512];
    if (strcmp(bootstrap, "mock") == 0) set(conf, "test.mock.num.brokers", "1");
    else set(conf, "bootstrap.servers", bootstrap);
    if (type == RD_KAFKA_PRODUCER) rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    for (int i = 0; i < count; i++) {
        char *equals = strchr(settings[i], '=');
        if (!equals) die(settings[i], "not of the form name=value");
        *equals = 0;
        set(conf, settings[i], equals + 1);
    }
    rd_kafka_t *client = rd_kafka_new(type, conf, text, sizeof text);
    if (!client) die("cannot start", text);
    return client;
}

static void report(double started, double cpu, long records, long bytes) {
    printf("{\"seconds\": %.6f, \"cpu_seconds\": %.6f, \"records\": %ld, \"value_bytes\": %ld}\n", now() - started,
           cpu_seconds() - cpu, records, bytes);
}

static void produce(const char *bootstrap, const char *name, long records, long value_bytes, int count, char **settings) {
    rd_kafka_t *client = make(RD_KAFKA_PRODUCER, bootstrap, count, settings);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, name, NULL);
    char *value = malloc(value_bytes);
    for (long i = 0; i < value_bytes; i++) value[i] = (char)('a' + i % 26);
    double started = now(), cpu = cpu_seconds();
    for (long sent = 0; sent < records;) {
        if (rd_kafka_produce(topic, 0, 0, value, value_bytes, NULL, 0, NULL) == 0) {
            if (++sent % 1000 == 0) rd_kafka_poll(client, 0);
        } else if (rd_kafka_last_error() == RD_KAFKA_RESP_ERR__QUEUE_FULL) {
            rd_kafka_poll(client, 1);
        } else {
            die("produce", rd_kafka_err2str(rd_kafka_last_error()));
        }
    }
    while (delivered < records) {
        if (rd_kafka_poll(client, WAIT_MS) == 0) die("produce", "no delivery report within 20 s");
    }
    if (failed) die("produce", error_text);
    report(started, cpu, records, records * value_bytes);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(client);
    free(value);
}

static void consume(const char *bootstrap, const char *name, long records, int count, char **settings) {
    rd_kafka_t *client = make(RD_KAFKA_CONSUMER, bootstrap, count, settings);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, name, NULL);
    rd_kafka_message_t **messages = malloc(BATCH * sizeof *messages);
    long seen = 0, bytes = 0;
    double started = now(), cpu = cpu_seconds();
    if (rd_kafka_consume_start(topic, 0, RD_KAFKA_OFFSET_BEGINNING)) die("consume", "cannot start");
    while (seen < records) {
        /* Never request more than are left: the call waits for all of them. */
        long left = records - seen;
        ssize_t got = rd_kafka_consume_batch(topic, 0, WAIT_MS, messages, left < BATCH ? left : BATCH);
        if (got <= 0) die("consume", "no record within 20 s");
        for (ssize_t i = 0; i < got; i++) {
            if (messages[i]->err && messages[i]->err != RD_KAFKA_RESP_ERR__PARTITION_EOF)
                die("consume", rd_kafka_message_errstr(messages[i]));
            if (!messages[i]->err) seen++, bytes += (long)messages[i]->len;
            rd_kafka_message_destroy(messages[i]);
        }
    }
    report(started, cpu, seen, bytes);
    rd_kafka_consume_stop(topic, 0);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(client);
    free(messages);
}

int main(int argc, char **argv) {
    if (argc >= 6 && strcmp(argv[1], "produce") == 0)
        produce(argv[2], argv[3], atol(argv[4]), atol(argv[5]), argc - 6, argv + 6);
    else if (argc >= 5 && strcmp(argv[1], "consume") == 0)
        consume(argv[2], argv[3], atol(argv[4]), argc - 5, argv + 5);
    else
        die("usage", "client produce|consume BOOTSTRAP TOPIC RECORDS [VALUE_BYTES] [NAME=VALUE ...]");
    return 0;
}
