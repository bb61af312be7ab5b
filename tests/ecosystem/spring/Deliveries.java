// Produces numbered records with a KafkaTemplate, or prints those of a topic with a @KafkaListener.
//
//     java Deliveries produce BOOTSTRAP TOPIC COUNT
//     java Deliveries consume BOOTSTRAP TOPIC GROUP

import java.util.Map;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.support.PropertySourcesPlaceholderConfigurer;
import org.springframework.kafka.annotation.EnableKafka;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.config.ConcurrentKafkaListenerContainerFactory;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.core.KafkaTemplate;

public class Deliveries {
    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("produce")) {
            produce(arguments[1], arguments[2], Integer.parseInt(arguments[3]));
            return;
        }
        System.setProperty("bootstrap", arguments[1]);
        System.setProperty("topic", arguments[2]);
        System.setProperty("group", arguments[3]);
        new AnnotationConfigApplicationContext(Listening.class);
        Thread.currentThread().join();
    }

    private static void produce(String bootstrap, String topic, int count) throws Exception {
        Map<String, Object> settings = Map.of(
                "bootstrap.servers", bootstrap,
                "key.serializer", StringSerializer.class,
                "value.serializer", StringSerializer.class,
                "reconnect.backoff.max.ms", 200);
        var factory = new DefaultKafkaProducerFactory<String, String>(settings);
        var template = new KafkaTemplate<>(factory);
        for (int number = 0; number < count; number++) {
            template.send(topic, "record " + number).get();
            Thread.sleep(2);
        }
        factory.destroy();
    }

    @Configuration
    @EnableKafka
    public static class Listening {
        @Bean
        static PropertySourcesPlaceholderConfigurer placeholders() {
            return new PropertySourcesPlaceholderConfigurer();
        }

        @Bean
        ConcurrentKafkaListenerContainerFactory<String, String> kafkaListenerContainerFactory() {
            Map<String, Object> settings = Map.of(
                    "bootstrap.servers", System.getProperty("bootstrap"),
                    "key.deserializer", StringDeserializer.class,
                    "value.deserializer", StringDeserializer.class,
                    "auto.offset.reset", "earliest",
                    "session.timeout.ms", 6000,
                    "reconnect.backoff.max.ms", 200);
            var factory = new ConcurrentKafkaListenerContainerFactory<String, String>();
            factory.setConsumerFactory(new DefaultKafkaConsumerFactory<>(settings));
            return factory;
        }

        @KafkaListener(topics = "${topic}", groupId = "${group}")
        void delivered(String value) {
            System.out.println(value);
        }
    }
}
