import java.util.*;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.Uuid;

/**
 * The steps by which one node becomes a cluster of three, by Kafka's admin client.
 *
 * <pre>
 * GrowCluster BOOTSTRAP levels                          raises features to the newest levels, kraft.version to 1
 * GrowCluster BOOTSTRAP add-voter ID DIRECTORY PORT     makes a controller on 127.0.0.1 a voter
 * GrowCluster BOOTSTRAP spread 1,2,3                    gives every partition these replicas; ends when all are in sync
 * GrowCluster BOOTSTRAP voters                          prints the ids of the voters
 * GrowCluster BOOTSTRAP offsets GROUP                   prints the group's committed offsets
 * </pre>
 */
public class GrowCluster {
    private static final long TIMEOUT_S = 120;

    public static void main(String[] arguments) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0], "default.api.timeout.ms", "120000"))) {
            switch (arguments[1]) {
                case "levels" -> levels(admin);
                case "add-voter" -> admin.addRaftVoter(
                    Integer.parseInt(arguments[2]), Uuid.fromString(arguments[3]),
                    Set.of(new RaftVoterEndpoint("CONTROLLER", "127.0.0.1", Integer.parseInt(arguments[4])))
                ).all().get(TIMEOUT_S, TimeUnit.SECONDS);
                case "spread" -> spread(admin,
                    Arrays.stream(arguments[2].split(",")).map(Integer::valueOf).collect(Collectors.toList()));
                case "voters" -> System.out.println(admin.describeMetadataQuorum().quorumInfo()
                    .get(TIMEOUT_S, TimeUnit.SECONDS).voters().stream()
                    .map(voter -> String.valueOf(voter.replicaId())).sorted().collect(Collectors.joining(",")));
                case "offsets" -> admin.listConsumerGroupOffsets(arguments[2]).partitionsToOffsetAndMetadata()
                    .get(TIMEOUT_S, TimeUnit.SECONDS)
                    .forEach((partition, offset) -> System.out.println(partition + " " + offset.offset()));
                default -> throw new IllegalArgumentException(arguments[1]);
            }
        }
    }

    private static void levels(Admin admin) throws Exception {
        short newest = admin.describeFeatures().featureMetadata().get(TIMEOUT_S, TimeUnit.SECONDS)
            .supportedFeatures().get("metadata.version").maxVersion();
        for (Map.Entry<String, Short> level : List.of(Map.entry("metadata.version", newest), Map.entry("kraft.version", (short) 1))) {
            FeatureUpdate update = new FeatureUpdate(level.getValue(), FeatureUpdate.UpgradeType.UPGRADE);
            admin.updateFeatures(Map.of(level.getKey(), update), new UpdateFeaturesOptions()).all().get(TIMEOUT_S, TimeUnit.SECONDS);
        }
    }

    private static void spread(Admin admin, List<Integer> replicas) throws Exception {
        Set<String> names = admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get(TIMEOUT_S, TimeUnit.SECONDS);
        Map<TopicPartition, Optional<NewPartitionReassignment>> wanted = new HashMap<>();
        describe(admin, names).forEach(topic -> topic.partitions().forEach(partition -> wanted.put(
            new TopicPartition(topic.name(), partition.partition()), Optional.of(new NewPartitionReassignment(replicas)))));
        admin.alterPartitionReassignments(wanted).all().get(TIMEOUT_S, TimeUnit.SECONDS);
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(TIMEOUT_S);
        while (!describe(admin, names).stream().flatMap(topic -> topic.partitions().stream())
                .allMatch(partition -> inSync(partition, replicas))) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("not in sync: " + describe(admin, names));
            }
            Thread.sleep(200); // Kafka has no call that waits for a reassignment
        }
    }

    private static boolean inSync(TopicPartitionInfo partition, List<Integer> replicas) {
        Set<Integer> isr = partition.isr().stream().map(node -> node.id()).collect(Collectors.toSet());
        return partition.replicas().size() == replicas.size() && isr.equals(Set.copyOf(replicas));
    }

    private static Collection<TopicDescription> describe(Admin admin, Set<String> names) throws Exception {
        return admin.describeTopics(names).allTopicNames().get(TIMEOUT_S, TimeUnit.SECONDS).values();
    }
}
