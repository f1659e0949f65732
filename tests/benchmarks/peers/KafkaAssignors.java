import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * Kafka's own assignors, asked over standard input.
 *
 * <p>A question is a line "assignor runs", a line "topic=partitions ..." and a line "member owned-partition ..." for
 * each member, a partition being "topic-number"; an empty line ends it. The answer is the time of the last run in
 * nanoseconds, the number of rounds, a line "member partition ..." for each member, and an empty line.
 */
public final class KafkaAssignors {
    private static final Node BROKER = new Node(0, "localhost", 9092);
    private static final int MOST_ROUNDS = 10;

    /** What a group settles on, how long its leader thought about it, and in how many rounds. */
    private record Plan(Map<String, List<TopicPartition>> owned, long nanos, int rounds) { }

    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        PrintStream output = new PrintStream(System.out, false);
        String question;
        while ((question = input.readLine()) != null) {
            String[] words = question.split(" ");
            Cluster cluster = cluster(input.readLine());
            Map<String, List<TopicPartition>> owned = owned(input);
            Plan plan = null;
            for (int run = 0; run < Integer.parseInt(words[1]); run++) {
                plan = settle(words[0], cluster, owned);
            }
            answer(output, plan);
        }
    }

    /** The sticky one gives a member what another still has only after that one has given it up: a round more. */
    private static Plan settle(String name, Cluster cluster, Map<String, List<TopicPartition>> owned) {
        ConsumerPartitionAssignor assignor = name.equals("range") ? new RangeAssignor() : new CooperativeStickyAssignor();
        int partitions = cluster.topics().stream().mapToInt(cluster::partitionCountForTopic).sum();
        long nanos = 0;
        for (int round = 1; round <= MOST_ROUNDS; round++) {
            GroupSubscription group = group(cluster, owned, round);
            long started = System.nanoTime();
            Map<String, Assignment> assigned = assignor.assign(cluster, group).groupAssignment();
            nanos += System.nanoTime() - started;
            Map<String, List<TopicPartition>> next = new LinkedHashMap<>();
            owned.keySet().forEach(member -> next.put(member, assigned.get(member).partitions()));
            if (next.values().stream().mapToInt(List::size).sum() == partitions) {
                return new Plan(next, nanos, round);
            }
            owned = next;
        }
        throw new IllegalStateException("not settled after " + MOST_ROUNDS + " rounds");
    }

    private static GroupSubscription group(Cluster cluster, Map<String, List<TopicPartition>> owned, int generation) {
        List<String> topics = new ArrayList<>(cluster.topics());
        Map<String, Subscription> members = new LinkedHashMap<>();
        owned.forEach((member, partitions) ->
            members.put(member, new Subscription(topics, null, partitions, generation, Optional.empty())));
        return new GroupSubscription(members);
    }

    private static Cluster cluster(String line) {
        List<PartitionInfo> partitions = new ArrayList<>();
        for (String topic : line.split(" ")) {
            String[] parts = topic.split("=");
            for (int number = 0; number < Integer.parseInt(parts[1]); number++) {
                partitions.add(new PartitionInfo(parts[0], number, BROKER, new Node[] {BROKER}, new Node[] {BROKER}));
            }
        }
        return new Cluster("bench", List.of(BROKER), partitions, Set.of(), Set.of());
    }

    private static Map<String, List<TopicPartition>> owned(BufferedReader input) throws Exception {
        Map<String, List<TopicPartition>> owned = new LinkedHashMap<>();
        for (String line = input.readLine(); !line.isEmpty(); line = input.readLine()) {
            String[] words = line.split(" ");
            List<TopicPartition> partitions = new ArrayList<>();
            for (String word : Arrays.asList(words).subList(1, words.length)) {
                int dash = word.lastIndexOf('-');
                partitions.add(new TopicPartition(word.substring(0, dash), Integer.parseInt(word.substring(dash + 1))));
            }
            owned.put(words[0], partitions);
        }
        return owned;
    }

    private static void answer(PrintStream output, Plan plan) {
        output.println(plan.nanos());
        output.println(plan.rounds());
        plan.owned().forEach((member, partitions) -> {
            StringBuilder line = new StringBuilder(member);
            partitions.forEach(partition -> line.append(' ').append(partition));
            output.println(line);
        });
        output.println();
        output.flush();
    }
}
