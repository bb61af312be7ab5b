import java.util.*;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.*;
import org.apache.kafka.common.resource.*;

/**
 * Contents of a cluster's metadata log, created and described by Kafka's admin client.
 *
 * <pre>
 * ClusterState BOOTSTRAP make       creates topics, configs, ACLs, SCRAM users, quotas; and deletes some of each
 * ClusterState BOOTSTRAP describe   prints one line per object, sorted
 * </pre>
 */
public class ClusterState {
    private static final long TIMEOUT_S = 60;

    public static void main(String[] arguments) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]))) {
            if (arguments[1].equals("make")) {
                make(admin);
            } else {
                SortedSet<String> lines = new TreeSet<>();
                describe(admin, lines);
                lines.forEach(System.out::println);
            }
        }
    }

    private static void make(Admin admin) throws Exception {
        List<NewTopic> topics = new ArrayList<>();
        for (int number = 0; number < 6; number++) {
            NewTopic topic = new NewTopic("topic-" + number, number + 1, (short) 1);
            topics.add(topic.configs(Map.of("retention.ms", "-1", "max.message.bytes", String.valueOf(10_000 + number))));
        }
        admin.createTopics(topics).all().get(TIMEOUT_S, TimeUnit.SECONDS);
        admin.deleteTopics(List.of("topic-0")).all().get(TIMEOUT_S, TimeUnit.SECONDS);
        admin.incrementalAlterConfigs(Map.of(
            new ConfigResource(ConfigResource.Type.TOPIC, "topic-1"), List.of(set("cleanup.policy", "compact")),
            new ConfigResource(ConfigResource.Type.TOPIC, "topic-2"),
                List.of(new AlterConfigOp(new ConfigEntry("retention.ms", ""), AlterConfigOp.OpType.DELETE)),
            new ConfigResource(ConfigResource.Type.BROKER, ""), List.of(set("message.max.bytes", "900000")),
            new ConfigResource(ConfigResource.Type.BROKER, "1"), List.of(set("log.cleaner.threads", "2"))
        )).all().get(TIMEOUT_S, TimeUnit.SECONDS);
        AclBinding kept = acl("User:alice", "topic-1"), removed = acl("User:bob", "topic-2");
        admin.createAcls(List.of(kept, removed)).all().get(TIMEOUT_S, TimeUnit.SECONDS);
        admin.deleteAcls(List.of(removed.toFilter())).all().get(TIMEOUT_S, TimeUnit.SECONDS);
        ScramCredentialInfo credential = new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096);
        admin.alterUserScramCredentials(List.of(
            new UserScramCredentialUpsertion("alice", credential, "secret"),
            new UserScramCredentialUpsertion("bob", credential, "secret")
        )).all().get(TIMEOUT_S, TimeUnit.SECONDS);
        admin.alterUserScramCredentials(List.of(
            new UserScramCredentialDeletion("bob", ScramMechanism.SCRAM_SHA_256)
        )).all().get(TIMEOUT_S, TimeUnit.SECONDS);
        admin.alterClientQuotas(List.of(
            quota(Map.of("user", "alice"), 1e6), quota(Map.of("user", "bob", "client-id", "c"), 2e6)
        )).all().get(TIMEOUT_S, TimeUnit.SECONDS);
        admin.alterClientQuotas(List.of(quota(Map.of("user", "bob", "client-id", "c"), null)))
            .all().get(TIMEOUT_S, TimeUnit.SECONDS);
    }

    private static void describe(Admin admin, Set<String> lines) throws Exception {
        Set<String> names = admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get(TIMEOUT_S, TimeUnit.SECONDS);
        for (TopicDescription topic : admin.describeTopics(names).allTopicNames().get(TIMEOUT_S, TimeUnit.SECONDS).values()) {
            lines.add("topic " + topic.name() + " " + topic.topicId() + " " + topic.partitions().size());
        }
        List<ConfigResource> resources = new ArrayList<>();
        names.forEach(name -> resources.add(new ConfigResource(ConfigResource.Type.TOPIC, name)));
        resources.add(new ConfigResource(ConfigResource.Type.BROKER, ""));
        resources.add(new ConfigResource(ConfigResource.Type.BROKER, "1"));
        admin.describeConfigs(resources).all().get(TIMEOUT_S, TimeUnit.SECONDS).forEach((resource, config) -> {
            for (ConfigEntry entry : config.entries()) {
                if (entry.source().name().startsWith("DYNAMIC")) {
                    lines.add("config " + resource + " " + entry.name() + "=" + entry.value() + " " + entry.source());
                }
            }
        });
        for (AclBinding binding : admin.describeAcls(AclBindingFilter.ANY).values().get(TIMEOUT_S, TimeUnit.SECONDS)) {
            lines.add("acl " + binding);
        }
        admin.describeUserScramCredentials().all().get(TIMEOUT_S, TimeUnit.SECONDS)
            .forEach((user, description) -> lines.add("user " + user + " " + sorted(description.credentialInfos())));
        admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get(TIMEOUT_S, TimeUnit.SECONDS)
            .forEach((entity, values) -> lines.add("quota " + new TreeMap<>(entity.entries()) + " " + values));
        admin.describeFeatures().featureMetadata().get(TIMEOUT_S, TimeUnit.SECONDS).finalizedFeatures()
            .forEach((name, range) -> lines.add("feature " + name + " " + range.maxVersionLevel()));
    }

    private static List<String> sorted(List<ScramCredentialInfo> infos) {
        return infos.stream().map(ScramCredentialInfo::toString).sorted().toList(); // Kafka's order changes
    }

    private static AlterConfigOp set(String name, String value) {
        return new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET);
    }

    private static AclBinding acl(String principal, String topic) {
        return new AclBinding(
            new ResourcePattern(ResourceType.TOPIC, topic, PatternType.LITERAL),
            new AccessControlEntry(principal, "*", AclOperation.READ, AclPermissionType.ALLOW));
    }

    private static ClientQuotaAlteration quota(Map<String, String> entity, Double value) {
        return new ClientQuotaAlteration(
            new ClientQuotaEntity(entity), List.of(new ClientQuotaAlteration.Op("producer_byte_rate", value)));
    }
}
